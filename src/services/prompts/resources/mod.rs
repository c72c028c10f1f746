//! Resources of an open prompt: made when they are needed, closed in the opposite order, and taken back to what they
//! were when a tool fails.
//!
//! Knows no tools and no prompts; `kinds` has the resources that a prompt file can name.

mod held;
pub mod kinds;
mod project;
mod registry;
mod snapshot;
#[cfg(test)]
mod tests;

use std::any::Any;

use serde_json::Value;

use acheron_base::Result;

pub use held::Resources;
pub use project::{OpenedProject, ProjectFiles};
pub use registry::{ResourceBinding, ResourceProvider, ResourceRegistry};
pub use snapshot::{PendingTransactions, Snapshot, SnapshotPhase, Transaction};

/// Something that a prompt holds while it is open. Each method has an answer that is right for what has nothing to do.
pub trait Resource: Any + Send + Sync {
    /// Called once it is made. If it fails, the resource is closed and was never there.
    fn ready(&self) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }

    /// Its state, as it can be put back; `None` if it has none that a tool could spoil.
    fn snapshot(&self) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Whether [`Resource::restore`] can be done, without doing it.
    fn prepare(&self, _snapshot: &Value) -> Result<()> {
        Ok(())
    }

    fn restore(&self, _snapshot: &Value) -> Result<()> {
        Ok(())
    }

    /// Drops a snapshot that will not be restored.
    fn forget(&self, _snapshot: &Value) {}
}
