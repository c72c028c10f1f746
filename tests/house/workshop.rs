//! A tree with one file of each kind, and knobs to turn behind it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use acheron::policy::{Principal, PrincipalCaller, identity};
use acheron_base::{Clock, Error, Result};
use acheron_fuse::{Identify, Mount};
use acheron_vfs::{
    AccessControl, Answer, Caller, ChangeNotifier, CommandContext, CommandSink, Control, Dir, FixedReply, Handle, Item,
    Link, Listing, Log, MessageFile, MessageSink, Node, Open, Reply, ReplyFn, Stat, TextFile, Tree, VersionStore,
    VirtualDir, line, live, text, waiting,
};

pub struct Workshop {
    // Dropped in this order: the mount goes while the runtime can still answer.
    pub mount: Mount,
    pub knobs: Arc<Knobs>,
    pub tree: Tree,
    pub runtime: Runtime,
    place: TempDir,
}

/// What the test turns.
pub struct Knobs {
    pub page: TextFile,
    pub log: Log,
    pub root: Arc<Listing>,
    /// What `waiting.json` says, once it says something.
    pub settled: watch::Sender<Option<Bytes>>,
    /// How many gated replies may be given.
    pub fired: watch::Sender<u64>,
    pub heard: Mutex<Vec<String>>,
    pub refused: Mutex<Vec<String>>,
    pub item: Arc<Shelf>,
    pub names: Mutex<Vec<String>>,
    replies: AtomicU64,
}

impl Workshop {
    pub fn open() -> Workshop {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let place = tempfile::tempdir().unwrap();
        let (tree, knobs) = tree();
        let mount = acheron_fuse::mount(
            tree.clone(),
            everybody(),
            place.path(),
            runtime.handle().clone(),
            &acheron_fuse::Options::default(),
        )
        .unwrap();
        Workshop { mount, knobs, tree, runtime, place }
    }

    pub fn root(&self) -> &Path {
        self.place.path()
    }

    pub fn settle(&self, words: &str) {
        self.knobs.settled.send_replace(Some(Bytes::copy_from_slice(words.as_bytes())));
    }
}

pub fn everybody() -> Arc<dyn Identify> {
    Arc::new(ByProc)
}

/// Everybody is the operator; the process is found by its thread.
struct ByProc;

impl Identify for ByProc {
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller {
        let status = std::fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let pid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()).unwrap_or(0);
        let principal = if pid == 0 { Principal::Nobody } else { Principal::Operator };
        Caller { uid, gid, pid, identity: identity(principal) }
    }
}

struct Open_;

impl AccessControl for Open_ {
    fn check(&self, caller: &Caller, _action: acheron_vfs::Access, _path: &str) -> Result<()> {
        match caller.principal() {
            Principal::Nobody => Err(Error::forbidden("nobody may do anything")),
            _ => Ok(()),
        }
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

fn tree() -> (Tree, Arc<Knobs>) {
    let root = Arc::new(Listing::timed(&Clock::real()));
    let knobs = Arc::new(Knobs {
        page: TextFile::new("first\n", SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)),
        log: Log::new(1 << 20, Clock::real()),
        root: root.clone(),
        settled: watch::Sender::new(None),
        fired: watch::Sender::new(0),
        heard: Mutex::default(),
        refused: Mutex::default(),
        item: Arc::new(Shelf {
            bytes: Mutex::new(("old words\n".into(), SystemTime::UNIX_EPOCH)),
            notifier: ChangeNotifier::default(),
        }),
        names: Mutex::new(vec!["one".to_owned(), "two".to_owned()]),
        replies: AtomicU64::new(0),
    });

    let passes = AtomicU64::new(0);
    let snapshot = live(move |_| {
        let pass = passes.fetch_add(1, Ordering::SeqCst);
        Ok(Bytes::from(format!("{pass}").repeat(200_000)))
    });
    let of = knobs.clone();
    let waits = waiting(move |_| when_settled(&of));
    let of = knobs.clone();
    let heard = live(move |_| Ok(line(&*of.heard.lock())));
    let of = knobs.clone();
    let refused = live(move |_| Ok(line(&*of.refused.lock())));
    let (names, find) = (knobs.clone(), knobs.clone());
    let computed = VirtualDir::new(
        move || names.names.lock().clone(),
        move |name| {
            let known = find.names.lock().iter().any(|it| it == name);
            known.then(|| Node::file(text(format!("{name} by {}\n", *find.fired.borrow()))))
        },
    );
    let many = (0..1000).fold(Listing::default(), |dir, i| dir.file(&format!("{i:03}"), text(format!("{i}\n"))));
    let slow = acheron_vfs::ComputedFile::fetched(|_| {
        Answer::soon(async {
            tokio::task::yield_now().await; // not there at the first look
            Ok(Bytes::from_static(b"fetched\n"))
        })
    });
    let panics = live(|_| panic!("on purpose"));

    let control = Listing::default()
        .file("echo.json", Control::new(Arc::new(Echo(knobs.clone()))))
        .file("say", MessageFile::new(Arc::new(Ears(knobs.clone()))));
    for (name, node) in [
        ("text.md", Node::file(knobs.page.clone())),
        ("live.txt", Node::file(snapshot)),
        ("waiting.json", Node::file(waits)),
        ("log.txt", Node::file(knobs.log.clone())),
        ("heard.json", Node::file(heard)),
        ("refused.json", Node::file(refused)),
        ("item", Node::file(Item::new(knobs.item.clone()))),
        ("slow", Node::file(slow)),
        ("panics", Node::file(panics)),
        ("control", Node::dir(control)),
        ("computed", Node::dir(computed)),
        ("many", Node::dir(many)),
        ("box", Node::dir(Box_(Arc::default(), knobs.fired.clone()))),
        ("who", Node::link(Who)),
    ] {
        root.put(name, node);
    }
    (Tree::new(root, Arc::new(Open_)), knobs)
}

fn when_settled(knobs: &Knobs) -> Answer<Bytes> {
    let mut settled = knobs.settled.subscribe();
    Answer::later(async move {
        let value = settled.wait_for(Option::is_some).await.map_err(|_| Error::unavailable("gone"))?;
        Ok(value.clone().unwrap_or_default())
    })
}

struct Who;

impl Link for Who {
    fn target(&self, caller: &Caller) -> Result<String> {
        Ok(format!("many/{:03}", caller.pid % 1000))
    }
}

/// Says back what it is told. `wait` is answered when the gate was opened once more, `fire` opens it, `settle` and `unsettle`
/// are about `waiting.json`, `slow` is not answered at the first look, and `fly` is unknown.
struct Echo(Arc<Knobs>);

impl CommandSink for Echo {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"{\"op\": \"echo\"}\n")
    }

    fn submit(&self, _asked: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        if let Some(unknown) = commands.iter().find(|it| it["op"] == "fly") {
            return Answer::refuse(Error::unknown_operation(format!("unknown operation {}", unknown["op"])));
        }
        let slow = commands.iter().any(|it| it["op"] == "slow");
        let replies: Vec<Arc<dyn Reply>> = commands.into_iter().map(|it| self.reply(it)).collect();
        match slow {
            false => Answer::ok(replies),
            true => Answer::soon(async move {
                tokio::task::yield_now().await;
                Ok(replies)
            }),
        }
    }

    fn refused(&self, _asked: &CommandContext, error: &Error) {
        self.0.refused.lock().push(error.message.clone());
    }
}

