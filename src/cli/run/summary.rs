//! What `acheron run` says at the end, on standard error.

use std::io::Write;
use std::time::Duration;

use crate::cli::{pasted, plain_text};
use crate::host::runs::messages::{RunRecord, RunStarted, RunView};

/// The most files that are named.
const NAMED: usize = 8;

/// `host` are the words by which a command means the same host.
pub fn print(started: &RunStarted, record: &RunRecord, took: Duration, host: &str) {
    let mut stderr = std::io::stderr().lock();
    let view = record.view.as_ref().map(|view| of_view(view, host)).unwrap_or_default();
    for line in lines(started, record, took).into_iter().chain(view) {
        _ = writeln!(stderr, "{}", plain_text::for_stderr(&line));
    }
}

fn lines(started: &RunStarted, record: &RunRecord, took: Duration) -> Vec<String> {
    let (spent, seconds) = (&record.spent, took.as_secs());
    let time = match seconds {
        0..60 => format!("{:.1} s", took.as_secs_f64()),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    };
    let money = match record.priced {
        true => format!(", {:.4} in the currency of the prices", spent.money),
        false => String::new(),
    };
    let mut lines = vec![format!(
        "acheron: {} ran {time}: {}, {} tokens in ({} cached), {} out{money}",
        started.agent,
        counted(spent.rounds, "request"),
        spent.usage.input,
        spent.usage.cache_read,
        spent.usage.output,
    )];
    let count = record.changed.len() as u64 + record.more_changed;
    if count > 0 {
        let named: Vec<&str> = record.changed.iter().take(NAMED).map(String::as_str).collect();
        let more = if count > named.len() as u64 { ", …" } else { "" };
        lines.push(format!("acheron: {} changed: {}{more}", counted(count, "file"), named.join(", ")));
    }
    if record.connections > 0 || started.login.is_some() {
        lines.push(format!("acheron: {} to the network", counted(record.connections, "connection")));
    }
    lines.extend(refused(started, record));
    if started.login.is_some() {
        return lines;
    }
    let record = started.mount.join("agents").join(&started.agent).join("model/requests.ndjson");
    lines.push(format!("acheron: the record is {} while the host runs", pasted(&record)));
    lines
}

/// What is in the view, and the commands that show it and take it over.
fn of_view(view: &RunView, host: &str) -> Vec<String> {
    let name = &view.name;
    let counts: Vec<String> =
        view.counts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{count} {what}")).collect();
    if counts.is_empty() {
        return vec![format!(
            "acheron: nothing was changed in the view {name}; to remove it: acheron view discard{host} {name}"
        )];
    }
    let held = match view.held {
        0 => String::new(),
        held => format!(", {held} held back until named"),
    };
    vec![
        format!("acheron: the view {name} has {}{held}; this directory is unchanged", counts.join(", ")),
        format!("acheron: to read it: acheron view diff{host} {name}"),
        format!("acheron: to take it over: acheron view promote{host} {name}"),
    ]
}

/// The hosts that were refused, and the line of the mountspec that would allow them.
fn refused(started: &RunStarted, record: &RunRecord) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for refused in &record.refused_hosts {
        lines.push(format!("acheron: refused: {}", refused.why));
    }
    let mut allow: Vec<&str> = record.refused_hosts.iter().filter_map(|refused| refused.allow.as_deref()).collect();
    allow.dedup();
    if !allow.is_empty() {
        let mut all: Vec<&str> = started.hosts.iter().map(String::as_str).chain(allow.iter().copied()).collect();
        all.dedup();
        let network = serde_json::json!({ &started.agent: all });
        lines.push(format!("acheron: to allow it: --network {}", allow.join(",")));
        lines.push(format!("acheron: or in the mountspec: \"sandbox\": {{\"network\": {network}}}"));
    }
    lines
}

/// Says that a program uses a log-in of its own, and what that means.
pub fn print_login(started: &RunStarted) {
    let Some(why) = &started.login else { return };
    let said = format!(
        "acheron: {why}: {} uses a log-in of its own, which stays in {}; it may reach {}; connections are counted, tokens and \
         money are not",
        started.agent,
        pasted(&started.home),
        started.hosts.join(", ")
    );
    _ = writeln!(std::io::stderr().lock(), "{}", plain_text::for_stderr(&said));
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
