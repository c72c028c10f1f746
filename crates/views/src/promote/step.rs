//! The steps of a promote, as they are written down.

use serde::{Deserialize, Serialize};

use crate::rel_path::RelPath;

/// One step. `staged` and `kept` are names in the stage; inodes tell whether a step was made already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum PromoteStep {
    /// Takes something out of the base and keeps it.
    Remove {
        path: RelPath,
        kept: String,
        inode: u64,
    },
    /// Removes a directory that has become empty; one that has not stays.
    RemoveDir {
        path: RelPath,
        mode: u32,
    },
    MakeDir {
        path: RelPath,
        mode: u32,
    },
    /// Puts something at a path. What was there (`old`) takes its name in the stage.
    Put {
        path: RelPath,
        staged: String,
        inode: u64,
        old: Option<u64>,
    },
    /// Writes the bytes into a file that has other names too, after a copy of it was kept.
    PutInPlace {
        path: RelPath,
        staged: String,
        kept: String,
        inode: u64,
        mode: u32,
        old_mode: u32,
    },
    Chmod {
        path: RelPath,
        mode: u32,
        old_mode: u32,
        inode: u64,
    },
}

impl PromoteStep {
    pub fn path(&self) -> &RelPath {
        match self {
            PromoteStep::Remove { path, .. }
            | PromoteStep::RemoveDir { path, .. }
            | PromoteStep::MakeDir { path, .. }
            | PromoteStep::Put { path, .. }
            | PromoteStep::PutInPlace { path, .. }
            | PromoteStep::Chmod { path, .. } => path,
        }
    }
}

/// A step that was not made, because something else is there now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedStep {
    pub path: RelPath,
    pub why: String,
}
