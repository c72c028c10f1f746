//! Deletes expired records in the background, in small transactions so that other writers do not wait. Used by `host`.

use super::{events, jobs, model_requests};
use acheron_base::Result;
use acheron_store::Store;

/// Records deleted per table and transaction.
const BATCH: usize = 256;

/// RetentionLimits limits: the newest records up to a count, and none older than a time.
#[derive(Clone, Copy, Debug)]
pub struct RetentionLimits {
    /// Jobs of one agent.
    pub jobs: usize,
    /// Events of one agent, and requests of its programs to models.
    pub events: u64,
    pub before_ms: u64,
    /// The bytes of the ended jobs of one agent.
    pub job_bytes: u64,
}

/// The deleted records.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The ids, so that directories can drop them.
    pub jobs: Vec<String>,
    pub events: usize,
    pub model_requests: usize,
}

/// Deletes all records beyond the limits. Other writes may run in between.
pub async fn prune(store: &Store, keep: RetentionLimits) -> Result<Pruned> {
    let mut gone = Pruned::default();
    // Found once and outside the transactions: this looks at every entry.
    let mut large = store.read(move |conn| jobs::beyond(conn, keep.jobs, keep.job_bytes)).await?;
    loop {
        let some = large.split_off(large.len().saturating_sub(BATCH));
        let (jobs, events, requests) = store
            .write(move |tx| {
                let mut jobs = jobs::prune(tx, keep.before_ms, BATCH)?;
                jobs.extend(jobs::remove(tx, &some)?);
                Ok((
                    jobs,
                    events::prune(tx, keep.events, keep.before_ms, BATCH)?,
                    model_requests::prune(tx, keep.events, keep.before_ms, BATCH)?,
                ))
            })
            .await?;
        if jobs.is_empty() && events == 0 && requests == 0 && large.is_empty() {
            return Ok(gone);
        }
        gone.jobs.extend(jobs);
        gone.events += events;
        gone.model_requests += requests;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::state::TestStore;

    #[tokio::test]
    async fn everything_beyond_what_is_kept_goes() {
        let store = TestStore::new();
        let fill = store.write(|tx| {
            for at_ms in 0..600u64 {
                let (kind, path, payload) = ("signal".to_owned(), "/x".to_owned(), json!(null));
                events::append(tx, "a", kind, path, at_ms, payload)?;
            }
            Ok(())
        });
        fill.await.unwrap();
        let before = store.commits();
        let keep = RetentionLimits { jobs: 10, events: 50, before_ms: 0, job_bytes: u64::MAX >> 1 };
        let gone = prune(&store, keep).await.unwrap();
        assert_eq!(gone, Pruned { events: 550, ..Pruned::default() });
        assert_eq!(store.commits() - before, 4, "in batches");
        assert_eq!(prune(&store, RetentionLimits { before_ms: 590, ..keep }).await.unwrap().events, 40);
        assert_eq!(store.look(|conn| events::last(conn, "a")).unwrap(), 600);
    }
}
