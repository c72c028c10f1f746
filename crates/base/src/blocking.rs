//! Blocking work on threads where blocking is allowed.

use crate::error::{Error, Result};

/// Runs `work` on the blocking pool of the runtime. It runs to its end even when its caller no longer waits.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::internal(format!("the work broke down: {error}")))?
}
