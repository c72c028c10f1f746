//! Serves an [`acheron_vfs`] tree as a FUSE mount on Linux.
//!
//! [`mount`] puts a [`Tree`] at a directory. Directories and files are answered on the thread of the session, from memory;
//! a directory that is not quick ([`acheron_vfs::Dir::is_quick`]) is asked on another thread.
//! A read that cannot be answered yet is parked under the number of its request: it costs no thread, and it ends when its
//! answer is there or when the reader receives a signal. `O_NONBLOCK`, `poll(2)` and `epoll(7)` work as for a pipe.
//!
//! # Example
//!
//! A tree with one file that waits. The complete program is `examples/waiting.rs`; a test of this crate runs it.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use acheron_fuse::{Identify, Options, mount};
//! use acheron_vfs::{Access, AccessControl, Answer, Caller, Identity, Listing, Tree, waiting};
//!
//! struct Everyone;
//!
//! impl AccessControl for Everyone {
//!     fn check(&self, _caller: &Caller, _action: Access, _path: &str) -> acheron_base::Result<()> {
//!         Ok(())
//!     }
//!
//!     fn sees(&self, _caller: &Caller, _path: &str) -> bool {
//!         true
//!     }
//! }
//!
//! impl Identify for Everyone {
//!     fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller {
//!         Caller { uid, gid, pid: tid, identity: Identity::named("anyone") }
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> acheron_base::Result<()> {
//!     let (open, door) = tokio::sync::watch::channel(false);
//!     let file = waiting(move |_| {
//!         let mut door = door.clone();
//!         Answer::later(async move {
//!             _ = door.wait_for(|open| *open).await;
//!             Ok("open\n".into())
//!         })
//!     });
//!     let tree = Tree::new(Arc::new(Listing::default().file("door", file)), Arc::new(Everyone));
//!     let runtime = tokio::runtime::Handle::current();
//!     let mount = mount(tree, Arc::new(Everyone), "/mnt/door".as_ref(), runtime, &Options::default())?;
//!     // `cat /mnt/door/door` waits until this line.
//!     open.send_replace(true);
//!     mount.unmount().await
//! }
//! ```
//!
//! # Signals
//!
//! fuser 0.18 does not handle `FUSE_INTERRUPT`, so this crate defines the symbol `read` of the program and takes these
//! messages out of the stream (the private module `interrupt`). [`mount`] fails if the symbol is not in effect.
//!
//! # Privileges
//!
//! Root mounts directly. Other users need `fusermount3` from the package fuse3.
//!
//! # What it may use
//!
//! `acheron-vfs` and `acheron-base`. It is the only crate that uses fuser, and knows neither a service nor an agent.

#![deny(missing_docs)]

pub mod allocator;
mod arrivals;
mod attach;
mod attributes;
mod fair_queue;
mod file_requests;
mod filesystem;
mod handles;
mod inodes;
mod interrupt;
mod mountpoint;
mod name_requests;
mod notices;
mod parking;
mod passthrough;
mod poll_watch;
mod pool;
mod request_counts;
mod request_times;
mod scratch;
mod scratch_requests;
mod server;
mod turns;

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuser::{Config, Session, SessionACL};
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch as channel;

use acheron_base::{Error, Result, sync};
use acheron_vfs::{Caller, Identity, Tree};
use attributes::Owner;
use filesystem::FuseAdapter;
use passthrough::Passthrough;
use server::Server;

pub use request_times::{KindTimes, WorstRequest};

pub use mountpoint::{MountEntry, mounts_of, prepare_mountpoint};

/// Determines the caller of a request.
pub trait Identify: Send + Sync {
    /// The caller with this user and group. `tid` is the number of its thread; 0 if the thread is in a pid namespace that
    /// this process cannot see.
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller;

    /// The identity of a thread, if it is at hand without asking the system. Callers share the threads of a mount by it;
    /// all that are not known count as one.
    fn known(&self, _tid: u32) -> Option<Identity> {
        None
    }
}

/// Settings of a mount. The default is that of the Acheron host; another program sets names of its own.
#[derive(Clone, Debug)]
pub struct Options {
    /// The type of the file system, which `/proc/mounts` shows as `fuse.<subtype>`. The name of each mount starts with it.
    pub subtype: String,
    /// The command that error messages suggest for unmounting; the path follows it.
    pub unmount_command: String,
    /// Whether the tree mirrors directories of the machine ([`acheron_vfs::Dir::mirrored`]). The kernel then asks for
    /// access and extended attributes too, which costs one more request for every file.
    pub mirror_host_dirs: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            subtype: "acheron".to_owned(),
            unmount_command: "acheron unmount".to_owned(),
            mirror_host_dirs: false,
        }
    }
}

/// The time limit for a session to end after its mount was detached.
const SESSION_END: Duration = Duration::from_secs(2);

/// A mounted tree. Dropping it unmounts.
pub struct Mount {
    server: Arc<Server>,
    name: String,
    mountpoint: PathBuf,
    ended: channel::Receiver<Option<String>>,
    detached: AtomicBool,
}

/// Mounts `tree` on the empty directory `mountpoint` and serves it on a thread of its own. Futures of the tree run on
/// `runtime`.
pub fn mount(
    tree: Tree,
    identify: Arc<dyn Identify>,
    mountpoint: &Path,
    runtime: Runtime,
    options: &Options,
) -> Result<Mount> {
    let mountpoint = prepare_mountpoint(mountpoint, options)?;
    let name = format!("{}-{:016x}", options.subtype, rand::random::<u64>());
    let owner = Owner { uid: nix::unistd::getuid().as_raw(), gid: nix::unistd::getgid().as_raw() };
    let server = Arc::new(Server::new(tree, identify, owner, runtime, options.mirror_host_dirs));

    let device = attach::attach(&options.subtype, &name, &mountpoint)?;
    let (report_end, ended) = channel::channel(None);
    match serve(server.clone(), device, report_end) {
        Ok(()) => Ok(Mount { server, name, mountpoint, ended, detached: AtomicBool::new(false) }),
        Err(error) => {
            attach::detach(&name, &mountpoint)?;
            Err(error)
        }
    }
}

