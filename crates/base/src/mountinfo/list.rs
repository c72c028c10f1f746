//! The list of mounts, read again only when it has changed: the kernel tells a poller of the file.

use std::fs::File;
use std::io::{Read as _, Result, Seek as _};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Mount, parse};

/// All mounts that this process sees, as [`read`](super::read) has them. Only for a process that keeps its mount namespace.
pub fn current() -> Result<Arc<Vec<Mount>>> {
    static LIST: Mutex<Option<MountList>> = Mutex::new(None);
    let mut list = LIST.lock();
    if let Some(list) = list.as_mut().filter(|list| list.process == std::process::id()) {
        list.refresh()?;
        return Ok(list.mounts.clone());
    }
    let opened = MountList::open()?;
    Ok(list.insert(opened).mounts.clone())
}

struct MountList {
    /// The list of a process that was forked is its own.
    process: u32,
    file: File,
    mounts: Arc<Vec<Mount>>,
}

impl MountList {
    fn open() -> Result<MountList> {
        let mut file = File::open("/proc/self/mountinfo")?;
        // The file counts changes from its opening, so nothing is missed between this and the first look.
        let mounts = whole(&mut file)?;
        Ok(MountList { process: std::process::id(), file, mounts })
    }

    fn refresh(&mut self) -> Result<()> {
        let mut asked = [PollFd::new(&self.file, PollFlags::PRI)];
        poll(&mut asked, Some(&Timespec::default()))?;
        if asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR) {
            self.file.rewind()?;
            self.mounts = whole(&mut self.file)?;
        }
        Ok(())
    }
}

fn whole(file: &mut File) -> Result<Arc<Vec<Mount>>> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(Arc::new(parse(&text)))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_mount_and_its_end_are_seen_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let is_listed = || current().unwrap().iter().any(|mount| mount.point == dir.path());
        let run = |program: &str, arguments: &[&str]| {
            let done = Command::new(program).args(arguments).arg(dir.path()).status();
            assert!(done.unwrap().success(), "{program}: this test mounts a tmpfs, and so needs root");
        };
        for _ in 0..3 {
            assert!(!is_listed());
            run("mount", &["-t", "tmpfs", "tmpfs"]);
            assert!(is_listed());
            run("umount", &[]);
        }
        // Other tests mount at the same time, but not always.
        let is_kept = |_| Arc::ptr_eq(&current().unwrap(), &current().unwrap());
        assert!((0..1000).any(is_kept), "read again though nothing has changed");
    }
}
