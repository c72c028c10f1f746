//! One difference between a view and its base.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::rel_path::RelPath;
use super::root::EntryFacts;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryType {
    File,
    Dir,
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// Removals come first: they are what a reader must not overlook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Removed,
    Renamed,
    Changed,
    Added,
}

impl ChangeKind {
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Removed => "removed",
            ChangeKind::Renamed => "renamed",
            ChangeKind::Changed => "changed",
            ChangeKind::Added => "added",
        }
    }
}

/// One side of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    pub kind: EntryType,
    pub mode: u32,
    pub size: u64,
}

impl From<&EntryFacts> for Side {
    fn from(facts: &EntryFacts) -> Side {
        Side { kind: facts.kind, mode: facts.mode, size: facts.size }
    }
}

/// Where the bytes of the view's side lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// In the upper, under the same path.
    Upper,
    /// In the base, under this path: a directory above was renamed.
    Base(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: RelPath,
    pub kind: ChangeKind,
    /// The path in the base that it had before, if it was renamed.
    pub from: Option<RelPath>,
    /// As it is in the base, under `from` or else `path`.
    pub before: Option<Side>,
    /// As it is in the view.
    pub after: Option<Side>,
    pub content: Content,
    /// Whether it is a directory that was removed as a whole, and how many files went with it.
    pub whole: bool,
    pub files: u64,
    /// Whether the bytes differ, and not only the permissions.
    pub bytes_differ: bool,
}

impl Change {
    /// What it is, or was.
    pub fn entry_type(&self) -> EntryType {
        self.after.or(self.before).map_or(EntryType::Special, |side| side.kind)
    }

    pub fn size(&self) -> u64 {
        self.after.or(self.before).map_or(0, |side| side.size)
    }
}
