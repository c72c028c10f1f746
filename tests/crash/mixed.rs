//! The load of the soak: everything that people and agents do, side by side, through the mount.
//!
//! A worker does one thing again and again until it is told to stop. What it is answered must be right, unless the host
//! is being killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::load::put;

/// What was acknowledged, over all lives.
#[derive(Default)]
pub struct Ledger {
    /// The last number in each memory.
    kept: Mutex<BTreeMap<String, u64>>,
    /// The numbers of the messages since they were last looked for.
    said: Mutex<BTreeSet<u64>>,
    next: AtomicU64,
    pub done: Mutex<BTreeMap<&'static str, u64>>,
    /// How many memories and messages were acknowledged, and how many of them were found.
    pub acknowledged: AtomicU64,
    pub found: AtomicU64,
}

impl Ledger {
    /// Nothing that was acknowledged is lost: each memory has its last number, or one that was never answered; each
    /// message has been a turn, once.
    pub fn check(&self, agent: &Path) {
        let count = |of: &AtomicU64, more: usize| _ = of.fetch_add(more as u64, Ordering::SeqCst);
        let kept = self.kept.lock();
        count(&self.acknowledged, kept.len());
        for (name, kept) in &*kept {
            let text = fs::read_to_string(agent.join("memory/items").join(name).join("content")).unwrap();
            let found: u64 = text.trim().parse().unwrap();
            assert!(found >= *kept, "{name} has {found}, and {kept} was acknowledged");
            count(&self.found, 1);
        }
        let said = std::mem::take(&mut *self.said.lock());
        count(&self.acknowledged, said.len());
        let turns = turns(agent);
        let once: BTreeSet<&u64> = turns.iter().collect();
        assert_eq!(once.len(), turns.len(), "a message was two turns");
        let lost: Vec<_> = said.iter().filter(|n| !once.contains(n)).collect();
        assert!(lost.is_empty(), "messages were lost: {lost:?}");
        count(&self.found, said.len());
    }
}

/// The numbers of the messages that became turns, when none is under way any more.
fn turns(agent: &Path) -> Vec<u64> {
    _ = fs::read(agent.join("chat/latest.txt")).unwrap();
    let history = ["history.ndjson.1", "history.ndjson"].map(|it| fs::read_to_string(agent.join("chat").join(it)));
    let lines: String = history.into_iter().map(|text| text.unwrap_or_default()).collect();
    let turns = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    turns.filter_map(|turn| turn["input"].as_str()?.rsplit(' ').next()?.parse().ok()).collect()
}

struct Stage {
    root: PathBuf,
    here: PathBuf,
    ledger: Arc<Ledger>,
    over: AtomicBool,
}

impl Stage {
    fn agent(&self) -> PathBuf {
        self.root.join("agents/charon")
    }

    fn number(&self) -> u64 {
        self.ledger.next.fetch_add(1, Ordering::SeqCst)
    }
}

type Work = fn(&Stage) -> io::Result<()>;

/// A new kind of load is a line here.
const WORKERS: [(&str, Work); 9] = [
    ("chat", chat),
    ("job", job),
    ("wait", wait),
    ("memory", memory),
    ("memory", memory),
    ("terminal", terminal),
    ("bind", bind),
    ("killed reader", killed_reader),
    ("reload", reload),
];

/// Works for a while; `end` is called in the middle of it and may kill the host.
pub fn burst(root: &Path, here: &Path, ledger: &Arc<Ledger>, time: Duration, end: impl FnOnce() -> bool) {
    let stage = Arc::new(Stage {
        root: root.to_owned(),
        here: here.to_owned(),
        ledger: ledger.clone(),
        over: AtomicBool::new(false),
    });
    let dying = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = WORKERS
        .iter()
        .map(|(name, work)| {
            let (stage, dying) = (stage.clone(), dying.clone());
            thread::spawn(move || {
                while !stage.over.load(Ordering::SeqCst) {
                    match work(&stage) {
                        Ok(()) => *stage.ledger.done.lock().entry(name).or_default() += 1,
                        // the answer of a host that is dying is no answer
                        Err(_) if dying.load(Ordering::SeqCst) => return,
                        Err(error) => panic!("{name}: {error}"),
                    }
                }
            })
        })
        .collect();
    thread::sleep(time); // how long the load lasts, not a wait for anything
    dying.store(true, Ordering::SeqCst);
    let killed = end();
    dying.store(killed, Ordering::SeqCst);
    stage.over.store(true, Ordering::SeqCst);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    if !killed && stage.root.join("agents/visitor").exists() {
        reload(&stage).unwrap(); // so that hosts at rest can be compared
    }
}

