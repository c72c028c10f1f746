//! How far the effects of a narrator go in one turn, and what counts as a reason. Only `proposal` uses it.

use crate::rule::Effect;

/// The sum of what a narrator has changed in this turn. The caps are those of a turn, however the effects are cut up.
#[derive(Default)]
pub(super) struct TurnCaps {
    /// By indicator and by clock.
    steps: std::collections::BTreeMap<String, u64>,
    minutes: u64,
    lost: i64,
    healed: i64,
    count: usize,
}

/// The most effects of a narrator in one turn, and how far they go together.
const EFFECTS: usize = 3;
const MINUTES: u64 = 60;
const LOST: i64 = 2;
const HEALED: i64 = 1;

impl TurnCaps {
    pub(super) fn take(&mut self, effect: &Effect) -> Result<(), String> {
        let fits = self.count < EFFECTS && self.fits(effect);
        if !fits {
            return Err(format!("`{effect}` is more than a turn allows"));
        }
        self.count += 1;
        match effect {
            Effect::Level { name, by, .. } => *self.steps.entry(name.clone()).or_default() += by.unsigned_abs(),
            Effect::Tick { clock, by, .. } => {
                *self.steps.entry(format!("clock {clock}")).or_default() += by.unsigned_abs();
            }
            Effect::Minutes(minutes) => self.minutes += minutes,
            Effect::Hp(by) if *by < 0 => self.lost -= by,
            Effect::Hp(by) => self.healed += by,
            _ => (),
        }
        Ok(())
    }

    /// An indicator and a clock move by one, time by an hour, HP by two down and one up.
    fn fits(&self, effect: &Effect) -> bool {
        let steps = |key: &str| self.steps.get(key).copied().unwrap_or(0);
        match effect {
            Effect::Level { name, by, .. } => steps(name) + by.unsigned_abs() <= 1,
            Effect::Tick { clock, by, .. } => steps(&format!("clock {clock}")) + by.unsigned_abs() <= 1,
            Effect::Minutes(minutes) => self.minutes.saturating_add(*minutes) <= MINUTES,
            Effect::Hp(by) if *by < 0 => self.lost - by <= LOST,
            Effect::Hp(by) => self.healed + by <= HEALED,
            _ => true,
        }
    }
}

/// Whether a reason says something: three words, and letters enough for them.
pub(super) fn is_reason(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let wide = text.chars().any(|c| c > '\u{2e7f}');
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    (words >= 3 && letters >= 8) || (wide && letters >= 4)
}
