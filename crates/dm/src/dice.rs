//! Reproducible dice: each campaign and turn has its own stream, and every throw is recorded.
//!
//! The stream is a function of the campaign's seed, its id and the number of the turn, so a replay throws the same.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One throw, as it stands in `dice.ndjson`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throw {
    pub turn: u64,
    pub sides: u32,
    pub value: u32,
    pub why: String,
}

/// The log of every throw.
pub const DICE: &str = ".kernel/dice.ndjson";

/// The dice of one turn.
#[derive(Clone, Debug)]
pub struct Dice {
    turn: u64,
    state: u64,
    /// Values to be taken before the stream, for tests and for tables that are thrown by hand.
    loaded: Vec<u32>,
    pub thrown: Vec<Throw>,
}

impl Dice {
    pub fn new(seed: u64, campaign: &str, turn: u64) -> Self {
        let digest = Sha256::new()
            .chain_update(seed.to_le_bytes())
            .chain_update(campaign.as_bytes())
            .chain_update(turn.to_le_bytes())
            .finalize();
        let state = digest.iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
        Dice { turn, state, loaded: Vec::new(), thrown: Vec::new() }
    }

    /// Dice that fall as given first, and then as the stream of seed 0 has it.
    #[cfg(test)]
    pub fn loaded(values: &[u32]) -> Self {
        let mut dice = Dice::new(0, "loaded", 0);
        dice.loaded = values.iter().rev().copied().collect();
        dice
    }

    /// Throws one die.
    pub fn throw(&mut self, sides: u32, why: &str) -> u32 {
        let sides = sides.max(1);
        let value = self.loaded.pop().unwrap_or_else(|| self.fair(sides));
        self.thrown.push(Throw { turn: self.turn, sides, value, why: why.to_owned() });
        value
    }

    /// The throws so far, as lines of the log.
    pub fn log(&self) -> String {
        self.thrown.iter().map(|throw| format!("{}\n", serde_json::json!(throw))).collect()
    }

    /// Rejects the uneven rest, so that no face is likelier than another.
    fn fair(&mut self, sides: u32) -> u32 {
        let sides = u64::from(sides);
        let fence = u64::MAX - u64::MAX % sides;
        loop {
            let drawn = self.next();
            if drawn < fence {
                return (drawn % sides) as u32 + 1;
            }
        }
    }

    /// SplitMix64: small, well mixed, and the same everywhere.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_55_a_seed_throws_the_same_hundred_twice() {
        let hundred = |seed| {
            let mut dice = Dice::new(seed, "c1", 1);
            (0..100).map(|_| dice.throw(20, "test")).collect::<Vec<_>>()
        };
        assert_eq!(hundred(7), hundred(7));
        assert_ne!(hundred(7), hundred(8));
        assert!(hundred(7).iter().all(|value| (1..=20).contains(value)));
    }

    #[test]
    fn each_turn_has_its_own_stream_and_every_face_comes_up() {
        let first = |turn| Dice::new(7, "c1", turn).throw(1000, "test");
        assert_ne!(first(1), first(2));
        let mut dice = Dice::new(1, "c1", 1);
        let seen: std::collections::BTreeSet<_> = (0..400).map(|_| dice.throw(6, "test")).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }
}
