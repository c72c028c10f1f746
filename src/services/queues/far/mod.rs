//! Queues that all hosts of the fabric share. [`record`] is one item as the server keeps it, [`index`] what a host knows of
//! all of them, `backend` the queue over both, [`shared`] which queues
//! these are.
//!
//! There is no dispatcher: every change of an item is written as the successor of the record that it was decided from, and the
//! server refuses it if somebody was faster. So of two hosts that take the same item one has it, and a host that was away writes
//! nothing. The rules are those of [`lease`](super::lease).

#[cfg(feature = "fabric")]
mod backend;
#[cfg(feature = "fabric")]
mod index;
#[cfg(feature = "fabric")]
mod record;
mod shared;
#[cfg(all(test, feature = "fabric"))]
mod tests;

#[cfg(feature = "fabric")]
pub use backend::FabricQueue;
pub use shared::{FarQueue, FarQueues};
