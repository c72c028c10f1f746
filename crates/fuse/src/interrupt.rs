//! Receives `FUSE_INTERRUPT`, by which the kernel reports that a waiting caller got a signal. fuser 0.18 answers that
//! message with `ENOSYS`; after the first one every waiter of the mount sleeps uninterruptibly, counts in the load
//! average and cannot be killed. So this module defines the symbol `read`, which the linker prefers to that of the C
//! library, and takes interrupts out of the stream that a session reads. It also changes one time value that would end
//! the session. It is to be deleted once fuser has a handler.
//!
//! Request numbers repeat between mounts, so the server of a descriptor registers for that descriptor. The crate root
//! uses this module; it knows nothing of the waiters.

use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_void, size_t, ssize_t};
use parking_lot::RwLock;

/// Receives the interrupts of one descriptor. Called on the thread of the session, between two requests.
pub trait Interrupts: Send + Sync {
    fn interrupted(&self, unique: u64);
}

struct RegisteredSession {
    fd: RawFd,
    interrupts: Arc<dyn Interrupts>,
    /// `FUSE_INIT` was read here, so the symbol is in effect.
    initialized: AtomicBool,
}

static SESSIONS: RwLock<Vec<Arc<RegisteredSession>>> = RwLock::new(Vec::new());

/// Delivers the interrupts of a descriptor as long as it lives.
pub struct Registered(Arc<RegisteredSession>);

pub fn register(fd: RawFd, interrupts: Arc<dyn Interrupts>) -> Registered {
    // Taking the address of the symbol makes the linker keep it.
    std::hint::black_box(read as *const c_void);
    let session = Arc::new(RegisteredSession { fd, interrupts, initialized: AtomicBool::new(false) });
    SESSIONS.write().push(session.clone());
    Registered(session)
}

impl Registered {
    pub fn in_force(&self) -> bool {
        self.0.initialized.load(Ordering::SeqCst)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        SESSIONS.write().retain(|it| !Arc::ptr_eq(it, &self.0));
    }
}

/// fuser reads a session with a buffer of more than 16 MiB, and nothing else in this program reads so much at once.
const SESSION_BUFFER: usize = 16 << 20;

/// The length of `struct fuse_in_header`; the number of the interrupted request follows it.
const HEADER: usize = 40;

const INIT: u32 = 26;
const INTERRUPT: u32 = 36;

/// The offsets of the times in a message with `struct fuse_setattr_in`.
const SETATTR: u32 = 4;
const TIMES: [usize; 3] = [72, 80, 88];

/// Replaces the earliest possible time by one second later: fuser 0.18 negates it, which overflows, and the panic would
/// end the session.
fn fix_earliest_time(message: &mut [u8]) {
    if message.get(4..8) != Some(&SETATTR.to_ne_bytes()) {
        return;
    }
    for at in TIMES {
        if let Some(time) = message.get_mut(at..at + 8).filter(|time| **time == i64::MIN.to_ne_bytes()) {
            time.copy_from_slice(&(i64::MIN + 1).to_ne_bytes());
        }
    }
}

/// The kinds of messages that matter here.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    Init,
    Interrupt(u64),
    Other,
}

fn classify(message: &[u8]) -> Message {
    let opcode = message.get(4..8).and_then(|it| it.try_into().ok()).map(u32::from_ne_bytes);
    let unique = message.get(HEADER..HEADER + 8).and_then(|it| it.try_into().ok()).map(u64::from_ne_bytes);
    match (opcode, unique) {
        (Some(INIT), _) => Message::Init,
        (Some(INTERRUPT), Some(unique)) => Message::Interrupt(unique),
        _ => Message::Other,
    }
}

/// Handles a message that was read from `fd`; returns whether fuser must not see it.
fn handle_message(fd: RawFd, message: &[u8]) -> bool {
    let message = classify(message);
    if message == Message::Other {
        return false;
    }
    let session = SESSIONS.read().iter().find(|it| it.fd == fd).cloned();
    let Some(session) = session else { return false };
    match message {
        Message::Interrupt(unique) => {
            session.interrupts.interrupted(unique);
            true
        }
        Message::Init | Message::Other => {
            session.initialized.store(true, Ordering::SeqCst);
            false
        }
    }
}

/// `read(2)` of the whole program.
///
/// # Safety
/// As for the system call: `buf` has room for `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buf: *mut c_void, count: size_t) -> ssize_t {
    loop {
        // SAFETY: the caller's promise is the system call's; errno is set as by the C library.
        let got = unsafe { libc::syscall(libc::SYS_read, fd, buf, count) } as ssize_t;
        if count < SESSION_BUFFER || got < HEADER as ssize_t {
            return got;
        }
        // SAFETY: the kernel has just written `got` bytes there.
        let message = unsafe { std::slice::from_raw_parts_mut(buf.cast::<u8>(), got as usize) };
        fix_earliest_time(message);
        if !catch_unwind(AssertUnwindSafe(|| handle_message(fd, message))).unwrap_or(true) {
            return got;
        }
    }
}

#[cfg(test)]
mod tests;
