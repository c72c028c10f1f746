//! Passing time: waiting and resting.

use super::Play;
use super::travel::spoken;
use super::unclear::cannot;
use crate::hud::people;
use crate::mechanics::survival::{self, Rest};
use crate::refs::normal;
use crate::rule::Effect;
use crate::state::FULL_HP;
use crate::water::{self, Water};
use acheron_base::Result;

const DAY: u64 = 24 * 60;

/// Waits: as long as the words say, else half an hour.
pub(super) fn wait(play: &mut Play<'_>, words: &str) -> Result<()> {
    let named = until(play, words);
    let minutes = match named.map_or_else(|| span(&play.found.body), |minutes| Ok(Some(minutes))) {
        Ok(None) if normal(words).split(' ').any(|word| ["until", "till"].contains(&word)) => {
            cannot(play, "one waits until morning, noon, evening or night, or for minutes, hours or days");
            return Ok(());
        }
        Ok(minutes) => minutes.unwrap_or(30),
        Err(why) => {
            cannot(play, why);
            return Ok(());
        }
    };
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
    let hours = hours.chain([("daybreak", 6), ("afternoon", 14), ("sundown", 19), ("nightfall", 20), ("dark", 20)]);
    let words = normal(words);
    let hour = hours.into_iter().find(|(name, _)| words.split(' ').any(|word| word == *name))?.1;
    let now = play.state.time.minutes() % DAY;
    Some((hour * 60 + DAY - now - 1) % DAY + 1)
}

/// A span of time in words: `two hours`, `40 minutes`, `half an hour`.
fn span(body: &str) -> Result<Option<u64>, &'static str> {
    const RANGE: &str = "one waits for minutes, hours or days, and at most two days at a time";
    let text = normal(body);
    let words: Vec<&str> = text.split(' ').collect();
    let unit = |word: &str| match word {
        "minute" | "minutes" | "min" => Some(1),
        "hour" | "hours" | "h" => Some(60),
        "day" | "days" => Some(DAY),
        "week" | "weeks" | "month" | "months" | "year" | "years" => Some(100 * DAY),
        _ => None,
    };
    let Some((at, unit)) = words.iter().enumerate().find_map(|(at, word)| Some((at, unit(word)?))) else {
        return Ok(None);
    };
    if body
        .split_whitespace()
        .any(|word| word.starts_with(['-', '−']) && word[1..].contains(|c: char| c.is_ascii_digit()))
    {
        return Err("time does not run backwards");
    }
    if words[..at].contains(&"half") {
        return Ok(Some((unit / 2).max(1)));
    }
    let before = words.get(at.wrapping_sub(1)).copied().unwrap_or("a");
    let count = match NUMBERS.iter().position(|own| *own == before) {
        Some(number) => number as u64,
        None if before.starts_with(|c: char| c.is_ascii_digit()) => before.parse().map_err(|_| RANGE)?,
        None => 1,
    };
    count.checked_mul(unit).filter(|minutes| (1..=2 * DAY).contains(minutes)).ok_or(RANGE).map(Some)
}

const NUMBERS: [&str; 13] =
    ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Rests: short, long, a whole day, until an hour, or as long as the words say.
pub(super) fn rest(play: &mut Play<'_>, words: &str) -> Result<()> {
    let said = match span(words) {
        Ok(Some(..60)) => Err("a rest takes an hour at least; one may wait for less"),
        other => other,
    };
    let named = match until(play, words).map_or(said, |minutes| Ok(Some(minutes))) {
        Ok(minutes) => minutes,
        Err(why) => {
            cannot(play, why);
            return Ok(());
        }
    };
    let kind = match named {
        Some(DAY..) if survival::named(words) == Some(Rest::Complete) || until(play, words).is_none() => Rest::Complete,
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
    // Where somebody is at home there is a bowl for a guest; water is where the place has it.
    let host = people(&play.state, play.world).any(|npc| play.state.mood(npc) != "hostile");
    let water = play.world.object(&play.state.location).is_some_and(|own| water::at(&play.state, own) == Water::Good);
    if sheltered && host && kind != Rest::Short {
        play.state.ate = play.state.time.minutes();
    }
    if water && kind != Rest::Short {
        play.state.memory.drank = play.state.time.minutes();
    }
    Ok(())
}
