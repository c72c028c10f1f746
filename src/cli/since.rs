//! Times as people write them: `2h`, `yesterday`, `2026-11-18`; and as lines show them. UTC.

use acheron_base::{Clock, Error, Result, quoted};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The time now: a user says `yesterday`, and wants to know how old something is.
pub fn now_ms() -> u64 {
    Clock::real().now_ms()
}

/// The time that a word means, in milliseconds since 1970.
pub fn parse(word: &str, now_ms: u64) -> Result<u64> {
    let today = now_ms - now_ms % DAY_MS;
    let at = match word {
        "today" => Some(today),
        "yesterday" => Some(today.saturating_sub(DAY_MS)),
        word => date(word).or_else(|| Some(now_ms.saturating_sub(span(word)?))),
    };
    at.ok_or_else(|| {
        Error::invalid(format!("{} is not a time; write 30m, 2h, 7d, today, yesterday or 2026-11-18", quoted(word)))
    })
}

/// A number and a unit.
fn span(word: &str) -> Option<u64> {
    let unit = match word.chars().last()? {
        's' => 1000,
        'm' => 60 * 1000,
        'h' => 60 * 60 * 1000,
        'd' => DAY_MS,
        'w' => 7 * DAY_MS,
        _ => return None,
    };
    word[..word.len() - 1].parse::<u64>().ok()?.checked_mul(unit)
}

/// `2026-11-18`, and `2026-11-18T02:40` or `2026-11-18 02:40:11`.
fn date(text: &str) -> Option<u64> {
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, by| text.split(by).map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>();
    let [year, month, day] = numbers(day, '-')?[..] else { return None };
    let (hour, minute, second) = match numbers(time.trim_end_matches('Z'), ':')?[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let exists = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !exists || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some((days(year, month, day) * 24 * 3600 + hour * 3600 + minute * 60 + second) * 1000)
}

/// The days from 1970 to a date: years begin in March, so that a leap day is the last of its year.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    before - 719_468
}

/// A time as a line shows it.
pub fn shown(at_ms: u64) -> String {
    let (days_since, second) = (at_ms / DAY_MS, at_ms / 1000 % (24 * 3600));
    let day = days_since + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, year) =
        if month < 10 { (month + 3, era * 400 + year_of_era) } else { (month - 9, era * 400 + year_of_era + 1) };
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let now = date("2026-11-18T02:40:11").unwrap();
        let at = |word: &str| shown(parse(word, now).unwrap());
        assert_eq!(at("2h"), "2026-11-18 00:40:11");
        assert_eq!(at("yesterday"), "2026-11-17 00:00:00");
        assert_eq!(at("today"), "2026-11-18 00:00:00");
        assert_eq!(at("2024-02-29"), "2024-02-29 00:00:00");
        assert_eq!(at("2000-03-01 23:59"), "2000-03-01 23:59:00");
        assert_eq!(at("1970-01-01"), "1970-01-01 00:00:00");
        assert_eq!(at("100000d"), "1970-01-01 00:00:00", "before the first");
        for wrong in ["", "h", "soon", "-1h", "2026-13-01", "2026-11-18T25:00", "99999999999999999999d", "2é"] {
            assert!(parse(wrong, now).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_day_is_shown_as_it_is_read() {
        for day in 0..60_000 {
            let text = shown(day * DAY_MS);
            assert_eq!(date(&text), Some(day * DAY_MS), "{text}");
        }
    }
}