fn both(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

fn answer(handle: &mut File) -> io::Result<Value> {
    let mut text = String::new();
    handle.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::other(what.into())
}

/// One call on a handle of its own, and its own answer.
fn call(control: &Path, arguments: &Value) -> io::Result<Value> {
    let mut handle = both(control)?;
    handle.write_all(arguments.to_string().as_bytes())?;
    let said = answer(&mut handle)?;
    match said["ok"] == true {
        true => Ok(said),
        false => Err(wrong(format!("{} said {said}", control.display()))),
    }
}

fn chat(stage: &Stage) -> io::Result<()> {
    let mut handle = both(&stage.agent().join("chat/control/input"))?;
    let number = stage.number();
    handle.write_all(format!("how deep is the river, ferryman {number}").as_bytes())?;
    nix::unistd::close(OwnedFd::from(handle.try_clone()?))?; // a close by its opener sends the message
    stage.ledger.said.lock().insert(number);
    let mut said = String::new();
    handle.read_to_string(&mut said)?;
    if said.trim() == "deep" { Ok(()) } else { Err(wrong(format!("the agent said {said:?}"))) }
}

fn job(stage: &Stage) -> io::Result<()> {
    call(&stage.agent().join("memory/control/search.json"), &json!({"query": "river"}))?;
    call(&stage.agent().join("search_code/control/search.json"), &json!({"query": "soak", "max_results": 3})).map(drop)
}

/// Somebody waits before it happens, and hears of it.
fn wait(stage: &Stage) -> io::Result<()> {
    let word = format!("w{}", stage.number());
    let events = stage.agent().join("events/control");
    let mut handle = both(&events.join("wait.json"))?;
    let path = format!("/agents/self/events/sources/user/{word}.json");
    handle.write_all(json!({"paths": [path], "timeout_ms": 60_000}).to_string().as_bytes())?;
    put(&events.join("signal.json"), &json!({"event_type": "user", "parameter": word}).to_string())?;
    let said = answer(&mut handle)?;
    if said["signal"]["parameter"] == word { Ok(()) } else { Err(wrong(format!("a waiter was forgotten: {said}"))) }
}

fn memory(stage: &Stage) -> io::Result<()> {
    let n = stage.number();
    let name = format!("soak-{}", n % 8);
    let item = stage.agent().join("memory/items").join(&name);
    // held all the while, so that the numbers of one memory rise
    let mut kept = stage.ledger.kept.lock();
    match fs::create_dir(&item) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => put(&item.join("content"), &n.to_string())?,
    }
    kept.insert(name, n);
    Ok(())
}

fn terminal(stage: &Stage) -> io::Result<()> {
    let control = stage.agent().join("terminal/control");
    call(&control.join("exec.json"), &json!({"command": "echo deep"}))?;
    let id = format!("s{}", stage.number());
    call(&control.join("create.json"), &json!({"session_id": id}))?;
    call(&control.join("close.json"), &json!({"session_id": id})).map(drop)
}

/// Writes, renames, reads and removes a file of the project.
fn bind(stage: &Stage) -> io::Result<()> {
    let dir = stage.root.join("projects/here/fs/tmp");
    let (one, other) = (dir.join("one"), dir.join("other"));
    let text = stage.number().to_string();
    fs::write(&one, &text)?;
    fs::rename(&one, &other)?;
    let read = fs::read_to_string(&other)?;
    fs::remove_file(&other)?;
    if read == text { Ok(()) } else { Err(wrong(format!("wrote {text}, read {read}"))) }
}

/// A reader that waits and is killed goes at once.
fn killed_reader(stage: &Stage) -> io::Result<()> {
    let path = stage.agent().join("events/sources/time/after/6000000.json");
    let mut reader = Command::new("cat").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    thread::sleep(Duration::from_millis(stage.number() % 20));
    reader.kill()?;
    reader.wait().map(drop)
}

/// Changes what the host follows: the library, the prompts, and the mountspec, by which an agent, a service and a project
/// come or go.
fn reload(stage: &Stage) -> io::Result<()> {
    let text = format!("# Soak\n\nThe {}th time.\n", stage.number());
    for file in ["global-library/topics/soak.md", "prompts/shared/soak.txt"] {
        replace(&stage.here.join(file), &text)?;
    }
    let file = stage.here.join("../spec.json");
    let mut spec: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let comes = spec["agents"]["visitor"].is_null();
    for (part, name, entry) in [
        ("agents", "visitor", json!({"about": "comes and goes"})),
        ("services", "tide", json!({"command": ["true"], "about": "the tide", "operations": {"look": {}}})),
        ("projects", "side", json!({"binds": {"/": {"path": "tmp"}}})),
    ] {
        match comes {
            true => spec[part][name] = entry,
            false => _ = spec[part].as_object_mut().map(|part| part.remove(name)),
        }
    }
    replace(&file, &spec.to_string())?;
    let places = ["agents/visitor/chat", "agents/charon/tide", "projects/side/fs"].map(|it| stage.root.join(it));
    let began = Instant::now();
    while places.iter().any(|place| place.exists() != comes) {
        fs::metadata(&stage.root)?; // who has died changes nothing any more
        if began.elapsed() > Duration::from_secs(60) {
            let health = fs::read_to_string(stage.root.join("meta/health.json"))?;
            return Err(wrong(format!("an edit of the mountspec was not followed: {health}")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Writes a file as editors do: beside it, and then in its place.
fn replace(file: &Path, text: &str) -> io::Result<()> {
    let beside = file.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(beside, file)
}
