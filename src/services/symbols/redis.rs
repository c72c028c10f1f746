//! Documents in Redis, laid out so that the origin's programs can read them: `<prefix>symbol:<id>` holds the JSON,
//! `<prefix>domains` is a set.
//!
//! Beside those: `ids:<kind>`, `ids:<kind>:domain:<d>` and `ids:<kind>:tag:<t>` are sorted sets of ids (nothing scans
//! KEYS), `ledger:<kind>:<id>` is a list of changes, `changed` is a list of what changed last, `changes` counts all
//! changes, and `epoch` names the history: a server that was emptied has another one. A change is a WATCH and one
//! MULTI/EXEC, and is published on the channel `<prefix>changes`. While the server is away every call is `unavailable`;
//! when it is back the next call finds it.

mod address;
mod full;
mod transaction;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, ServerErrorKind, cmd, pipe};
use serde_json::Value;
use tokio::sync::{Mutex, Notify};

use super::backend::{Backend, Filter};
use super::change::{DocumentKind, DocumentRecord, Edit, LedgerEntry, places};
use super::durability::RedisDurability;
use acheron_base::{Code, Error, Result};

/// How long to wait for the server before calling it unavailable.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a transaction is tried when others write at the same time.
const TRIES: usize = 16;
/// How many changes of one document are kept.
const LEDGER: isize = 256;
/// How many changes of all documents are kept, for hosts that were away.
const CHANGED: isize = 10_000;

/// A Redis server.
pub struct Redis {
    client: Client,
    at: String,
    /// Begins every key.
    prefix: String,
    reading: Mutex<Option<MultiplexedConnection>>,
    /// WATCH belongs to a connection, so changes have one of their own and take turns on it.
    writing: Mutex<Option<MultiplexedConnection>>,
}

impl Redis {
    async fn connect(&self) -> Result<MultiplexedConnection> {
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(PATIENCE)).set_response_timeout(Some(PATIENCE));
        self.client.get_multiplexed_async_connection_with_config(&config).await.map_err(|fault| self.fault(&fault))
    }

    fn outage(&self, fault: &RedisError) -> Error {
        Error::unavailable(format!("redis at {} does not answer: {fault}", self.at))
    }

    /// Sorts a fault: a server that is full, one that cannot be asked now, and what the server said otherwise.
    fn fault(&self, fault: &RedisError) -> Error {
        let said = fault.to_string();
        let away = [ServerErrorKind::BusyLoading, ServerErrorKind::MasterDown, ServerErrorKind::ClusterDown];
        let away = away.map(redis::ErrorKind::Server).contains(&fault.kind());
        match () {
            () if said.contains("OOM") => {
                let why = format!("redis at {} is full: delete something or raise its maxmemory ({said})", self.at);
                Error::new(Code::NoSpace, why)
            }
            () if fault.is_io_error() || fault.is_timeout() || fault.is_connection_dropped() || away => {
                self.outage(fault)
            }
            () => Error::failed(format!("redis at {} refused: {said}", self.at)),
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

    /// A key of ours.
    fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    fn document(&self, kind: DocumentKind, id: &str) -> String {
        self.key(&format!("{}:{id}", kind.name()))
    }

    fn ids(&self, kind: DocumentKind) -> String {
        self.key(&format!("ids:{}", kind.name()))
    }

    fn listed(&self, kind: DocumentKind, by: &str, value: &str) -> String {
        self.key(&format!("ids:{}:{by}:{value}", kind.name()))
    }
}

fn parse(body: &str) -> Option<Value> {
    serde_json::from_str(body).ok()
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
            question.arg(self.document(kind, id));
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
            (Some(domain), _) => self.listed(kind, "domain", domain),
            (None, Some(tag)) => self.listed(kind, "tag", tag),
            (None, None) => self.ids(kind),
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
        question.arg(self.key(&format!("ledger:{}:{id}", kind.name()))).arg(0).arg(-1);
        let lines: Vec<String> = self.one(question).await?;
        Ok(lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    async fn domains(&self) -> Result<Vec<String>> {
        let mut question = cmd("SMEMBERS");
        question.arg(self.key("domains"));
        let mut domains: Vec<String> = self.one(question).await?;
        domains.sort();
        Ok(domains)
    }

    async fn count(&self, kind: DocumentKind) -> Result<usize> {
        let mut question = cmd("ZCARD");
        question.arg(self.ids(kind));
        self.one(question).await
    }

    async fn epoch(&self) -> Result<String> {
        let mut question = cmd("GET");
        question.arg(self.key("epoch"));
        Ok(self.one::<Option<String>>(question).await?.unwrap_or_default())
    }

    async fn since(&self, seen: u64) -> Result<(u64, Option<Vec<(DocumentKind, String)>>)> {
        let mut question = cmd("GET");
        question.arg(self.key("changes"));
        let count: u64 = self.one::<Option<u64>>(question).await?.unwrap_or(0);
        if seen >= count {
            return Ok((count, Some(vec![])));
        }
        // A few more than are needed, since others may change something between the questions. Not as a transaction: a
        // server that is full refuses those, even if they only read.
        let wanted = isize::try_from(count - seen).unwrap_or(CHANGED).saturating_add(256).min(CHANGED);
        let mut question = pipe();
        let counter = self.key("changes");
        question.get(&counter).lrange(self.key("changed"), -wanted, -1).get(&counter);
        let mut read = (Some(count), vec![]);
        for _ in 0..TRIES {
            let (before, keys, after): (Option<u64>, Vec<String>, Option<u64>) = self.ask(&question).await?;
            if before == after {
                read = (after, keys);
                break;
            }
        }
        let (count, keys) = (read.0.unwrap_or(0), read.1);
        let Some(first) = (keys.len() as u64).checked_sub(count.saturating_sub(seen)) else { return Ok((count, None)) };
        let parsed = |key: String| {
            let (kind, id) = key.split_once(':')?;
            Some((DocumentKind::named(kind)?, id.to_owned()))
        };
        Ok((count, Some(keys.into_iter().skip(first as usize).filter_map(parsed).collect())))
    }

    async fn listen(&self, heard: &Notify) -> Result<()> {
        let mut channel = self.client.get_async_pubsub().await.map_err(|fault| self.fault(&fault))?;
        channel.subscribe(self.key("changes")).await.map_err(|fault| self.fault(&fault))?;
        // Whatever was changed before this host listened.
        heard.notify_one();
        let mut messages = channel.on_message();
        while messages.next().await.is_some() {
            heard.notify_one();
        }
        Err(Error::unavailable(format!("redis at {} ended the connection", self.at)))
    }
}

impl Redis {
    /// Asks the server how it keeps what it is given.
    pub async fn kept(&self) -> Result<RedisDurability> {
        let mut question = pipe();
        question.cmd("CONFIG").arg("GET").arg("append*").cmd("CONFIG").arg("GET").arg("save");
        question.cmd("CONFIG").arg("GET").arg("maxmemory*");
        type Settings = BTreeMap<String, String>;
        let (log, snapshots, memory): (Settings, Settings, Settings) = self.ask(&question).await?;
        let limited = memory.get("maxmemory").is_some_and(|limit| limit != "0");
        // `volatile` policies take only keys that expire, and ours do not.
        let policy = memory.get("maxmemory-policy").filter(|policy| limited && policy.starts_with("allkeys"));
        Ok(match policy {
            Some(policy) => RedisDurability::Evicts(policy.clone()),
            None => kept(&log, snapshots.get("save").map_or("", String::as_str)),
        })
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
