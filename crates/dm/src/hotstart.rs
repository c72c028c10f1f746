//! `<continue>`: a summary made from the snapshot and the hot pack, and from nothing else. It adds no fact; a check makes sure.

use serde_json::Value;

use crate::files::{ReadFiles, need};
use crate::refs::normal;
use crate::session;
use crate::{boot, json};
use acheron_base::Result;

/// The words that a load may say of its own.
const LABELS: [&str; 10] = [
    "Load Summary",
    "time",
    "place",
    "character",
    "indicators",
    "quests",
    "timers",
    "next",
    "last turn",
    "not recorded / requires player action",
];

pub struct Loaded {
    pub summary: String,
    /// Whether the guide is due.
    pub guide: bool,
}

/// The newest snapshot's path, in either language's name.
fn newest(files: &dyn ReadFiles, session: &str) -> Result<String> {
    let own = session::snapshot_path(session);
    let paths = files.paths()?;
    if paths.contains(&own) {
        return Ok(own);
    }
    let other = paths.into_iter().filter(|path| path.starts_with("sessions/") && path.ends_with("_快照.md")).max();
    Ok(other.unwrap_or_else(|| session.to_owned()))
}

/// Reads the snapshot and the hot pack; the pointer says which snapshot.
pub fn load(files: &dyn ReadFiles) -> Result<Loaded> {
    let snapshot = need(files, &newest(files, &boot::current(files)?)?)?;
    let raw = need(files, "HOT_PACK.json")?;
    let pack = json::read("HOT_PACK.json", &raw)?;
    let context = &pack["context"];
    let gap = || "not recorded / requires player action".to_owned();
    let word = |key: &str| match &context[key] {
        Value::String(text) if !matches!(text.as_str(), "" | "-") => text.clone(),
        _ => gap(),
    };
    let list = |key: &str| {
        let entries: Vec<&str> = context[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if entries.is_empty() { gap() } else { entries.join("; ") }
    };
    let levels: Vec<String> = context["indicators"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let last = session::turns(&snapshot).pop().unwrap_or_default();
    let decision = session::field(last, "Resolution").map_or_else(gap, str::to_owned);
    let lines = [
        ("time", word("t")),
        ("place", word("loc")),
        ("character", word("pc")),
        ("indicators", if levels.is_empty() { gap() } else { levels.join("; ") }),
        ("quests", list("quests")),
        ("timers", list("timers")),
        ("last turn", decision),
        ("next", list("hooks")),
    ];
    let body: String = lines.iter().map(|(label, text)| format!("{label}: {text}\n")).collect();
    let summary = format!("Load Summary\n{body}");
    let strangers = new_facts(&summary, &snapshot, &raw);
    if let Some(stranger) = strangers.first() {
        return Err(acheron_base::Error::internal(format!("the load would say what nobody recorded: {stranger}")));
    }
    let guide = context["guide_shown"] != 1 && context["guide_shown"] != "1";
    Ok(Loaded { summary, guide })
}

/// The lines of a load that stand neither in the snapshot nor in the hot pack. Labels are exempt; order and punctuation do not matter.
pub fn new_facts(output: &str, snapshot: &str, pack: &str) -> Vec<String> {
    let known = format!(" {} {} ", normal(snapshot), normal(pack));
    let fact = |part: &str| {
        let part = normal(part);
        part.is_empty() || known.contains(&format!(" {part} "))
    };
    let mut strangers = Vec::new();
    for line in output.lines().map(str::trim).filter(|line| !line.is_empty() && !LABELS.contains(line)) {
        let label = line.split_once(": ").filter(|(label, _)| LABELS.contains(label));
        let text = label.map_or(line, |(_, text)| text);
        if !LABELS.contains(&text) && !fact(line) && !text.split("; ").all(fact) {
            strangers.push(line.to_owned());
        }
    }
    strangers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_116_and_117_a_load_says_only_what_is_recorded() {
        let (snapshot, pack) = ("- Resolution: the gate is open", r#"{"context": {"t": "day 1, 08:10"}}"#);
        assert_eq!(new_facts("the gate is shut", snapshot, pack), ["the gate is shut"], "row 116");
        assert!(
            new_facts("Load Summary\ntime: day 1, 08:10\nlast turn: the gate is open\n", snapshot, pack).is_empty(),
            "row 117"
        );
        assert_eq!(new_facts("time: day 2, 08:10", snapshot, pack).len(), 1);
    }
}
