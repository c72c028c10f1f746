//! The parts of a host that a service needs, for unit tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{ServiceAccess, ServiceContext};
use crate::events::EventLogs;
use crate::jobs::Jobs;
use acheron_base::{Clock, Ids, Random};
use acheron_store::Store;

/// A context over `store`, on the runtime of the caller.
pub fn test_context(store: &Store, clock: Clock, access: Arc<dyn ServiceAccess>) -> Arc<ServiceContext> {
    // Two contexts of one test are two runs of a host: their ids differ.
    static RUN: AtomicU64 = AtomicU64::new(1);
    let random = Random::seeded(RUN.fetch_add(1, Ordering::Relaxed));
    let jobs = Arc::new(Jobs::new(Arc::new(store.clone()), Ids::new(clock.clone(), random)));
    let event_logs = Arc::new(EventLogs::new(store.clone(), clock));
    ServiceContext::new(jobs, event_logs, store.clone(), access, tokio::runtime::Handle::current())
}
