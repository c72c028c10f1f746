//! Names that are new each time and in order of time.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Clock, Random};

/// The bits of an id that are not its time.
const TAIL: u32 = 74;

/// Makes ids by a clock and a source of randomness. Cheap to clone; clones never make the same id, nor one out of order.
#[derive(Clone, Debug)]
pub struct Ids {
    clock: Clock,
    random: Random,
    /// The last id, as its time and its tail in one number.
    last: Arc<Mutex<u128>>,
}

impl Ids {
    pub fn new(clock: Clock, random: Random) -> Ids {
        Ids { clock, random, last: Arc::default() }
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    pub fn random(&self) -> &Random {
        &self.random
    }

    /// `<prefix>-<UUID of version 7>`: sortable by time, and not to be guessed.
    pub fn id(&self, prefix: &str) -> String {
        let value = self.next();
        let (time, tail) = (value >> TAIL, value & ((1 << TAIL) - 1));
        let (high, low) = (tail >> 62, tail & ((1 << 62) - 1));
        // Version 7 and the variant of RFC 9562 stand between the parts.
        let uuid = time << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low;
        format!(
            "{prefix}-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            uuid >> 96,
            uuid >> 80 & 0xffff,
            uuid >> 64 & 0xffff,
            uuid >> 48 & 0xffff,
            uuid & 0xffff_ffff_ffff
        )
    }

    /// Later than every one before. Within a millisecond it counts on from the last one by a random step.
    fn next(&self) -> u128 {
        let (now, random) = (u128::from(self.clock.now_ms() & ((1 << 48) - 1)), u128::from(self.random.number()));
        let mut last = self.last.lock();
        // The highest bits of a fresh tail are free, so that counting on does not change the time.
        let fresh = now << TAIL | random;
        let next = if now > *last >> TAIL { fresh } else { *last + 1 + (random & 0xffff_ffff) };
        *last = next;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_order_although_the_clock_stands_still_or_goes_back() {
        let clock = Clock::at(1_700_000_000_000);
        let ids = Ids::new(clock.clone(), Random::seeded(1));
        let mut all: Vec<String> = (0..1000).map(|_| ids.id("job")).collect();
        clock.set(1_600_000_000_000);
        all.push(ids.clone().id("job"));
        clock.set(1_700_000_000_001);
        all.push(ids.id("job"));
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
    }

    #[test]
    fn an_id_is_a_uuid_of_version_seven_that_follows_from_clock_and_seed() {
        let made = || Ids::new(Clock::at(1_700_000_000_000), Random::seeded(7)).id("c");
        let id = made();
        assert_eq!(id, made());
        let parts: Vec<&str> = id.split('-').collect();
        assert_eq!((parts[0], parts[1], parts[2]), ("c", "018bcfe5", "6800"));
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [1, 8, 4, 4, 4, 12]);
        assert!(parts[3].starts_with('7') && parts[4].starts_with(['8', '9', 'a', 'b']), "{id}");
    }
}
