//! Descriptors, streams and the working directory that a process inherits. A descriptor of a directory outside leads
//! out of any root, so no unexpected one stays open, and the working directory is entered only after all are closed.
//! The init uses it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use super::system;
use acheron_base::{Error, Result};

/// Closes every descriptor but the three streams and `keep`. For the first moment of a process, before anything in it
/// has opened a descriptor, or for the last before it executes another program.
pub fn close_others(keep: Option<RawFd>) {
    let keep = keep.and_then(|fd| u32::try_from(fd).ok()).filter(|fd| *fd > 2);
    let ranges = match keep {
        Some(keep) => [(3, keep - 1), (keep + 1, u32::MAX)],
        None => [(3, u32::MAX), (u32::MAX, u32::MAX)],
    };
    // Empty where `keep` is 3.
    for (first, last) in ranges.into_iter().filter(|(first, last)| first <= last) {
        // SAFETY: the caller vouches that nothing in this process uses what is closed.
        if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            close_one_by_one(first, last);
        }
    }
}

/// For kernels without `close_range` (before Linux 5.9).
fn close_one_by_one(first: u32, last: u32) {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<u32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| (first..=last).contains(fd)) {
        // SAFETY: as above.
        unsafe { libc::close(fd as RawFd) };
    }
}

const STREAMS: [&str; 3] = ["standard input", "standard output", "standard error"];

fn streams() -> [BorrowedFd<'static>; 3] {
    // SAFETY: the three streams are open for as long as the process lives; the standard library sees to it.
    [0, 1, 2].map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Refuses a stream that leads out of the sandbox.
pub(super) fn no_directories() -> Result<()> {
    for (stream, name) in streams().into_iter().zip(STREAMS) {
        if kind(stream) == libc::S_IFDIR {
            let said = "is a directory, which would lead out of the sandbox; give a file or a pipe";
            return Err(Error::invalid(format!("{name} {said}")));
        }
    }
    Ok(())
}

fn kind(stream: BorrowedFd<'_>) -> libc::mode_t {
    rustix::fs::fstat(stream).map_or(0, |stat| stat.st_mode & libc::S_IFMT)
}

/// Opens the streams that are devices again, from inside: through the mount of the host a program could change the mode
/// of the host's device. One that cannot be opened stays: only its owner could change it, and the owner can open it.
pub(super) fn devices_from_inside() {
    let known: Vec<(PathBuf, u64)> = system::DEVICES
        .iter()
        .chain(&["console"])
        .map(|name| Path::new("/dev").join(name))
        .filter_map(|path| Some((rustix::fs::stat(&path).ok()?.st_rdev, path)))
        .map(|(device, path)| (path, device))
        .collect();
    for stream in streams().into_iter().filter(|stream| kind(*stream) == libc::S_IFCHR) {
        let Ok(device) = rustix::fs::fstat(stream).map(|stat| stat.st_rdev) else { continue };
        let Some((path, _)) = known.iter().find(|(_, known)| *known == device) else { continue };
        let Ok(flags) = rustix::fs::fcntl_getfl(stream) else { continue };
        let flags = flags & (OFlags::RWMODE | OFlags::APPEND | OFlags::NONBLOCK);
        let Ok(opened) = rustix::fs::open(path, flags | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()) else {
            continue;
        };
        // SAFETY: both are open, and the copy replaces a stream, which has no owner.
        unsafe { libc::dup2(opened.as_raw_fd(), stream.as_raw_fd()) };
    }
}

/// Hands a descriptor to the process at the other end.
pub(super) fn send(to: &UnixStream, file: BorrowedFd<'_>) -> Result<()> {
    send_with(to, b"f", file)
}

/// Sends bytes and a descriptor that belongs to them.
pub fn send_with(to: &UnixStream, bytes: &[u8], file: BorrowedFd<'_>) -> Result<()> {
    let (files, mut room) = ([file], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&files));
    let sent = sendmsg(to, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
    let sent = sent.map_err(std::io::Error::from)?;
    // The descriptor went with the first byte.
    std::io::Write::write_all(&mut &*to, &bytes[sent..])?;
    Ok(())
}

/// Receives a descriptor; `None` if the other end was closed.
pub(super) fn receive(from: &UnixStream) -> Result<Option<OwnedFd>> {
    Ok(receive_with(from.as_fd(), &mut [0])?.1)
}

/// Receives bytes, and the descriptor that belongs to them if there is one. It may be called on any connection of this kind.
pub fn receive_with(from: BorrowedFd<'_>, bytes: &mut [u8]) -> std::io::Result<(usize, Option<OwnedFd>)> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let received = recvmsg(from, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok((received.bytes, files.last()))
}

/// Enters a directory below the root of this process. The kernel keeps to the root and follows no magic link of
/// `/proc`, which leads wherever a descriptor leads.
pub(super) fn enter(directory: &Path) -> Result<()> {
    let named = |err: Errno| {
        let name = directory.display();
        match err {
            Errno::LOOP => Error::forbidden(format!(
                "the working directory `{name}` leads through a link that does not stay inside; name the directory itself"
            )),
            err => Error::not_found(format!("the working directory `{name}`: {}", std::io::Error::from(err))),
        }
    };
    let opened = below_root(directory).map_err(named)?;
    rustix::process::fchdir(opened.as_fd()).map_err(named)
}

fn below_root(directory: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", flags, Mode::empty())?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(&root, directory, flags, Mode::empty(), resolve)
}
