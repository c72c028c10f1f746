//! `changes.json`: the changes of a view, removals first. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::judge::JudgedView;
use super::record::ViewRecord;
use acheron_views::{ChangeKind, held};

/// More changes are counted and not listed.
const LISTED: usize = 5000;

pub fn changes(record: &ViewRecord, judged: &JudgedView) -> Value {
    let all = &judged.view.changes;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in [ChangeKind::Removed, ChangeKind::Renamed, ChangeKind::Changed, ChangeKind::Added] {
        counts.insert(kind.name(), judged.shown().filter(|(_, change)| change.kind == kind).count());
    }
    counts.insert("held", judged.shown().filter(|(at, _)| judged.held[*at].is_some()).count());
    counts.insert("conflicts", judged.conflicts.iter().flatten().count());
    let listed: Vec<Value> = judged.shown().take(LISTED).map(|(at, _)| one(judged, at)).collect();
    let more = judged.shown().count() - listed.len();
    let mut git: BTreeMap<String, usize> = BTreeMap::new();
    let mut ignored: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for (at, change) in all.iter().enumerate() {
        if let Some(dir) = held::git_dir(&change.path.0) {
            *git.entry(dir.display().to_string()).or_default() += 1;
        } else if let Some(top) = &judged.ignored[at] {
            let sum = ignored.entry(top.display().to_string()).or_default();
            *sum = (sum.0 + 1, sum.1 + change.size());
        }
    }
    let git: Vec<Value> = git.into_iter().map(|(path, files)| json!({"path": path, "files": files})).collect();
    let ignored: Vec<Value> = ignored
        .into_iter()
        .map(|(path, (files, bytes))| json!({"path": path, "files": files, "bytes": bytes}))
        .collect();
    let ViewRecord { name, agent, .. } = record;
    json!({"view": name, "agent": agent, "counts": counts, "changes": listed, "git": git, "ignored": ignored, "more": more})
}

fn one(judged: &JudgedView, at: usize) -> Value {
    let change = &judged.view.changes[at];
    let mut line = Map::new();
    line.insert("what".to_owned(), change.kind.name().into());
    line.insert("path".to_owned(), change.path.to_string().into());
    if let Some(from) = &change.from {
        line.insert("from".to_owned(), from.to_string().into());
    }
    line.insert("type".to_owned(), serde_json::to_value(change.entry_type()).unwrap_or_default());
    if change.whole {
        line.insert("files".to_owned(), change.files.into());
    }
    if let Some(before) = change.before.filter(|_| !change.whole) {
        line.insert("bytes_before".to_owned(), before.size.into());
    }
    if let Some(after) = change.after {
        line.insert("bytes".to_owned(), after.size.into());
        if change.before.is_some_and(|before| before.mode != after.mode) {
            line.insert("mode".to_owned(), format!("{:o}", after.mode).into());
        }
    }
    if let Some(why) = &judged.held[at] {
        line.insert("held".to_owned(), why.as_str().into());
    }
    if let Some(conflict) = &judged.conflicts[at] {
        line.insert("conflict".to_owned(), serde_json::to_value(conflict).unwrap_or_default());
    }
    Value::Object(line)
}
