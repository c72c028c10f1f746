//! Passing time: waiting and resting.

use super::Play;
use super::travel::spoken;
use crate::mechanics::survival::{self, Rest};
use crate::refs::normal;
use crate::rule::Effect;
use crate::state::FULL_HP;
use acheron_base::Result;

const DAY: u64 = 24 * 60;

/// Waits: as long as the words say, else half an hour.
pub(super) fn wait(play: &mut Play<'_>, words: &str) -> Result<()> {
    let minutes = until(play, words).or_else(|| span(words)).unwrap_or(30).clamp(1, 2 * DAY);
    play.out.action = format!("Time passes: {}.", spoken(minutes));
    play.effect(&Effect::Minutes(minutes))?;
    play.row("wait", spoken(minutes));
    Ok(())
}

/// The minutes until the hour that the words name.
fn until(play: &Play<'_>, words: &str) -> Option<u64> {
    let hours = [("morning", 7), ("dawn", 6), ("sunrise", 6), ("noon", 12), ("midday", 12), ("evening", 18)];
    let hours =
        hours.into_iter().chain([("dusk", 19), ("sunset", 19), ("night", 21), ("midnight", 0), ("tomorrow", 7)]);
    let words = normal(words);
    let hour = hours.into_iter().find(|(name, _)| words.split(' ').any(|word| word == *name))?.1;
    let now = play.state.time.minutes() % DAY;
    Some((hour * 60 + DAY - now - 1) % DAY + 1)
}

/// A span of time in words: `two hours`, `40 minutes`, `an hour`.
fn span(words: &str) -> Option<u64> {
    let words = normal(words);
    let words: Vec<&str> = words.split(' ').collect();
    let unit = |word: &str| match word {
        "minute" | "minutes" | "min" => Some(1),
        "hour" | "hours" | "h" => Some(60),
        "day" | "days" => Some(DAY),
        _ => None,
    };
    let at = words.iter().position(|word| unit(word).is_some())?;
    let count = match words.get(at.wrapping_sub(1)).copied().unwrap_or("a") {
        "a" | "an" | "one" => 1,
        "two" => 2,
        "three" => 3,
        "four" => 4,
        "six" => 6,
        "eight" => 8,
        "half" => return Some(30),
        number => number.parse().ok().filter(|count| *count <= 1000).unwrap_or(1),
    };
    Some(count * unit(words[at])?)
}

/// Rests: short, long, a whole day, or until an hour.
pub(super) fn rest(play: &mut Play<'_>, words: &str) -> Result<()> {
    let named = until(play, words);
    let kind = match named {
        Some(minutes) if minutes >= 6 * 60 => Rest::Long,
        Some(_) => Rest::Short,
        None => survival::named(words).unwrap_or(Rest::Short),
    };
    let place = play.world.object(&play.state.location);
    let sheltered = place.is_some_and(|place| place.field("shelter") == "yes");
    let thrown = if kind == Rest::Short { i64::from(play.dice.throw(6, "short rest")) } else { 0 };
    let rested = survival::rest(kind, FULL_HP, thrown, sheltered);
    let minutes = named.unwrap_or(rested.minutes);
    play.out.action = if sheltered {
        "There is a roof, and a door that shuts.".into()
    } else {
        "There is no bed here, and the rest is poor.".into()
    };
    let name = match kind {
        Rest::Short => "short rest",
        Rest::Long => "long rest",
        Rest::Complete => "complete rest",
    };
    let (hp, fatigue) = (play.state.hp, play.state.fatigue);
    play.effect(&Effect::Minutes(minutes))?;
    play.effect(&Effect::Hp(rested.hp))?;
    play.state.fatigue = (fatigue + rested.fatigue).clamp(0, 5);
    play.row(
        name,
        format!("{}: HP {:+}, fatigue {:+}", spoken(minutes), play.state.hp - hp, play.state.fatigue - fatigue),
    );
    if sheltered && kind != Rest::Short {
        play.state.ate = play.state.time.minutes();
        play.state.memory.drank = play.state.time.minutes();
    }
    Ok(())
}
