//! What a view is, as it is written down.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `view.json` in the directory of a view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewRecord {
    pub name: String,
    /// The directory that it is a view of, without links.
    pub base: PathBuf,
    /// The agent that works in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub created_at_ms: u64,
    /// Which of its uppers counts: coming back to a snapshot makes a new one.
    pub generation: u64,
}
