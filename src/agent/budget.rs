//! Limits and usage of a turn or an agent.
//!
//! Pure: the usage is computed from the transcript. An absent limit does not apply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::transcript::TranscriptRecord;
use crate::model::{Prices, Usage};
use acheron_base::Error;

/// The limits of one turn, or of an agent over all its turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub struct BudgetLimits {
    /// The number of answers of the model.
    pub rounds: Option<u64>,
    /// Input and output tokens.
    pub tokens: Option<u64>,
    /// Seconds of work, without the time spent waiting for events.
    pub seconds: Option<u64>,
    /// In the currency of the model's prices.
    pub money: Option<f64>,
}

impl BudgetLimits {
    /// The limits that are left after `spent`.
    pub fn less(&self, spent: &Spent) -> BudgetLimits {
        BudgetLimits {
            rounds: self.rounds.map(|limit| limit.saturating_sub(spent.rounds)),
            tokens: self.tokens.map(|limit| limit.saturating_sub(spent.usage.total())),
            seconds: self.seconds.map(|limit| limit.saturating_sub(spent.ms / 1000)),
            money: self.money.map(|limit| (limit - spent.money).max(0.0)),
        }
    }

    /// The smaller of each pair of limits.
    pub fn and(&self, other: &BudgetLimits) -> BudgetLimits {
        fn least<T: PartialOrd + Copy>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if a < b { a } else { b }),
                (a, b) => a.or(b),
            }
        }
        BudgetLimits {
            rounds: least(self.rounds, other.rounds),
            tokens: least(self.tokens, other.tokens),
            seconds: least(self.seconds, other.seconds),
            money: least(self.money, other.money),
        }
    }

    /// A limit on money needs prices, otherwise it never applies.
    pub fn check(&self, prices: Option<&Prices>) -> Result<(), Error> {
        let priced = prices.is_some_and(|prices| prices.input_per_mtok > 0.0 || prices.output_per_mtok > 0.0);
        match self.money {
            Some(_) if !priced => Err(Error::invalid("a limit on money needs the model's prices")),
            Some(money) if !money.is_finite() || money < 0.0 => {
                Err(Error::invalid("a limit on money must not be negative"))
            }
            _ => Ok(()),
        }
    }
}

/// The usage of a turn or an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Spent {
    pub rounds: u64,
    #[serde(flatten)]
    pub usage: Usage,
    pub ms: u64,
    pub money: f64,
}

impl Spent {
    /// The usage according to a transcript.
    pub fn of(records: &[TranscriptRecord]) -> Spent {
        let mut counter = SpentCounter::default();
        records.iter().for_each(|record| counter.add(record));
        counter.spent
    }

    pub fn plus(&self, other: &Spent) -> Spent {
        Spent {
            rounds: self.rounds + other.rounds,
            usage: self.usage.plus(other.usage),
            ms: self.ms + other.ms,
            money: self.money + other.money,
        }
    }
}

/// The usage of a turn, counted record by record: a long turn asks for it at every step.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpentCounter {
    pub spent: Spent,
    prices: Prices,
}

impl SpentCounter {
    pub fn add(&mut self, record: &TranscriptRecord) {
        let spent = &mut self.spent;
        match record {
            TranscriptRecord::Began { prices, .. } => self.prices = *prices,
            TranscriptRecord::Said { said, ms, .. } => {
                spent.rounds += 1;
                spent.usage = spent.usage.plus(said.usage);
                spent.ms += ms;
                spent.money = self.prices.cost(spent.usage);
            }
            TranscriptRecord::Outcome { ms, parked_ms, .. } => spent.ms += ms.saturating_sub(*parked_ms),
            TranscriptRecord::Intent { .. } | TranscriptRecord::Mail { .. } | TranscriptRecord::Ended { .. } => (),
        }
    }
}

/// The state of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Fine,
    /// 80 % of this limit are used.
    Soft(&'static str),
    /// This limit is used up.
    Over(&'static str),
}

/// The share of a limit from which on an event tells of it.
const SOFT: f64 = 0.8;

/// The limits that are set, by name: what is used, and the limit.
fn used(limits: &BudgetLimits, spent: &Spent) -> impl Iterator<Item = (&'static str, f64, f64)> {
    let rows = [
        ("rounds", spent.rounds as f64, limits.rounds.map(|limit| limit as f64)),
        ("tokens", spent.usage.total() as f64, limits.tokens.map(|limit| limit as f64)),
        ("seconds", spent.ms as f64 / 1000.0, limits.seconds.map(|limit| limit as f64)),
        ("money", spent.money, limits.money),
    ];
    rows.into_iter().filter_map(|(name, used, limit)| Some((name, used, limit?)))
}

/// The limits of which 80 % were not used before, and are now.
pub fn passed(limits: &BudgetLimits, before: &Spent, now: &Spent) -> Vec<&'static str> {
    let passed = used(limits, before).zip(used(limits, now));
    let passed = passed.filter(|((_, before, limit), (_, now, _))| *before < limit * SOFT && *now >= limit * SOFT);
    passed.map(|(limit, _)| limit.0).collect()
}

/// Compares usage with limits and returns the worst result.
pub fn standing(limits: &BudgetLimits, spent: &Spent) -> Standing {
    let mut soft = Standing::Fine;
    for (name, used, limit) in used(limits, spent) {
        match limit {
            limit if used >= limit => return Standing::Over(name),
            limit if used >= limit * SOFT && soft == Standing::Fine => soft = Standing::Soft(name),
            _ => (),
        }
    }
    soft
}

#[cfg(test)]
mod tests;
