//! `meta/`: what this host is, how it is, and what it has done.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::audit_file::AuditFile;
use super::{HostState, health, upgrade};
use crate::jobs::recent;
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::{Code, blocking};
use acheron_fuse::{KindTimes, Mount};
use acheron_vfs::{Answer, Caller, ComputedFile, Listing, live, pretty, rows, text};

/// The length of the counters is a multiple of this.
const METRICS_BYTES: usize = 1024;

pub fn directory(host: &Arc<HostState>) -> Listing {
    let (healthy, counted, bindings) = (Arc::downgrade(host), Arc::downgrade(host), host.shared.bindings.clone());
    Listing::default()
        .file("audit.ndjson", AuditFile::new(host))
        .file("protocol.json", text(pretty(&protocol())))
        .file("agents.json", agents(host))
        .file("events.ndjson", host.context.event_logs.everything.clone())
        .file("events.ndjson.1", host.context.event_logs.everything.older())
        .file("jobs.json", recent::file(&host.context.jobs, None))
        .file("health.json", live(move |caller| Ok(pretty(&health(&upgrade(&healthy)?, caller)))))
        .file("metrics.json", live(move |_| Ok(of_even_length(&pretty(&metrics(&*upgrade(&counted)?))))))
        .file("ns", live(move |_| Ok(bindings.ns().into())))
}

/// `agents.json`: what `chat/status.json` of each agent shows, with its id and name.
fn agents(host: &Arc<HostState>) -> ComputedFile {
    let host = Arc::downgrade(host);
    ComputedFile::fetched(move |_| {
        let host = host.clone();
        Answer::soon(async move { blocking(move || Ok(rows(&overview(&*upgrade(&host)?)))).await })
    })
}

fn overview(host: &HostState) -> Vec<Value> {
    let row = |id: String| {
        let (profile, chat) = (host.profiles.get(&id).ok()?, host.shared.runtimes.chat(&id).ok()?);
        let mut row = json!({"agent_id": id, "name": profile.name, "about": profile.spec.about});
        let shown = row.as_object_mut()?;
        shown.extend(chat.status().as_object_mut().map(std::mem::take)?);
        shorten(shown.get_mut("input"));
        shorten(shown.get_mut("said"));
        Some(row)
    };
    host.profiles.ids().into_iter().filter_map(row).collect()
}

/// A list of many agents has no room for long texts; `chat/status.json` has all of them.
fn shorten(text: Option<&mut Value>) {
    if let Some(Value::String(text)) = text
        && let Some((end, _)) = text.char_indices().nth(400)
    {
        text.truncate(end);
    }
}

fn protocol() -> Value {
    let codes = Code::ALL.into_iter().chain(Code::OS).map(|code| json!({ "code": code.name(), "errno": code.errno() }));
    // Any other error of the system has this name.
    let codes: Vec<_> = codes.chain([json!({ "code": "system_error", "errno": null })]).collect();
    json!({
        "layout": crate::spec::LAYOUT,
        "version": env!("CARGO_PKG_VERSION"),
        "tools": ["file_read", "file_write", "file_list"],
        "command_bytes": 1 << 20,
        "errors": codes,
    })
}

/// How the host is. What of it is the machine's, or tells of others, is for the operator alone.
pub fn health(host: &Arc<HostState>, caller: &Caller) -> Value {
    let (mut faults, edited) = (host.health.faults(), host.current.edited());
    faults.extend(host.store.fault().map(|error| format!("state: {}", error.message)));
    faults.extend(host.shared.wikis.faults());
    #[cfg(feature = "fabric")]
    faults.extend(host.fabric.faults());
    let ok = faults.is_empty() && !edited.as_ref().is_some_and(|edited| edited.failed);
    health::look_again(host);
    let well = json!({
        "ok": ok,
        "started_at_ms": host.identity.started_at_ms,
        "uptime_ms": host.context.clock.now_ms().saturating_sub(host.identity.started_at_ms),
    });
    if caller.principal() != &Principal::Operator {
        return well;
    }
    let mount = host.mount.get();
    json!({
        "ok": ok,
        "faults": faults,
        "pid": std::process::id(),
        "started_at_ms": host.identity.started_at_ms,
        "uptime_ms": host.context.clock.now_ms().saturating_sub(host.identity.started_at_ms),
        "state": host.paths.state,
        "mountpoint": mount.as_ref().map(|mount| mount.mountpoint().to_owned()),
        "agents": host.profiles.ids(),
        "mountspec": edited,
        "mountspec_file": host.paths.mountspec.get(),
    })
}

/// The counters change with every read, and their length should not: a program that copies the tree takes another length than the
/// one that was listed for a file that changes under its hands. Spaces at the end of JSON mean nothing.
fn of_even_length(text: &Bytes) -> Bytes {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let length = (line.len() + 1).next_multiple_of(METRICS_BYTES);
    let mut padded = line.to_vec();
    padded.resize(length - 1, b' ');
    padded.push(b'\n');
    padded.into()
}

fn metrics(host: &HostState) -> Value {
    let (mount, tree) = (host.mount.get(), host.context.tree());
    json!({
        "refused": host.access.refused(),
        "spent": spent(host),
        "jobs": host.context.jobs.counts(),
        "commits": host.store.commits(),
        "requests": mount.as_ref().map(|mount| mount.request_counts()),
        "session": mount.as_ref().map(|mount| session_times(mount)),
        "parked": mount.as_ref().map(|mount| mount.parked()),
        "open_handles": mount.as_ref().map(|mount| mount.open_handles()),
        "inodes": mount.as_ref().map(|mount| mount.inodes()),
        "kept_bytes": tree.as_ref().ok().map(|tree| tree.buffers().total()),
        "over_budget": tree.as_ref().ok().map(|tree| tree.buffers().refused()),
        "result_bytes": host.context.jobs.result_bytes(),
        "dropped_spans": host.telemetry.get().map(|export| export.dropped()),
    })
}

/// What all agents have used up together.
fn spent(host: &HostState) -> Value {
    let ids = host.profiles.ids();
    let all = ids.iter().map(|id| host.shared.runtimes.spent(id));
    let all = all.reduce(|one, other| one.plus(&other)).unwrap_or_default();
    json!({"tokens": all.usage.total(), "rounds": all.rounds, "ms": all.ms, "money": all.money})
}

/// How long the thread that serves all callers was kept by one request: in microseconds, the counts by the limit below
/// which they lie.
fn session_times(mount: &Mount) -> Value {
    let kind = |times: &KindTimes| {
        let limit = |limit: Option<u64>| limit.map_or_else(|| "more".to_owned(), |limit| limit.to_string());
        let below: BTreeMap<String, u64> = times.buckets.iter().map(|(at, count)| (limit(*at), *count)).collect();
        json!({ "below_us": below, "longest_us": micros(times.longest) })
    };
    let kinds: BTreeMap<&str, Value> = mount.request_times().iter().map(|(word, times)| (*word, kind(times))).collect();
    let worst = mount
        .worst_request()
        .map(|worst| json!({ "kind": worst.kind, "place": worst.place, "took_us": micros(worst.took) }));
    json!({ "requests": kinds, "worst": worst })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
