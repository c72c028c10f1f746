//! Keeps the log of a daemon short while it runs. The log is standard error; when it is too long, the file takes another
//! name and standard error becomes a new one. Used by the logger of `cli`.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// A log that exceeds this size is rotated; the previous one is replaced.
pub const LONGEST_LOG: u64 = 8 << 20;

static LOG: OnceLock<RotatedLog> = OnceLock::new();

/// Standard error is the file `path`, which this process alone writes.
pub fn begin(path: PathBuf) {
    _ = LOG.set(RotatedLog::new(path, LONGEST_LOG)); // there is only one
}

/// As many bytes were written to standard error.
pub fn wrote(bytes: usize) {
    if let Some(log) = LOG.get() {
        log.wrote(bytes as u64, |file| _ = rustix::stdio::dup2_stderr(file));
    }
}

/// Gives `path` its name for an older log, and makes a new file in its place.
pub fn rotate(path: &Path) -> std::io::Result<File> {
    std::fs::rename(path, path.with_extension("log.1"))?;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

struct RotatedLog {
    path: PathBuf,
    limit: u64,
    length: AtomicU64,
    turn: Mutex<()>,
}

impl RotatedLog {
    fn new(path: PathBuf, limit: u64) -> RotatedLog {
        let length = AtomicU64::new(std::fs::metadata(&path).map_or(0, |metadata| metadata.len()));
        RotatedLog { path, limit, length, turn: Mutex::default() }
    }

    /// Counts what was written; `replace` gets the new file when the old one is too long.
    fn wrote(&self, bytes: u64, replace: impl FnOnce(File)) {
        if self.length.fetch_add(bytes, Ordering::SeqCst) + bytes <= self.limit {
            return;
        }
        let _turn = self.turn.lock();
        if self.length.load(Ordering::SeqCst) <= self.limit {
            return; // another thread has done it
        }
        self.length.store(0, Ordering::SeqCst);
        // If it fails, the log grows by once more its limit, and it is tried again.
        if let Ok(file) = rotate(&self.path) {
            replace(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_is_rotated_while_it_is_written_and_two_files_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("acheron.log");
        let mut file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let log = RotatedLog::new(path.clone(), 100);
        for number in 0..100 {
            let line = format!("line {number:04}\n");
            file.write_all(line.as_bytes()).unwrap();
            log.wrote(line.len() as u64, |new| file = new);
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (newest, older) = (read(&path), read(&path.with_extension("log.1")));
        assert!(newest.len() <= 110 && older.len() <= 110, "{} {}", newest.len(), older.len());
        assert!((older + &newest).ends_with("line 0098\nline 0099\n"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
