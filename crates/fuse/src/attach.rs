//! Mounting and unmounting a FUSE connection.
//!
//! fuser is not used for this: it unmounts when its session is dropped, whatever is mounted there by then. This module
//! unmounts only a mount whose name is in the list of the kernel. The crate root uses it; it uses [`mountpoint`].

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

/// Mounts a new connection at `mountpoint` under the name `source`. Requests wait there until they are served.
pub fn attach(subtype: &str, source: &str, mountpoint: &Path) -> Result<OwnedFd> {
    let device = match OpenOptions::new().read(true).write(true).open("/dev/fuse") {
        Ok(device) => device,
        Err(error) => return Err(no_device(&error)),
    };
    match mount(&device, subtype, source, mountpoint) {
        Ok(()) => Ok(device.into()),
        // Only root may mount; other users need the helper that comes with FUSE.
        Err(Errno::EPERM) => mount_by_helper(subtype, source, mountpoint),
        Err(errno) => Err(Error::from(std::io::Error::from(errno)).about(mountpoint.display())),
    }
}

fn mount(device: &File, subtype: &str, source: &str, mountpoint: &Path) -> nix::Result<()> {
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    let options = format!("fd={},rootmode=40000,user_id={uid},group_id={gid}", device.as_raw_fd());
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    nix::mount::mount(Some(source), mountpoint, Some(fstype(subtype).as_str()), flags, Some(options.as_str()))
}

fn no_device(error: &std::io::Error) -> Error {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Error::unavailable("there is no /dev/fuse: the kernel module `fuse` is not loaded"),
        Some(libc::EACCES) => Error::forbidden("/dev/fuse cannot be opened: it should have mode 0666"),
        _ => Error::unavailable(format!("/dev/fuse cannot be opened: {error}")),
    }
}

/// The type of the file system in the list of mounts.
pub fn fstype(subtype: &str) -> String {
    format!("fuse.{subtype}")
}

/// Mounts with `fusermount3`, which passes the descriptor over a socket.
fn mount_by_helper(subtype: &str, source: &str, mountpoint: &Path) -> Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let passed = theirs.as_raw_fd();
    let mut helper = Command::new("fusermount3");
    helper.arg("-o").arg(format!("nosuid,nodev,subtype={subtype},fsname={source}")).arg("--").arg(mountpoint);
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
        // SAFETY: the kernel has just made this descriptor for this process; nothing else owns it.
        ControlMessageOwned::ScmRights(fds) => fds.first().map(|fd| unsafe { OwnedFd::from_raw_fd(*fd) }),
        _ => None,
    })
}

/// Detaches the mount called `source` from `mountpoint`, if it is still there. Processes may still be using it.
pub fn detach(source: &str, mountpoint: &Path) -> Result<()> {
    if !mountpoint::mounted()?.iter().any(|it| it.source == source && it.path == mountpoint) {
        return Ok(());
    }
    match nix::mount::umount2(mountpoint, MntFlags::MNT_DETACH) {
        Ok(()) => Ok(()),
        Err(Errno::EPERM) => detach_by_helper(mountpoint),
        Err(errno) => Err(Error::from(std::io::Error::from(errno)).about(mountpoint.display())),
    }
}

fn detach_by_helper(mountpoint: &Path) -> Result<()> {
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
    fn a_mount_of_the_helper_is_detached_once() {
        let scratch = tempfile::tempdir().unwrap();
        let place = scratch.path().canonicalize().unwrap();
        let there = |source: &str| {
            mountpoint::mounts_of("acheron").unwrap().iter().any(|it| it.source == source && it.path == place)
        };
        let device = match mount_by_helper("acheron", "acheron-helped", &place) {
            Ok(device) => device,
            // Without the helper, the error must name the package.
            Err(error) => return assert!(error.message.contains("install fuse3"), "{error}"),
        };
        assert!(there("acheron-helped"));
        detach("acheron-another", &place).unwrap();
        assert!(there("acheron-helped"));
        detach_by_helper(&place).unwrap();
        assert!(!there("acheron-helped"));
        detach("acheron-helped", &place).unwrap();
        drop(device);
    }

    #[test]
    fn an_error_of_the_helper_is_passed_on() {
        let error = mount_by_helper("acheron", "acheron-helped", Path::new("/nowhere/at/all")).unwrap_err();
        let words = ["fusermount3 did not mount: ", "install fuse3"];
        assert!(words.iter().any(|word| error.message.contains(word)), "{error}");
    }
}
