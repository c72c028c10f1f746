//! Putting a FUSE connection into the tree of mounts, and taking it out again.
//!
//! Done here and not by fuser, which unmounts when its session is dropped whoever is mounted there by then. A mount is
//! only ever taken away if the kernel's list shows our name on it.

use std::fs::{File, OpenOptions};
use std::io::{IoSliceMut, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};

use super::mountpoint;
use acheron_base::{Error, Result};

const KIND: &str = "fuse.acheron";

/// Mounts an empty connection at `mountpoint` under the name `source`; what is asked there waits until it is served.
pub fn attach(source: &str, mountpoint: &Path) -> Result<OwnedFd> {
    let device = match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(device) => device,
        Err(error) => return Err(no_device(&error)),
    };
    match mount(&device, source, mountpoint) {
        Ok(()) => Ok(device.into()),
        // Only root may mount; everybody else asks the helper that comes with FUSE.
        Err(Errno::EPERM) => by_helper(source, mountpoint),
        Err(errno) => Err(Error::from(std::io::Error::from(errno)).about(mountpoint.display())),
    }
}

fn mount(device: &File, source: &str, mountpoint: &Path) -> nix::Result<()> {
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let options = format!("fd={},rootmode=40000,user_id={uid},group_id={gid}", device.as_raw_fd());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    nix::mount::mount(Some(source), mountpoint, Some(KIND), flags, Some(options.as_str()))
}

fn no_device(error: &std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Error::unavailable("there is no /dev/fuse: the kernel module `fuse` is not loaded"),
        Some(libc::EACCES) => Error::forbidden("/dev/fuse cannot be opened: it should have mode 0666"),
        _ => Error::unavailable(format!("/dev/fuse cannot be opened: {error}")),
    }
}

/// `fusermount3` mounts and hands the descriptor over a socket.
fn by_helper(source: &str, mountpoint: &Path) -> Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let passed = theirs.as_raw_fd();
    let mut helper = Command::new("fusermount3");
    helper.arg("-o").arg(format!("nosuid,nodev,subtype=acheron,fsname={source}")).arg("--").arg(mountpoint);
    helper.env("_FUSE_COMMFD", passed.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: between fork and exec only `fcntl` is called, on a descriptor that stays open until the child runs.
    unsafe {
        helper.pre_exec(move || match libc::fcntl(passed, libc::F_SETFD, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut child = helper.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::unavailable("only root can mount without `fusermount3`: install fuse3"),
        _ => Error::unavailable(format!("fusermount3 cannot be run: {error}")),
    })?;
    drop(theirs);
    let received = receive(&ours);
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = stderr.read_to_string(&mut said);
    }
    let _ = child.wait();
    received.ok_or_else(|| Error::failed(format!("fusermount3 did not mount: {}", said.trim())))
}

fn receive(socket: &UnixStream) -> Option<OwnedFd> {
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!(RawFd);
    let message = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => (),
            other => break other.ok()?,
        }
    };
    message.cmsgs().ok()?.find_map(|control| match control {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        ControlMessageOwned::ScmRights(fds) => fds.first().map(|fd| unsafe { OwnedFd::from_raw_fd(*fd) }),
        _ => None,
    })
}

/// Takes the mount called `source` away from `mountpoint`, at once and whoever is in it, if it is still there.
pub fn detach(source: &str, mountpoint: &Path) -> Result<()> {
    if !mountpoint::mounted()?.iter().any(|it| it.source == source && it.path == mountpoint) {
        return Ok(());
    }
    match nix::mount::umount2(mountpoint, MntFlags::MNT_DETACH) {
        Ok(()) => Ok(()),
        Err(Errno::EPERM) => lazily(mountpoint),
        Err(errno) => Err(Error::from(std::io::Error::from(errno)).about(mountpoint.display())),
    }
}

fn lazily(mountpoint: &Path) -> Result<()> {
    let out = Command::new("fusermount3").arg("-uz").arg("--").arg(mountpoint).stdin(Stdio::null()).output()?;
    match out.status.success() {
        true => Ok(()),
        false => Err(Error::failed(String::from_utf8_lossy(&out.stderr).trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_helper_mounts_what_can_be_taken_away_again_once() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().canonicalize().unwrap();
        let there = |source: &str| mountpoint::ours().unwrap().iter().any(|it| it.source == source && it.path == place);
        let device = match by_helper("acheron-helped", &place) {
            Ok(device) => device,
            // Where it is missing, that is what must be said.
            Err(error) => return assert!(error.message.contains("install fuse3"), "{error}"),
        };
        assert!(there("acheron-helped"));
        detach("acheron-another", &place).unwrap();
        assert!(there("acheron-helped"));
        lazily(&place).unwrap();
        assert!(!there("acheron-helped"));
        detach("acheron-helped", &place).unwrap();
        drop(device);
    }

    #[test]
    fn where_the_helper_refuses_its_own_words_are_passed_on() {
        let error = by_helper("acheron-helped", Path::new("/nowhere/at/all")).unwrap_err();
        let words = ["fusermount3 did not mount: ", "install fuse3"];
        assert!(words.iter().any(|word| error.message.contains(word)), "{error}");
    }
}
