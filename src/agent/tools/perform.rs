//! Performs a call: results, limits, and the walk through directories, the same with every [`ToolBackend`].

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{ENTRIES, FileList, FileRead, FileWrite, MOST_ENTRIES, MOST_READ, READ, ToolCall, failure};
use acheron_base::{Code, Result};

/// Some bytes of a file, and whether there are more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadBytes {
    pub bytes: Vec<u8>,
    pub more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    Link,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    pub name: String,
    pub kind: EntryKind,
    pub size: u64,
}

/// Where calls are performed: in this process, or on a mount from outside. A read that may not wait returns `busy` if
/// the file is not ready.
#[async_trait]
pub trait ToolBackend: Send + Sync {
    async fn read(&self, path: &str, max: usize, wait: bool) -> Result<ReadBytes>;
    /// Returns the id of the job that the write started, if any.
    async fn write(&self, call: &FileWrite) -> Result<Option<String>>;
    /// The first `most` names of a directory, sorted.
    async fn list(&self, path: &str, most: usize) -> Result<Vec<ListedEntry>>;
}

/// Performs a call. A failure is a result too: `{"error": {"code", "message"}}`.
pub async fn perform(side: &dyn ToolBackend, tool: &ToolCall) -> Value {
    let done = match tool {
        ToolCall::Read(call) => read(side, call).await,
        ToolCall::Write(call) => write(side, call).await,
        ToolCall::List(call) => list(side, call).await,
    };
    done.unwrap_or_else(|error| failure(&error))
}

async fn read(side: &dyn ToolBackend, call: &FileRead) -> Result<Value> {
    let max = call.max_bytes.unwrap_or(READ).min(MOST_READ) as usize;
    let taken = match side.read(&call.path, max, call.wait_until_ready).await {
        Err(error) if error.code == Code::Busy && !call.wait_until_ready => {
            return Ok(json!({"path": call.path, "content": "", "bytes": 0, "truncated": false, "ready": false}));
        }
        taken => taken?,
    };
    let bytes = if taken.more { whole_characters(&taken.bytes) } else { &taken.bytes };
    let content = String::from_utf8_lossy(bytes);
    let mut answer = json!({
        "path": call.path, "content": content, "bytes": bytes.len(), "truncated": taken.more, "ready": true,
    });
    if matches!(content, std::borrow::Cow::Owned(_)) {
        answer["lossy"] = true.into(); // invalid UTF-8 was replaced
    }
    Ok(answer)
}

/// The bytes without an incomplete character at their end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

async fn write(side: &dyn ToolBackend, call: &FileWrite) -> Result<Value> {
    match side.write(call).await {
        Err(error) if error.code == Code::Busy && !call.wait_until_ready => {
            Ok(json!({"path": call.path, "bytes_written": 0, "ready": false}))
        }
        Err(error) => Err(error),
        Ok(job) => {
            let mut answer = json!({"path": call.path, "bytes_written": call.content.len(), "ready": true});
            if let Some(job) = job {
                answer["job_id"] = job.into();
            }
            Ok(answer)
        }
    }
}

/// Lists breadth first, so that a truncated listing has the nearest names. A subdirectory that cannot be read is shown
/// without its names; the given directory must be readable.
async fn list(side: &dyn ToolBackend, call: &FileList) -> Result<Value> {
    let max = call.max_entries.unwrap_or(ENTRIES).min(MOST_ENTRIES) as usize;
    let asked = call.path.trim_end_matches('/');
    let mut entries = Vec::new();
    let mut truncated = false;
    let mut wanted = std::collections::VecDeque::from([asked.to_owned()]);
    while let Some(path) = wanted.pop_front() {
        // One more than requested shows whether there are more.
        let most = max + 1 - entries.len();
        let listed = match side.list(if path.is_empty() { "/" } else { &path }, most).await {
            Ok(listed) => listed,
            Err(error) if path == asked => return Err(error),
            Err(_) => continue,
        };
        for entry in listed {
            if entries.len() == max {
                truncated = true;
                break;
            }
            let path = if path == "." { entry.name.clone() } else { format!("{path}/{}", entry.name) };
            let kind = match entry.kind {
                EntryKind::File => "file",
                EntryKind::Directory => "directory",
                EntryKind::Link => "link",
            };
            entries.push(json!({"path": path, "type": kind, "size": entry.size}));
            if call.recursive && entry.kind == EntryKind::Directory {
                wanted.push_back(path);
            }
        }
        if truncated {
            break;
        }
    }
    Ok(json!({"path": call.path, "entries": entries, "truncated": truncated}))
}
