//! Queues in the database of the host: the default backend. The rules are those of [`lease`](super::lease); this file reads
//! a row, asks them, and writes the row. What it does in a transaction (`…_in`) a call does in its own.

use std::sync::Arc;

use async_trait::async_trait;

use super::backend::{DeadItem, LeasedItem, NewItem, Queue, QueueStatus, TakeRequest, Taken};
use super::lease::{self, ItemEvent, ItemLife, ItemState, NextLife};
use crate::state::quota::{QuotaKind, Quotas};
use acheron_base::{Error, Result, quoted};
use acheron_store::{Connection, OptionalExtension, Row, Sql, Store, Tx, json, params};

/// The most queues of a host.
const MOST_QUEUES: u64 = 10_000;
/// Items whose delay or lease has ended that one `take` looks at, and rows that are forgotten in one transaction.
const BATCH: usize = 256;

const LIFE: &str = "number, queue, id, state, due_ms, attempt, max_attempts, lease, bytes";

pub struct SqliteQueue {
    store: Store,
    quotas: Arc<Quotas>,
}

impl SqliteQueue {
    pub fn new(store: Store, quotas: Arc<Quotas>) -> SqliteQueue {
        SqliteQueue { store, quotas }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// [`Queue::put`] as part of a transaction.
    pub fn put_in(&self, tx: &Tx<'_>, item: &NewItem) -> Result<bool> {
        put(tx, &self.quotas, item)
    }
}

/// The row of an item, as far as its life goes.
struct ItemRow {
    number: i64,
    queue: String,
    id: String,
    life: ItemLife,
    bytes: u64,
}

fn read(row: &Row<'_>) -> Sql<ItemRow> {
    let (state, until_ms, token): (String, u64, Option<String>) = (row.get(3)?, row.get(4)?, row.get(7)?);
    let state = match (state.as_str(), token) {
        ("leased", Some(token)) => ItemState::Leased { token, until_ms },
        ("delayed", _) => ItemState::Delayed { until_ms },
        ("dead", _) => ItemState::Dead,
        _ => ItemState::Ready,
    };
    let life = ItemLife { state, attempt: row.get(5)?, max_attempts: row.get(6)? };
    Ok(ItemRow { number: row.get(0)?, queue: row.get(1)?, id: row.get(2)?, life, bytes: row.get(8)? })
}

/// The columns of a state: its name, its time and its lease.
fn columns(state: &ItemState, now_ms: u64) -> (&'static str, u64, Option<&str>) {
    match state {
        ItemState::Ready => ("ready", 0, None),
        ItemState::Delayed { until_ms } => ("delayed", *until_ms, None),
        ItemState::Leased { token, until_ms } => ("leased", *until_ms, Some(token)),
        ItemState::Dead => ("dead", now_ms, None),
    }
}

fn put(tx: &Tx<'_>, quotas: &Quotas, item: &NewItem) -> Result<bool> {
    let NewItem { queue, id, body, priority, not_before_ms, max_attempts, by, at_ms } = item;
    let mut known = tx.prepare_cached(
        "SELECT 1 FROM queue_items WHERE queue = ?1 AND id = ?2 UNION ALL SELECT 1 FROM queue_done WHERE queue = ?1 AND id = ?2",
    )?;
    if known.exists([queue, id])? {
        return Ok(false);
    }
    let body = body.to_string();
    room(tx, quotas, queue, body.len() as u64)?;
    let life = ItemLife::new(*max_attempts, *not_before_ms, *at_ms);
    let (state, due_ms, _) = columns(&life.state, *at_ms);
    tx.prepare_cached(
        "INSERT INTO queue_items (queue, id, state, priority, due_ms, attempt, max_attempts, put_by, put_at_ms, bytes, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![queue, id, state, priority, due_ms, life.max_attempts, by, at_ms, body.len() as u64, body])?;
    tx.prepare_cached(
        "INSERT INTO queues (queue, items, bytes, changed_at_ms) VALUES (?1, 1, ?2, ?3) \
         ON CONFLICT (queue) DO UPDATE SET items = items + 1, bytes = bytes + ?2, changed_at_ms = ?3",
    )?
    .execute(params![queue, body.len() as u64, at_ms])?;
    Ok(true)
}

fn room(tx: &Tx<'_>, quotas: &Quotas, queue: &str, bytes: u64) -> Result<()> {
    let mut select = tx.prepare_cached("SELECT items, bytes FROM queues WHERE queue = ?1")?;
    let found: Option<(u64, u64)> = select.query_row([queue], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((items, used)) = found else {
        let queues: u64 = tx.prepare_cached("SELECT count(*) FROM queues")?.query_row([], |row| row.get(0))?;
        return match queues < MOST_QUEUES {
            true => quotas.check(QuotaKind::Queue, 0, bytes),
            false => Err(Error::queue_full(format!("there are {queues} queues already; use one of them"))),
        };
    };
    quotas.check(QuotaKind::QueueItems, items, 1)?;
    quotas.check(QuotaKind::Queue, used, bytes)
}

/// Writes what became of an item.
fn keep(tx: &Tx<'_>, row: &ItemRow, next: &NextLife, error: Option<&str>, now_ms: u64) -> Result<()> {
    match next {
        NextLife::Is(life) if *life == row.life => Ok(()),
        NextLife::Is(life) => {
            let (state, due_ms, lease) = columns(&life.state, now_ms);
            let mut update = tx.prepare_cached(
                "UPDATE queue_items SET state = ?2, due_ms = ?3, lease = ?4, attempt = ?5, error = coalesce(?6, error) WHERE number = ?1",
            )?;
            update.execute(params![row.number, state, due_ms, lease, life.attempt, error])?;
            Ok(())
        }
        NextLife::Gone => {
            tx.prepare_cached("DELETE FROM queue_items WHERE number = ?1")?.execute([row.number])?;
            tx.prepare_cached(
                "UPDATE queues SET items = items - 1, bytes = bytes - ?2, changed_at_ms = ?3 WHERE queue = ?1",
            )?
            .execute(params![row.queue, row.bytes, now_ms])?;
            Ok(())
        }
    }
}

/// Lets time pass: ends delays and leases that are over.
fn tick(tx: &Tx<'_>, queue: &str, now_ms: u64) -> Result<()> {
    let sql = format!(
        "SELECT {LIFE} FROM queue_items WHERE queue = ?1 AND state IN ('delayed', 'leased') AND due_ms <= ?2 \
         ORDER BY due_ms LIMIT ?3"
    );
    let due: Vec<ItemRow> =
        tx.prepare_cached(&sql)?.query_map(params![queue, now_ms, BATCH as i64], read)?.collect::<Sql<_>>()?;
    for row in due {
        let next = lease::next(&row.life, &ItemEvent::Tick, now_ms)?;
        let error = match (&row.life.state, &next) {
            (ItemState::Leased { .. }, NextLife::Is(_)) => Some("the time of its lease was up"),
            _ => None,
        };
        keep(tx, &row, &next, error, now_ms)?;
    }
    Ok(())
}

/// [`Queue::take`] as part of a transaction.
pub fn take_in(tx: &Tx<'_>, wanted: &TakeRequest) -> Result<Taken> {
    let TakeRequest { queue, token, lease_ms, at_ms, .. } = wanted;
    tick(tx, queue, *at_ms)?;
    let sql = format!(
        "SELECT {LIFE}, body, priority FROM queue_items WHERE queue = ?1 AND state = 'ready' \
         ORDER BY priority DESC, number LIMIT 2"
    );
    let first: Vec<(ItemRow, String, i64)> = tx
        .prepare_cached(&sql)?
        .query_map([queue], |row| Ok((read(row)?, row.get(9)?, row.get(10)?)))?
        .collect::<Sql<_>>()?;
    let more = first.len() > 1;
    let Some((row, body, priority)) = first.into_iter().next() else {
        return Ok(Taken::Empty { due_ms: due(tx, queue)? });
    };
    let next = lease::next(&row.life, &ItemEvent::Take { token: token.clone(), lease_ms: *lease_ms }, *at_ms)?;
    keep(tx, &row, &next, None, *at_ms)?;
    let (attempt, lease_until_ms) = match &next {
        NextLife::Is(ItemLife { attempt, state: ItemState::Leased { until_ms, .. }, .. }) => (*attempt, *until_ms),
        _ => return Err(Error::internal("an item that was taken has no lease")),
    };
    let (queue, id, lease, body) = (row.queue, row.id, token.clone(), json::read(&body)?);
    let item = LeasedItem { queue, id, lease, body, attempt, priority, lease_until_ms };
    Ok(Taken::Leased { item, more })
}

/// When a delay or a lease of a queue ends next.
pub fn due(conn: &Connection, queue: &str) -> Result<Option<u64>> {
    let sql = "SELECT min(due_ms) FROM queue_items WHERE queue = ?1 AND state IN ('delayed', 'leased')";
    Ok(conn.prepare_cached(sql)?.query_row([queue], |row| row.get(0))?)
}

/// [`Queue::settle`] as part of a transaction. Returns the time at which the item may be taken again, if it may.
pub fn settle_in(tx: &Tx<'_>, event: &ItemEvent, error: Option<&str>, now_ms: u64) -> Result<Option<u64>> {
    let (ItemEvent::Done { token } | ItemEvent::Fail { token, .. } | ItemEvent::Extend { token, .. }) = event else {
        return Err(Error::internal("only a lease is settled"));
    };
    let sql = format!("SELECT {LIFE} FROM queue_items WHERE lease = ?1");
    let Some(row) = tx.prepare_cached(&sql)?.query_row([token], read).optional()? else {
        let mut done = tx.prepare_cached("SELECT 1 FROM queue_done WHERE lease = ?1")?;
        return match matches!(event, ItemEvent::Done { .. }) && done.exists([token])? {
            true => Ok(None),
            false => Err(lease::lost()),
        };
    };
    let next = lease::next(&row.life, event, now_ms)?;
    keep(tx, &row, &next, error, now_ms)?;
    match &next {
        NextLife::Gone => {
            tx.prepare_cached("INSERT OR REPLACE INTO queue_done (queue, id, lease, at_ms) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![row.queue, row.id, token, now_ms])?;
            Ok(None)
        }
        NextLife::Is(life) => Ok(match life.state {
            ItemState::Delayed { until_ms } | ItemState::Leased { until_ms, .. } => Some(until_ms),
            ItemState::Ready => Some(now_ms),
            ItemState::Dead => None,
        }),
    }
}

/// [`Queue::dead_item`] as part of a transaction.
pub fn dead_item_in(tx: &Tx<'_>, queue: &str, id: &str, event: &ItemEvent, now_ms: u64) -> Result<()> {
    let sql = format!("SELECT {LIFE} FROM queue_items WHERE queue = ?1 AND id = ?2");
    let found = tx.prepare_cached(&sql)?.query_row([queue, id], read).optional()?;
    let row = found.ok_or_else(|| Error::not_found(format!("there is no dead item {} in {queue}", quoted(id))))?;
    keep(tx, &row, &lease::next(&row.life, event, now_ms)?, None, now_ms)
}

pub fn names(conn: &Connection) -> Result<Vec<String>> {
    let mut select = conn.prepare_cached("SELECT queue FROM queues ORDER BY queue")?;
    Ok(select.query_map([], |row| row.get(0))?.collect::<Sql<_>>()?)
}

pub fn has(conn: &Connection, queue: &str) -> Result<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM queues WHERE queue = ?1")?.exists([queue])?)
}

fn status(conn: &Connection, queue: &str, now_ms: u64) -> Result<Option<QueueStatus>> {
    let mut select = conn.prepare_cached("SELECT bytes FROM queues WHERE queue = ?1")?;
    let Some(bytes) = select.query_row([queue], |row| row.get(0)).optional()? else { return Ok(None) };
    // Each condition is that of an index, which has what is counted.
    let count = |condition: &str| -> Result<u64> {
        let sql = format!("SELECT count(*) FROM queue_items WHERE queue = ?1 AND {condition}");
        Ok(conn.prepare_cached(&sql)?.query_row([queue], |row| row.get(0))?)
    };
    let over = "state IN ('delayed', 'leased')";
    let sql = format!(
        "SELECT count(*) FILTER (WHERE state = 'delayed' AND due_ms > ?2), count(*) FILTER (WHERE state = 'leased' AND due_ms > ?2), \
         count(*) FILTER (WHERE due_ms <= ?2 AND (state = 'delayed' OR attempt < max_attempts)), \
         count(*) FILTER (WHERE due_ms <= ?2 AND state = 'leased' AND attempt >= max_attempts) \
         FROM queue_items WHERE queue = ?1 AND {over}"
    );
    let (delayed, leased, freed, died): (u64, u64, u64, u64) = conn
        .prepare_cached(&sql)?
        .query_row(params![queue, now_ms], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    Ok(Some(QueueStatus {
        queue: queue.to_owned(),
        ready: count("state = 'ready'")? + freed,
        delayed,
        leased,
        dead: count("state = 'dead'")? + died,
        bytes,
        next_due_ms: due(conn, queue)?.filter(|due_ms| *due_ms > now_ms),
    }))
}

const DEAD: &str = "queue, id, body, attempt, put_by, put_at_ms, due_ms, error";

fn read_dead(row: &Row<'_>) -> Sql<(String, DeadItem)> {
    let item = DeadItem {
        queue: row.get(0)?,
        id: row.get(1)?,
        body: serde_json::Value::Null,
        attempts: row.get(3)?,
        put_by: row.get(4)?,
        put_at_ms: row.get(5)?,
        dead_at_ms: row.get(6)?,
        error: row.get(7)?,
    };
    Ok((row.get(2)?, item))
}

fn with_body((body, item): (String, DeadItem)) -> Result<DeadItem> {
    Ok(DeadItem { body: json::read(&body)?, ..item })
}

/// The ids of the dead items of a queue, sorted; at most `most`.
pub fn dead_ids(conn: &Connection, queue: &str, most: usize) -> Result<Vec<String>> {
    let sql = "SELECT id FROM queue_items WHERE queue = ?1 AND state = 'dead' ORDER BY id LIMIT ?2";
    let mut select = conn.prepare_cached(sql)?;
    Ok(select.query_map(params![queue, most.min(i64::MAX as usize) as i64], |row| row.get(0))?.collect::<Sql<_>>()?)
}

/// One dead item.
pub fn dead_item(conn: &Connection, queue: &str, id: &str) -> Result<Option<DeadItem>> {
    let sql = format!("SELECT {DEAD} FROM queue_items WHERE queue = ?1 AND id = ?2 AND state = 'dead'");
    conn.prepare_cached(&sql)?.query_row([queue, id], read_dead).optional()?.map(with_body).transpose()
}

/// Takes the name of an agent out of the items that it put. They are work for others, who keep them.
pub fn purge(tx: &Tx<'_>, principal: &str) -> Result<()> {
    tx.execute("UPDATE queue_items SET put_by = '' WHERE put_by = ?1", [principal])?;
    Ok(())
}

#[async_trait]
impl Queue for SqliteQueue {
    fn describe(&self) -> String {
        "sqlite".to_owned()
    }

    async fn put(&self, item: NewItem) -> Result<bool> {
        let quotas = self.quotas.clone();
        self.store.write(move |tx| put(tx, &quotas, &item)).await
    }

    async fn take(&self, wanted: TakeRequest) -> Result<Taken> {
        self.store.write(move |tx| take_in(tx, &wanted)).await
    }

    async fn settle(&self, event: ItemEvent, error: Option<String>, now_ms: u64) -> Result<()> {
        self.store.write(move |tx| settle_in(tx, &event, error.as_deref(), now_ms).map(drop)).await
    }

    async fn dead_item(&self, queue: &str, id: &str, event: ItemEvent, now_ms: u64) -> Result<()> {
        let (queue, id) = (queue.to_owned(), id.to_owned());
        self.store.write(move |tx| dead_item_in(tx, &queue, &id, &event, now_ms)).await
    }

    async fn status(&self, queue: &str, now_ms: u64) -> Result<Option<QueueStatus>> {
        let queue = queue.to_owned();
        self.store.read(move |conn| status(conn, &queue, now_ms)).await
    }

    async fn queues(&self) -> Result<Vec<String>> {
        self.store.read(names).await
    }

    async fn dead(&self, queue: &str, most: usize) -> Result<Vec<DeadItem>> {
        let queue = queue.to_owned();
        let dead = move |conn: &Connection| {
            let sql =
                format!("SELECT {DEAD} FROM queue_items WHERE queue = ?1 AND state = 'dead' ORDER BY id LIMIT ?2");
            let found: Vec<_> =
                conn.prepare_cached(&sql)?.query_map(params![queue, most as i64], read_dead)?.collect::<Sql<_>>()?;
            found.into_iter().map(with_body).collect()
        };
        self.store.read(dead).await
    }

    async fn forget(&self, before_ms: u64) -> Result<()> {
        loop {
            let forgotten = self.store.write(move |tx| {
                let sql = "DELETE FROM queue_done WHERE (queue, id) IN \
                     (SELECT queue, id FROM queue_done WHERE at_ms < ?1 LIMIT ?2)";
                let forgotten = tx.prepare_cached(sql)?.execute(params![before_ms, BATCH as i64])?;
                tx.prepare_cached("DELETE FROM queues WHERE items = 0 AND changed_at_ms < ?1")?.execute([before_ms])?;
                Ok(forgotten)
            });
            if forgotten.await? < BATCH {
                return Ok(());
            }
        }
    }
}
