//! What `acheron run` says at the end, on standard error.

use std::io::Write;
use std::time::Duration;

use crate::cli::{pasted, plain_text};
use crate::host::runs::messages::{RunRecord, RunStarted};

/// The most files that are named.
const NAMED: usize = 8;

pub fn print(started: &RunStarted, record: &RunRecord, took: Duration) {
    let mut stderr = std::io::stderr().lock();
    for line in lines(started, record, took) {
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
    for host in &record.refused_hosts {
        lines.push(format!("acheron: {host} was refused; --network {host} allows it"));
    }
    let record = started.mount.join("agents").join(&started.agent).join("model/requests.ndjson");
    lines.push(format!("acheron: the record is {} while the host runs", pasted(&record)));
    lines
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
