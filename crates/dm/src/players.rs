//! The files of a campaign as its players read them: without the clocks that are hidden, the spine of the story, the seed of the
//! dice, a narrator's proposals and a narrator's notes. The files of the service show these views to everybody; the rules read
//! the files themselves.

use serde_json::{Map, Value, json};

use crate::delta::text;
use crate::files::shown;
use crate::json;
use acheron_base::Result;

/// The keys of a line of the journal that players see. Everything else is the game master's.
const JOURNAL_KEYS: [&str; 10] =
    ["seq", "at", "act", "cartridge", "version_lock", "rules", "version", "answers", "input", "sum"];

/// A file of the campaign by its path.
pub fn view(path: &str, text: &str) -> Result<String> {
    match path {
        "STATE_PANEL.json" => Ok(json::render(&without_hidden(json::read(path, text)?))),
        "HOT_PACK.json" => Ok(json::render(&without_spine(json::read(path, text)?))),
        "MAINLINE_PANEL.json" => Ok(json::render(&without_people(json::read(path, text)?))),
        _ if path.starts_with("sessions/") => Ok(session(text)),
        _ => Ok(text.to_owned()),
    }
}

/// A panel, or a change of one, without the clocks that the player does not see.
fn without_hidden(mut panel: Value) -> Value {
    if let Some(clocks) = panel["clocks"].as_array_mut() {
        clocks.retain(|clock| clock["visible"] != false);
    }
    panel
}

/// The hot pack without the lines that no player may read.
pub fn without_spine(mut pack: Value) -> Value {
    if let Some(own) = pack.as_object_mut() {
        own.insert("spine".into(), json!([]));
    }
    without_people(pack)
}

/// Without the people of the story, of whom the player may have met none.
fn without_people(mut panel: Value) -> Value {
    if let Some(own) = panel.as_object_mut().filter(|own| own.contains_key("key_npcs")) {
        own.insert("key_npcs".into(), json!([]));
    }
    panel
}

/// A session: the changes of the panel stand in its lines `State`.
fn session(text: &str) -> String {
    let line = |line: &str| {
        let state = line.strip_prefix("- State: ").filter(|state| state.contains("\"visible\":false"));
        match state.and_then(|state| serde_json::from_str(state).ok()) {
            Some(state) => format!("- State: {}", without_hidden(state)),
            None => line.to_owned(),
        }
    };
    let end = if text.ends_with('\n') { "\n" } else { "" };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + end
}

/// The journal: what was done and when, and nothing that foretells a throw.
pub fn journal(text: &str) -> String {
    let line = |line: &str| {
        let entry: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
        let kept: Map<String, Value> =
            entry.into_iter().filter(|(key, _)| JOURNAL_KEYS.contains(&key.as_str())).collect();
        format!("{}\n", Value::Object(kept))
    };
    text.lines().filter(|own| !own.is_empty()).map(line).collect()
}

/// The delta of the last turn: the files that players read.
pub fn delta(block: &str) -> Result<String> {
    if block.is_empty() {
        return Ok(String::new());
    }
    let mut delta = text::parse(block)?;
    delta.items.retain(|item| shown(&item.path));
    Ok(text::render(&delta))
}

/// The summary that a turn begins with, without its line of the spine.
pub fn boot(summary: &str) -> String {
    let line = |line: &&str| !line.starts_with("spine: ");
    summary.lines().filter(line).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_clock_and_the_seed_are_in_no_view() {
        let panel = r#"{"hp": 12, "clocks": [{"id": "tide", "visible": true}, {"id": "reeve", "visible": false}]}"#;
        let shown = view("STATE_PANEL.json", panel).unwrap();
        assert!(shown.contains("tide") && !shown.contains("reeve"), "{shown}");
        let line = "- State: {\"clocks\":[{\"id\":\"reeve\",\"visible\":false}],\"hp\":3}\n- Panel: 12\n";
        assert_eq!(view("sessions/s.md", line).unwrap(), "- State: {\"clocks\":[],\"hp\":3}\n- Panel: 12\n");
        let entry = r#"{"seq":0,"act":"new","seed":7,"sum":""}"#;
        assert_eq!(journal(entry), "{\"seq\":0,\"act\":\"new\",\"sum\":\"\"}\n");
        assert_eq!(boot("time: x\nspine: a / b\n"), "time: x\n");
    }
}
