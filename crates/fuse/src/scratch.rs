//! The scratch files of all processes: found by name and process, gone with the process. Uses pidfds; the requests are in
//! `scratch_requests`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use acheron_base::{Code, Error, Result};
use acheron_vfs::Caller;
use acheron_vfs::scratch::ScratchFile;

/// The limit of scratch files of one process.
const EACH: usize = 32;

/// A scratch file.
pub struct Draft {
    pub file: ScratchFile,
    /// Hears of it if it is lost.
    pub tell: TellLoss,
}

/// Is told why a scratch file is lost.
pub type TellLoss = Box<dyn Fn(&Error) + Send + Sync>;

/// Every scratch file, by its process and path.
#[derive(Default)]
pub struct ScratchFiles {
    drafts: Mutex<HashMap<u32, Process>>,
    /// The bytes that they hold, by principal.
    together: Mutex<HashMap<String, Arc<AtomicUsize>>>,
    /// Wakes the thread that watches the processes; present while it runs.
    watch: Mutex<Option<Arc<OwnedFd>>>,
}

struct Process {
    pidfd: Arc<OwnedFd>,
    drafts: HashMap<String, Draft>,
    /// The lengths of what it has renamed to its place, by path: programs look whether all of it has arrived.
    saved: HashMap<String, u64>,
}

impl ScratchFiles {
    /// The scratch file of this caller at `path`.
    pub fn get(&self, caller: &Caller, path: &str) -> Option<ScratchFile> {
        Some(self.drafts.lock().get(&caller.pid)?.drafts.get(path)?.file.clone())
    }

    /// Whether any process has one.
    pub fn is_empty(&self) -> bool {
        self.drafts.lock().values().all(|process| process.drafts.is_empty())
    }

    /// Whether any process has renamed a file of its own to this place.
    pub fn is_saved(&self, path: &str) -> bool {
        self.drafts.lock().values().any(|process| process.saved.contains_key(path))
    }

    /// The length of what this caller has renamed to this place.
    pub fn saved(&self, caller: &Caller, path: &str) -> Option<u64> {
        self.drafts.lock().get(&caller.pid)?.saved.get(path).copied()
    }

    /// Takes one away whose bytes are in their place.
    pub fn save(&self, caller: &Caller, from: &str, to: &str, length: u64) {
        let mut drafts = self.drafts.lock();
        let Some(process) = drafts.get_mut(&caller.pid) else { return };
        process.drafts.remove(from);
        if process.saved.len() >= EACH {
            process.saved.clear();
        }
        process.saved.insert(to.to_owned(), length);
    }

    /// Makes an empty one.
    pub fn make(self: &Arc<Self>, caller: &Caller, path: &str, tell: TellLoss) -> Result<ScratchFile> {
        let mut drafts = self.drafts.lock();
        let process = match drafts.entry(caller.pid) {
            Entry::Occupied(process) => process.into_mut(),
            Entry::Vacant(free) => free.insert(Process {
                pidfd: Arc::new(opened(caller.pid)?),
                drafts: HashMap::new(),
                saved: HashMap::new(),
            }),
        };
        if process.drafts.len() >= EACH && !process.drafts.contains_key(path) {
            let code = Code::Os(libc::EDQUOT);
            return Err(Error::new(code, format!("a process has at most {EACH} unfinished files here")));
        }
        let together = self.together.lock().entry(caller.identity.name().to_owned()).or_default().clone();
        let file = ScratchFile::new(caller, &together);
        process.drafts.insert(path.to_owned(), Draft { file: file.clone(), tell });
        drop(drafts);
        self.watch();
        Ok(file)
    }

    /// Removes one; returns whether it was there.
    pub fn remove(&self, caller: &Caller, path: &str) -> bool {
        let mut drafts = self.drafts.lock();
        let Some(process) = drafts.get_mut(&caller.pid) else { return false };
        let found = process.drafts.remove(path).is_some();
        if process.drafts.is_empty() && process.saved.is_empty() {
            drafts.remove(&caller.pid);
        }
        found
    }

    /// Gives one another name.
    pub fn rename(&self, caller: &Caller, from: &str, to: &str) -> bool {
        let mut drafts = self.drafts.lock();
        let Some(process) = drafts.get_mut(&caller.pid) else { return false };
        let Some(draft) = process.drafts.remove(from) else { return false };
        process.drafts.insert(to.to_owned(), draft);
        true
    }

    /// Drops what an ended process left, and has what it stood for record that.
    fn ended(&self, pid: u32) {
        let Some(process) = self.drafts.lock().remove(&pid) else { return };
        for (path, draft) in process.drafts {
            let (name, length) = (path.rsplit('/').next().unwrap_or(&path), draft.file.bytes().len());
            if length > 0 {
                let sentence = format!(
                    "`{name}` ({length} bytes) was never renamed to its place, and went with the process that wrote it"
                );
                (draft.tell)(&Error::invalid(sentence));
            }
        }
    }

    /// Has a thread that waits for the end of the processes, as long as there are any.
    fn watch(self: &Arc<Self>) {
        let mut watch = self.watch.lock();
        if let Some(wake) = &*watch {
            _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
            return;
        }
        let Ok(wake) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return };
        let wake = Arc::new(wake);
        let (files, seen) = (Arc::downgrade(self), wake.clone());
        let thread = std::thread::Builder::new().name("scratch".into()).spawn(move || wait_for_ends(&files, &seen));
        *watch = thread.is_ok().then_some(wake);
    }

    /// The processes to watch; `None`, and no thread from now on, if there are none.
    fn watched(&self) -> Option<Vec<(u32, Arc<OwnedFd>)>> {
        let mut watch = self.watch.lock();
        let drafts = self.drafts.lock();
        if drafts.is_empty() {
            *watch = None;
            return None;
        }
        Some(drafts.iter().map(|(pid, process)| (*pid, process.pidfd.clone())).collect())
    }
}

fn wait_for_ends(files: &Weak<ScratchFiles>, wake: &OwnedFd) {
    while let Some(watched) = files.upgrade().and_then(|files| files.watched()) {
        let mut fds = vec![PollFd::new(wake, PollFlags::IN)];
        fds.extend(watched.iter().map(|(_, pidfd)| PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)));
        if poll(&mut fds, None).is_err() {
            continue; // interrupted
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            _ = rustix::io::read(wake, &mut [0_u8; 8]);
        }
        let Some(files) = files.upgrade() else { return };
        for ((pid, _), _) in watched.iter().zip(&ready[1..]).filter(|(_, ended)| **ended) {
            files.ended(*pid);
        }
    }
}

fn opened(pid: u32) -> Result<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(unseen)?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|_| unseen())
}

fn unseen() -> Error {
    Error::forbidden("an unfinished file belongs to a process, and this one cannot be seen")
}