impl Echo {
    fn reply(&self, command: Value) -> Arc<dyn Reply> {
        let said = line(&json!({ "said": command }));
        match command["op"].as_str() {
            Some("fire") => self.0.fired.send_modify(|count| *count += 1),
            Some("settle") => drop(self.0.settled.send_replace(Some(said.clone()))),
            Some("unsettle") => drop(self.0.settled.send_replace(None)),
            Some("wait") => {
                let turn = self.0.replies.fetch_add(1, Ordering::SeqCst) + 1;
                let fired = self.0.fired.clone();
                return Arc::new(ReplyFn(move || {
                    let (mut fired, said) = (fired.subscribe(), said.clone());
                    Answer::later(async move {
                        fired.wait_for(|count| *count >= turn).await.map_err(|_| Error::unavailable("gone"))?;
                        Ok(said)
                    })
                }));
            }
            _ => (),
        }
        Arc::new(FixedReply(said))
    }
}

struct Ears(Arc<Knobs>);

impl MessageSink for Ears {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"say something\n")
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn receive(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        let said = Bytes::from(format!("heard: {message}"));
        self.0.heard.lock().push(message);
        Answer::ok(Arc::new(FixedReply(said)))
    }
}

/// Keeps the latest version alone.
pub struct Shelf {
    pub bytes: Mutex<(Bytes, SystemTime)>,
    notifier: ChangeNotifier,
}

impl VersionStore for Shelf {
    fn stat(&self) -> Stat {
        let bytes = self.bytes.lock();
        Stat { size: bytes.0.len() as u64, modified: bytes.1 }
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.notifier)
    }

    fn latest(&self) -> Answer<Bytes> {
        Answer::ok(self.bytes.lock().0.clone())
    }

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        *self.bytes.lock() = (bytes, SystemTime::now());
        self.notifier.bytes();
        Answer::soon(async {
            tokio::task::yield_now().await;
            Ok(())
        })
    }
}

/// A directory that lets names be made and removed. One called `later` is, when the gate was opened once more.
struct Box_(Arc<Listing>, watch::Sender<u64>);

impl Box_ {
    fn change<T: Send + 'static>(
        &self,
        name: &str,
        change: impl FnOnce(&Listing, &str) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        if name != "later" {
            return Answer::Now(change(&self.0, name));
        }
        let (listing, name, mut fired) = (self.0.clone(), name.to_owned(), self.1.subscribe());
        let before = *fired.borrow();
        Answer::soon(async move {
            fired.wait_for(|count| *count > before).await.map_err(|_| Error::unavailable("gone"))?;
            change(&listing, &name)
        })
    }
}

impl Dir for Box_ {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.0.lookup(name)
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.0.list()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        self.0.notifier()
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        let fired = self.1.clone();
        self.change(name, |listing, name| {
            listing.put(name, Node::dir(Box_(Arc::default(), fired)));
            listing.lookup(name).ok_or_else(|| Error::internal("not made"))
        })
    }

    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        self.change(name, |listing, name| {
            listing.take(name);
            Ok(())
        })
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        let shelf = Shelf { bytes: Mutex::new((Bytes::new(), SystemTime::now())), notifier: ChangeNotifier::default() };
        let node = Node::file(Item::new(Arc::new(shelf)));
        self.0.put(name, node.clone());
        let Node::File(file) = &node else { unreachable!() };
        let handle = file.open(caller, how)?;
        Ok((node, handle))
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        self.0.take(name);
        Answer::ok(())
    }
}
