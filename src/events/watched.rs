//! Awaited paths: decides which changes can be waited for, and notices those of which nothing else tells.
//!
//! Most files are computed when they are read and cannot tell that they changed. As long as a reader waits for such a path, it
//! is looked at now and then, off the thread that all callers share, and a difference becomes an event. Used inside `events`
//! and by the wake rules of `agent`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::wait::matches;
use super::{EventLog, Selector};
use acheron_base::{Code, Error, Result, blocking};
use acheron_vfs::{Caller, Dir, File, Kind, Node, Open, Tree};

/// The shortest time between two looks at a path, and the longest if looking is cheap.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// The time between two looks is so many times what a look takes.
const SHARE: u32 = 20;
/// A directory with more names below it is not looked at.
const MAX_NAMES: usize = 100_000;
/// So much is read of a file at once, and so much of it is compared.
const CHUNK: usize = 128 << 10;
const COMPARED: u64 = 16 << 20;

/// How a change of a path becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noticed {
    /// An event tells of it.
    ByEvents,
    /// Somebody has to look.
    ByLooking,
}

/// Decides whether a change of `path`, or below it, can be waited for, and how. The one function that decides. Blocks: it looks
/// the path up.
pub fn noticed(tree: &Tree, caller: &Caller, agent: &str, path: &str) -> Result<Noticed> {
    let own = path.strip_prefix(&format!("/agents/{agent}/"));
    if own == Some("events/next.json") {
        return Err(Error::invalid("next.json shows what wait.json waits for; wait for those paths themselves"));
    }
    let resolved = tree.resolve(caller, path)?;
    let node = match (resolved.node, resolved.lacking) {
        (Ok(node), _) => Some(node),
        (Err(_), Some((above, _))) if parent(&resolved.path) == above => None,
        (Err(_), _) => {
            let missing = parent(&resolved.path);
            return Err(Error::not_found(format!(
                "there is no `{path}` to wait for, nor its directory `{missing}`; wait for one that is there"
            )));
        }
    };
    let whole = path.matches('/').count() < 3 && (path == "/" || path.starts_with("/agents"));
    if whole || path.starts_with("/projects") || own.is_some_and(shows_the_log) {
        return Ok(Noticed::ByEvents);
    }
    match &node {
        Some(Node::File(file)) => check_file(tree, caller, &resolved.path, &**file)?,
        Some(Node::Dir(dir)) => {
            let mut names = Names { tree, caller, hasher: DefaultHasher::new(), left: MAX_NAMES };
            names.below(&**dir, &resolved.path);
            if names.left == 0 {
                return Err(Error::invalid(format!(
                    "`{path}` has more than {MAX_NAMES} names below it; wait for one of them"
                )));
            }
        }
        _ => (),
    }
    Ok(Noticed::ByLooking)
}

/// Whether a path below an agent's directory shows its event log, so that every event is a change of it.
pub fn shows_the_log(own: &str) -> bool {
    matches!(own, "events" | "events/log.ndjson" | "events/status.json")
}

/// Refuses a file that never changes, with what to wait for instead.
fn check_file(tree: &Tree, caller: &Caller, path: &str, file: &dyn File) -> Result<()> {
    match file.kind() {
        Kind::Control | Kind::Message => {
            let service = parent(parent(path));
            let result = ["result.json", "latest.txt", "status.json"].map(|name| format!("{service}/{name}"));
            let shown = result.iter().find(|path| tree.find(caller, path).is_ok());
            let instead = shown.map_or(service, String::as_str);
            Err(Error::invalid(format!("`{path}` takes what is written and never changes; wait for `{instead}`")))
        }
        Kind::Text if !path.starts_with("/global/") => Err(Error::invalid(format!(
            "`{path}` does not change while the tree is mounted; wait for a file that does, or for `{}`",
            parent(path)
        ))),
        _ => Ok(()),
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(above, _)| above)
}

/// The awaited paths of one agent that have to be looked at, by who waits and where.
#[derive(Default)]
pub struct WatchedPaths(Mutex<HashMap<(String, String), Weak<WatchedPath>>>);

impl WatchedPaths {
    /// The one of this caller at `path`; all that wait for it share it.
    fn at(&self, caller: &Caller, path: &str) -> Arc<WatchedPath> {
        let mut all = self.0.lock();
        all.retain(|_, watched| watched.strong_count() > 0);
        let entry = all.entry((caller.identity.name().to_owned(), path.to_owned())).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let (caller, path) = (caller.clone(), path.to_owned());
            let made = Arc::new(WatchedPath { caller, path, seen: tokio::sync::Mutex::default() });
            *entry = Arc::downgrade(&made);
            made
        })
    }
}

/// A path that has to be looked at.
#[derive(Debug)]
pub struct WatchedPath {
    caller: Caller,
    path: String,
    seen: tokio::sync::Mutex<Option<Seen>>,
}

/// What the last look showed.
#[derive(Clone, Copy, Debug)]
struct Seen {
    print: Option<u64>,
    /// The last event then.
    seq: u64,
    at: Instant,
    /// When to look again: later and later as long as nothing changes.
    pause: Duration,
}

impl EventLog {
    /// Decides about the paths of a wait, and begins to watch those that need it. What they show now is no change.
    pub async fn watch(self: &Arc<Self>, caller: &Caller, selectors: &[Selector]) -> Result<Arc<[Arc<WatchedPath>]>> {
        let mut watched = Vec::new();
        for selector in selectors {
            let Selector::Path(path) = selector else { continue };
            let (tree, agent) = (self.tree()?, self.agent.clone());
            let (by, at) = (caller.clone(), path.clone());
            if blocking(move || noticed(&tree, &by, &agent, &at)).await? == Noticed::ByLooking {
                let path = self.watched.at(caller, path);
                path.look(self, true).await?;
                watched.push(path);
            }
        }
        Ok(watched.into())
    }
}

