//! One commit of the state: a change, the events about it, and what becomes visible when both are durable. Everything
//! that changes the state and tells of it goes through here, so that neither is stored without the other. Used by
//! `events`, `service`, `services` and `host`; uses the event table.

use std::cell::RefCell;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{Event, EventLog};
use crate::state::events as table;
use acheron_base::Result;
use acheron_store::{Store, Tx, Written};

/// A change under way, on the thread of the writer.
pub struct Commit<'a> {
    tx: &'a Tx<'a>,
    later: RefCell<Vec<Later>>,
}

/// What happens when the change is durable.
enum Later {
    Show(Arc<EventLog>, Event),
    Call(Box<dyn FnOnce() + Send>),
}

impl<'a> Commit<'a> {
    pub fn tx(&self) -> &'a Tx<'a> {
        self.tx
    }

    /// Appends an event to a log; returns its number. Readers see it when the change is durable.
    pub fn emit(&self, log: &Arc<EventLog>, kind: &str, path: &str, payload: Value) -> Result<u64> {
        let (kind, path, at_ms) = (kind.to_owned(), path.to_owned(), log.clock.now_ms());
        let event = table::append(self.tx, &log.agent, kind, path, at_ms, payload)?;
        let seq = event.seq;
        self.later.borrow_mut().push(Later::Show(log.clone(), event));
        Ok(seq)
    }

    /// Calls `then` when the change is durable, in the order of the commits and before the caller is answered. It runs
    /// on the thread of the writer: it must be short.
    pub fn after(&self, then: impl FnOnce() + Send + 'static) {
        self.later.borrow_mut().push(Later::Call(Box::new(then)));
    }

    /// Makes a part of the change that may fail alone: what it did and emitted is undone, and the rest goes on.
    pub fn attempt<T>(&self, part: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.later.borrow().len();
        let done = self.tx.attempt(part);
        if done.is_err() {
            self.later.borrow_mut().truncate(before);
        }
        done
    }
}

/// Queues a change. The answer comes when it is durable and shown.
pub fn commit<T, F>(store: &Store, work: F) -> Written<T>
where
    T: Send + 'static,
    F: FnOnce(&Commit<'_>) -> Result<T> + Send + 'static,
{
    let made = Arc::new(Mutex::new(Vec::new()));
    let shown = made.clone();
    let change = move |tx: &Tx<'_>| {
        let commit = Commit { tx, later: RefCell::default() };
        let value = work(&commit)?;
        *made.lock() = commit.later.into_inner();
        Ok(value)
    };
    store.write_then(change, move |_| {
        for later in std::mem::take(&mut *shown.lock()) {
            match later {
                Later::Show(log, event) => log.show(event),
                Later::Call(then) => then(),
            }
        }
    })
}
