//! Receives `FUSE_INTERRUPT`, by which the kernel reports that a waiting caller got a signal. fuser 0.18 answers that
//! message with `ENOSYS`; after the first one every waiter of the mount sleeps uninterruptibly, counts in the load
//! average and cannot be killed. So this module defines the symbol `read`, which the linker prefers to that of the C
//! library, and takes interrupts out of the stream that a session reads. It also changes one time value that would end
//! the session. It is to be deleted once fuser has a handler.
//!
//! For the same reason it is here that callers take turns: all requests that the kernel has are read, and handed on one by
//! one as [`Arrivals`] orders them.
//!
//! Request numbers repeat between mounts, so the server of a descriptor registers for that descriptor. The crate root
//! uses this module; it knows nothing of the waiters.

use std::os::fd::{BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, c_void, size_t, ssize_t};
use parking_lot::{Mutex, RwLock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::Identify;
use super::arrivals::{Arrivals, Sender};

/// Receives the interrupts of one descriptor. Called on the thread of the session, between two requests.
pub trait Interrupts: Send + Sync {
    fn interrupted(&self, unique: u64);
}

struct RegisteredSession {
    fd: RawFd,
    interrupts: Arc<dyn Interrupts>,
    /// Tells callers apart; `None` while they do not take turns.
    callers: RwLock<Option<Arc<dyn Identify>>>,
    arrivals: Mutex<SessionQueue>,
    /// `FUSE_INIT` was read here, so the symbol is in effect.
    initialized: AtomicBool,
}

static SESSIONS: RwLock<Vec<Arc<RegisteredSession>>> = RwLock::new(Vec::new());

/// Delivers the interrupts of a descriptor as long as it lives.
pub struct Registered(Arc<RegisteredSession>);

pub fn register(fd: RawFd, interrupts: Arc<dyn Interrupts>) -> Registered {
    // Taking the address of the symbol makes the linker keep it.
    std::hint::black_box(read as *const c_void);
    let session = Arc::new(RegisteredSession {
        fd,
        interrupts,
        callers: RwLock::default(),
        arrivals: Mutex::default(),
        initialized: AtomicBool::new(false),
    });
    SESSIONS.write().push(session.clone());
    Registered(session)
}

impl Registered {
    pub fn in_force(&self) -> bool {
        self.0.initialized.load(Ordering::SeqCst)
    }

    /// From now on, callers take turns.
    pub fn take_turns(&self, callers: Arc<dyn Identify>) {
        *self.0.callers.write() = Some(callers);
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

fn registered(fd: RawFd) -> Option<Arc<RegisteredSession>> {
    SESSIONS.read().iter().find(|it| it.fd == fd).cloned()
}

impl RegisteredSession {
    /// Handles a message that was read; returns whether fuser must not see it.
    fn handle_message(&self, message: &[u8]) -> bool {
        match classify(message) {
            Message::Interrupt(unique) => {
                self.interrupts.interrupted(unique);
                true
            }
            Message::Init => {
                self.initialized.store(true, Ordering::SeqCst);
                false
            }
            Message::Other => false,
        }
    }

    /// Puts the request whose turn it is into `buffer`; waits for one if there is none. Returns its length, or -1 with
    /// `errno`.
    ///
    /// While there is at most one request at a time, each is read and handed on as it comes. If another one waits behind it,
    /// all are read until there are no more, which needs a descriptor that does not wait.
    fn next_request(&self, callers: &dyn Identify, buffer: &mut [u8]) -> ssize_t {
        let (mut arrivals, mut waited) = (self.arrivals.lock(), false);
        loop {
            let got = read_once(self.fd, buffer);
            let Ok(length) = usize::try_from(got) else {
                match std::io::Error::last_os_error().kind() {
                    // The error comes again when everything is served.
                    _ if !arrivals.queue.is_empty() => return hand_on(&mut arrivals.queue, callers, buffer),
                    std::io::ErrorKind::WouldBlock => arrivals.wait(self.fd),
                    _ => return got,
                }
                waited = true;
                continue;
            };
            let message = &mut buffer[..length];
            if length < HEADER {
                return got;
            }
            fix_earliest_time(message);
            if self.handle_message(message) {
                continue;
            }
            if arrivals.queue.is_empty() && !arrivals.more_behind(self.fd, waited) {
                return got;
            }
            arrivals.queue.push(sender(callers, message), message);
            if arrivals.queue.is_full() {
                return hand_on(&mut arrivals.queue, callers, buffer);
            }
        }
    }
}

/// What was read and is not served yet, and how the descriptor is read.
#[derive(Default)]
struct SessionQueue {
    queue: Arrivals,
    /// The descriptor does not wait.
    drains: bool,
    /// How often there was nothing to read since it drains.
    idle: u32,
}

/// The descriptor waits again after there was so often nothing to read: changing it costs more than one request.
const IDLE: u32 = 32;

impl SessionQueue {
    /// Whether another request may wait behind the one that was just read; then all are read. Not if it came after
    /// nothing was there (`waited`).
    fn more_behind(&mut self, fd: RawFd, waited: bool) -> bool {
        if !self.drains && has_input(fd, Some(&Timespec::default())) {
            self.drains = set_waiting(fd, false);
        }
        if !waited {
            self.idle = 0;
        }
        self.drains && !waited
    }

    /// There is nothing to read: waits for something.
    fn wait(&mut self, fd: RawFd) {
        self.idle += 1;
        match self.idle > IDLE {
            true => self.drains = !set_waiting(fd, true),
            false => _ = has_input(fd, None),
        }
    }
}

/// Puts the message whose turn it is into `buffer`.
fn hand_on(arrivals: &mut Arrivals, callers: &dyn Identify, buffer: &mut [u8]) -> ssize_t {
    let Some((sender, message)) = arrivals.pop() else { return 0 };
    // So that its next request waits only for its own: those of all unknown threads share their turns.
    if sender == Sender::Unknown && !arrivals.is_empty() {
        callers.caller(field(&message, 24), field(&message, 28), field(&message, 32));
    }
    // It was read into the same buffer before.
    buffer[..message.len()].copy_from_slice(&message);
    message.len() as ssize_t
}

/// The caller in a message's `struct fuse_in_header`.
fn sender(callers: &dyn Identify, message: &[u8]) -> Sender {
    match field(message, 32) {
        0 => Sender::Kernel,
        tid => callers.known(tid).map_or(Sender::Unknown, Sender::Known),
    }
}

/// A field of the header; 0 if the message is too short.
fn field(message: &[u8], at: usize) -> u32 {
    message.get(at..at + 4).and_then(|it| it.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// Whether there is something to read, or comes in this time.
fn has_input(fd: RawFd, time: Option<&Timespec>) -> bool {
    // SAFETY: the descriptor of a session is open as long as its session is registered.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    // An error shows at the next read.
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], time).is_ok_and(|ready| ready > 0)
}

/// Makes reads of the descriptor wait, or not; returns whether it is so now.
fn set_waiting(fd: RawFd, waits: bool) -> bool {
    // SAFETY: as in `has_input`.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let Ok(flags) = rustix::fs::fcntl_getfl(fd) else { return false };
    let flags = if waits { flags - OFlags::NONBLOCK } else { flags | OFlags::NONBLOCK };
    rustix::fs::fcntl_setfl(fd, flags).is_ok()
}

fn read_once(fd: RawFd, buffer: &mut [u8]) -> ssize_t {
    // SAFETY: the kernel writes at most as many bytes as the buffer has.
    unsafe { libc::syscall(libc::SYS_read, fd, buffer.as_mut_ptr(), buffer.len()) as ssize_t }
}

/// `read(2)` of the whole program.
///
/// # Safety
/// As for the system call: `buf` has room for `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, buf: *mut c_void, count: size_t) -> ssize_t {
    let session = if count < SESSION_BUFFER { None } else { registered(fd) };
    let callers = session.as_ref().and_then(|session| session.callers.read().clone());
    if let (Some(session), Some(callers)) = (&session, &callers) {
        // SAFETY: the caller has room for `count` bytes there; fuser has written all of them once.
        let buffer = unsafe { std::slice::from_raw_parts_mut(buf.cast::<u8>(), count) };
        return catch_unwind(AssertUnwindSafe(|| session.next_request(&**callers, buffer))).unwrap_or_else(|_| {
            // SAFETY: the address of this thread's own `errno`.
            unsafe { *libc::__errno_location() = libc::EIO };
            -1
        });
    }
    loop {
        // SAFETY: the caller's promise is the system call's; errno is set as by the C library.
        let got = unsafe { libc::syscall(libc::SYS_read, fd, buf, count) } as ssize_t;
        let Some(session) = session.as_ref().filter(|_| got >= HEADER as ssize_t) else { return got };
        // SAFETY: the kernel has just written `got` bytes there.
        let message = unsafe { std::slice::from_raw_parts_mut(buf.cast::<u8>(), got as usize) };
        fix_earliest_time(message);
        if !catch_unwind(AssertUnwindSafe(|| session.handle_message(message))).unwrap_or(true) {
            return got;
        }
    }
}

#[cfg(test)]
mod tests;
