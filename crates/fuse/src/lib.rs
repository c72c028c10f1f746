//! Serves a tree over FUSE. The only module that names fuser.
//!
//! Names are answered on the session's thread, from memory. A read is looked at once there; what is not ready is parked
//! under its request's number, costs no thread, and ends when it is ready or when its reader is sent a signal. Knows
//! nothing of services or agents.

mod attach;
mod attributes;
mod bytes;
mod filesystem;
mod handles;
mod inodes;
mod interrupt;
mod mountpoint;
mod names;
mod notices;
mod parking;
mod passthrough;
mod server;
mod traffic;
mod turns;
mod watch;

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fuser::{Config, Session, SessionACL};
use tokio::runtime::Handle as Runtime;
use tokio::sync::watch as channel;

use acheron_base::{Error, Result};
use acheron_vfs::{Caller, Tree};

use attributes::Owner;
use filesystem::FuseAdapter;
use passthrough::Passthrough;
use server::Server;

pub use mountpoint::{Mounted, ours, prepare};

/// Says who a caller is. `tid` is a thread; 0 if it lives where we cannot see it.
pub trait Identify: Send + Sync {
    fn caller(&self, uid: u32, gid: u32, tid: u32) -> Caller;
}

/// How long to wait for a session to end after its mount was taken away.
const LEAVING: Duration = Duration::from_secs(2);

/// A tree that is mounted.
pub struct Mount {
    served: Arc<Server>,
    name: String,
    mountpoint: PathBuf,
    ended: channel::Receiver<Option<String>>,
    left: AtomicBool,
}

/// Mounts `tree` on `mountpoint` and serves it.
pub fn mount(tree: Tree, who: Arc<dyn Identify>, mountpoint: &Path, runtime: Runtime) -> Result<Mount> {
    begin(tree, who, mountpoint, runtime, false)
}

/// As [`mount`], where directories of this machine are mirrored: access and extended attributes are then asked of us,
/// which costs every file a question more.
pub fn mount_mirroring(tree: Tree, who: Arc<dyn Identify>, mountpoint: &Path, runtime: Runtime) -> Result<Mount> {
    begin(tree, who, mountpoint, runtime, true)
}

fn begin(tree: Tree, who: Arc<dyn Identify>, mountpoint: &Path, runtime: Runtime, mirroring: bool) -> Result<Mount> {
    let mountpoint = prepare(mountpoint)?;
    let name = format!("acheron-{:016x}", rand::random::<u64>());
    let owner = Owner { uid: nix::unistd::getuid().as_raw(), gid: nix::unistd::getgid().as_raw() };
    let served = Arc::new(Server::new(tree, who, owner, runtime, mirroring));

    let device = attach::attach(&name, &mountpoint)?;
    let (say_ended, ended) = channel::channel(None);
    match serve(served.clone(), device, say_ended) {
        Ok(()) => Ok(Mount { served, name, mountpoint, ended, left: AtomicBool::new(false) }),
        Err(error) => {
            attach::detach(&name, &mountpoint)?;
            Err(error)
        }
    }
}

/// Takes a mount away from under whoever serves it, or serves it no more. Who waits for an answer there gets an error.
pub fn take_away(mount: &Mounted) -> Result<()> {
    // A daemon that is killed while it tells the kernel of a name that somebody is just making holds its connection, and
    // all who wait on it, until that is broken off. That it may still be busy is the next step's concern.
    _ = nix::mount::umount2(&mount.path, nix::mount::MntFlags::MNT_FORCE);
    attach::detach(&mount.source, &mount.path)
}

/// Greets the kernel and begins to answer it.
fn serve(served: Arc<Server>, device: std::os::fd::OwnedFd, say: channel::Sender<Option<String>>) -> Result<()> {
    let mut config = Config::default();
    config.acl = SessionACL::Owner;
    config.n_threads = Some(1);
    let registered = interrupt::register(device.as_raw_fd(), served.parking.clone());
    let session = Session::from_fd(FuseAdapter(served.clone()), device, config.acl, config.clone())
        .map_err(|error| Error::unavailable(format!("the kernel does not speak FUSE with us: {error}")))?;
    if !registered.in_force() {
        return Err(Error::internal(
            "interrupts would not be seen (`read` of the C library is in force), and waiters could not be killed",
        ));
    }
    let keeps_open = session.notifier();
    notices::start(served.notices.clone(), session.notifier())?;
    let serve = move || {
        let outcome = session.run();
        served.parking.stop();
        served.parking.answer_all();
        served.notices.stop();
        // In this order: the number of the descriptor may mean another file once it is closed.
        drop(registered);
        drop(keeps_open);
        say.send_replace(Some(outcome.err().map_or_else(String::new, |error| error.to_string())));
    };
    std::thread::Builder::new().name("session".to_owned()).spawn(serve)?;
    Ok(())
}

impl Mount {
    /// The name of this instance, as `/proc/mounts` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// How many requests of each kind came.
    pub fn traffic(&self) -> BTreeMap<&'static str, u64> {
        self.served.traffic.counts()
    }

    /// How many requests wait for their answer.
    pub fn parked(&self) -> usize {
        self.served.parking.parked()
    }

    /// How many files and directories are open.
    pub fn open_handles(&self) -> usize {
        self.served.files.len() + self.served.directories.len() + self.served.mirrors.open()
    }

    pub fn inodes(&self) -> usize {
        self.served.inodes.len() + self.served.mirrors.known()
    }

    /// Something is, or is about to be, mounted on `path` of the tree; the kernel is never told that it is old.
    pub fn protect(&self, path: &str) {
        self.served.notices.protect(path);
    }

    /// Waits until the kernel was told all that has changed until now.
    pub fn settle(&self) {
        let (tell, told) = std::sync::mpsc::channel();
        self.served.notices.after(move || _ = tell.send(()));
        // An end of the session says nothing more, and need not be waited for.
        _ = told.recv_timeout(LEAVING);
    }

    pub fn unprotect(&self, path: &str) {
        self.served.notices.unprotect(path);
    }

    /// A file of this machine was changed from outside; whoever has it mapped must read it anew.
    pub fn changed(&self, file: &Path) {
        Passthrough(self.served.clone()).changed(file);
    }

    /// So much was changed below a directory of this machine that nobody counted.
    pub fn all_changed(&self, directory: &Path) {
        Passthrough(self.served.clone()).all_changed(directory);
    }

    /// Waits until the session is over, by [`down`](Self::down) or because somebody else unmounted it.
    pub async fn ended(&self) -> Result<()> {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(fault)) if !fault.is_empty() => Err(Error::failed(format!("the session has ended: {fault}"))),
            _ => Ok(()),
        }
    }

    /// The first step of going down: nobody may begin to wait. Then whoever keeps the mount busy can be ended.
    pub fn stop_parking(&self) {
        self.served.parking.stop();
    }

    /// Takes the mount away and answers everyone who waits with an error.
    pub fn detach(&self) -> Result<()> {
        self.served.parking.stop();
        let detached = match self.left.swap(true, Ordering::SeqCst) {
            true => Ok(()),
            false => attach::detach(&self.name, &self.mountpoint),
        };
        self.served.parking.answer_all();
        detached
    }

    /// Goes down. A process that still lives inside keeps the session until it leaves, but not us.
    pub async fn down(&self) -> Result<()> {
        self.detach()?;
        let _ = tokio::time::timeout(LEAVING, self.ended()).await;
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = self.detach() {
            tracing::warn!(%error, "the mount could not be taken away");
        }
    }
}
