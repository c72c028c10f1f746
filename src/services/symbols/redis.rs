//! Documents in Redis, laid out so that the origin's programs can read them: `symbol:<id>` holds the JSON, `domains` is
//! a set.
//!
//! Beside those: `ids:<kind>`, `ids:<kind>:domain:<d>` and `ids:<kind>:tag:<t>` are sorted sets of ids (nothing scans
//! KEYS), `ledger:<kind>:<id>` is a list of changes, and `changed` is a list of what changed. A change is a WATCH and one
//! MULTI/EXEC. While the server is away every call is `unavailable`; when it is back the
//! next call finds it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, cmd, pipe};
use serde_json::Value;
use tokio::sync::Mutex;

use super::backend::{Backend, Filter, conflict};
use super::change::{DocumentKind, DocumentRecord, Edit, LedgerAction, LedgerEntry, places};
use super::durability::RedisDurability;
use acheron_base::{Error, Result};

/// How long to wait for the server before calling it unavailable.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a transaction is tried when others write at the same time.
const TRIES: usize = 16;

/// A Redis server.
pub struct Redis {
    client: Client,
    at: String,
    reading: Mutex<Option<MultiplexedConnection>>,
    /// WATCH belongs to a connection, so changes have one of their own and take turns on it.
    writing: Mutex<Option<MultiplexedConnection>>,
}

impl Redis {
    /// Takes an address such as `redis://127.0.0.1:6379/0`. Connects when first asked for something.
    pub fn new(address: &str) -> Result<Redis> {
        let client = Client::open(address)
            .map_err(|fault| Error::invalid(format!("the address of redis is not understood: {fault}")))?;
        // Not the address itself: it may hold a password.
        let at = client.get_connection_info().addr().to_string();
        Ok(Redis { client, at, reading: Mutex::default(), writing: Mutex::default() })
    }

    async fn connect(&self) -> Result<MultiplexedConnection> {
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(Some(PATIENCE));
        self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(|fault| self.outage(&fault))
    }

    fn outage(&self, fault: &RedisError) -> Error {
        Error::unavailable(format!("redis at {} does not answer: {fault}", self.at))
    }

    /// Sorts a fault: what the server said is ours to report, anything else is an outage.
    fn fault(&self, fault: &RedisError) -> Error {
        match fault.kind() {
            redis::ErrorKind::Server(redis::ServerErrorKind::ResponseError)
            | redis::ErrorKind::UnexpectedReturnType => Error::failed(format!("redis at {} refused: {fault}", self.at)),
            _ => self.outage(fault),
        }
    }

    /// Runs commands that only read, in one round trip.
    ///
    /// A connection that was kept may have died since: its fault is tried once more on a new one.
    pub(super) async fn ask<T: redis::FromRedisValue>(&self, question: &Pipeline) -> Result<T> {
        let kept = self.reading.lock().await.clone();
        if let Some(mut connection) = kept
            && let Ok(answer) = question.query_async(&mut connection).await
        {
            return Ok(answer);
        }
        self.reading.lock().await.take();
        let mut connection = self.connect().await?;
        let answer = question.query_async(&mut connection).await.map_err(|fault| self.fault(&fault))?;
        *self.reading.lock().await = Some(connection);
        Ok(answer)
    }

    /// A connection for a change: the kept one if it still answers, or a new one.
    async fn writer(&self, kept: Option<MultiplexedConnection>) -> Result<MultiplexedConnection> {
        if let Some(mut connection) = kept
            && cmd("UNWATCH").query_async::<()>(&mut connection).await.is_ok()
        {
            return Ok(connection);
        }
        self.connect().await
    }

    async fn one<T: redis::FromRedisValue>(&self, question: Cmd) -> Result<T> {
        let (answer,): (T,) = self.ask(pipe().add_command(question)).await?;
        Ok(answer)
    }

