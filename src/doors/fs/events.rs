//! The events of one file: a log line by line, a value that is waited for as one event, any other file at each change. Used by
//! `stream`, which sends them.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use crate::doors::tree::{DoorTree, Wait};
use acheron_base::{Error, Result};
use acheron_vfs::Kind;

/// The time between two looks at a file that cannot tell of its change: doubled as long as nothing happens.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// The largest file that is sent as one event, and the longest line.
const MOST: usize = 4 << 20;

/// What happened to a file.
pub enum FileChange {
    /// Whole lines were added to a log, each with its newline, up to this offset.
    Lines { lines: Bytes, end: u64 },
    /// The contents, and how often they have changed; `None` for a value that does not change any more.
    Value { value: Bytes, number: Option<u64> },
}

/// The events of one file.
pub struct FileEvents {
    tree: DoorTree,
    pub path: String,
    kind: Kind,
    /// The bytes of a log that were sent.
    offset: u64,
    line: Vec<u8>,
    growth: Option<watch::Receiver<u64>>,
    last: Option<Bytes>,
    number: u64,
    pub ended: bool,
}

impl FileEvents {
    /// The events of a file; of a log, those after `offset`.
    pub fn new(tree: DoorTree, path: String, kind: Kind, offset: u64) -> FileEvents {
        let (line, growth, last) = (Vec::new(), None, None);
        FileEvents { tree, path, kind, offset, line, growth, last, number: 0, ended: false }
    }

    /// The next event. May be dropped and called again.
    pub async fn next(&mut self) -> Result<FileChange> {
        match self.kind {
            Kind::Log => self.lines().await,
            Kind::Waiting => {
                let bytes = self.tree.read(&self.path, MOST + 1, Wait::UntilReady).await?;
                self.ended = true;
                Ok(FileChange::Value { value: whole(bytes)?, number: None })
            }
            _ => self.change().await,
        }
    }

    /// Lines that were added to a log.
    async fn lines(&mut self) -> Result<FileChange> {
        if self.growth.is_none() {
            self.growth = self.tree.growth(&self.path).await?;
        }
        let mut pause = SHORTEST;
        loop {
            if let Some(growth) = &mut self.growth {
                growth.mark_unchanged(); // what comes after this is seen by the read, or wakes
            }
            let file = self.tree.open(&self.path).await?;
            if file.entry.size < self.offset {
                // The log was rotated: it begins again.
                (self.offset, self.line) = (0, Vec::new());
            }
            let bytes = file.rest(self.offset, MOST, Wait::Never).await?;
            self.offset += bytes.len() as u64;
            self.line.extend_from_slice(&bytes);
            if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.line.split_off(end + 1);
                let lines = std::mem::replace(&mut self.line, rest);
                return Ok(FileChange::Lines { lines: lines.into(), end: self.offset - self.line.len() as u64 });
            }
            if self.line.len() > MOST {
                return Err(Error::too_large(format!("a line has more than {MOST} bytes")));
            }
            match &mut self.growth {
                // A log that is gone does not grow; the next look says so.
                Some(growth) => {
                    if growth.changed().await.is_err() {
                        tokio::time::sleep(LONGEST).await;
                    }
                }
                None => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// The contents when they differ from the last ones.
    async fn change(&mut self) -> Result<FileChange> {
        let mut pause = SHORTEST;
        loop {
            let bytes = whole(self.tree.read(&self.path, MOST + 1, Wait::UntilReady).await?)?;
            if self.last.as_ref() != Some(&bytes) {
                self.last = Some(bytes.clone());
                self.number += 1;
                return Ok(FileChange::Value { value: bytes, number: Some(self.number) });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}

fn whole(bytes: Bytes) -> Result<Bytes> {
    match bytes.len() > MOST {
        true => Err(Error::too_large(format!("a file that is sent as an event has at most {MOST} bytes"))),
        false => Ok(bytes),
    }
}
