//! The conversations of an agent, from the history of its chat.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::agent::history::HistoryEntry;
use crate::doors::tree::{DoorTree, Wait};
use acheron_acp::one_line;
use acheron_base::{Code, Error, Result, quoted};

/// The agent's own conversation, which has no name in the history.
pub const MAIN: &str = "main";
/// The most bytes of each of the two files, and the most conversations that are listed.
const MOST: usize = 16 << 20;
const LISTED: usize = 200;

/// Every turn that the history has, oldest first.
pub async fn read(tree: &DoorTree, agent: &str) -> Result<Vec<HistoryEntry>> {
    let mut turns = Vec::new();
    for name in ["history.ndjson.1", "history.ndjson"] {
        let read = tree.read(&format!("/agents/{agent}/chat/{name}"), MOST, Wait::Never).await;
        let bytes = match read {
            Err(error) if error.code == Code::NotFound => continue,
            read => read?,
        };
        turns.extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
    }
    Ok(counting(turns))
}

/// The turns that count: without those that were taken back.
fn counting(entries: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
    let (mut turns, mut taken_back): (Vec<HistoryEntry>, Vec<HistoryEntry>) = Default::default();
    for entry in entries {
        match &entry.rewound {
            None => turns.push(entry),
            Some(rewound) if rewound.undoes.is_some() => turns.append(&mut taken_back),
            Some(rewound) => (turns, taken_back) = turns.into_iter().partition(|turn| turn.seq <= rewound.to),
        }
    }
    turns
}

fn name(turn: &HistoryEntry) -> &str {
    turn.session.as_ref().map_or(MAIN, |session| session.id.as_str())
}

/// The turns of one conversation.
pub fn of(turns: &[HistoryEntry], session: &str) -> Result<Vec<HistoryEntry>> {
    let own: Vec<HistoryEntry> = turns.iter().filter(|turn| name(turn) == session).cloned().collect();
    match own.is_empty() && session != MAIN {
        true => Err(Error::not_found(format!(
            "the history has no session {}; `session/list` shows those that it has",
            quoted(session)
        ))),
        false => Ok(own),
    }
}

/// The answer to `session/list`, newest first. The main conversation is of every directory.
pub fn listed(turns: &[HistoryEntry], directory: Option<&str>) -> Value {
    let mut found: BTreeMap<&str, (u64, Option<&str>, &str)> = BTreeMap::new();
    for turn in turns {
        let at = turn.session.as_ref().and_then(|session| session.directory.as_deref());
        let entry = found.entry(name(turn)).or_insert((turn.seq, at, &turn.input));
        entry.0 = turn.seq;
    }
    let wanted = |at: Option<&str>| directory.is_none() || at.is_none() || at == directory;
    let mut sessions: Vec<_> = found.into_iter().filter(|(_, (_, at, _))| wanted(*at)).collect();
    sessions.sort_by_key(|(_, (seq, ..))| std::cmp::Reverse(*seq));
    let shown = |(id, (_, at, first)): (&str, (u64, Option<&str>, &str))| json!({ "sessionId": id, "cwd": at.or(directory).unwrap_or("/"), "title": one_line(first, 80) });
    json!({ "sessions": sessions.into_iter().take(LISTED).map(shown).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests;
