//! The life of one item of a queue: data in, data out. The store keeps what this decides; it decides nothing itself.
//!
//! ```text
//! put ─→ ready ─take→ leased ─done→ gone
//!          ↑ │delayed   │ ├ fail ─→ delayed (backoff) or, after the last attempt, dead
//!          └─┴──────────┘ └ time is up ─→ ready or, after the last attempt, dead ─retry→ ready
//! ```
//!
//! A lease is a token. Whoever has the token of the lease in force may end or extend it, even if its time is up, as long as
//! nobody else has taken the item; any other token is `fenced`.

use acheron_base::{Error, Result};

/// The first pause after a failure and the longest, in milliseconds.
const FIRST_PAUSE: u64 = 1000;
const LONGEST_PAUSE: u64 = 300_000;

/// Where an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemState {
    Ready,
    /// Not before this time.
    Delayed {
        until_ms: u64,
    },
    Leased {
        token: String,
        until_ms: u64,
    },
    Dead,
}

/// One item, without what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemLife {
    pub state: ItemState,
    /// How often it was leased.
    pub attempt: u32,
    /// How often it may be leased.
    pub max_attempts: u32,
}

/// Something that happens to an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemEvent {
    /// Time passes.
    Tick,
    Take {
        token: String,
        lease_ms: u64,
    },
    Done {
        token: String,
    },
    Fail {
        token: String,
        retry_in_ms: Option<u64>,
        dead: bool,
    },
    Extend {
        token: String,
        lease_ms: u64,
    },
    /// A dead item is tried again.
    Retry,
    /// A dead item is dropped.
    Discard,
}

/// What becomes of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextLife {
    Is(ItemLife),
    Gone,
}

impl ItemLife {
    /// A new item.
    pub fn new(max_attempts: u32, not_before_ms: Option<u64>, now_ms: u64) -> ItemLife {
        let state = match not_before_ms.filter(|until_ms| *until_ms > now_ms) {
            Some(until_ms) => ItemState::Delayed { until_ms },
            None => ItemState::Ready,
        };
        ItemLife { state, attempt: 0, max_attempts: max_attempts.max(1) }
    }

    fn with(&self, state: ItemState) -> NextLife {
        NextLife::Is(ItemLife { state, ..self.clone() })
    }

    /// After an attempt that came to nothing.
    fn after_failure(&self, state: ItemState) -> NextLife {
        self.with(if self.attempt >= self.max_attempts { ItemState::Dead } else { state })
    }

    fn check_lease(&self, token: &str) -> Result<()> {
        match &self.state {
            ItemState::Leased { token: held, .. } if held == token => Ok(()),
            _ => Err(lost()),
        }
    }
}

/// The refusal of a lease that is not in force.
pub fn lost() -> Error {
    Error::fenced("this lease is not in force any more: its time was up, or it has ended; take an item again")
}

/// The pause after the failure of an attempt.
pub fn pause_ms(attempt: u32) -> u64 {
    FIRST_PAUSE.saturating_mul(1 << attempt.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

/// Decides what an event makes of an item.
pub fn next(life: &ItemLife, event: &ItemEvent, now_ms: u64) -> Result<NextLife> {
    Ok(match event {
        ItemEvent::Tick => match &life.state {
            ItemState::Delayed { until_ms } if *until_ms <= now_ms => life.with(ItemState::Ready),
            ItemState::Leased { until_ms, .. } if *until_ms <= now_ms => life.after_failure(ItemState::Ready),
            _ => NextLife::Is(life.clone()),
        },
        ItemEvent::Take { token, lease_ms } => match life.state {
            ItemState::Ready => {
                let state = ItemState::Leased { token: token.clone(), until_ms: now_ms.saturating_add(*lease_ms) };
                NextLife::Is(ItemLife { state, attempt: life.attempt + 1, ..life.clone() })
            }
            _ => return Err(Error::conflict("this item cannot be taken now")),
        },
        ItemEvent::Done { token } => {
            life.check_lease(token)?;
            NextLife::Gone
        }
        ItemEvent::Fail { token, retry_in_ms, dead } => {
            life.check_lease(token)?;
            match dead {
                true => life.with(ItemState::Dead),
                false => {
                    let pause = retry_in_ms.unwrap_or_else(|| pause_ms(life.attempt));
                    life.after_failure(ItemState::Delayed { until_ms: now_ms.saturating_add(pause) })
                }
            }
        }
        ItemEvent::Extend { token, lease_ms } => {
            life.check_lease(token)?;
            let (token, until_ms) = (token.clone(), now_ms.saturating_add(*lease_ms));
            life.with(ItemState::Leased { token, until_ms })
        }
        ItemEvent::Retry | ItemEvent::Discard if life.state != ItemState::Dead => {
            return Err(Error::conflict("only a dead item can be retried or discarded"));
        }
        ItemEvent::Retry => NextLife::Is(ItemLife { state: ItemState::Ready, attempt: 0, ..life.clone() }),
        ItemEvent::Discard => NextLife::Gone,
    })
}

#[cfg(test)]
mod tests;
