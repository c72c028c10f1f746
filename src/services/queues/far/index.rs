//! What a host knows of all items: enough to find the next one, without their bodies. Records in, answers out. Pure.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::record::{ItemRecord, RecordState};
use crate::services::queues::backend::QueueStatus;
use crate::services::queues::lease::{self, ItemEvent, ItemLife, ItemState, NextLife};

#[derive(Default)]
pub struct QueueIndex {
    queues: BTreeMap<String, KnownQueue>,
    /// The number after the last record that was seen.
    pub next: u64,
}

#[derive(Default)]
struct KnownQueue {
    items: HashMap<String, KnownItem>,
    /// Of those, what can be taken, first things first.
    ready: BTreeSet<(Reverse<i64>, u64, String)>,
    /// Those whose delay or lease ends.
    due: BTreeSet<(u64, String)>,
    dead: BTreeSet<String>,
    leases: HashMap<String, String>,
    /// Items that are done: their last lease, the time, the number of the record.
    done: HashMap<String, (String, u64, u64)>,
    /// Their leases.
    done_by: HashSet<String>,
    /// Items that somebody here is about to take.
    claimed: HashSet<String>,
    bytes: u64,
    changed_at_ms: u64,
}

struct KnownItem {
    number: u64,
    life: ItemLife,
    priority: i64,
    order: u64,
    bytes: u64,
}

impl KnownQueue {
    fn forget(&mut self, id: &str) {
        if let Some((token, ..)) = self.done.remove(id) {
            self.done_by.remove(&token);
        }
        if let Some(item) = self.items.remove(id) {
            self.bytes -= item.bytes;
            self.unlist(id, &item);
        }
    }

    fn unlist(&mut self, id: &str, item: &KnownItem) {
        match &item.life.state {
            ItemState::Ready => _ = self.ready.remove(&(Reverse(item.priority), item.order, id.to_owned())),
            ItemState::Delayed { until_ms } => _ = self.due.remove(&(*until_ms, id.to_owned())),
            ItemState::Leased { token, until_ms } => {
                self.due.remove(&(*until_ms, id.to_owned()));
                self.leases.remove(token);
            }
            ItemState::Dead => _ = self.dead.remove(id),
        }
    }

    fn list(&mut self, id: &str, item: KnownItem) {
        match &item.life.state {
            ItemState::Ready => _ = self.ready.insert((Reverse(item.priority), item.order, id.to_owned())),
            ItemState::Delayed { until_ms } => _ = self.due.insert((*until_ms, id.to_owned())),
            ItemState::Leased { token, until_ms } => {
                self.due.insert((*until_ms, id.to_owned()));
                self.leases.insert(token.clone(), id.to_owned());
            }
            ItemState::Dead => _ = self.dead.insert(id.to_owned()),
        }
        self.bytes += item.bytes;
        self.items.insert(id.to_owned(), item);
    }

    /// Lets time pass, here alone: the record says the same as long as nobody takes the item.
    fn tick(&mut self, now_ms: u64) {
        let due: Vec<String> =
            self.due.iter().take_while(|(due_ms, _)| *due_ms <= now_ms).map(|(_, id)| id.clone()).collect();
        for id in due {
            let Some(item) = self.items.remove(&id) else { continue };
            self.bytes -= item.bytes;
            self.unlist(&id, &item);
            let life = match lease::next(&item.life, &ItemEvent::Tick, now_ms) {
                Ok(NextLife::Is(life)) => life,
                _ => item.life.clone(),
            };
            self.list(&id, KnownItem { life, ..item });
        }
    }
}

impl QueueIndex {
    /// Notes a record that was read or written. An older one changes nothing.
    pub fn note(&mut self, queue: &str, id: &str, number: u64, record: &ItemRecord) {
        // What is gone makes no queue known.
        if record.state == RecordState::Gone && !self.queues.contains_key(queue) {
            return;
        }
        let known = self.queues.entry(queue.to_owned()).or_default();
        let last = known.items.get(id).map(|item| item.number).or(known.done.get(id).map(|done| done.2));
        if last.is_some_and(|last| last >= number) {
            return;
        }
        known.forget(id);
        known.changed_at_ms = known.changed_at_ms.max(record.put_at_ms);
        match (&record.state, record.life()) {
            (_, Some(life)) => {
                let (priority, order, bytes) = (record.priority, record.order.unwrap_or(number), record.bytes);
                known.list(id, KnownItem { number, life, priority, order, bytes });
            }
            (RecordState::Done { token, at_ms }, None) => {
                known.changed_at_ms = known.changed_at_ms.max(*at_ms);
                known.done_by.insert(token.clone());
                known.done.insert(id.to_owned(), (token.clone(), *at_ms, number));
            }
            (_, None) => (),
        }
    }

