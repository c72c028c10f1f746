//! A small house with a service that does next to nothing: what remains is what every call and every wait costs.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::house::{Scratch, again, ready};
use acheron::contract::Operation;
use acheron::events::EventLogs;
use acheron::host::{CallerIdentity, PolicyAccess};
use acheron::jobs::{self, Jobs};
use acheron::policy::Policy;
use acheron::service::{Cx, Service, ServiceContext, ServiceInstance, WriteCx, directory, typed};
use acheron_base::{Clock, Error, Ids, Random, Result};
use acheron_vfs::{
    Answer, Caller, CommandContext, CommandSink, Control, File, Handle, Kind, Listing, Node, Open, Reply, TextFile,
    Tree,
};

/// As many have the service, each its own.
pub const AGENTS: usize = 64;

struct Trivial;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Command {
    /// Says a number back; nothing is changed.
    Look { number: u64 },
    /// Says a number back, as if something had been changed.
    Note { number: u64 },
    /// Never ends by itself.
    Hang {},
}

#[derive(Serialize, JsonSchema)]
struct Output {
    number: u64,
}

#[async_trait]
impl Service for Trivial {
    const NAME: &'static str = "trivial";
    const ABOUT: &'static str = "Does next to nothing.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::read("look").quick(),
            Operation::write("note"),
            Operation::read("hang").deadline(super::house::GUARD),
        ]
    }

    async fn invoke(&self, _cx: &Cx, command: Command) -> Result<Output> {
        match command {
            Command::Look { number } => Ok(Output { number }),
            Command::Hang {} => std::future::pending().await,
            Command::Note { .. } => Err(Error::internal("it runs in a transaction")),
        }
    }

    fn write(&self, _cx: &WriteCx<'_>, command: Command) -> Result<Output> {
        match command {
            Command::Note { number } => Ok(Output { number }),
            Command::Look { .. } | Command::Hang {} => Err(Error::internal("it changes nothing")),
        }
    }
}

/// Rung by a command, waited for by readers.
struct ChangeNotifier(Mutex<watch::Sender<u64>>);

impl CommandSink for ChangeNotifier {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"{\"ring\": true}\n")
    }

    fn submit(&self, _asked: &CommandContext, _commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        self.0.lock().send_modify(|rung| *rung += 1);
        Answer::ok(Vec::new())
    }

    fn refused(&self, _asked: &CommandContext, _error: &Error) {}
}

/// A page of text that a command replaces.
struct Editor(Arc<TextFile>);

impl CommandSink for Editor {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"{\"say\": \"words\"}\n")
    }

    fn submit(&self, _asked: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        for command in commands {
            self.0.set(command["say"].as_str().unwrap_or_default().to_owned(), SystemTime::now());
        }
        Answer::ok(Vec::new())
    }

    fn refused(&self, _asked: &CommandContext, _error: &Error) {}
}

/// A file that is read once for each time that the bell has rung since it was read.
struct Heard(watch::Receiver<u64>);

struct Hearing {
    notifier: watch::Receiver<u64>,
    heard: Arc<AtomicU64>,
}

impl File for Heard {
    fn kind(&self) -> Kind {
        Kind::Waiting
    }

    fn open(&self, _caller: &Caller, _how: Open) -> Result<Box<dyn Handle>> {
        let heard = Arc::new(AtomicU64::new(*self.0.borrow()));
        Ok(Box::new(Hearing { notifier: self.0.clone(), heard }))
    }
}

impl Hearing {
    fn rung(&self) -> impl Future<Output = Result<u64>> + Send + 'static {
        let (mut notifier, heard) = (self.notifier.clone(), self.heard.clone());
        async move {
            let rung = notifier.wait_for(|rung| *rung > heard.load(Ordering::SeqCst)).await;
            rung.map(|rung| *rung).map_err(|_| Error::unavailable("the bell is gone"))
        }
    }
}

impl Handle for Hearing {
    fn read(&self, _offset: u64, _size: usize) -> Answer<Bytes> {
        let (rung, heard) = (self.rung(), self.heard.clone());
        Answer::later(async move {
            heard.store(rung.await?, Ordering::SeqCst);
            Ok(Bytes::from_static(b"rung\n"))
        })
    }

    fn readable(&self) -> Answer<()> {
        let rung = self.rung();
        Answer::later(async move { rung.await.map(drop) })
    }
}

/// The daemon's side.
pub fn serve(dir: &Path, state: &Path) -> io::Result<()> {
    // As `acheron mount` has it.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended: Result<()> = runtime.block_on(async {
        let (clock, store) = (Clock::real(), crate::method::open_state(state));
        let access = Arc::new(PolicyAccess::new(Policy::default(), store.clone(), clock.clone()));
        let book = Arc::new(Jobs::new(Arc::new(store.clone()), Ids::new(clock.clone(), Random::real())));
        let event_logs = Arc::new(EventLogs::new(store.clone(), clock.clone()));
        let runtime = tokio::runtime::Handle::current();
        let context = ServiceContext::new(book.clone(), event_logs, store, access.clone(), runtime.clone());
        let instance = ServiceInstance::of(&context, "ada", typed(Trivial)?);
        let others = (0..AGENTS).try_fold(Listing::default(), |all, number| -> Result<Listing> {
            let agent = format!("agent-{number}");
            let instance = ServiceInstance::of(&context, &agent, typed(Trivial)?);
            Ok(all.dir(&agent, Listing::default().dir("trivial", directory(&instance))))
        })?;
        let (ring, notifier) = watch::channel(0);
        let page = Arc::new(TextFile::new(format!("{:020}", 0), SystemTime::now()));
        let root = Listing::default()
            .dir("agents", others)
            .with("page", Node::File(page.clone()))
            .file("page.json", Control::new(Arc::new(Editor(page))))
            .dir("trivial", directory(&instance))
            .with("jobs", Node::dir(jobs::files::directory(&book, "ada")))
            .file("ring.json", Control::new(Arc::new(ChangeNotifier(Mutex::new(ring)))))
            .file("bell", Heard(notifier));
        let mount = acheron_fuse::mount(
            Tree::new(Arc::new(root), access),
            Arc::new(CallerIdentity::default()),
            dir,
            runtime,
            &acheron_fuse::Options::default(),
        )?;
        ready();
        mount.ended().await
    });
    ended.map_err(io::Error::other)
}

/// The workshop, mounted, in a process of its own.
pub struct Workshop {
    daemon: Child,
    root: PathBuf,
    _scratch: Scratch,
}

impl Workshop {
    pub fn start() -> Workshop {
        let scratch = Scratch::new();
        let (root, state) = (scratch.make("mnt"), scratch.make("state"));
        let daemon = again(&["__workshop", &root.to_string_lossy(), &state.to_string_lossy()]);
        Workshop { daemon, root, _scratch: scratch }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.root, nix::mount::MntFlags::MNT_DETACH);
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
