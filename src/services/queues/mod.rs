//! The service `queues`: queues of work that all agents of this host share. The host's wiring uses it; each agent has one, over
//! one store.
//!
//! `lease` has the rules of an item's life and `names` those of names: data in, data out. `backend` is the trait of queues,
//! `sqlite` the one in the database of the host, `far` the one of queues that all hosts of the fabric share, `waiting` those who wait for items, `files` the part of the tree, `service`
//! the operations, `far_calls` those on queues of all hosts.

pub mod backend;
#[cfg(test)]
mod conformance;
pub mod far;
mod far_calls;
mod files;
pub mod lease;
pub mod names;
mod service;
pub mod sqlite;
#[cfg(test)]
mod tests;
mod waiting;

use std::sync::Arc;

use crate::state::quota::Quotas;
use acheron_base::Clock;
use acheron_store::Store;

pub use backend::Queue;
pub use far::FarQueues;
pub use service::QueuesService;
pub use sqlite::{SqliteQueue, purge};

/// The queues of the host.
pub struct Queues {
    pub backend: SqliteQueue,
    pub clock: Clock,
    /// Those that all hosts share.
    pub far: FarQueues,
    pub(crate) signals: waiting::QueueSignals,
}

impl Queues {
    /// `shared` are the names of queues that all hosts of the fabric share.
    pub fn new(store: Store, quotas: Arc<Quotas>, clock: Clock, shared: &[String]) -> Arc<Queues> {
        let (backend, far) = (SqliteQueue::new(store, quotas), FarQueues::new(shared));
        Arc::new(Queues { backend, clock, far, signals: Default::default() })
    }
}