impl WatchedPath {
    /// Looks whether something has changed since the last look, and has an event tell of it. Returns when to look again.
    /// `eager` says that something has happened, or that a reader has come.
    pub async fn look(&self, log: &Arc<EventLog>, eager: bool) -> Result<Instant> {
        let mut seen = self.seen.lock().await;
        let begun = Instant::now();
        if let Some(Seen { at, pause, .. }) = *seen {
            let due = at + if eager { pause.min(SHORTEST) } else { pause };
            if begun < due {
                return Ok(due);
            }
        }
        let seq = log.last();
        let print = print(log.tree()?, &self.caller, &self.path).await?;
        let (at, least) = (Instant::now(), SHORTEST.max(begun.elapsed() * SHARE));
        let Some(before) = *seen else {
            *seen = Some(Seen { print: print.unwrap_or(None), seq, at, pause: least });
            return Ok(at + least);
        };
        // While the answer is being made, the last one holds.
        let now = print.unwrap_or(before.print);
        let mut told = now == before.print || self.is_told(log, before.seq).await?;
        if !told {
            // The event of a change becomes visible just after the change.
            tokio::time::sleep(SHORTEST / 10).await;
            told = self.is_told(log, before.seq).await?;
        }
        let pause = if now == before.print { least.max((before.pause * 2).min(LONGEST)) } else { least };
        *seen = Some(Seen { print: now, seq, at, pause });
        if !told {
            let what = match (before.print, now) {
                (None, _) => "created",
                (_, None) => "removed",
                _ => "changed",
            };
            log.add("change", &self.path, json!({ "what": what })).wait().await?;
        }
        Ok(at + pause)
    }

    /// Whether an event after `seq` has told of the change.
    async fn is_told(&self, log: &EventLog, seq: u64) -> Result<bool> {
        let selector = Selector::Path(self.path.clone());
        Ok(log.after(seq).wait().await?.iter().any(|event| matches(&selector, event, &log.agent, 0)))
    }
}

/// A number that differs when the content of a path does. The outer `None` says that the answer is not there yet, the inner one
/// that the path is not.
async fn print(tree: Tree, caller: &Caller, path: &str) -> Result<Option<Option<u64>>> {
    let (by, at) = (caller.clone(), path.to_owned());
    let begun = move || {
        let Ok((path, node)) = tree.find(&by, &at) else { return Ok((None, None)) };
        match &node {
            Node::Dir(dir) => {
                let mut names = Names { tree: &tree, caller: &by, hasher: DefaultHasher::new(), left: MAX_NAMES };
                names.below(&**dir, &path);
                Ok((Some(names.hasher.finish()), None))
            }
            Node::File(file) if file.kind() == Kind::Log => Ok((Some(stat_print(&**file)), None)),
            // The first read is made here: what a file computes can take long.
            Node::File(_) => Ok(match tree.open(&by, &node, &path, Open::READ) {
                Ok(handle) => {
                    let first = handle.read(0, CHUNK);
                    (None, Some((handle, first)))
                }
                Err(error) => (Some(failed(&error)), None),
            }),
            Node::Link(_) => Ok((None, None)),
        }
    };
    let (known, reading) = blocking(begun).await?;
    let Some((handle, first)) = reading else { return Ok(Some(known)) };
    let (mut hasher, mut offset, mut answer) = (DefaultHasher::new(), 0, first);
    loop {
        match answer.ready_or_busy().await {
            Ok(bytes) if bytes.is_empty() || offset >= COMPARED => return Ok(Some(Some(hasher.finish()))),
            Ok(bytes) => {
                hasher.write(&bytes);
                offset += bytes.len() as u64;
                answer = handle.read(offset, CHUNK);
            }
            Err(error) if error.code == Code::Busy => return Ok(None),
            Err(error) => return Ok(Some(Some(failed(&error)))),
        }
    }
}

fn failed(error: &Error) -> u64 {
    let mut hasher = DefaultHasher::new();
    error.message.hash(&mut hasher);
    hasher.finish()
}

fn stat_print(file: &dyn File) -> u64 {
    let (stat, mut hasher) = (file.stat(), DefaultHasher::new());
    (stat.size, stat.modified).hash(&mut hasher);
    hasher.finish()
}

/// The names below a directory, with the sizes and times of the files that tell them.
struct Names<'a> {
    tree: &'a Tree,
    caller: &'a Caller,
    hasher: DefaultHasher,
    /// So many more are looked at.
    left: usize,
}

impl Names<'_> {
    fn below(&mut self, dir: &dyn Dir, path: &str) {
        if dir.mirrored().is_some() {
            return; // a directory of the machine, of which events tell
        }
        for (name, node) in dir.list() {
            let path = format!("{path}/{name}");
            if self.left == 0 || !self.tree.shows(self.caller, &path, &node) {
                continue;
            }
            self.left -= 1;
            name.hash(&mut self.hasher);
            match node {
                Node::Dir(dir) => {
                    self.below(&*dir, &path);
                    self.hasher.write_u8(b'/'); // the end of this directory
                }
                Node::File(file) if matches!(file.kind(), Kind::Log | Kind::Item | Kind::Text) => {
                    self.hasher.write_u64(stat_print(&*file));
                }
                Node::File(_) | Node::Link(_) => (),
            }
        }
    }
}