/// Unmounts a file system whether or not it is still served. Requests that wait there fail.
pub fn force_unmount(mount: &MountEntry) -> Result<()> {
    // A daemon that is killed while it notifies the kernel of a name that is just being made keeps its connection, and all
    // requests on it, until the connection is aborted. If the mount is still busy, the next step detaches it.
    _ = nix::mount::umount2(&mount.path, nix::mount::MntFlags::MNT_FORCE);
    attach::detach(&mount.source, &mount.path)
}

/// Negotiates with the kernel and starts to answer it.
fn serve(server: Arc<Server>, device: std::os::fd::OwnedFd, report_end: channel::Sender<Option<String>>) -> Result<()> {
    let mut config = Config::default();
    config.acl = SessionACL::Owner;
    config.n_threads = Some(1);
    let registered = interrupt::register(device.as_raw_fd(), server.parking.clone());
    let session = Session::from_fd(FuseAdapter(server.clone()), device, config.acl, config.clone())
        .map_err(|error| Error::unavailable(format!("the FUSE session cannot be started: {error}")))?;
    if !registered.in_force() {
        return Err(Error::internal(
            "FUSE interrupts cannot be received (the `read` of the C library is in effect), so waiting readers could not be \
             killed",
        ));
    }
    registered.take_turns(server.identify.clone());
    let keeps_open = session.notifier();
    notices::start(server.notices.clone(), session.notifier())?;
    let serve = move || {
        let outcome = session.run();
        server.parking.stop();
        server.parking.answer_all();
        server.notices.stop();
        // In this order: once the descriptor is closed, its number may belong to another file.
        drop(registered);
        drop(keeps_open);
        report_end.send_replace(Some(outcome.err().map_or_else(String::new, |error| error.to_string())));
    };
    std::thread::Builder::new().name("session".to_owned()).spawn(serve)?;
    Ok(())
}

impl Mount {
    /// The name of this instance, as `/proc/mounts` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory of the mount, without links.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// The number of requests of each kind so far.
    pub fn request_counts(&self) -> BTreeMap<&'static str, u64> {
        self.server.request_counts.counts()
    }

    /// How long the thread that serves all callers was kept by one request, for each kind of request.
    pub fn request_times(&self) -> BTreeMap<&'static str, KindTimes> {
        self.server.request_times.kinds()
    }

    /// The request that kept that thread for the longest time.
    pub fn worst_request(&self) -> Option<WorstRequest> {
        self.server.request_times.worst()
    }

    /// The number of requests that wait for their answer.
    pub fn parked(&self) -> usize {
        self.server.parking.parked()
    }

    /// The number of open files and directories.
    pub fn open_handles(&self) -> usize {
        self.server.files.len() + self.server.directories.len() + self.server.mirrors.open()
    }

    /// The number of inodes that the kernel knows.
    pub fn inodes(&self) -> usize {
        self.server.inodes.len() + self.server.mirrors.known()
    }

    /// Another file system is, or will be, mounted on `path` of the tree: the kernel is no longer told that this name has
    /// changed, because it would unmount what is there.
    pub fn protect(&self, path: &str) {
        self.server.notices.protect(path);
    }

    /// Waits until the kernel has been told of every change so far.
    pub fn flush_notices(&self) {
        let (sent, done) = std::sync::mpsc::channel();
        self.server.notices.after(move || _ = sent.send(()));
        // A session that has ended sends nothing more.
        _ = done.recv_timeout(SESSION_END);
    }

    /// Ends [`protect`](Self::protect) for `path`.
    pub fn unprotect(&self, path: &str) {
        self.server.notices.unprotect(path);
    }

    /// A mirrored file was changed from outside: processes that have it mapped must read it again.
    pub fn changed(&self, file: &Path) {
        Passthrough(self.server.clone()).changed(file);
    }

    /// An unknown number of files changed below a mirrored directory.
    pub fn all_changed(&self, directory: &Path) {
        Passthrough(self.server.clone()).all_changed(directory);
    }

    /// Waits for the end of the session: after [`unmount`](Self::unmount), or when another process unmounts it.
    pub async fn ended(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(fault)) if !fault.is_empty() => Err(Error::failed(format!("the FUSE session has ended: {fault}"))),
            _ => Ok(()),
        }
    }

    /// The first step of unmounting: refuses every new wait, so that processes which keep the mount busy can be ended.
    pub fn stop_parking(&self) {
        self.server.parking.stop();
    }

    /// Detaches the mount and answers every waiting request with an error.
    pub fn detach(&self) -> Result<()> {
        self.server.parking.stop();
        let outcome = match self.detached.swap(true, Ordering::SeqCst) {
            true => Ok(()),
            false => attach::detach(&self.name, &self.mountpoint),
        };
        self.server.parking.answer_all();
        outcome
    }

    /// Detaches the mount and waits for the end of the session. A process that still uses the mount keeps the session until
    /// it leaves; this does not wait for it longer than two seconds.
    pub async fn unmount(&self) -> Result<()> {
        self.detach()?;
        let _ = tokio::time::timeout(SESSION_END, self.ended()).await;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.detach() {
            tracing::warn!(%error, "the file system cannot be unmounted");
        }
    }
}
