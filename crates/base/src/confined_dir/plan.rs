//! Several changes of files as one. They are prepared first: each new content lies beside its name, on the disk, and
//! nothing has changed. What is left is renaming and removing, which can be done again after a crash.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ConfinedDir;
use crate::error::{Result, if_exists};
use crate::failpoint;

/// One change of a plain file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file has these bytes, whatever was there before.
    Write {
        path: String,
        bytes: Vec<u8>,
    },
    Remove {
        path: String,
    },
    MakeDir {
        path: String,
    },
    /// A file or a directory that stands ready takes another name.
    Rename {
        from: String,
        to: String,
    },
}

impl FileChange {
    pub fn write(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> FileChange {
        FileChange::Write { path: path.into(), bytes: bytes.into() }
    }

    pub fn remove(path: impl Into<String>) -> FileChange {
        FileChange::Remove { path: path.into() }
    }

    pub fn make_dir(path: impl Into<String>) -> FileChange {
        FileChange::MakeDir { path: path.into() }
    }

    pub fn rename(from: impl Into<String>, to: impl Into<String>) -> FileChange {
        FileChange::Rename { from: from.into(), to: to.into() }
    }
}

/// Prepared changes in one directory. It can be stored, read by a later process, and made there.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePlan {
    dir: PathBuf,
    /// Whether links in the directory are followed.
    follow: bool,
    steps: Vec<PlannedStep>,
}

/// Each can be made twice.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
enum PlannedStep {
    Rename { from: String, to: String },
    Remove { path: String },
    MakeDir { path: String },
}

impl ConfinedDir {
    /// Prepares `changes`: all of them, or an error and nothing is left.
    pub fn prepare(&self, changes: Vec<FileChange>) -> Result<FilePlan> {
        let mut plan = FilePlan { dir: self.path.clone(), follow: self.follow, steps: Vec::new() };
        for change in changes {
            let step = match change {
                FileChange::Write { path, bytes } => {
                    self.put_near(&path, &bytes).map(|from| PlannedStep::Rename { from, to: path })
                }
                FileChange::Remove { path } => Ok(PlannedStep::Remove { path }),
                FileChange::MakeDir { path } => Ok(PlannedStep::MakeDir { path }),
                FileChange::Rename { from, to } => Ok(PlannedStep::Rename { from, to }),
            };
            match step {
                Ok(step) => plan.steps.push(step),
                Err(error) => {
                    plan.discard(self);
                    return Err(error);
                }
            }
        }
        Ok(plan)
    }
}

impl FilePlan {
    /// Makes the changes in `place`, the directory that they were prepared in. What was made before is left as it is.
    pub fn make(&self, place: &ConfinedDir) -> Result<()> {
        for (number, step) in self.steps.iter().enumerate() {
            failpoint::numbered("files.step", number);
            match step {
                PlannedStep::Rename { from, to } => _ = if_exists(place.rename(from, to))?,
                PlannedStep::Remove { path } => _ = if_exists(place.remove(path))?,
                PlannedStep::MakeDir { path } => place.make_dir(path)?,
            }
        }
        Ok(())
    }

    /// Makes the changes in a later process.
    pub fn make_again(&self) -> Result<()> {
        self.make(&ConfinedDir { follow: self.follow, ..ConfinedDir::open(&self.dir)? })
    }

    /// Takes away what was prepared and is not made.
    pub fn discard(&self, place: &ConfinedDir) {
        for step in &self.steps {
            if let PlannedStep::Rename { from, .. } = step {
                _ = place.remove(from); // what is left under such a name is never listed
            }
        }
    }
}

#[cfg(test)]
mod tests;
