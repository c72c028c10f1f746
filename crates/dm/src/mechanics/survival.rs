//! Survival: hunger, thirst, load, rest, march. The tables by days are the canonical ones.

/// The penalty of hunger on every check, by days without food.
pub fn hunger(days: u64) -> i64 {
    match days {
        0 | 1 => 0,
        2 | 3 => -1,
        _ => -2,
    }
}

pub fn thirst(days: u64) -> i64 {
    match days {
        0 | 1 => 0,
        2 => -1,
        3 => -2,
        _ => -3,
    }
}

/// The penalty of a load in pounds; above 150 pounds running is impossible.
pub fn load(pounds: u64) -> (i64, bool) {
    match pounds {
        0..=50 => (0, true),
        51..=100 => (-1, true),
        101..=150 => (-2, true),
        _ => (-5, false),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    Short,
    Long,
    Complete,
}

/// The effect of a rest: minutes, hit points (rolled or all), fatigue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rested {
    pub minutes: u64,
    pub hp: i64,
    pub fatigue: i64,
}

/// `thrown` is a d6, which only the short rest uses. Without shelter a long rest gives half and tires.
pub fn rest(kind: Rest, full: i64, thrown: i64, sheltered: bool) -> Rested {
    match (kind, sheltered) {
        (Rest::Short, _) => Rested { minutes: 60, hp: thrown, fatigue: 0 },
        (Rest::Long, true) => Rested { minutes: 480, hp: full, fatigue: -1 },
        (Rest::Long, false) => Rested { minutes: 480, hp: full / 2, fatigue: 1 },
        (Rest::Complete, _) => Rested { minutes: 1440, hp: full, fatigue: -full },
    }
}

/// How words name a rest.
pub fn named(words: &str) -> Option<Rest> {
    let lower = words.to_lowercase();
    let has = |word: &str| lower.contains(word);
    match () {
        () if has("complete rest") || has("whole day") => Some(Rest::Complete),
        () if has("long rest") || has("sleep") || has("night") => Some(Rest::Long),
        () if has("rest") || has("breath") || has("休息") => Some(Rest::Short),
        () => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Slow,
    March,
    Forced,
}

/// Kilometres of a day (least and most), hours, fatigue.
pub fn march(pace: Pace) -> ((u64, u64), u64, i64) {
    match pace {
        Pace::Slow => ((16, 20), 6, 0),
        Pace::March => ((24, 32), 8, 0),
        Pace::Forced => ((40, 48), 10, 1),
    }
}

/// The distance that remains possible in rain, in per cent.
pub fn rain(kind: &str) -> u64 {
    match kind {
        "light rain" => 90,
        "heavy rain" => 70,
        _ => 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_74_days_and_pounds() {
        assert_eq!([1, 2, 4].map(hunger), [0, -1, -2]);
        assert_eq!(thirst(3), -2);
        assert_eq!(load(120), (-2, true));
        assert_eq!(load(151), (-5, false));
    }

    #[test]
    fn a_long_rest_under_the_sky_gives_half_and_tires() {
        assert_eq!(rest(Rest::Long, 12, 0, false), Rested { minutes: 480, hp: 6, fatigue: 1 });
        assert_eq!(rest(Rest::Short, 12, 4, false).hp, 4);
        assert_eq!(named("take a short rest"), Some(Rest::Short));
        assert_eq!(named("sleep at the inn"), Some(Rest::Long));
        assert_eq!(march(Pace::Forced), ((40, 48), 10, 1));
        assert_eq!(rain("heavy rain"), 70);
    }
}
