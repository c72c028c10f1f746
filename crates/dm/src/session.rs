//! Sessions: one Decision per turn; they are authoritative. Splits them, keeps the last two verbatim, digests the rest,
//! and folds them back into a panel.

use serde_json::Value;

use crate::delta::apply::sum;
use crate::{json, md};
use acheron_base::Result;

/// The record of a turn in its session.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub turn: u64,
    pub title: String,
    pub real_time: String,
    pub world_time: String,
    pub input: String,
    pub rolls: Vec<String>,
    pub resolution: String,
    pub consequences: Vec<String>,
    pub indicators: Vec<String>,
    pub clocks: Vec<String>,
    pub found: Vec<String>,
    /// What the player was told of it, in prose.
    pub told: String,
    pub corrections: Vec<String>,
    pub reports: Vec<String>,
    pub set_aside: Vec<String>,
    /// The merge patch of the panel.
    pub state: Value,
    /// The panel as it stands on disk after the turn.
    pub panel: String,
}

/// A field's value on one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn list(entries: &[String]) -> String {
    if entries.is_empty() { "-".into() } else { entries.iter().map(|entry| line(entry)).collect::<Vec<_>>().join("; ") }
}

impl Decision {
    pub fn render(&self) -> String {
        let mut out = format!("## Decision: {:04} · {}\n\n", self.turn, line(&self.title));
        for (key, value) in [
            ("Real time", self.real_time.clone()),
            ("In-world time", line(&self.world_time)),
            ("Player input", line(&self.input)),
            ("Rolls", list(&self.rolls)),
            ("Resolution", line(&self.resolution)),
            ("Consequences", list(&self.consequences)),
            ("Indicators", list(&self.indicators)),
            ("Clocks", list(&self.clocks)),
            ("Found", list(&self.found)),
        ] {
            out.push_str(&format!("- {key}: {value}\n"));
        }
        if !self.told.is_empty() {
            out.push_str(&format!("- Told: {}\n", line(&self.told)));
        }
        for correction in &self.corrections {
            out.push_str(&format!("- Correction: {}\n", line(correction)));
        }
        for report in &self.reports {
            out.push_str(&format!("- Narrator: {}\n", line(report)));
        }
        for own in &self.set_aside {
            out.push_str(&format!("- Set aside: {}\n", line(own)));
        }
        out.push_str(&format!("- State: {}\n- Panel: {}\n", self.state, sum(&self.panel)));
        out
    }
}

/// The turns of a session: each heading that begins one, and all until the next.
pub fn turns(text: &str) -> Vec<&str> {
    let starts = |line: &str| line.starts_with("## Decision:") || line.starts_with("## Turn ");
    let mut at = 0;
    let mut cuts = Vec::new();
    for line in text.split_inclusive('\n') {
        if starts(line) {
            cuts.push(at);
        }
        at += line.len();
    }
    let ends = cuts.iter().skip(1).copied().chain([text.len()]);
    cuts.iter().zip(ends).map(|(start, end)| text[*start..end].trim_end()).collect()
}

/// The last two turns, verbatim.
pub fn snapshot(session: &str) -> String {
    let all = turns(session);
    let kept = &all[all.len().saturating_sub(2)..];
    let mut out = String::from("# Snapshot: the last turns, verbatim\n");
    for turn in kept {
        out.push_str(&format!("\n{turn}\n"));
    }
    out
}

/// Everything before the last two turns, digested.
pub fn compressed(session: &str) -> String {
    let all = turns(session);
    let mut out = String::from(COMPRESSED);
    for turn in &all[..all.len().saturating_sub(2)] {
        out.push_str(&digest(turn));
    }
    out
}

pub const COMPRESSED: &str = "# Compressed: the turns before the snapshot\n";

/// The digest of a turn: its heading and its changes, without scenery and speech.
pub fn digest(turn: &str) -> String {
    let keep = ["Resolution", "Consequences", "Indicators", "Clocks", "Found", "Correction"];
    let mut out = String::new();
    for line in turn.lines() {
        if line.starts_with("## ") {
            out.push_str(&format!("\n#{line}\n"));
            continue;
        }
        let field = line.strip_prefix("- ").and_then(|line| line.split_once(": "));
        if field.is_some_and(|(key, value)| keep.contains(&key) && value != "-") {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// Whether a file under `sessions/` is a session and not derived from one, by its English or Chinese name.
pub fn is_session(path: &str) -> bool {
    let name = path.strip_prefix("sessions/").unwrap_or_default();
    let made = ["_snapshot.md", "_compressed.md", "_快照.md", "_压缩.md"].iter().any(|end| name.ends_with(end));
    name.starts_with("session_") && name.ends_with(".md") && !made
}

pub fn snapshot_path(session: &str) -> String {
    format!("{}_snapshot.md", session.trim_end_matches(".md"))
}

pub fn compressed_path(session: &str) -> String {
    format!("{}_compressed.md", session.trim_end_matches(".md"))
}

/// The field of a turn.
pub fn field<'a>(turn: &'a str, key: &str) -> Option<&'a str> {
    let prefix = format!("- {key}: ");
    turn.lines().find_map(|line| line.strip_prefix(prefix.as_str()))
}

/// The panel that the sessions tell of: every `State` line, in order. `None` where no turn has one.
pub fn fold<'a>(sessions: impl IntoIterator<Item = &'a str>) -> Result<Option<Value>> {
    let mut panel = None;
    for turn in sessions.into_iter().flat_map(turns) {
        if let Some(patch) = field(turn, "State") {
            let patch = json::read("the State line of a Decision", patch)?;
            json::merge(panel.get_or_insert(Value::Null), &patch);
        }
    }
    Ok(panel)
}

/// The differences between the panel and the sessions, one sentence each. Keys that the sessions do not mention do not count.
pub fn conflicts(panel: &Value, told: &Value) -> Vec<String> {
    let keys = told.as_object().into_iter().flatten();
    keys.filter(|(key, value)| panel.get(key.as_str()) != Some(value) && *key != "hud")
        .map(|(key, value)| {
            let said = panel.get(key.as_str()).unwrap_or(&Value::Null);
            let text = format!("STATE_PANEL said {key} {said}, the sessions say {value}");
            md::clip(&text, 240)
        })
        .collect()
}

#[cfg(test)]
mod tests;
