//! Where queues are kept: one trait, several backends, one suite of tests (`conformance.rs`).
//!
//! A backend promises: an item whose `put` was answered is kept until it is done or discarded, also by a crash; the same id in
//! the same queue is the same item as long as it is remembered; at most one lease of an item is in force; an item may be
//! leased more than once, never after it is done. Order holds within a priority. It knows nothing of permissions and files.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lease::ItemEvent;
use acheron_base::Result;

/// An item that is to be put.
#[derive(Clone, Debug)]
pub struct NewItem {
    pub queue: String,
    pub id: String,
    pub body: Value,
    pub priority: i64,
    pub not_before_ms: Option<u64>,
    pub max_attempts: u32,
    pub by: String,
    pub at_ms: u64,
}

/// A request for one item.
#[derive(Clone, Debug)]
pub struct TakeRequest {
    pub queue: String,
    /// Unused so far; see [`queue_of`](super::names::queue_of).
    pub token: String,
    pub lease_ms: u64,
    pub by: String,
    pub at_ms: u64,
}

/// An item and its lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LeasedItem {
    pub queue: String,
    pub id: String,
    /// For `done`, `fail` and `extend`.
    pub lease: String,
    pub body: Value,
    /// 1 for the first time.
    pub attempt: u32,
    pub priority: i64,
    /// The end of the lease.
    pub lease_until_ms: u64,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    Leased {
        item: LeasedItem,
        /// There are more.
        more: bool,
    },
    /// Nothing can be taken now; something may be at this time.
    Empty { due_ms: Option<u64> },
}

/// `status.json` of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueStatus {
    pub queue: String,
    pub ready: u64,
    pub delayed: u64,
    pub leased: u64,
    pub dead: u64,
    pub bytes: u64,
    /// When the next delayed item is ready, or the next lease ends.
    pub next_due_ms: Option<u64>,
}

/// A dead item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadItem {
    pub queue: String,
    pub id: String,
    pub body: Value,
    pub attempts: u32,
    pub put_by: String,
    pub put_at_ms: u64,
    pub dead_at_ms: u64,
    /// The error of the last attempt; none if its lease ran out.
    pub error: Option<String>,
}

#[async_trait]
pub trait Queue: Send + Sync {
    /// Its display name.
    fn describe(&self) -> String;

    /// Puts an item; returns false if it was put before. `queue_full` or `quota_exceeded` if there is no room.
    async fn put(&self, item: NewItem) -> Result<bool>;

    /// Leases the first item, without waiting.
    async fn take(&self, wanted: TakeRequest) -> Result<Taken>;

    /// Ends or extends a lease: `Done`, `Fail` or `Extend`. Done again is the same; `fenced` if it is not in force.
    async fn settle(&self, event: ItemEvent, error: Option<String>, now_ms: u64) -> Result<()>;

    /// Retries or discards a dead item; `not_found` if it is not there.
    async fn dead_item(&self, queue: &str, id: &str, event: ItemEvent, now_ms: u64) -> Result<()>;

    /// A queue, if something was ever put into it.
    async fn status(&self, queue: &str, now_ms: u64) -> Result<Option<QueueStatus>>;

    /// The names of the queues, sorted.
    async fn queues(&self) -> Result<Vec<String>>;

    /// Dead items in the order of their ids.
    async fn dead(&self, queue: &str, most: usize) -> Result<Vec<DeadItem>>;

    /// Forgets ids of items that were done before this time, and queues that have been empty since then.
    async fn forget(&self, before_ms: u64) -> Result<()>;
}
