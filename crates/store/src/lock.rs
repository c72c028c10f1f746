//! One daemon per state directory: a lock file with its pid. The store uses it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use acheron_base::{Error, Result};

/// Held while a store is open. The kernel releases it when the process ends.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    pub(super) fn take(dir: &Path) -> Result<Lock> {
        let path = dir.join("acheron.lock");
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        if file.try_lock().is_err() {
            let mut pid = String::new();
            // The holder may not have written it yet.
            let _ = (&mut file).take(32).read_to_string(&mut pid);
            let who = if pid.trim().is_empty() { String::new() } else { format!(" (pid {})", pid.trim()) };
            return Err(Error::busy(format!(
                "another acheron{who} uses the state directory {}: stop it and wait for its end, or choose another directory with --state DIR",
                dir.display()
            )));
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    /// Closing is not enough: a child that was forked meanwhile has the same open file and would keep the lock.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acheron_base::Code;

    #[test]
    fn the_second_is_told_the_pid_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        let refused = Lock::take(dir.path()).unwrap_err();
        assert_eq!(refused.code, Code::Busy);
        assert!(refused.message.contains(&format!("(pid {})", std::process::id())), "{refused}");
        drop(first);
        Lock::take(dir.path()).unwrap();
    }

    #[test]
    fn it_is_let_go_although_a_child_has_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        let copy = first.0.try_clone().unwrap(); // what a forked child has
        drop(first);
        Lock::take(dir.path()).unwrap();
        drop(copy);
    }
}
