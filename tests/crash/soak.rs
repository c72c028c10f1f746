//! A mixed load for as long as one likes, and what must be true all along: nothing acknowledged is lost, no waiter is
//! forgotten, nothing grows, nothing is left behind. `scripts/soak` runs it for longer.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::life::{self, AGENT, Life};
use super::load::until;
use super::mixed::{Ledger, burst};

/// What a host may have more of after a load than after the one before: caches and lists of what was.
const MEMORY_KIB: u64 = 64 << 10;
const HANDLES: u64 = 8;

/// A project with a library and prompts that can be changed, and a model that always gives the same answer.
fn prepare(place: &Path) {
    let here = place.join("here");
    fs::create_dir_all(here.join("tmp")).unwrap();
    for folder in ["global-library", "prompts"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        assert!(Command::new("cp").arg("-r").arg(from).arg(&here).status().unwrap().success());
    }
    let reply = json!({"tool_calls": [{"name": "file_write", "arguments": {"path": "/agents/self/chat/control/reply", "content": "deep"}}]});
    fs::write(here.join("script.ndjson"), format!("{}\n", json!({"answer": reply, "repeat": true}))).unwrap();
    let own = json!([{"allow": ["read", "write", "invoke"], "path": "/agents/self/**"}, {"allow": ["read", "write"], "path": "/projects/here/**"}]);
    life::write_spec(
        place,
        &json!({
            "layout": "acheron-1", "default_agent": AGENT, "sandbox": {"allow_unconfined": true}, "retention": {"jobs": 500, "days": 1},
            "model": {"kind": "script", "name": "script.ndjson"}, "agents": {AGENT: {"permissions": own, "projects": ["here"]}},
            "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}, "services": {},
        }),
    );
}

/// What a host at rest holds.
#[derive(Debug)]
struct Held {
    memory_kib: u64,
    handles: u64,
    tasks: u64,
    inodes: u64,
}

/// Waits until the host is at rest, and counts. What still waits or runs a minute later was forgotten.
fn at_rest(life: &Life) -> Held {
    let metrics =
        || -> Value { serde_json::from_slice(&fs::read(life.root().join("meta/metrics.json")).unwrap()).unwrap() };
    until("nobody waits, nothing is open", || {
        let now = metrics();
        // the one that is open is this very file
        now["parked"] == 0 && now["open_handles"].as_u64().is_some_and(|open| open <= 1)
    });
    until("no child is left unburied", || zombies(life.pid()) == 0);
    // makes the kernel let go of the names of this mount alone
    let remount = nix::mount::MsFlags::MS_REMOUNT;
    nix::mount::mount(None::<&str>, life.root(), None::<&str>, remount, None::<&str>).unwrap();
    // A new face: whoever was remembered and is gone is forgotten when one comes.
    Command::new("cat").arg(life.root().join("README.md")).stdout(Stdio::null()).status().unwrap();
    let proc = Path::new("/proc").join(life.pid().to_string());
    let count = |name: &str| fs::read_dir(proc.join(name)).unwrap().count() as u64;
    let status = fs::read_to_string(proc.join("status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    Held {
        memory_kib: memory.unwrap(),
        handles: count("fd"),
        tasks: count("task"),
        inodes: metrics()["inodes"].as_u64().unwrap(),
    }
}

fn zombies(parent: u32) -> usize {
    let stats =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    let dead = format!("Z {parent} ");
    stats.filter(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(&dead))).count()
}

#[test]
fn a_mixed_load_loses_nothing_forgets_nobody_and_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    prepare(place.path());
    let (here, ledger) = (place.path().join("here"), Arc::new(Ledger::default()));
    let began = Instant::now();
    let (whole, mut lives) = (super::soaking().unwrap_or(Duration::from_secs(6)), 0);
    let each = (whole / 4).min(Duration::from_secs(20));
    while lives < 2 || began.elapsed() < whole {
        let life = Life::begin(place.path(), &[]);
        ledger.check(&life.agent());
        burst(life.root(), &here, &ledger, each, || false);
        let first = at_rest(&life);
        burst(life.root(), &here, &ledger, each, || false);
        let last = at_rest(&life);
        println!("life {}: {first:?} -> {last:?}", lives + 1);
        let grew = |of: fn(&Held) -> u64| of(&last).saturating_sub(of(&first));
        assert!(grew(|it| it.memory_kib) <= MEMORY_KIB, "memory grows: {first:?} {last:?}");
        assert!(grew(|it| it.handles) <= HANDLES, "handles are left open: {first:?} {last:?}");
        assert!(grew(|it| it.inodes) <= 1000, "names are never forgotten: {first:?} {last:?}");
        let proc = format!("/proc/{}/task", life.pid());
        // threads that wait for a disk go when they have had nothing to do for a while
        until("no more tasks than after the load before", || {
            fs::read_dir(&proc).unwrap().count() as u64 <= first.tasks + 2
        });
        ledger.check(&life.agent());
        lives += 1;
        match lives % 2 {
            1 => {
                let root = life.root().to_owned();
                burst(&root, &here, &ledger, each / 2, || {
                    life.kill();
                    true
                });
            }
            _ => life.leave(),
        }
        let mounts = acheron_base::mountinfo::read().unwrap();
        assert!(mounts.iter().all(|mount| mount.point != place.path().join("mnt")), "a mount is left behind");
    }
    println!("{lives} lives in {:?}: {:?}", began.elapsed(), ledger.done.lock());
    println!("{:?} acknowledged and looked for, {:?} found", ledger.acknowledged, ledger.found);
}
