//! The way back to an earlier turn. The chat takes the request and waits until no turn runs; what is brought back beside the
//! conversation (files, memory) is the host's to do, behind [`TurnCheckpoints`].

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::jobs::Job;
use acheron_base::Result;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewindRequest {
    /// The last turn that counts: its `seq` in `history.ndjson`.
    #[serde(default)]
    pub to: Option<u64>,
    /// Only tell what would be brought back.
    #[serde(default)]
    pub preview: bool,
    /// Bring back what the last rewind has taken away.
    #[serde(default)]
    pub undo: bool,
    #[serde(default, rename = "_meta", skip_serializing)]
    pub meta: Option<Value>,
}

/// Keeps a checkpoint of each turn, and brings one back.
#[async_trait]
pub trait TurnCheckpoints: Send + Sync {
    /// The turn with this number has ended and is in the history.
    async fn keep(&self, agent: &str, turn: u64);

    /// Does what is asked for; no turn runs meanwhile.
    async fn rewind(&self, agent: &str, job: &Job, request: RewindRequest) -> Result<Value>;
}
