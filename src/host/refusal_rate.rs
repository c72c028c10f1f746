//! Limits how many refusals of one principal are written down one by one. A principal that is refused all the time would
//! fill the log and the audit, and the lines of others would be lost among its own. Those beyond the limit are counted,
//! and one line tells their number. Access control uses it; it knows neither the log nor the audit.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The refusals of one principal that are written down in one period.
const EACH: u64 = 50;
/// The length of a period in milliseconds.
const PERIOD_MS: u64 = 60_000;
/// The number of principals that are remembered: agents come and go.
const PRINCIPALS: usize = 1024;

/// Counts refusals by principal.
#[derive(Default)]
pub struct RefusalRate(Mutex<HashMap<String, Period>>);

#[derive(Default)]
struct Period {
    since_ms: u64,
    refused: u64,
}

/// What is written down about a refusal.
#[derive(Debug, PartialEq, Eq)]
pub enum Noted {
    /// The refusal, and before it the number of those in the last period that were not written down.
    Written {
        omitted: u64,
    },
    Counted,
}

impl RefusalRate {
    /// A principal was refused at this time.
    pub fn note(&self, principal: &str, now_ms: u64) -> Noted {
        let mut principals = self.0.lock();
        if principals.len() >= PRINCIPALS && !principals.contains_key(principal) {
            principals.retain(|_, period| period.refused > EACH || period.since_ms + PERIOD_MS > now_ms);
        }
        let period = principals.entry(principal.to_owned()).or_default();
        let mut omitted = 0;
        if now_ms >= period.since_ms + PERIOD_MS || now_ms < period.since_ms {
            omitted = period.refused.saturating_sub(EACH);
            *period = Period { since_ms: now_ms, refused: 0 };
        }
        period.refused += 1;
        match period.refused <= EACH {
            true => Noted::Written { omitted },
            false => Noted::Counted,
        }
    }
}

impl RefusalRate {
    /// The principals of which refusals were only counted in a period that is over, and how many: a flood that has ended is
    /// told, too.
    pub fn counted(&self, now_ms: u64) -> Vec<(String, u64)> {
        let mut principals = self.0.lock();
        let over = principals.iter_mut().filter(|(_, period)| now_ms >= period.since_ms + PERIOD_MS);
        let counted = over.filter(|(_, period)| period.refused > EACH).map(|(principal, period)| {
            let omitted = period.refused - EACH;
            *period = Period::default();
            (principal.clone(), omitted)
        });
        counted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_told_and_others_are_written_down() {
        let rate = RefusalRate::default();
        let flood: Vec<Noted> = (0..EACH + 1000).map(|_| rate.note("agent:many", 5)).collect();
        assert!(flood[..EACH as usize].iter().all(|noted| *noted == Noted::Written { omitted: 0 }));
        assert!(flood[EACH as usize..].iter().all(|noted| *noted == Noted::Counted));
        assert_eq!(rate.note("agent:one", 5), Noted::Written { omitted: 0 });
        assert_eq!(rate.note("agent:many", 5 + PERIOD_MS), Noted::Written { omitted: 1000 });
        assert_eq!(rate.note("agent:many", 6 + PERIOD_MS), Noted::Written { omitted: 0 });
        for _ in 0..EACH + 7 {
            rate.note("agent:ended", 9);
        }
        assert_eq!(rate.counted(10), []);
        assert_eq!(rate.counted(9 + PERIOD_MS), [("agent:ended".to_owned(), 7)]);
        assert_eq!(rate.counted(9 + PERIOD_MS), []);
    }
}
