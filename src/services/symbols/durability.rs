//! The durability of a Redis server after a crash, as its settings decide it.

use std::collections::BTreeMap;

use redis::pipe;

use super::backend::Backend as _;
use super::redis::Redis;
use acheron_base::Result;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisDurability {
    /// A change is on its disk before it is acknowledged.
    Everything,
    /// Its log is written behind, by the setting `appendfsync`.
    Behind(String),
    /// It has no log, and writes down everything now and then.
    Snapshots,
    Nothing,
}

/// The display name of the server at an address, and its durability.
pub async fn at(address: &str) -> (String, Result<RedisDurability>) {
    match Redis::new(address) {
        Ok(redis) => (redis.describe(), redis.kept().await),
        Err(error) => ("redis".to_owned(), Err(error)),
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
