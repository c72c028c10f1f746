//! A mixed load through the mount, and what of it was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::life::Life;

/// What the reader of `next.json` waits for.
const WAIT: &str = r#"{"paths":["/agents/self/events/sources/user.json"],"timeout_ms":1000}"#;

/// Writers of memories, each with its own.
const WRITERS: u64 = 2;

/// What callers were told had happened, and what they never heard about.
#[derive(Clone, Debug, Default)]
pub struct Acknowledged {
    /// The last text written to each memory; text `n` is version `n + 1`, the first being an empty one.
    texts: BTreeMap<String, Spoken>,
    jobs: BTreeSet<u64>,
    signals: BTreeSet<u64>,
    /// The last signal that the reader of `next.json` has heard.
    heard: Option<u64>,
    /// Numbers for jobs and signals, so that none is used in two lives.
    next: u64,
}

/// `heard` was acknowledged; `said` was tried, and may or may not have happened.
#[derive(Clone, Copy, Debug, Default)]
struct Spoken {
    heard: u64,
    said: u64,
}

impl Acknowledged {
    pub fn writes(&self) -> usize {
        self.texts.values().map(|text| text.heard as usize).sum()
    }

    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    pub fn signals(&self) -> usize {
        self.signals.len()
    }

    pub fn job_names(&self) -> impl Iterator<Item = String> {
        self.jobs.iter().map(|n| job_name(*n))
    }

    /// Every signal that was acknowledged is there, and none twice.
    pub fn check_signals(&self, found: &[u64]) {
        let once: BTreeSet<u64> = found.iter().copied().collect();
        assert_eq!(once.len(), found.len(), "a signal happened twice");
        let lost: Vec<_> = self.signals.difference(&once).collect();
        assert!(lost.is_empty(), "signals were lost: {lost:?}");
    }

    /// One life's reader of `next.json` goes on where the one before was: in order, and no signal is passed over. What
    /// it heard last may come again, since it may have died before it could say that it had.
    fn listen(&mut self, heard: &[u64]) {
        for n in heard {
            let next = self.heard.map_or(0, |last| last + 1);
            let passed = self.signals.range(next..(*n).max(next)).next();
            assert_eq!(passed, None, "heard {n} after {:?}", self.heard);
            self.heard = Some(*n);
        }
        assert!(heard.windows(2).all(|pair| pair[0] < pair[1]), "in one life nothing comes twice: {heard:?}");
    }

    /// Looks through the mount of the next life.
    pub fn check_through(&mut self, agent: &Path) {
        for (name, text) in &mut self.texts {
            let item = agent.join("memory/items").join(name);
            let latest = fs::read_to_string(item.join("content")).unwrap();
            let n: u64 = latest.trim().parse().unwrap_or(0);
            assert!((text.heard..=text.said).contains(&n), "{name}: {text:?}, and the file says {n}");
            let versions = fs::read_dir(item.join("versions")).unwrap().count() as u64;
            assert_eq!(versions, n + 1, "{name}: each write is one version");
            if n > 0 {
                let old = n / 2 + 1;
                let shown = fs::read_to_string(item.join("versions").join(old.to_string())).unwrap();
                assert_eq!(shown.trim().parse().unwrap_or(0), old - 1, "{name}: an old version");
            }
            *text = Spoken { heard: n, said: n };
        }
        for n in &self.jobs {
            let job = agent.join("jobs/by").join(job_name(*n));
            // waits until it is settled, which it must be some time
            let status: Value = serde_json::from_slice(&fs::read(job.join("status.json")).unwrap()).unwrap();
            let there = agent.join("memory/items").join(item_name(*n)).exists();
            match status["state"].as_str().unwrap() {
                "done" => assert!(there, "the job {n} is done, and what it made is not there"),
                "interrupted" => (),
                "failed" => assert_eq!(status["error"]["code"], "already_exists", "{status}"),
                other => panic!("the job {n} is {other}"),
            }
        }
    }
}

fn job_name(n: u64) -> String {
    format!("crash-{n}")
}

fn item_name(n: u64) -> String {
    format!("made-{n}")
}

