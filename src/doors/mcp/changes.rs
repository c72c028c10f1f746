//! Changes of a path, for those who subscribed to it: the same waits as `events/control/wait.json`, with the same rights.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::doors::tree::{DoorFile, DoorTree, Wait};
use acheron_base::{Error, Result};

/// Each handle of this file has its own wait.
const WAITS: &str = "/agents/self/events/control/wait.json";
/// A wait ends after so long, and begins again on the same handle.
const TIMEOUT_MS: u64 = 3_600_000;
const CHUNK: usize = 64 << 10;

/// The changes of some paths.
pub struct PathChanges {
    file: DoorFile,
    offset: u64,
    /// Whether the caller may still read.
    tree: DoorTree,
}

impl PathChanges {
    /// Begins to watch. A path that cannot change, or that the caller may not see, is refused.
    pub async fn of(tree: DoorTree, path: &str) -> Result<PathChanges> {
        let wait = json!({ "paths": [path], "timeout_ms": TIMEOUT_MS }).to_string();
        let written = tree.write(WAITS, wait.as_bytes(), false, true).await?;
        Ok(PathChanges { file: written.file, offset: wait.len() as u64, tree })
    }

    /// Waits for the next change.
    pub async fn next(&mut self) -> Result<()> {
        loop {
            let told = self.answer().await?;
            let told: Value =
                serde_json::from_slice(&told).map_err(|err| Error::internal(format!("an event is not JSON: {err}")))?;
            if told["timeout"] != Value::Bool(true) {
                return Ok(());
            }
            // Rights may have ended while nothing happened.
            self.tree.stat(WAITS).await?;
        }
    }

    /// One answer of the handle, up to its end.
    async fn answer(&mut self) -> Result<Bytes> {
        let mut all = Vec::new();
        loop {
            let chunk = self.file.read(self.offset, CHUNK, Wait::UntilReady).await?;
            if chunk.is_empty() {
                return Ok(all.into());
            }
            self.offset += chunk.len() as u64;
            all.extend_from_slice(&chunk);
        }
    }
}
