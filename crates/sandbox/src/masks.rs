//! Empty files and directories that are mounted over what a program must not see. They belong to the sandbox and never
//! to the host: a program may try to change whatever it finds. [`root`](super::root) and
//! [`path_rules`](super::path_rules) use it.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::mount_attributes::{MountAttributes, set_mount_attributes};
use super::root::{copy_alone, find, put, said};
use acheron_base::Result;

/// Read-only: neither content, mode, owner, times nor attributes of a mask can be changed.
const FIXED: MountAttributes = MountAttributes {
    set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC,
    clear: 0,
    private: false,
    recursive: false,
};

/// An empty directory and an empty file; every mask is another mount of one of them.
pub(super) struct Masks {
    directory: OwnedFd,
    file: OwnedFd,
}

impl Masks {
    /// Makes them in two directories of the new root, which is the working directory. A file system must be mounted
    /// over both afterwards, so that neither has a name inside.
    pub fn make(directory: &str, file_in: &str) -> Result<Masks> {
        let held = |path: &Path| {
            rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
                .map_err(|err| said("opening an empty mask", err))
        };
        let file = Path::new(file_in).join("empty");
        fs::OpenOptions::new().write(true).create_new(true).mode(0o444).open(&file)?;
        Ok(Masks { directory: held(Path::new(directory))?, file: held(&file)? })
    }

    /// Mounts an empty directory over a directory, and an empty file over anything else.
    pub fn mask(&self, top: BorrowedFd<'_>, place: &Path) -> Result<()> {
        let named = |err: Errno| said(&format!("masking '/{}'", place.display()), err);
        let found = match find(top, place) {
            Ok(found) => found,
            // Its directory is masked or gone: there is nothing to see.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            // This process has more rights than the program will have.
            Err(Errno::ACCESS) => return Ok(()),
            Err(err) => return Err(named(err)),
        };
        let is_directory = rustix::fs::fstat(&found).map_err(named)?.st_mode & libc::S_IFMT == libc::S_IFDIR;
        let empty = copy_alone(if is_directory { self.directory.as_fd() } else { self.file.as_fd() }).map_err(named)?;
        set_mount_attributes(empty.as_fd(), FIXED).map_err(named)?;
        put(&empty, &found).map_err(named)
    }
}
