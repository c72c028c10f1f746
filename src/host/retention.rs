//! Forgetting what is over, by age and by count, in the background and in small bites.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::House;
use crate::error::Result;
use crate::store::{audit, events, jobs};

/// How often somebody looks.
const ROUND: Duration = Duration::from_secs(60);
/// How much is forgotten in one change: nobody's own change waits long behind it.
const BITE: usize = 500;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Events, an agent, and refusals that are kept whatever their age.
const EVENTS: u64 = 100_000;
const AUDIT: usize = 100_000;

/// Looks now and then, as long as the house stands.
pub fn start(house: &Arc<House>) {
    let house: Weak<House> = Arc::downgrade(house);
    tokio::spawn(async move {
        while let Some(house) = house.upgrade() {
            if let Err(error) = forget(&house).await {
                tracing::warn!(%error, "what is over could not be forgotten");
            }
            drop(house);
            tokio::time::sleep(ROUND).await;
        }
    });
}

/// Forgets everything that is due.
pub async fn forget(house: &House) -> Result<()> {
    let before = house.clock.now_ms().saturating_sub(house.spec.retention.days.saturating_mul(DAY_MS));
    let keep = usize::try_from(house.spec.retention.jobs).unwrap_or(usize::MAX);
    loop {
        let gone = house.store.write(move |tx| jobs::prune(tx, keep, before, BITE)).await?;
        for id in &gone {
            house.book.forget_job(id);
        }
        if gone.len() < BITE {
            break;
        }
    }
    while house.store.write(move |tx| events::prune(tx, EVENTS, before, BITE)).await? == BITE {}
    while house.store.write(move |tx| audit::prune(tx, AUDIT, before, BITE)).await? == BITE {}
    Ok(())
}
