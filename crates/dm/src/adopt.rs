//! The change of rules under a campaign: which rules and which version of the cartridge its acts were played by. `act` and
//! `campaign` use it.
//!
//! A replay can only repeat what this program's rules did. The first act by other rules therefore puts an entry into the journal
//! that holds the campaign's files as they stood; a replay starts at the last such entry.

use serde::{Deserialize, Serialize};

use crate::act::{Act, JOURNAL, JournalEntry};
use crate::answer::ANSWER;
use crate::delta::apply::Change;
use crate::files::{Files, ReadFiles};
use crate::json;
use crate::turn::ActContext;
use crate::world::Cartridge;
use acheron_base::{Error, Result};

/// The number of these rules. It grows by one whenever the same input would change a campaign in another way.
pub const RULES: u32 = 7;

/// Where a campaign notes what it is played by, so that no act has to read the whole journal for it.
pub const MARK: &str = ".kernel/rules.json";

/// The rules and the version of the cartridge that acts are played by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayedBy {
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub rules: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

fn first() -> u32 {
    1
}

fn is_first(rules: &u32) -> bool {
    *rules == 1
}

impl PlayedBy {
    /// These rules, with this cartridge. A changed map and the pages of a library that change the rules are parts of the version.
    pub fn now(world: &Cartridge) -> PlayedBy {
        let (mut version, own) = (world.version.clone(), &world.engine.mark);
        if world.map.version > 1 {
            version.push_str(&format!("+map{}", world.map.version));
        }
        if !own.is_empty() {
            version.push_str(&format!("+{own}"));
        }
        PlayedBy { rules: RULES, version }
    }

    /// What a campaign notes; one of the first rules notes nothing.
    pub fn noted(files: &dyn ReadFiles) -> Result<PlayedBy> {
        let text = files.read(MARK)?.unwrap_or_else(|| "{}".into());
        serde_json::from_str(&text).map_err(|fault| Error::invalid(format!("{MARK}: {fault}")))
    }

    pub fn mark(&self) -> Change {
        Change::Write { path: MARK.into(), text: json::render(&serde_json::json!(self)) }
    }
}

/// The changes that note other rules, if the campaign was played by others until now.
pub fn due(context: ActContext<'_>, seq: u64) -> Result<Option<Vec<Change>>> {
    let played_by = PlayedBy::now(context.world);
    if PlayedBy::noted(context.files)? == played_by {
        return Ok(None);
    }
    let mut files = Files::new();
    for path in context.files.paths()?.into_iter().filter(|path| recorded(path)) {
        if let Some(text) = context.files.read(&path)? {
            files.insert(path, text);
        }
    }
    let act = Act::Adopt { played_by: played_by.clone(), files };
    let entry = JournalEntry { seq, at: context.at.to_owned(), act, sum: String::new() };
    Ok(Some(vec![played_by.mark(), Change::Append { path: JOURNAL.into(), text: entry.line() }]))
}

/// The files that an entry keeps: all but the journal itself and what only the storage uses.
pub fn recorded(path: &str) -> bool {
    !matches!(path, JOURNAL | ANSWER | ".kernel/lock" | ".kernel/pending.json")
}

#[cfg(test)]
mod tests;
