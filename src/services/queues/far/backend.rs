//! Queues of the fabric behind the trait of queues. Every change is written as the successor of the record that it was decided
//! from; if no answer comes, the same record is written again, and known by its mark.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;

use super::FarQueue;
use super::index::QueueIndex;
use super::record::{ItemRecord, RecordState};
use crate::services::queues::backend::{DeadItem, LeasedItem, NewItem, Queue, QueueStatus, TakeRequest, Taken};
use crate::services::queues::lease::{self, ItemEvent, ItemLife, ItemState, NextLife};
use crate::services::queues::names::queue_of;
use crate::state::quota::{QuotaKind, Quotas};
use acheron_base::{Error, Ids, Result, quoted};
use acheron_fabric::{streams, subjects};
use acheron_nats::{Condition, Link};

/// How long a change is tried before its outcome is unknown.
const SURELY: Duration = Duration::from_secs(20);
/// How long the server keeps the record of an item that is forgotten.
const GONE: Duration = Duration::from_secs(1);
/// The most queues of a fabric, and the most records that one call reads in vain because others are faster.
const MOST_QUEUES: u64 = 10_000;
const TRIES: usize = 1000;

pub struct FabricQueue {
    link: Link,
    quotas: Arc<Quotas>,
    ids: Ids,
    index: Mutex<QueueIndex>,
}

/// An item that this host is about to take.
struct Claim<'a> {
    queue: &'a FabricQueue,
    name: &'a str,
    id: String,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.queue.index.lock().give_back(self.name, &self.id);
    }
}

impl FabricQueue {
    pub fn new(link: Link, quotas: Arc<Quotas>, ids: Ids) -> FabricQueue {
        FabricQueue { link, quotas, ids, index: Mutex::default() }
    }

    /// Takes note of what has changed since the last time.
    async fn refresh(&self) -> Result<()> {
        let from = self.index.lock().next;
        let records = self.link.records(streams::QUEUE, subjects::QUEUE_ITEMS, from).await?;
        let mut index = self.index.lock();
        for found in records {
            index.next = index.next.max(found.number + 1);
            let Some((queue, id)) = subjects::read_queue_item(&found.subject) else { continue };
            match ItemRecord::read(&found.body) {
                Ok(record) => index.note(queue, &id, found.number, &record),
                Err(error) => tracing::warn!(%error, subject = found.subject, "skipped"),
            }
        }
        Ok(())
    }

    /// An item as the server has it, if it has it.
    async fn record(&self, queue: &str, id: &str) -> Result<Option<(u64, ItemRecord)>> {
        let Some(found) = self.link.record(streams::QUEUE, &subjects::queue_item(queue, id)).await? else {
            return Ok(None);
        };
        let record = ItemRecord::read(&found.body)?;
        self.index.lock().note(queue, id, found.number, &record);
        Ok(Some((found.number, record)))
    }

    /// Writes a record as the successor of the one with this number. False if somebody was faster.
    async fn write(&self, queue: &str, id: &str, last: u64, record: ItemRecord) -> Result<bool> {
        let record = ItemRecord { written: self.ids.id("record"), ..record };
        let body = serde_json::to_vec(&record).map_err(|err| Error::internal(err.to_string()))?;
        let condition = match record.state {
            RecordState::Gone => Condition::after(last).for_a_while(GONE),
            _ => Condition::after(last),
        };
        let condition = Condition { id: Some(record.written.clone()), ..condition };
        let subject = subjects::queue_item(queue, id);
        match self.link.store_surely(&subject, Bytes::from(body), &condition, SURELY).await {
            Ok(at) => {
                self.index.lock().note(queue, id, at.number, &record);
                Ok(true)
            }
            // Perhaps by this very record, whose answer was lost.
            Err(fault) if fault.is_conflict() => {
                Ok(self.record(queue, id).await?.is_some_and(|(_, there)| there.written == record.written))
            }
            Err(fault) => Err(fault.into()),
        }
    }

    fn room(&self, queue: &str, bytes: u64) -> Result<()> {
        let (queues, items, used) = self.index.lock().size(queue);
        if queues >= MOST_QUEUES && items == 0 {
            return Err(Error::queue_full(format!("there are {queues} queues already; use one of them")));
        }
        self.quotas.check(QuotaKind::QueueItems, items, 1)?;
        self.quotas.check(QuotaKind::Queue, used, bytes)
    }

