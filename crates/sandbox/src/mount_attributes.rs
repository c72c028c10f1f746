//! `mount_setattr(2)`, which neither nix nor rustix offers, as a safe function. The host uses it for bind mounts; it uses
//! only libc.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// A change of the attributes of a mount. The bits are those of `MOUNT_ATTR_*` in libc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountAttributes {
    /// The attributes to set.
    pub set: u64,
    /// The attributes to clear.
    pub clear: u64,
    /// Whether the mount becomes private, so that mounts below it do not propagate.
    pub private: bool,
    /// Whether the mounts below it change too.
    pub recursive: bool,
}

/// Has a mount show the owners of its files as a user namespace maps them.
pub(super) fn map_owner(mount: BorrowedFd<'_>, users: BorrowedFd<'_>) -> rustix::io::Result<()> {
    change(
        mount,
        MountAttributes { set: libc::MOUNT_ATTR_IDMAP, ..MountAttributes::default() },
        users.as_raw_fd() as u64,
    )
}

/// Changes the attributes of the mount that `mount` refers to.
pub fn set_mount_attributes(mount: BorrowedFd<'_>, change: MountAttributes) -> rustix::io::Result<()> {
    self::change(mount, change, 0)
}

fn change(mount: BorrowedFd<'_>, change: MountAttributes, userns_fd: u64) -> rustix::io::Result<()> {
    let propagation = if change.private { libc::MS_PRIVATE } else { 0 };
    let wanted = libc::mount_attr { attr_set: change.set, attr_clr: change.clear, propagation, userns_fd };
    let flags = libc::AT_EMPTY_PATH | if change.recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a static empty string, the struct lives over the call and its size is its own.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
