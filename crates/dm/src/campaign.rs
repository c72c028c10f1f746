//! A campaign as a whole: its name, its version lock, its first files, the files that it must have, and the replay of its
//! journal. Storage uses it; it touches no storage.

use crate::act::{self, Act, JOURNAL, JournalEntry};
use crate::adopt::PlayedBy;
use crate::files::Files;
use crate::md;
use crate::shipped;
use crate::turn::ActContext;
use crate::world::Cartridge;
use acheron_base::{Error, Result};

/// Checks the name of a campaign or a cartridge: no path, not hidden, not the template.
pub fn name(id: &str) -> Result<&str> {
    let lawful = !id.is_empty() && id.len() <= 64 && id.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match lawful {
        true if id == "_template" => Err(Error::read_only("the template is never written")),
        true => Ok(id),
        false => Err(Error::forbidden(format!(
            "`{}` is not a name for a campaign or a cartridge: letters, digits, _ and -",
            md::clip(id, 40)
        ))),
    }
}

/// Whether a version fits a lock: both are equal, apart from the parts where the lock has an `x`.
pub fn fits(lock: &str, version: &str) -> bool {
    let (lock, version): (Vec<&str>, Vec<&str>) = (lock.split('.').collect(), version.split('.').collect());
    lock.len() == version.len() && lock.iter().zip(&version).all(|(lock, own)| *lock == "x" || lock == own)
}

/// The lock of a campaign that is bound without one: any patch release of this version.
pub fn lock_for(version: &str) -> String {
    match version.rsplit_once('.') {
        Some((front, _)) => format!("{front}.x"),
        None => version.to_owned(),
    }
}

/// Checks that the folder of a campaign has all that a game needs.
pub fn layout(paths: &[String]) -> Result<()> {
    let there = |need: &&str| paths.iter().any(|path| path == need || (need.ends_with('/') && path.starts_with(need)));
    let needed = ["STATE_PANEL.json", "sessions/CURRENT_SESSION.md", "quests/", "characters/", "Writing/"];
    let missing: Vec<&str> = needed.into_iter().filter(|need| !there(need)).collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(Error::invalid(format!("campaign layout invalid; missing: {}", missing.join(", "))))
    }
}

/// The files of a new campaign from a template, with the first lines of its journal. `act` is [`Act::New`]; another act gives no files.
pub fn begun(id: &str, act: &Act, at: &str, template: &Files) -> Files {
    let Act::New { cartridge, version_lock, seed, played_by } = act else { return Files::new() };
    let mut files = act::blank(template, id, cartridge, version_lock, *seed, at);
    let entry = JournalEntry { seq: 0, at: at.to_owned(), act: act.clone(), sum: String::new() };
    let mut journal = entry.line();
    if *template != shipped::template() {
        // A replay has only the template of the program; another one stands in the journal.
        let act = Act::Adopt { played_by: played_by.clone(), files: files.clone() };
        journal.push_str(&JournalEntry { seq: 1, at: at.to_owned(), act, sum: String::new() }.line());
    }
    files.insert(JOURNAL.into(), journal);
    act::make(&mut files, &[played_by.mark()]);
    files
}

/// The files that a journal leads to, played from its first line.
pub fn replay(id: &str, world: &Cartridge, journal: &[JournalEntry]) -> Result<Files> {
    let Some((first, rest)) = journal.split_first() else {
        return Err(Error::not_found(format!("campaign {id} has no journal from its beginning")));
    };
    let Act::New { seed, .. } = first.act else {
        return Err(Error::invalid(format!("the journal of {id} does not begin with its making")));
    };
    let adopted = rest.iter().rposition(|entry| matches!(entry.act, Act::Adopt { .. }));
    let (mut files, rest) = match adopted.and_then(|at| Some((at, rest.get(at)?))) {
        Some((at, JournalEntry { act: Act::Adopt { played_by, files }, .. })) => {
            let mut files = files.clone();
            files.insert(JOURNAL.into(), journal[..at + 2].iter().map(JournalEntry::line).collect());
            act::make(&mut files, &[played_by.mark()]);
            (files, &rest[at + 1..])
        }
        _ => (begun(id, &first.act, &first.at, &shipped::template()), rest),
    };
    let (noted, now) = (PlayedBy::noted(&files)?, PlayedBy::now(world));
    if noted != now {
        return Err(Error::conflict(format!(
            "campaign {id} was recorded with rules {} and {} {}, and these are rules {} and {}: play on; the next move notes \
             the change in the journal, and a replay compares from there",
            noted.rules, world.id, noted.version, now.rules, now.version
        )));
    }
    for entry in rest {
        let context = ActContext { world, files: &files, campaign: id, seed, at: &entry.at };
        let (_, changes) = act::whole(context, &entry.act, entry.seq)?;
        act::make(&mut files, &changes);
    }
    Ok(files)
}
