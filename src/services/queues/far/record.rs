//! One item as the server keeps it. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::services::queues::backend::{DeadItem, NewItem};
use crate::services::queues::lease::{ItemLife, ItemState};
use acheron_base::{Error, Result};

/// The last record of an item says everything about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemRecord {
    pub state: RecordState,
    pub attempt: u32,
    pub max_attempts: u32,
    pub priority: i64,
    /// Its place among those of its priority: the number of its first record; none in that one.
    #[serde(default)]
    pub order: Option<u64>,
    pub put_by: String,
    pub put_at_ms: u64,
    /// The bytes of its body, also when that is gone.
    pub bytes: u64,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub body: Value,
    /// Distinguishes this record from any other, so that its writer knows it again.
    pub written: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum RecordState {
    Ready,
    Delayed {
        until_ms: u64,
    },
    Leased {
        token: String,
        until_ms: u64,
    },
    Dead {
        at_ms: u64,
    },
    /// Done by this lease; the same id is the same item.
    Done {
        token: String,
        at_ms: u64,
    },
    /// Nothing is remembered of it; the server drops the record by itself.
    Gone,
}

impl ItemRecord {
    pub fn new(item: &NewItem, written: String) -> ItemRecord {
        let life = ItemLife::new(item.max_attempts, item.not_before_ms, item.at_ms);
        ItemRecord {
            state: state_of(&life.state, item.at_ms),
            attempt: 0,
            max_attempts: life.max_attempts,
            priority: item.priority,
            order: None,
            put_by: item.by.clone(),
            put_at_ms: item.at_ms,
            bytes: item.body.to_string().len() as u64,
            error: None,
            body: item.body.clone(),
            written,
        }
    }

    /// The life of the item, if it has one.
    pub fn life(&self) -> Option<ItemLife> {
        let state = match &self.state {
            RecordState::Ready => ItemState::Ready,
            RecordState::Delayed { until_ms } => ItemState::Delayed { until_ms: *until_ms },
            RecordState::Leased { token, until_ms } => ItemState::Leased { token: token.clone(), until_ms: *until_ms },
            RecordState::Dead { .. } => ItemState::Dead,
            RecordState::Done { .. } | RecordState::Gone => return None,
        };
        Some(ItemLife { state, attempt: self.attempt, max_attempts: self.max_attempts })
    }

    /// The next record of an item whose record this is, under `number`.
    pub fn living(self, life: &ItemLife, error: Option<String>, now_ms: u64, number: u64) -> ItemRecord {
        let (state, order) = (state_of(&life.state, now_ms), Some(self.order.unwrap_or(number)));
        ItemRecord { state, order, attempt: life.attempt, error: error.or(self.error.clone()), ..self }
    }

    /// The last record of an item.
    pub fn ended(self, state: RecordState) -> ItemRecord {
        ItemRecord { state, body: Value::Null, error: None, ..self }
    }

    pub fn dead(self, queue: &str, id: &str) -> Option<DeadItem> {
        let RecordState::Dead { at_ms } = self.state else { return None };
        Some(DeadItem {
            queue: queue.to_owned(),
            id: id.to_owned(),
            body: self.body,
            attempts: self.attempt,
            put_by: self.put_by,
            put_at_ms: self.put_at_ms,
            dead_at_ms: at_ms,
            error: self.error,
        })
    }

    pub fn read(bytes: &[u8]) -> Result<ItemRecord> {
        serde_json::from_slice(bytes).map_err(|err| Error::internal(format!("a record of a queue: {err}")))
    }
}

fn state_of(state: &ItemState, now_ms: u64) -> RecordState {
    match state {
        ItemState::Ready => RecordState::Ready,
        ItemState::Delayed { until_ms } => RecordState::Delayed { until_ms: *until_ms },
        ItemState::Leased { token, until_ms } => RecordState::Leased { token: token.clone(), until_ms: *until_ms },
        ItemState::Dead => RecordState::Dead { at_ms: now_ms },
    }
}
