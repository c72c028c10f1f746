//! The durability of a Redis server after a crash, as its settings decide it.

use crate::spec::SymbolsSpec;
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
    /// When it is full it drops documents, by this policy.
    Evicts(String),
}

/// The display name of the server of a mountspec, and its durability.
#[cfg(feature = "redis")]
pub async fn of(spec: &SymbolsSpec) -> (String, Result<RedisDurability>) {
    use super::backend::Backend as _;
    use super::redis::Redis;

    match Redis::of(spec, |name| std::env::var(name).ok()) {
        Ok(redis) => (redis.describe(), redis.kept().await),
        Err(error) => ("redis".to_owned(), Err(error)),
    }
}

#[cfg(not(feature = "redis"))]
pub async fn of(_spec: &SymbolsSpec) -> (String, Result<RedisDurability>) {
    let error = acheron_base::Error::unavailable("this acheron was built without redis");
    ("redis".to_owned(), Err(error))
}