    /// Whether an item of this id is there, or was done.
    pub fn knows(&self, queue: &str, id: &str) -> bool {
        self.queues.get(queue).is_some_and(|known| known.items.contains_key(id) || known.done.contains_key(id))
    }

    /// The number of queues, and the items and bytes of one.
    pub fn size(&self, queue: &str) -> (u64, u64, u64) {
        let known = self.queues.get(queue);
        let (items, bytes) = known.map_or((0, 0), |known| (known.items.len() as u64, known.bytes));
        (self.queues.len() as u64, items, bytes)
    }

    /// Claims the first item that nobody here is about to take. The caller has to give it back.
    pub fn claim(&mut self, queue: &str, now_ms: u64) -> Option<String> {
        let known = self.queues.get_mut(queue)?;
        known.tick(now_ms);
        let first = known.ready.iter().map(|(_, _, id)| id).find(|id| !known.claimed.contains(*id))?.clone();
        known.claimed.insert(first.clone());
        Some(first)
    }

    pub fn give_back(&mut self, queue: &str, id: &str) {
        if let Some(known) = self.queues.get_mut(queue) {
            known.claimed.remove(id);
        }
    }

    /// Items whose last lease ran out: they are dead, and no record says so yet.
    pub fn died(&mut self, queue: &str, now_ms: u64) -> Vec<String> {
        let Some(known) = self.queues.get_mut(queue) else { return Vec::new() };
        let over = known.due.iter().take_while(|(due_ms, _)| *due_ms <= now_ms).filter(|(_, id)| {
            known.items.get(id).is_some_and(|item| {
                matches!(item.life.state, ItemState::Leased { .. }) && item.life.attempt >= item.life.max_attempts
            })
        });
        over.map(|(_, id)| id.clone()).collect()
    }

    /// Whether there is more to take.
    pub fn has_ready(&self, queue: &str) -> bool {
        self.queues.get(queue).is_some_and(|known| known.ready.len() > known.claimed.len())
    }

    pub fn due(&self, queue: &str) -> Option<u64> {
        self.queues.get(queue)?.due.first().map(|(due_ms, _)| *due_ms)
    }

    /// The item of a lease.
    pub fn leased(&self, queue: &str, token: &str) -> Option<String> {
        self.queues.get(queue)?.leases.get(token).cloned()
    }

    /// Whether an item was done by this lease.
    pub fn was_done_by(&self, queue: &str, token: &str) -> bool {
        self.queues.get(queue).is_some_and(|known| known.done_by.contains(token))
    }

    pub fn status(&self, queue: &str, now_ms: u64) -> Option<QueueStatus> {
        let known = self.queues.get(queue)?;
        let mut status = QueueStatus { queue: queue.to_owned(), bytes: known.bytes, ..QueueStatus::default() };
        status.ready = known.ready.len() as u64;
        status.dead = known.dead.len() as u64;
        for (due_ms, id) in &known.due {
            let Some(item) = known.items.get(id) else { continue };
            let is_leased = matches!(item.life.state, ItemState::Leased { .. });
            let count = match (*due_ms > now_ms, is_leased) {
                (true, true) => &mut status.leased,
                (true, false) => &mut status.delayed,
                (false, true) if item.life.attempt >= item.life.max_attempts => &mut status.dead,
                (false, _) => &mut status.ready,
            };
            *count += 1;
        }
        status.next_due_ms = known.due.iter().map(|(due_ms, _)| *due_ms).find(|due_ms| *due_ms > now_ms);
        Some(status)
    }

    pub fn names(&self) -> Vec<String> {
        self.queues.keys().cloned().collect()
    }

    /// The ids of dead items, sorted.
    pub fn dead(&self, queue: &str, most: usize) -> Vec<String> {
        self.queues.get(queue).map(|known| known.dead.iter().take(most).cloned().collect()).unwrap_or_default()
    }

    /// The items that were done before this time.
    pub fn done_before(&self, before_ms: u64) -> Vec<(String, String)> {
        let of = |(queue, known): (&String, &KnownQueue)| {
            let old = known.done.iter().filter(|(_, (_, at_ms, _))| *at_ms < before_ms);
            old.map(|(id, _)| (queue.clone(), id.clone())).collect::<Vec<_>>()
        };
        self.queues.iter().flat_map(of).collect()
    }

    /// Forgets an item that is done.
    pub fn forget_done(&mut self, queue: &str, id: &str) {
        if let Some(known) = self.queues.get_mut(queue)
            && let Some((token, ..)) = known.done.remove(id)
        {
            known.done_by.remove(&token);
        }
    }

    /// Forgets queues that have been empty since this time.
    pub fn forget_empty(&mut self, before_ms: u64) {
        let is_used =
            |known: &KnownQueue| !known.items.is_empty() || !known.done.is_empty() || known.changed_at_ms >= before_ms;
        self.queues.retain(|_, known| is_used(known));
    }
}
