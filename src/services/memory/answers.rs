//! The answers of the operations, as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::active::EvictedMemory;
use super::path::Target;
use super::rows::{MemoryHead, Version};
use super::search::MemoryHit;
use super::similar::SimilarMemory;
use super::tx::StoredMemory;

/// A memory that was made or changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Written")]
pub struct WrittenMemory {
    pub memory_path: String,
    pub version: u64,
    pub write_protected: bool,
    pub unevictable: bool,
    pub pinned: bool,
    /// Whether it is in the active set now.
    pub active: bool,
    pub tokens: u64,
    /// The memories evicted from the active set to make room.
    pub evicted: Vec<String>,
    /// A newer memory says this fact now; this one is kept as what it was.
    pub was: bool,
    /// That newer memory.
    pub superseded_by: Option<String>,
}

/// A memory that was remembered or changed by content.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Changed")]
pub struct ChangedMemory {
    #[serde(flatten)]
    pub written: WrittenMemory,
    /// The memories that are marked `was` now.
    pub supersedes: Vec<String>,
    /// Memories that say nearly the same and were not named in `supersedes`. Nothing was done about them.
    pub similar: Vec<SimilarMemory>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Loaded")]
pub struct LoadedMemory {
    #[serde(flatten)]
    pub written: WrittenMemory,
    pub kind: String,
    pub tags: Vec<String>,
    /// The memories that it sums up.
    pub sources: Vec<String>,
    /// A string if it is text, else JSON.
    pub content: Value,
    pub written_at_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evicted {
    pub memory_path: String,
    pub version: u64,
    /// False when it was not active.
    pub evicted: bool,
    /// The line that stands in its place.
    pub tombstone: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Versions {
    pub memory_path: String,
    /// Newest first.
    pub versions: Vec<VersionLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VersionLine {
    pub memory_path: String,
    pub version: u64,
    /// This version is a deletion.
    pub deleted: bool,
    pub kind: String,
    pub bytes: u64,
    pub tokens: u64,
    pub write_protected: bool,
    pub unevictable: bool,
    pub created_at_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct MemoryHits {
    /// The best first.
    pub results: Vec<MemoryHitLine>,
    /// Give it back to get the next page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FoundLine")]
pub struct MemoryHitLine {
    pub memory_path: String,
    pub version: u64,
    pub kind: String,
    pub tags: Vec<String>,
    pub active: bool,
    pub write_protected: bool,
    pub unevictable: bool,
    /// A newer memory says this fact now; it stands before this one.
    pub was: bool,
    pub superseded_by: Option<String>,
    /// Larger is better.
    pub score: f64,
    pub snippet: String,
    pub written_at_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Deleted")]
pub struct DeletedMemory {
    pub memory_path: String,
    /// The version that is the deletion.
    pub version: u64,
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summarized {
    pub memory_path: String,
    pub version: u64,
    pub tokens: u64,
    pub sources: Vec<String>,
    /// The memories evicted from the active set.
    pub evicted: Vec<String>,
    /// Sources that stay active, because they are pinned or unevictable.
    pub kept: Vec<String>,
}

/// The files `active.json` and `meta.json` speak the same language.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActiveSet {
    pub budget_tokens: u64,
    pub tokens: u64,
    /// Least recently used first: the next to leave is on top.
    pub items: Vec<LoadedMemory>,
    /// The last to leave first.
    pub left: Vec<EvictedLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvictedLine {
    pub memory_path: String,
    pub version: u64,
    pub tombstone: String,
    pub left_at_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Meta {
    pub memory_path: String,
    pub version: u64,
    pub kind: String,
    pub tags: Vec<String>,
    pub sources: Vec<String>,
    pub form: &'static str,
    pub bytes: u64,
    pub tokens: u64,
    pub write_protected: bool,
    pub unevictable: bool,
    pub pinned: bool,
    pub active: bool,
    pub tombstone: Option<String>,
    /// A newer memory says this fact now.
    pub was: bool,
    pub superseded_by: Option<String>,
    /// The older memories of the same fact, the newest first.
    pub supersedes: Vec<String>,
    pub written_at_ms: u64,
}

pub fn path(name: &str) -> String {
    Target::latest(name).to_string()
}

pub fn versioned(name: &str, version: u64) -> String {
    Target { name: name.to_owned(), version: Some(version) }.to_string()
}

/// The path by which this version is meant.
fn meant(head: &MemoryHead, version: &Version) -> String {
    match version.version == head.version {
        true => path(&head.name),
        false => versioned(&head.name, version.version),
    }
}

pub fn paths(left: &[EvictedMemory]) -> Vec<String> {
    left.iter().map(|left| path(&left.name)).collect()
}

impl WrittenMemory {
    pub fn of(memory: &StoredMemory, left: &[EvictedMemory]) -> WrittenMemory {
        let StoredMemory { head, version } = memory;
        WrittenMemory {
            memory_path: meant(head, version),
            version: version.version,
            write_protected: head.write_protected,
            unevictable: head.unevictable,
            pinned: head.pinned,
            active: head.used.is_some() && !left.iter().any(|left| left.name == head.name),
            tokens: version.tokens,
            evicted: paths(left),
            was: head.superseded_by.is_some(),
            superseded_by: head.superseded_by.as_deref().map(path),
        }
    }
}

impl LoadedMemory {
    pub fn of(memory: StoredMemory, left: &[EvictedMemory]) -> LoadedMemory {
        let written = WrittenMemory::of(&memory, left);
        let Version { kind, tags, sources, content, written_at_ms, .. } = memory.version;
        LoadedMemory { written, kind, tags, sources, content: content.value(), written_at_ms }
    }
}

impl Evicted {
    pub fn of(memory: StoredMemory, was_active: bool) -> Evicted {
        Evicted {
            memory_path: path(&memory.head.name),
            version: memory.head.version,
            evicted: was_active,
            tombstone: memory.head.tombstone,
        }
    }
}

impl Versions {
    pub fn of(head: &MemoryHead, versions: Vec<Version>) -> Versions {
        let line = |version: Version| VersionLine {
            memory_path: versioned(&head.name, version.version),
            version: version.version,
            deleted: version.deleted,
            kind: version.kind,
            bytes: version.bytes,
            tokens: version.tokens,
            write_protected: head.write_protected,
            unevictable: head.unevictable,
            created_at_ms: version.written_at_ms,
        };
        Versions { memory_path: path(&head.name), versions: versions.into_iter().map(line).collect() }
    }
}

impl MemoryHitLine {
    pub fn of(hit: MemoryHit) -> MemoryHitLine {
        let StoredMemory { head, version } = hit.memory;
        MemoryHitLine {
            memory_path: meant(&head, &version),
            version: version.version,
            active: head.used.is_some(),
            write_protected: head.write_protected,
            unevictable: head.unevictable,
            was: head.superseded_by.is_some(),
            superseded_by: head.superseded_by.as_deref().map(path),
            kind: version.kind,
            tags: version.tags,
            score: hit.score,
            snippet: hit.snippet,
            written_at_ms: version.written_at_ms,
        }
    }
}

impl EvictedLine {
    pub fn of(left: EvictedMemory) -> EvictedLine {
        let EvictedMemory { name, version, tombstone, at_ms } = left;
        EvictedLine { memory_path: path(&name), version, tombstone, left_at_ms: at_ms }
    }
}

impl Meta {
    pub fn of(memory: StoredMemory, older: &[String]) -> Meta {
        let StoredMemory { head, version } = memory;
        Meta {
            memory_path: path(&head.name),
            version: version.version,
            form: version.content.form(),
            bytes: version.bytes,
            tokens: version.tokens,
            kind: version.kind,
            tags: version.tags,
            sources: version.sources,
            write_protected: head.write_protected,
            unevictable: head.unevictable,
            pinned: head.pinned,
            active: head.used.is_some(),
            tombstone: head.tombstone,
            was: head.superseded_by.is_some(),
            superseded_by: head.superseded_by.as_deref().map(path),
            supersedes: older.iter().map(|name| path(name)).collect(),
            written_at_ms: version.written_at_ms,
        }
    }
}
