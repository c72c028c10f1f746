//! Where random bytes come from.
//!
//! Every part is handed a source instead of asking the system, so that a run can be replayed.

use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

/// The randomness of the system, or a stream that follows from a seed. Cheap to clone; clones share one stream.
#[derive(Clone, Debug)]
pub struct Random(Option<Arc<Mutex<StdRng>>>);

impl Random {
    /// Randomness of the system, fit for keys.
    pub fn real() -> Random {
        Random(None)
    }

    /// The same bytes for the same seed. For tests and replays; not fit for keys.
    pub fn seeded(seed: u64) -> Random {
        Random(Some(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        match &self.0 {
            Some(seeded) => seeded.lock().fill_bytes(bytes),
            None => rand::rng().fill_bytes(bytes),
        }
    }

    pub fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_and_the_system_does_not_repeat_itself() {
        let numbers = |random: Random| [random.number(), random.clone().number()];
        assert_eq!(numbers(Random::seeded(7)), numbers(Random::seeded(7)));
        assert_ne!(numbers(Random::seeded(7)), numbers(Random::seeded(8)));
        let [one, other] = numbers(Random::real());
        assert_ne!(one, other);
    }
}