    /// One try of a transaction. `None` when another client changed a watched key meanwhile.
    async fn attempt(&self, connection: &mut MultiplexedConnection, edits: &[Edit]) -> Result<Option<()>> {
        let fault = |fault: RedisError| self.fault(&fault);
        let keys: BTreeSet<String> = edits.iter().map(|edit| key(&edit.change)).collect();
        cmd("WATCH").arg(&keys).query_async::<()>(connection).await.map_err(fault)?;
        let bodies: Vec<Option<String>> = cmd("MGET").arg(&keys).query_async(connection).await.map_err(fault)?;
        let mut now: BTreeMap<String, Option<Value>> =
            keys.into_iter().zip(bodies.into_iter().map(|body| body.and_then(|body| parse(&body)))).collect();
        let mut work = pipe();
        work.atomic();
        let mut moves: BTreeMap<String, i64> = BTreeMap::new();
        for edit in edits {
            let slot = now.entry(key(&edit.change)).or_default();
            let found = slot.as_ref().map_or(0, super::change::version_of);
            if edit.change.act != LedgerAction::Feedback {
                if found != edit.expected {
                    cmd("UNWATCH").query_async::<()>(connection).await.map_err(fault)?;
                    return Err(conflict(edit, found));
                }
                replace(&mut work, &edit.change, slot.as_ref(), &mut moves);
                slot.clone_from(&edit.change.body);
            }
            log(&mut work, &edit.change);
        }
        for (domain, by) in moves {
            if by >= 0 {
                work.sadd("domains", domain);
                continue;
            }
            // Whether this empties the domain is decided here, so no other client may add to it meanwhile.
            let list = listed(DocumentKind::Symbol, "domain", &domain);
            cmd("WATCH").arg(&list).query_async::<()>(connection).await.map_err(fault)?;
            let left: i64 = cmd("ZCARD").arg(&list).query_async(connection).await.map_err(fault)?;
            if left + by <= 0 {
                work.srem("domains", domain);
            }
        }
        let done: Option<redis::Value> = work.query_async(connection).await.map_err(fault)?;
        Ok(done.map(|_| ()))
    }
}

fn key(change: &LedgerEntry) -> String {
    format!("{}:{}", change.kind.name(), change.id)
}

fn listed(kind: DocumentKind, by: &str, value: &str) -> String {
    format!("ids:{}:{by}:{value}", kind.name())
}

fn parse(body: &str) -> Option<Value> {
    serde_json::from_str(body).ok()
}

/// Puts the new body in the place of the old one, in every list.
fn replace(work: &mut Pipeline, change: &LedgerEntry, old: Option<&Value>, moves: &mut BTreeMap<String, i64>) {
    let LedgerEntry { kind, id, body, .. } = change;
    for (body, arrives) in [(old, false), (body.as_ref(), true)] {
        let Some((domain, tag)) = body.map(places) else { continue };
        let lists = [("domain", domain), ("tag", tag)].into_iter().filter(|(_, value)| !value.is_empty());
        for list in lists.map(|(by, value)| listed(*kind, by, value)).chain([format!("ids:{}", kind.name())]) {
            if arrives {
                work.zadd(list, id, 0)
            } else {
                work.zrem(list, id)
            };
        }
        if *kind == DocumentKind::Symbol && !domain.is_empty() {
            *moves.entry(domain.to_owned()).or_default() += if arrives { 1 } else { -1 };
        }
    }
    match body {
        Some(body) => work.set(key(change), body.to_string()),
        None => work.del(key(change)),
    };
}

fn log(work: &mut Pipeline, change: &LedgerEntry) {
    let line = serde_json::to_string(change).unwrap_or_default(); // cannot fail: plain data
    work.rpush(format!("ledger:{}", key(change)), line);
    work.rpush("changed", key(change));
}

#[async_trait]
impl Backend for Redis {
    fn describe(&self) -> String {
        format!("redis at {}", self.at)
    }

    async fn answers(&self) -> Result<()> {
        self.one::<String>(cmd("PING")).await.map(drop)
    }

    async fn get(&self, kind: DocumentKind, ids: &[String]) -> Result<Vec<Option<DocumentRecord>>> {
        if ids.is_empty() {
            return Ok(vec![]);
        }
        let mut question = cmd("MGET");
        for id in ids {
            question.arg(format!("{}:{id}", kind.name()));
        }
        let bodies: Vec<Option<String>> = self.one(question).await?;
        let record = |(id, body): (&String, Option<String>)| Some(DocumentRecord::of(id, parse(&body?)?));
        Ok(ids.iter().zip(bodies).map(record).collect())
    }

