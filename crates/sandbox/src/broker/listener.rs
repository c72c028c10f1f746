//! The kernel's side of the broker: `seccomp(2)` with user notification, which no library here offers.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use seccompiler::BpfProgram;

use acheron_base::{Error, Result};

/// Wakes the other side on this processor: both take turns. Not in libc yet.
const SYNC_WAKE_UP: u64 = 1;

/// Where the kernel says which calls wait for an answer.
pub(crate) struct Listener(OwnedFd);

/// A call that waits.
pub(in crate::broker) struct StoppedCall {
    id: u64,
    pub thread: i32,
    pub number: i32,
    pub arguments: [u64; 6],
}

/// Applies a filter whose matches are reported to the returned descriptor. Permanent, and survives `execve`.
pub(crate) fn install(program: &BpfProgram) -> Result<OwnedFd> {
    let length = u16::try_from(program.len()).map_err(|_| Error::internal("a filter is too long"))?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    let try_with = |flags: libc::c_ulong| {
        // SAFETY: the program lives over the call, which only reads it; both structs have the layout of the kernel.
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) }
    };
    let wanted = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let answer = match try_with(wanted | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        // Before Linux 5.19.
        -1 => try_with(wanted),
        answer => answer,
    };
    match i32::try_from(answer) {
        // SAFETY: a new descriptor, which nothing else owns.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Error::unavailable(format!("seccomp notification: {}", std::io::Error::last_os_error()))),
    }
}

impl Listener {
    pub fn new(fd: OwnedFd) -> Listener {
        // SAFETY: a plain number; an older kernel refuses it, and nothing depends on it.
        unsafe { libc::ioctl(fd.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
        Listener(fd)
    }

    /// The next call, if its caller is still there.
    pub(in crate::broker) fn next(&self) -> Option<StoppedCall> {
        // A newer kernel may write more than it knew when this was written.
        let mut room = [0_u64; 64];
        // SAFETY: the room is zeroed, aligned and larger than the struct; the kernel fills the struct or fails.
        let notice = unsafe {
            if libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, room.as_mut_ptr()) != 0 {
                return None;
            }
            std::ptr::read(room.as_ptr().cast::<libc::seccomp_notif>())
        };
        let thread = i32::try_from(notice.pid).ok()?;
        Some(StoppedCall { id: notice.id, thread, number: notice.data.nr, arguments: notice.data.args })
    }

    /// Whether the caller still waits: what was read of it before is its own, and not of another with the same number.
    pub(in crate::broker) fn valid(&self, call: &StoppedCall) -> bool {
        // SAFETY: the kernel reads one number.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id) == 0 }
    }

    /// Lets the kernel carry out the call.
    pub(in crate::broker) fn go_on(&self, call: &StoppedCall) {
        self.send(call, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32);
    }

    /// Answers the call.
    pub(in crate::broker) fn result(&self, call: &StoppedCall, result: std::result::Result<(), Errno>) {
        self.send(call, result.err().map_or(0, |errno| -errno.raw_os_error()), 0);
    }

    fn send(&self, call: &StoppedCall, error: i32, flags: u32) {
        let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error, flags };
        // SAFETY: the struct lives over the call. One whose caller is gone is refused, which is as well.
        unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
    }

    /// Answers the call with a file, which becomes a descriptor of the caller.
    pub(in crate::broker) fn hand_over(
        &self,
        call: &StoppedCall,
        file: BorrowedFd<'_>,
        close_on_exec: bool,
    ) -> std::result::Result<(), Errno> {
        let added = libc::seccomp_notif_addfd {
            id: call.id,
            flags: libc::SECCOMP_ADDFD_FLAG_SEND as u32,
            srcfd: file.as_raw_fd() as u32,
            newfd: 0,
            newfd_flags: if close_on_exec { libc::O_CLOEXEC as u32 } else { 0 },
        };
        // SAFETY: the struct lives over the call, and the file is open.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const added) } {
            -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
            _ => Ok(()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
