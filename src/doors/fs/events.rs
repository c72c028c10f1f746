//! A file as a stream of events (`text/event-stream`): a log line by line, a value that is waited for as one event, any other
//! file at each change.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;

use crate::doors::listener::respond;
use crate::doors::tree::{DoorTree, Wait};
use acheron_base::{Error, Result};
use acheron_vfs::Kind;

/// The time between two looks at a file that cannot tell of its change: doubled as long as nothing happens.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// A stream on which nothing happens says so, because something on the way may cut it otherwise.
const ALIVE: Duration = Duration::from_secs(15);
/// The largest file that is sent as one event, and the longest line.
const MOST: usize = 4 << 20;

/// Sends the events of one file.
struct FileEvents {
    tree: DoorTree,
    path: String,
    kind: Kind,
    /// The bytes of a log that were sent.
    offset: u64,
    line: Vec<u8>,
    last: Option<Bytes>,
    number: u64,
    ended: bool,
}

/// The stream of a file; a log from `offset`.
pub fn stream(tree: DoorTree, path: String, kind: Kind, offset: u64) -> Response {
    let state = FileEvents { tree, path, kind, offset, line: Vec::new(), last: None, number: 0, ended: false };
    let pieces = stream::unfold(state, |mut state| async move {
        if state.ended {
            return None;
        }
        let piece = match tokio::time::timeout(ALIVE, state.next()).await {
            Ok(Ok(piece)) => piece,
            Ok(Err(error)) => {
                state.ended = true;
                let said = serde_json::to_string(&error).unwrap_or_default();
                event("error", None, said.as_bytes())
            }
            Err(_) => Bytes::from_static(b": waiting\n\n"),
        };
        Some((Ok::<_, std::convert::Infallible>(piece), state))
    });
    let headers = [("content-type", "text/event-stream"), ("x-accel-buffering", "no")];
    respond(200, &headers, Body::from_stream(pieces))
}

impl FileEvents {
    /// The next events. May be dropped and called again.
    async fn next(&mut self) -> Result<Bytes> {
        match self.kind {
            Kind::Log => self.lines().await,
            Kind::Waiting => {
                let bytes = self.tree.read(&self.path, MOST + 1, Wait::UntilReady).await?;
                self.ended = true;
                whole(&bytes)?;
                Ok(event("value", None, &bytes))
            }
            _ => self.change().await,
        }
    }

    /// Lines that were added to a log.
    async fn lines(&mut self) -> Result<Bytes> {
        let mut pause = SHORTEST;
        loop {
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
                return Ok(self.numbered(&lines));
            }
            if self.line.len() > MOST {
                return Err(Error::too_large(format!("a line has more than {MOST} bytes")));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// Events for whole lines; the id of each is the offset after it.
    fn numbered(&self, lines: &[u8]) -> Bytes {
        let mut at = self.offset - (self.line.len() + lines.len()) as u64;
        let mut all = Vec::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            at += line.len() as u64;
            all.extend_from_slice(&event("line", Some(at), line));
        }
        all.into()
    }

    /// The contents when they differ from the last ones.
    async fn change(&mut self) -> Result<Bytes> {
        let mut pause = SHORTEST;
        loop {
            let bytes = self.tree.read(&self.path, MOST + 1, Wait::UntilReady).await?;
            whole(&bytes)?;
            if self.last.as_ref() != Some(&bytes) {
                self.last = Some(bytes.clone());
                self.number += 1;
                return Ok(event("value", Some(self.number), &bytes));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }
}

fn whole(bytes: &Bytes) -> Result<()> {
    match bytes.len() > MOST {
        true => Err(Error::too_large(format!("a file that is sent as an event has at most {MOST} bytes"))),
        false => Ok(()),
    }
}

/// One event. A newline at the end of the data is left out.
fn event(name: &str, id: Option<u64>, data: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(data);
    let mut event = format!("event: {name}\n");
    if let Some(id) = id {
        event.push_str(&format!("id: {id}\n"));
    }
    for line in text.strip_suffix('\n').unwrap_or(&text).split('\n') {
        event.push_str(&format!("data: {}\n", line.trim_end_matches('\r')));
    }
    event.push('\n');
    event.into()
}
