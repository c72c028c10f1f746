//! Who changes the files of the game: a call, which has happened if they are changed, or nobody's call, such as a move that is
//! written to `input`. The session passes it on; only `store` uses it.

use std::sync::Arc;

use serde_json::Value;

use crate::service::{ChangeFiles, Cx, WithoutCall};
use acheron_base::confined_dir::FileChange;
use acheron_base::{ConfinedDir, Result};
use acheron_dm::act::ActResult;

/// The result of a call whose act has this result.
type CallResult = dyn Fn(&ActResult) -> Value + Send + Sync;

#[derive(Clone)]
pub struct ChangedBy {
    files: Arc<dyn ChangeFiles>,
    result: Arc<CallResult>,
}

impl ChangedBy {
    pub fn call(cx: &Cx, result: impl Fn(&ActResult) -> Value + Send + Sync + 'static) -> ChangedBy {
        ChangedBy { files: Arc::new(cx.clone()), result: Arc::new(result) }
    }

    pub fn no_call() -> ChangedBy {
        ChangedBy { files: Arc::new(WithoutCall), result: Arc::new(|_| Value::Null) }
    }

    /// Makes all changes or none.
    pub fn change(&self, place: &ConfinedDir, changes: Vec<FileChange>, done: &ActResult) -> Result<()> {
        self.files.change_files(place, changes, (self.result)(done))
    }
}