    async fn page(
        &self,
        kind: DocumentKind,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DocumentRecord>> {
        let list = match (&filter.domain, &filter.tag) {
            (Some(domain), _) => listed(kind, "domain", domain),
            (None, Some(tag)) => listed(kind, "tag", tag),
            (None, None) => format!("ids:{}", kind.name()),
        };
        let mut from = after.map_or_else(|| "-".to_owned(), |after| format!("({after}"));
        let mut found = Vec::new();
        // Several pages may be needed when the list is by domain and a tag is asked for as well.
        while found.len() < limit {
            let mut question = cmd("ZRANGE");
            question.arg(&list).arg(&from).arg("+").arg("BYLEX").arg("LIMIT").arg(0).arg(limit);
            let ids: Vec<String> = self.one(question).await?;
            let Some(last) = ids.last() else { break };
            from = format!("({last}");
            let fits = |record: &DocumentRecord| filter.tag.as_deref().is_none_or(|tag| places(&record.body).1 == tag);
            found.extend(self.get(kind, &ids).await?.into_iter().flatten().filter(fits));
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn commit(&self, edits: &[Edit]) -> Result<()> {
        if edits.is_empty() {
            return Ok(());
        }
        let mut slot = self.writing.lock().await;
        for _ in 0..TRIES {
            // Out of the slot while it works: if this call is dropped half-way, so is the WATCH.
            let mut connection = self.writer(slot.take()).await?;
            let outcome = self.attempt(&mut connection, edits).await;
            match outcome {
                Ok(Some(())) => {
                    *slot = Some(connection);
                    return Ok(());
                }
                Ok(None) => *slot = Some(connection),
                Err(fault) => return Err(fault),
            }
        }
        Err(Error::busy(format!("redis at {}: others kept changing the same documents", self.at)))
    }

    async fn ledger(&self, kind: DocumentKind, id: &str) -> Result<Vec<LedgerEntry>> {
        let mut question = cmd("LRANGE");
        question.arg(format!("ledger:{}:{id}", kind.name())).arg(0).arg(-1);
        let lines: Vec<String> = self.one(question).await?;
        Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    async fn domains(&self) -> Result<Vec<String>> {
        let mut question = cmd("SMEMBERS");
        question.arg("domains");
        let mut domains: Vec<String> = self.one(question).await?;
        domains.sort();
        Ok(domains)
    }

    async fn count(&self, kind: DocumentKind) -> Result<usize> {
        let mut question = cmd("ZCARD");
        question.arg(format!("ids:{}", kind.name()));
        self.one(question).await
    }

    async fn since(&self, seen: u64) -> Result<(u64, Vec<(DocumentKind, String)>)> {
        let mut question = pipe();
        question.atomic().llen("changed").lrange("changed", seen as isize, -1);
        let (count, keys): (u64, Vec<String>) = self.ask(&question).await?;
        let parsed = |key: String| {
            let (kind, id) = key.split_once(':')?;
            Some((DocumentKind::named(kind)?, id.to_owned()))
        };
        Ok((count, keys.into_iter().filter_map(parsed).collect()))
    }
}

impl Redis {
    /// Asks the server how it keeps what it is given.
    pub async fn kept(&self) -> Result<RedisDurability> {
        let mut question = pipe();
        question.cmd("CONFIG").arg("GET").arg("append*").cmd("CONFIG").arg("GET").arg("save");
        let (log, snapshots): (BTreeMap<String, String>, BTreeMap<String, String>) = self.ask(&question).await?;
        Ok(kept(&log, snapshots.get("save").map_or("", String::as_str)))
    }
}

fn kept(log: &BTreeMap<String, String>, save: &str) -> RedisDurability {
    let set = |name: &str| log.get(name).map_or("", String::as_str);
    match (set("appendonly"), set("appendfsync"), save) {
        ("yes", "always", _) => RedisDurability::Everything,
        ("yes", behind, _) => RedisDurability::Behind(behind.to_owned()),
        (_, _, "") => RedisDurability::Nothing,
        _ => RedisDurability::Snapshots,
    }
}
