//! How a service changes plain files: as part of a call, or without one.

use serde_json::Value;

use super::Cx;
use acheron_base::confined_dir::FileChange;
use acheron_base::{ConfinedDir, Result};

/// Changes plain files in one directory: all of them or none. Waits for the disk.
pub trait ChangeFiles: Send + Sync {
    /// A call ends with `result` if its files are changed, even if the host dies in between. It may do this once.
    fn change_files(&self, place: &ConfinedDir, changes: Vec<FileChange>, result: Value) -> Result<()>;
}

impl ChangeFiles for Cx {
    fn change_files(&self, place: &ConfinedDir, changes: Vec<FileChange>, result: Value) -> Result<()> {
        self.context.runner.change_files(&self.job, place, changes, result)
    }
}

/// A change that is no call, such as a file that a person writes.
#[derive(Clone, Copy)]
pub struct WithoutCall;

impl ChangeFiles for WithoutCall {
    fn change_files(&self, place: &ConfinedDir, changes: Vec<FileChange>, _result: Value) -> Result<()> {
        let plan = place.prepare(changes)?;
        plan.make(place).inspect_err(|_| plan.discard(place))
    }
}
