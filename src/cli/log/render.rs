//! One line of the log, for people and for programs. Pure.

use serde_json::{Value, json};

use super::super::{plain_text, since};
use crate::jobs::TURN_SERVICE;
use crate::state::audit::timeline_line;
use crate::state::events::PlacedEvent;

/// So much is shown of what an event carries.
const PAYLOAD: usize = 160;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub at_ms: u64,
    /// Empty if it is about the host.
    pub agent: String,
    /// Whether it is an event, and not a line of the audit.
    pub is_event: bool,
    /// The number of the line or the place of the event.
    pub number: u64,
    fields: Value,
}

impl LogLine {
    /// A line of the audit.
    pub fn of_audit(line: &str) -> Option<LogLine> {
        let about = timeline_line(line);
        let agent = about.as_ref().map_or("", |about| about.agent).to_owned();
        let mut fields: Value = serde_json::from_str(about.as_ref().map_or(line, |about| &about.shown)).ok()?;
        fields.as_object_mut()?.remove("prev");
        let (at_ms, number) = (fields["at_ms"].as_u64()?, fields["seq"].as_u64()?);
        Some(LogLine { at_ms, agent, is_event: false, number, fields })
    }

    pub fn of_event(placed: PlacedEvent) -> LogLine {
        let PlacedEvent { place, agent, event } = placed;
        let fields = json!({
            "at_ms": event.at_ms, "kind": "event", "agent": agent, "event": event.kind, "path": event.path,
            "payload": event.payload,
        });
        LogLine { at_ms: event.at_ms, agent, is_event: true, number: place, fields }
    }

    pub fn kind(&self) -> &str {
        self.word("kind")
    }

    fn word(&self, name: &str) -> &str {
        self.fields[name].as_str().unwrap_or_default()
    }

    /// The job whose end this tells of.
    pub fn ended_job(&self) -> Option<&str> {
        match (self.is_event, self.kind()) {
            (true, _) if self.word("event") == "job" => self.fields["payload"]["job_id"].as_str(),
            (false, "ended") => self.fields["job"].as_str(),
            (false, "call") if self.word("outcome") != "accepted" => self.fields["job"].as_str(),
            _ => None,
        }
    }

    /// For programs.
    pub fn json(&self) -> String {
        self.fields.to_string()
    }

    /// For people: when, who, what.
    pub fn text(&self) -> String {
        let who = if self.agent.is_empty() { "-" } else { &self.agent };
        let (what, told) = self.told();
        plain_text::one_line(&format!("{} {who:<10} {what:<8} {told}", since::shown(self.at_ms)))
    }

    /// The same without the day, for a screen.
    pub fn short(&self) -> String {
        let who = if self.agent.is_empty() { "-" } else { &self.agent };
        let (what, told) = self.told();
        let (_, time) = since::shown(self.at_ms)
            .split_once(' ')
            .map(|(day, time)| (day.to_owned(), time.to_owned()))
            .unwrap_or_default();
        plain_text::one_line(&format!("{time} {who} {what} {told}"))
    }

    /// What happened in a word, and the rest.
    fn told(&self) -> (&str, String) {
        let by = match self.word("principal") {
            "" => String::new(),
            who if who.strip_prefix("agent ") == Some(&self.agent) => String::new(),
            who => format!(" by {who}"),
        };
        let (service, operation, outcome, job) =
            (self.word("service"), self.word("operation"), self.word("outcome"), self.word("job"));
        match self.kind() {
            "call" | "ended" if service == TURN_SERVICE => {
                let outcome = if outcome == "accepted" { "begins" } else { outcome };
                ("turn", format!("{outcome} {job}{by}"))
            }
            "call" => ("call", format!("{service}.{operation} {outcome} {job}{by}")),
            "ended" => ("ended", format!("{service}.{operation} {outcome} {job}")),
            kind @ ("denied" | "allowed") => match self.fields.get("count") {
                Some(count) => (kind, format!("{count} more, not listed one by one")),
                None => (kind, format!("{} {}: {}", self.word("action"), self.word("path"), self.word("reason"))),
            },
            "model" => {
                let money = self.fields["money"].as_f64().filter(|money| *money > 0.0);
                let money = money.map_or_else(String::new, |money| format!(", {money:.4}"));
                ("model", format!("{} tokens in, {} out{money}", self.fields["input"], self.fields["output"]))
            }
            "event" => (self.word("event"), self.event()),
            kind => (kind, self.others()),
        }
    }

    fn event(&self) -> String {
        let payload = &self.fields["payload"];
        match self.word("event") {
            "job" => {
                let word = |name: &str| payload[name].as_str().unwrap_or_default();
                let why = payload["error"]["message"].as_str().map_or_else(String::new, |why| format!(": {why}"));
                format!("{}.{} {} {}{why}", word("service"), word("operation"), word("state"), word("job_id"))
            }
            "chat" if payload["input"].is_string() => {
                format!("{} {}", payload["source"].as_str().unwrap_or("chat"), cut(&payload["input"].to_string()))
            }
            _ if payload.is_null() => self.word("path").to_owned(),
            _ => format!("{} {}", self.word("path"), cut(&payload.to_string())),
        }
    }

    /// Everything that is not in a place of its own.
    fn others(&self) -> String {
        let own = ["seq", "at_ms", "kind", "agent", "link"];
        let fields = self.fields.as_object().into_iter().flatten().filter(|(name, _)| !own.contains(&name.as_str()));
        let shown = fields.map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            value => format!("{name}={value}"),
        });
        cut(&shown.collect::<Vec<_>>().join(" "))
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(PAYLOAD) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
