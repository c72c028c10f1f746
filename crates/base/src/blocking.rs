//! Work that waits for a disk, done on threads where waiting is allowed.

use crate::error::{Error, Result};

/// Does `work` on the runtime's blocking pool. It goes on to its end even when nobody waits for it any more.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::internal(format!("the work broke down: {error}")))?
}