/// The inode numbers of what lasts: what is always there, and the memories.
pub fn numbers(agent: &Path) -> Vec<(String, u64)> {
    let lasting =
        ["", "memory", "memory/items", "memory/control/create.json", "events/next.json", "chat/control/input"];
    let memories = (0..WRITERS).flat_map(|n| ["", "/content", "/meta.json"].map(|it| format!("memory/items/w{n}{it}")));
    let all = lasting.iter().map(|path| (*path).to_owned()).chain(memories);
    all.filter_map(|path| Some((path.clone(), fs::metadata(agent.join(path)).ok()?.ino()))).collect()
}

/// Works on a host until it is killed, at a moment that `seed` chooses.
pub fn until_killed(life: Life, mut known: Acknowledged, seed: u32) -> Acknowledged {
    let mut random = StdRng::seed_from_u64(seed.into());
    let agent = life.agent();
    let first = known.next;
    if first == 0 {
        // Before the first signal: what is sent before a wait is armed is not waited for.
        put(&agent.join("events/control/wait.json"), WAIT).unwrap();
    }
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let (agent, name) = (agent.clone(), format!("w{n}"));
            let text = known.texts.get(&name).copied();
            thread::spawn(move || (name.clone(), write_texts(&agent, &name, text)))
        })
        .collect();
    let jobs = thread::spawn({
        let agent = agent.clone();
        move || start_jobs(&agent, first)
    });
    let listener = thread::spawn({
        let agent = agent.clone();
        move || hear_signals(&agent)
    });
    let signals = thread::spawn(move || send_signals(&agent, first));
    // the moment of death, not a wait for anything
    thread::sleep(Duration::from_millis(random.random_range(1..150)));
    life.kill();
    for writer in writers {
        let (name, text) = writer.join().unwrap();
        if let Some(text) = text {
            known.texts.insert(name, text);
        }
    }
    let (jobs, signals) = (jobs.join().unwrap(), signals.join().unwrap());
    known.next = first + 1 + jobs.len().max(signals.len()) as u64;
    known.jobs.extend(jobs);
    known.signals.extend(signals);
    known.listen(&listener.join().unwrap());
    known
}

/// Writes numbers to one memory until the mount is gone. Nothing if the memory was never made.
fn write_texts(agent: &Path, name: &str, before: Option<Spoken>) -> Option<Spoken> {
    let item = agent.join("memory/items").join(name);
    let mut text = match before {
        Some(text) => text,
        None => match fs::create_dir(&item) {
            Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => Spoken::default(),
        },
    };
    loop {
        text.said = text.heard + 1;
        if put(&item.join("content"), &format!("{}\n", text.said)).is_err() {
            return Some(text);
        }
        text.heard = text.said;
    }
}

fn start_jobs(agent: &Path, first: u64) -> Vec<u64> {
    let create = agent.join("memory/control/create.json");
    let command = |n: u64| {
        let (name, id) = (item_name(n), job_name(n));
        json!({"kind": "note", "name": name, "content": format!("made by job {n}"), "_meta": {"correlation_id": id}})
    };
    (first..).take_while(|n| put(&create, &command(*n).to_string()).is_ok()).collect()
}

fn send_signals(agent: &Path, first: u64) -> Vec<u64> {
    let signal = agent.join("events/control/signal.json");
    let said = |n: u64| json!({"event_type": "user", "payload": {"n": n}}).to_string();
    (first..).take_while(|n| put(&signal, &said(*n)).is_ok()).collect()
}

/// Waits for signals by the shared `next.json`, armed in the first life alone, until the mount is gone.
fn hear_signals(agent: &Path) -> Vec<u64> {
    let next = agent.join("events/next.json");
    let mut heard = Vec::new();
    while let Ok(text) = fs::read(&next) {
        let Ok(event) = serde_json::from_slice::<Value>(&text) else { break };
        match event["signal"]["payload"]["n"].as_u64() {
            Some(n) => heard.push(n),
            // Nothing in time.
            None => assert_ne!(event["configured"], false, "what is armed stays armed"),
        }
    }
    heard
}

/// Waits until `so` is true.
#[track_caller]
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: not after a minute");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Writes and closes; the answer to `close` counts.
pub fn put(path: &PathBuf, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    nix::unistd::close(OwnedFd::from(file)).map_err(io::Error::from)
}
