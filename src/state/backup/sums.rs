//! The checksums of a backup: one line per entry, in the order of the archive, each the SHA-256 of the entry's path, a zero byte
//! and its content. They are the last entry, so that an archive that was cut off has none.

use std::io::{Read, Result};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The name of the entry.
pub const SUMS: &str = "acheron-backup.sums";

/// The sum of an entry so far.
pub struct EntrySum(Sha256);

impl EntrySum {
    pub fn of(path: &Path) -> EntrySum {
        // A directory is written with a slash at its end, and read with or without.
        let path: std::path::PathBuf = path.components().collect();
        let mut sum = Sha256::new();
        sum.update(path.as_os_str().as_bytes());
        sum.update([0]);
        EntrySum(sum)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The line of the list, with its end.
    pub fn line(self) -> String {
        let mut line: String = self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        line.push('\n');
        line
    }
}

/// Counts and sums the bytes that are read.
pub struct SummedReader<'a, R> {
    pub content: R,
    pub read: u64,
    pub sum: &'a mut EntrySum,
}

impl<R: Read> Read for SummedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let count = self.content.read(buffer)?;
        self.read += count as u64;
        self.sum.add(&buffer[..count]);
        Ok(count)
    }
}
