use std::sync::Arc;

use super::conformance::{holds, item, many};
use super::*;
use crate::state::TestStore;
use crate::state::quota::ByteLimits;
use acheron_base::Code;

fn queue(store: &TestStore, limits: ByteLimits) -> SqliteQueue {
    let quotas = Quotas::default();
    quotas.set(limits);
    SqliteQueue::new((**store).clone(), Arc::new(quotas))
}

#[tokio::test]
async fn the_database_is_a_queue() {
    let store = TestStore::new();
    holds(&queue(&store, ByteLimits::default())).await;
}

/// `MAIL_ALL=1` makes 10⁵.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_items_each_is_done_once_although_workers_die() {
    let store = TestStore::new();
    let items = if std::env::var_os("MAIL_ALL").is_some() { 100_000 } else { 2000 };
    many(&queue(&store, ByteLimits::default()), items, 32).await;
}

#[tokio::test]
async fn a_queue_takes_so_many_items_and_bytes() {
    let store = TestStore::new();
    let queue = queue(&store, ByteLimits { queue_items: 2, queue_bytes: 20, ..ByteLimits::default() });
    let large = backend::NewItem { body: serde_json::json!("x".repeat(30)), ..item("q", "large") };
    let refused = queue.put(large).await.unwrap_err();
    assert_eq!((refused.code, refused.errno()), (Code::QuotaExceeded, libc::EDQUOT));
    for id in ["a", "b"] {
        queue.put(item("q", id)).await.unwrap();
    }
    let refused = queue.put(item("q", "c")).await.unwrap_err();
    assert_eq!((refused.code, refused.errno()), (Code::QueueFull, libc::EAGAIN));
    assert!(!queue.put(item("q", "a")).await.unwrap(), "what is there already needs no room");
}
