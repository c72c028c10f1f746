//! Decides when a session types the fallback line of a command that does not end. `session` uses it; it uses nothing.
//! Pure: sizes and ticks in, a decision out.

use std::time::Duration;

/// How often the session asks.
pub const TICK: Duration = Duration::from_millis(250);

/// After so many ticks a little noise is no objection: it may come from a job in the background.
const NOISY: u32 = 8;

/// Output that comes in pieces of this size leaves the terminal room to echo a line in one go.
const LITTLE: usize = 1024;

/// Watches how much a command says.
#[derive(Debug, Default)]
pub struct SilenceWatch {
    ticks: u32,
    /// The largest piece since the last tick.
    largest: usize,
}

impl SilenceWatch {
    /// The terminal said so many bytes at once.
    pub fn heard(&mut self, bytes: usize) {
        self.largest = self.largest.max(bytes);
    }

    /// A [`TICK`] has passed. Whether the shell may have given up the command, as far as its output tells.
    pub fn tick(&mut self) -> bool {
        self.ticks = self.ticks.saturating_add(1);
        let largest = std::mem::take(&mut self.largest);
        largest == 0 || (self.ticks >= NOISY && largest < LITTLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_enough_and_a_little_noise_is_enough_in_the_end() {
        let mut silent = SilenceWatch::default();
        assert!(silent.tick());
        silent.heard(1);
        assert!(!silent.tick());
        assert!(silent.tick());
        let ends = |bytes: usize| {
            let mut noisy = SilenceWatch::default();
            (1..100).find(|_| {
                noisy.heard(bytes);
                noisy.heard(1);
                noisy.tick()
            })
        };
        assert_eq!((ends(10), ends(4096)), (Some(NOISY), None));
    }
}
