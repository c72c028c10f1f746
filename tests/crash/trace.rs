//! What the kernel saw: the log of the database is synced before the caller is answered.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::life::Life;
use super::load::put;

/// One line of a trace that matters here.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Seen {
    /// Bytes written to the write-ahead log.
    Logged,
    /// The log is on the disk: the call has returned.
    Synced,
    /// An answer to the kernel, with its length.
    Answered(u64),
}

#[test]
fn the_log_is_synced_before_the_caller_is_answered() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("trace");
    let strace = ["strace", "-D", "-f", "-y", "-qq", "-s0", "-e", "trace=pwrite64,fdatasync,fsync,write,writev", "-o"];
    let mut under: Vec<String> = strace.map(str::to_owned).into();
    under.push(file.to_str().unwrap().to_owned());
    let life = Life::begin(place.path(), &under);
    let (agent, item) = (life.agent(), life.agent().join("memory/items/plan"));
    fs::create_dir(&item).unwrap();
    put(&item.join("content"), "cross the river").unwrap();
    put(&agent.join("events/control/signal.json"), r#"{"event_type":"user"}"#).unwrap();
    put(&agent.join("memory/control/create.json"), r#"{"kind":"note","content":"by night"}"#).unwrap();
    let (seen, answered) = until_answered(&file);
    life.kill();
    for (what, at) in ["the close of a memory", "a signal", "a command"].into_iter().zip(answered.windows(2)) {
        // the log of what follows, an event, may already be growing again when the answer goes out
        let between = &seen[at[0]..at[1]];
        let synced = between.iter().skip_while(|it| **it != Seen::Logged).any(|it| *it == Seen::Synced);
        assert!(synced, "{what} was answered before the log was on the disk: {between:?}");
    }
}

/// The trace, and where in it the write to the memory was answered, its close, and the two commands. The tracer is a
/// little behind.
fn until_answered(file: &Path) -> (Vec<Seen>, Vec<usize>) {
    let began = Instant::now();
    loop {
        let seen = traced(file);
        let mut answered: Vec<usize> = Vec::new();
        // a write is answered with 24 bytes and a flush with 16; a command is taken by its write
        for length in [24, 16, 24, 24] {
            let from = answered.last().map_or(0, |last| last + 1);
            answered.extend(seen[from..].iter().position(|it| *it == Seen::Answered(length)).map(|at| from + at));
        }
        if answered.len() == 4 {
            return (seen, answered);
        }
        assert!(began.elapsed() < Duration::from_secs(120), "not everything was answered: {seen:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What the trace shows, in order: an answer stands where it began, a sync where it ended.
fn traced(file: &Path) -> Vec<Seen> {
    let text = fs::read_to_string(file).unwrap_or_else(|err| panic!("strace is needed for this test: {err}"));
    let mut seen = Vec::new();
    // calls that have not returned, by thread, and where their answers stand
    let mut open: HashMap<&str, (&str, usize)> = HashMap::new();
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let call = call.trim_start();
        let (began, ended) = match call.strip_prefix("<... ") {
            Some(rest) => match open.remove(thread) {
                Some(began) => (began, Some(rest)),
                None => continue,
            },
            None => ((call, seen.len()), (!call.ends_with("<unfinished ...>")).then_some(call)),
        };
        let (what, at) = began;
        let resumed = call.starts_with("<... ");
        if !resumed {
            seen.extend(first_seen(what));
        }
        match ended.and_then(|ended| ended.rsplit_once("= ")?.1.split(' ').next()?.parse::<u64>().ok()) {
            Some(0) if sync(what) => seen.push(Seen::Synced),
            Some(length) if answer(what) => seen[at] = Seen::Answered(length),
            _ if ended.is_none() => drop(open.insert(thread, began)),
            _ => (),
        }
    }
    seen
}

/// What is seen of a call when it begins.
fn first_seen(call: &str) -> Option<Seen> {
    let log = call.starts_with("pwrite64(") && call.contains("acheron.db-wal>");
    log.then_some(Seen::Logged).or(answer(call).then_some(Seen::Answered(0)))
}

fn sync(call: &str) -> bool {
    (call.starts_with("fdatasync(") || call.starts_with("fsync(")) && call.contains("acheron.db-wal>")
}

fn answer(call: &str) -> bool {
    (call.starts_with("writev(") || call.starts_with("write(")) && call.contains("/dev/fuse>")
}

#[test]
fn calls_that_overlap_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace");
    let lines = "\
        1 pwrite64(5</s/acheron.db-wal>, ..., 24, 0) = 24\n\
        1 fdatasync(5</s/acheron.db-wal> <unfinished ...>\n\
        2 writev(9</dev/fuse>, [...], 1 <unfinished ...>\n\
        1 <... fdatasync resumed>) = 0\n\
        2 <... writev resumed>) = 16\n\
        3 fsync(7</s/other>) = 0\n\
        2 write(1</dev/pts/1>, ..., 3) = 3\n";
    fs::write(&file, lines).unwrap();
    assert_eq!(traced(&file), [Seen::Logged, Seen::Answered(16), Seen::Synced]);
}
