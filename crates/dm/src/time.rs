//! Time in the world: `day 2, 08:40`. A panel with any other text keeps it, and minutes are counted beside it.

use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Time {
    minutes: u64,
    /// The text of the panel, if it is not a day and an hour.
    label: Option<String>,
}

impl Time {
    pub fn read(text: &str) -> Self {
        if let Some(minutes) = day_and_hour(text) {
            return Time { minutes, label: None };
        }
        let counted =
            text.rsplit_once(" +").and_then(|(label, rest)| Some((label, rest.strip_suffix(" min")?.parse().ok()?)));
        let (label, minutes) = counted.unwrap_or((text, 0));
        Time { minutes, label: Some(label.to_owned()) }
    }

    pub fn pass(&mut self, minutes: u64) {
        self.minutes = self.minutes.saturating_add(minutes);
    }

    pub fn minutes(&self) -> u64 {
        self.minutes
    }

    /// Whether it is a day and an hour, and not a label of another hand.
    pub fn is_dated(&self) -> bool {
        self.label.is_none()
    }

    pub fn night(&self) -> bool {
        self.label.is_none() && !(6 * 60..20 * 60).contains(&(self.minutes % (24 * 60)))
    }
}

fn day_and_hour(text: &str) -> Option<u64> {
    let (day, hour) = text.strip_prefix("day ")?.split_once(", ")?;
    let (hours, minutes) = hour.split_once(':')?;
    let (day, hours, minutes): (u64, u64, u64) = (day.parse().ok()?, hours.parse().ok()?, minutes.parse().ok()?);
    let lawful = (1..1_000_000).contains(&day) && hours < 24 && minutes < 60;
    lawful.then(|| ((day - 1) * 24 + hours) * 60 + minutes)
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.label {
            Some(label) if self.minutes == 0 => f.write_str(label),
            Some(label) => write!(f, "{label} +{} min", self.minutes),
            None => {
                let (days, rest) = (self.minutes / (24 * 60), self.minutes % (24 * 60));
                write!(f, "day {}, {:02}:{:02}", days + 1, rest / 60, rest % 60)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_passes_in_either_calendar() {
        for (before, after) in [
            ("day 1, 23:30", "day 2, 00:30"),
            ("after the flood", "after the flood +60 min"),
            ("after the flood +5 min", "after the flood +65 min"),
        ] {
            let mut time = Time::read(before);
            assert_eq!(time.to_string(), before);
            time.pass(60);
            assert_eq!(time.to_string(), after);
        }
    }
}