    /// Says of items whose last lease ran out that they are dead.
    async fn bury(&self, queue: &str, now_ms: u64) -> Result<()> {
        let died = self.index.lock().died(queue, now_ms);
        for id in died {
            let Some((number, record)) = self.record(queue, &id).await? else { continue };
            let Some(life) = record.life() else { continue };
            if let NextLife::Is(next) = lease::next(&life, &ItemEvent::Tick, now_ms)?
                && next != life
            {
                let error = Some("the time of its lease was up".to_owned());
                self.write(queue, &id, number, record.living(&next, error, now_ms, number)).await?;
            }
        }
        Ok(())
    }

    /// Leases one item, if it can still be taken.
    async fn try_take(&self, claim: &Claim<'_>, wanted: &TakeRequest) -> Result<Option<LeasedItem>> {
        let TakeRequest { queue, token, lease_ms, at_ms, .. } = wanted;
        let Some((number, record)) = self.record(queue, &claim.id).await? else { return Ok(None) };
        let Some(life) = record.life() else { return Ok(None) };
        let NextLife::Is(life) = lease::next(&life, &ItemEvent::Tick, *at_ms)? else { return Ok(None) };
        if life.state != ItemState::Ready {
            return Ok(None);
        }
        let taken = lease::next(&life, &ItemEvent::Take { token: token.clone(), lease_ms: *lease_ms }, *at_ms)?;
        let NextLife::Is(ItemLife { state: ItemState::Leased { until_ms, .. }, attempt, .. }) = &taken else {
            return Err(Error::internal("an item that was taken has no lease"));
        };
        let item = LeasedItem {
            queue: queue.clone(),
            id: claim.id.clone(),
            lease: token.clone(),
            body: record.body.clone(),
            attempt: *attempt,
            priority: record.priority,
            lease_until_ms: *until_ms,
        };
        let NextLife::Is(taken) = taken else { return Ok(None) };
        let next = record.living(&taken, None, *at_ms, number);
        Ok(self.write(queue, &claim.id, number, next).await?.then_some(item))
    }

    async fn settle_to(&self, event: &ItemEvent, error: Option<String>, now_ms: u64) -> Result<Option<u64>> {
        let (ItemEvent::Done { token } | ItemEvent::Fail { token, .. } | ItemEvent::Extend { token, .. }) = event
        else {
            return Err(Error::internal("only a lease is settled"));
        };
        let queue = queue_of(token)?;
        self.refresh().await?;
        let is_done = matches!(event, ItemEvent::Done { .. });
        for _ in 0..TRIES {
            let id = self.index.lock().leased(queue, token);
            let Some(id) = id else {
                return match is_done && self.index.lock().was_done_by(queue, token) {
                    true => Ok(None),
                    false => Err(lease::lost()),
                };
            };
            let Some((number, record)) = self.record(queue, &id).await? else { return Err(lease::lost()) };
            let Some(life) = record.life() else { continue };
            let next = match lease::next(&life, event, now_ms)? {
                NextLife::Gone => record.ended(RecordState::Done { token: token.clone(), at_ms: now_ms }),
                NextLife::Is(life) => record.living(&life, error.clone(), now_ms, number),
            };
            let due_ms = match &next.state {
                RecordState::Delayed { until_ms } | RecordState::Leased { until_ms, .. } => Some(*until_ms),
                RecordState::Ready => Some(now_ms),
                _ => None,
            };
            if self.write(queue, &id, number, next).await? {
                return Ok(due_ms);
            }
        }
        Err(Error::busy("others change this item all the time"))
    }

    async fn one_dead(&self, queue: &str, id: &str) -> Result<Option<DeadItem>> {
        Ok(self.record(queue, id).await?.and_then(|(_, record)| record.dead(queue, id)))
    }
}

#[async_trait]
impl Queue for FabricQueue {
    fn describe(&self) -> String {
        "jetstream".to_owned()
    }

