//! The identity of the files that a program runs, so that an approval of a call counts for these files and no others.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::program_files::{FileRole, program_files};
use crate::spec::ServiceSpec;

/// Larger files are known by their inode, size and times alone.
const HASHED: u64 = 16 << 20;

/// Each file that the command of a service runs: its name, inode, size, times and, if it is not large, its hash.
pub fn file_identities(service: &ServiceSpec, here: &Path) -> Vec<Value> {
    let files = program_files(service, here);
    let runs = files.iter().filter(|file| file.role != FileRole::Mentioned);
    runs.filter_map(|file| file.names.last()).map(|path| identity(path)).collect()
}

fn identity(path: &Path) -> Value {
    let looked = || -> std::io::Result<Value> {
        let mut file = File::open(path)?;
        let about = file.metadata()?;
        let mut known = json!({
            "path": path, "device": about.dev(), "inode": about.ino(), "size": about.size(),
            "modified": [about.mtime(), about.mtime_nsec()],
        });
        if about.is_file() && about.size() <= HASHED {
            known["sha256"] = hash(&mut file)?.into();
        }
        Ok(known)
    };
    looked().unwrap_or_else(|error| json!({ "path": path, "error": error.kind().to_string() }))
}

fn hash(file: &mut File) -> std::io::Result<String> {
    let (mut hasher, mut chunk) = (Sha256::new(), vec![0; 128 << 10]);
    let mut left = HASHED + 1;
    while left > 0 {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        hasher.update(&chunk[..count]);
        left = left.saturating_sub(count as u64);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
