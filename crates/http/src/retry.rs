//! When to try again, and after how long. Pure: the dice come in from outside.

use std::time::{Duration, SystemTime};

use rand::{Rng, RngCore};

/// How long to wait for what, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub connect: Duration,
    /// From sending the request to the head of the answer.
    pub first_byte: Duration,
    /// Between two chunks of the answer.
    pub idle: Duration,
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// The pause after the first failure; it doubles from there.
    pub pause: Duration,
    /// No pause is longer, whatever the server asks for: a server that wants more is not waited for.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
            attempts: 4,
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// Whether what failed may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    /// Yes, and the server may have said after how long.
    After(Option<Duration>),
}

impl Patience {
    /// The pause before the next attempt, when `failed` of them have failed; `None` is giving up.
    ///
    /// A pause that the server asks for is kept to exactly; our own is between half and the whole of its length, so
    /// that those who failed together do not come back together.
    pub fn pause_after(&self, failed: u32, again: Again, dice: &mut dyn RngCore) -> Option<Duration> {
        let Again::After(told) = again else { return None };
        if failed >= self.attempts {
            return None;
        }
        match told {
            Some(told) => (told <= self.longest_pause).then_some(told),
            None => {
                let doubled = self.pause.saturating_mul(1 << failed.saturating_sub(1).min(20));
                Some(doubled.min(self.longest_pause).mul_f64(dice.random_range(0.5..=1.0)))
            }
        }
    }
}

/// Reads a `Retry-After`: seconds, or a date. A date is counted from what the server's own clock says (its `Date`), since
/// ours need not agree; from `now` if it does not say. A date that is past means at once.
pub fn told(header: Option<&str>, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let header = header?.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)));
    }
    let then = httpdate::parse_http_date(header).ok()?;
    let from = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok()).unwrap_or(now);
    Some(then.duration_since(from).unwrap_or_default())
}

/// Whether a status says "later": too many requests, a time-out, or a fault of the server's own.
pub fn passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599) && !matches!(status, 501 | 505)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    fn patience() -> Patience {
        Patience {
            attempts: 5,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(4),
            ..Patience::default()
        }
    }

    #[test]
    fn a_pause_doubles_up_to_the_longest() {
        let mut dice = StdRng::seed_from_u64(1);
        for (failed, most) in [(1, 1.0), (2, 2.0), (3, 4.0), (4, 4.0)] {
            let pause = patience().pause_after(failed, Again::After(None), &mut dice).unwrap().as_secs_f64();
            assert!((most / 2.0..=most).contains(&pause), "{failed}: {pause}");
        }
        assert_eq!(patience().pause_after(5, Again::After(None), &mut dice), None);
    }

    #[test]
    fn the_server_is_obeyed_within_bounds() {
        let mut dice = StdRng::seed_from_u64(1);
        let mut after =
            |seconds| patience().pause_after(1, Again::After(Some(Duration::from_secs(seconds))), &mut dice);
        assert_eq!(after(3), Some(Duration::from_secs(3)));
        assert_eq!(after(0), Some(Duration::ZERO));
        assert_eq!(after(5), None);
        assert_eq!(patience().pause_after(1, Again::Never, &mut dice), None);
    }

    #[test]
    fn a_header_is_seconds_or_a_date() {
        let (at, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:50:07 GMT");
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:57 GMT").unwrap();
        for (header, date, wanted) in [
            ("7", None, Some(7)),
            (" 0 ", None, Some(0)),
            ("-1", None, None),
            ("soon", None, None),
            ("NaN", None, None),
            (later, Some(at), Some(30)),
            (later, None, Some(10)),
            (later, Some("yesterday"), Some(10)),
            (at, Some(later), Some(0)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", Some(at), Some(30)),
            ("Sun Nov  6 08:50:07 1994", Some(at), Some(30)),
            ("Sun, 36 Nov 1994 08:50:07 GMT", Some(at), None),
        ] {
            assert_eq!(told(Some(header), date, now), wanted.map(Duration::from_secs), "{header}");
        }
        assert_eq!(told(None, Some(at), now), None);
    }
}