    async fn put(&self, item: NewItem) -> Result<bool> {
        self.refresh().await?;
        let (queue, id) = (item.queue.as_str(), item.id.as_str());
        if self.index.lock().knows(queue, id) {
            return Ok(false);
        }
        let record = ItemRecord::new(&item, String::new());
        self.room(queue, record.bytes)?;
        if self.write(queue, id, 0, record.clone()).await? {
            return Ok(true);
        }
        match self.record(queue, id).await? {
            // One that is forgotten leaves its record for a moment.
            Some((number, there)) if there.state == RecordState::Gone => self.write(queue, id, number, record).await,
            _ => Ok(false),
        }
    }

    async fn take(&self, wanted: TakeRequest) -> Result<Taken> {
        for _ in 0..TRIES {
            self.refresh().await?;
            self.bury(&wanted.queue, wanted.at_ms).await?;
            let claimed = self.index.lock().claim(&wanted.queue, wanted.at_ms);
            let Some(id) = claimed else {
                return Ok(Taken::Empty { due_ms: self.index.lock().due(&wanted.queue) });
            };
            let claim = Claim { queue: self, name: &wanted.queue, id };
            if let Some(item) = self.try_take(&claim, &wanted).await? {
                drop(claim);
                return Ok(Taken::Leased { item, more: self.index.lock().has_ready(&wanted.queue) });
            }
        }
        Err(Error::busy("others were faster every time; try again"))
    }

    async fn settle(&self, event: ItemEvent, error: Option<String>, now_ms: u64) -> Result<()> {
        self.settle_to(&event, error, now_ms).await.map(drop)
    }

    async fn dead_item(&self, queue: &str, id: &str, event: ItemEvent, now_ms: u64) -> Result<()> {
        for _ in 0..TRIES {
            let found = self.record(queue, id).await?;
            let living = found.and_then(|(number, record)| record.life().map(|life| (number, record, life)));
            let Some((number, record, life)) = living else {
                return Err(Error::not_found(format!("there is no dead item {} in {queue}", quoted(id))));
            };
            let next = match lease::next(&life, &event, now_ms)? {
                NextLife::Gone => record.ended(RecordState::Gone),
                NextLife::Is(life) => record.living(&life, None, now_ms, number),
            };
            if self.write(queue, id, number, next).await? {
                return Ok(());
            }
        }
        Err(Error::busy("others change this item all the time"))
    }

    async fn status(&self, queue: &str, now_ms: u64) -> Result<Option<QueueStatus>> {
        self.refresh().await?;
        Ok(self.index.lock().status(queue, now_ms))
    }

    async fn queues(&self) -> Result<Vec<String>> {
        self.refresh().await?;
        Ok(self.index.lock().names())
    }

    async fn dead(&self, queue: &str, most: usize) -> Result<Vec<DeadItem>> {
        self.refresh().await?;
        let ids = self.index.lock().dead(queue, most);
        let mut dead = Vec::new();
        for id in ids {
            dead.extend(self.one_dead(queue, &id).await?);
        }
        Ok(dead)
    }

    async fn forget(&self, before_ms: u64) -> Result<()> {
        self.refresh().await?;
        let old = self.index.lock().done_before(before_ms);
        for (queue, id) in old {
            if let Some((number, record)) = self.record(&queue, &id).await?
                && matches!(record.state, RecordState::Done { at_ms, .. } if at_ms < before_ms)
            {
                self.write(&queue, &id, number, record.ended(RecordState::Gone)).await?;
            }
            self.index.lock().forget_done(&queue, &id);
        }
        self.index.lock().forget_empty(before_ms);
        Ok(())
    }
}

#[async_trait]
impl FarQueue for FabricQueue {
    async fn settle_due(&self, event: &ItemEvent, error: Option<String>, now_ms: u64) -> Result<Option<u64>> {
        self.settle_to(event, error, now_ms).await
    }

    async fn dead_one(&self, queue: &str, id: &str) -> Result<Option<DeadItem>> {
        self.one_dead(queue, id).await
    }

    fn known_dead(&self, queue: &str, most: usize) -> Vec<String> {
        self.index.lock().dead(queue, most)
    }

    async fn hint(&self, queue: &str) {
        let said = Bytes::from(format!("queue {queue}"));
        self.link.tell(subjects::hints_from(self.link.node()), said).await;
    }
}
