//! Going: by the map, through places that may be passed, at a pace where the way is long.

use super::Play;
use super::unclear::cannot;
use crate::grammar::{joined, sentence, the};
use crate::known::known;
use crate::mechanics::survival::{self, Pace};
use crate::rule::Effect;
use crate::world::Object;
use acheron_base::Result;

pub(super) fn travel(play: &mut Play<'_>, place: &Object) -> Result<()> {
    let world = play.world;
    if place.handle == play.state.location {
        play.row(format!("go to {}", the(&place.name)), "already here");
        play.out.action = format!("You are already at {}.", the(&place.name));
        play.out.no_progress = Some("this is the place".into());
        return Ok(());
    }
    let pass =
        |state: &super::State, at: &str| state.seen.iter().any(|own| own == at) && state.shut(at, world).is_none();
    let hidden = play.state.status(world, &place.handle) == "hidden";
    let mut way = world.map.route(&play.state.location, &place.handle, |at| pass(&play.state, at)).filter(|_| !hidden);
    if let Some((_, at)) = way.as_ref().and_then(|way| barrier(play, &way.steps)) {
        // Another way round, if there is one.
        let round = world.map.route(&play.state.location, &place.handle, |own| own != at && pass(&play.state, own));
        way = round.filter(|way| barrier(play, &way.steps).is_none()).or(way);
    }
    let Some(way) = way else {
        // A place that is hidden, and one that does not exist, have the same answer.
        let why = match known(&play.state, world, place) {
            true => {
                format!("no known way leads from here to {}: explore what lies next to here first", the(&place.name))
            }
            false => "no place of that name is known".to_owned(),
        };
        cannot(play, why);
        return Ok(());
    };
    if let Some(gate) = play.state.shut(&place.handle, world) {
        let why = match gate.reason.as_str() {
            "" => format!("{} is shut: {}", the(&place.name), crate::play::step::lacking(play, &gate.open_when)),
            reason => reason.to_owned(),
        };
        play.effect(&Effect::Minutes(5))?;
        play.out.action = "You go as far as the way is open, and come back.".into();
        play.impossible(why, "find what opens it, and come back; or ask those who live here for another way");
        return Ok(());
    }
    if let Some((npc, at)) = barrier(play, &way.steps) {
        return stopped(play, &npc, &at);
    }
    let Walk { minutes, told, sky } = pace(play, way.minutes, way.km)?;
    let through: Vec<String> =
        way.steps[1..way.steps.len().saturating_sub(1)].iter().map(|at| the(world.name(at))).collect();
    let by = if through.is_empty() { String::new() } else { format!(" leads by {},", joined(&through)) };
    play.out.action = format!("The way{by} takes {} and ends at {}.", spoken(minutes), the(&place.name));
    let fresh = !play.state.seen.contains(&place.handle);
    play.effect(&Effect::Move(place.handle.clone()))?;
    play.effect(&Effect::Minutes(minutes))?;
    play.row(
        format!("go to {}", the(&place.name)),
        if told.is_empty() { "arrived".into() } else { format!("arrived ({told})") },
    );
    if fresh {
        play.discover(&place.handle, place);
        // A secret way has no passers-by.
        let last = way.steps.iter().rev().nth(1).map(String::as_str).unwrap_or_default();
        if world.map.ways(last).iter().any(|(to, _, kind)| *to == place.handle && *kind != "secret") {
            meet(play, &sky);
        }
    }
    Ok(())
}

/// The first person on the way who bars it, and where they stand.
fn barrier(play: &Play<'_>, steps: &[String]) -> Option<(Object, String)> {
    steps.windows(2).find_map(|pair| {
        let npc = play.state.barred(&pair[0], &pair[1], play.world)?;
        Some((npc.clone(), pair[0].clone()))
    })
}

/// Stops at somebody who bars the way: here it takes a moment and has what follows; from afar it is not begun.
fn stopped(play: &mut Play<'_>, npc: &Object, at: &str) -> Result<()> {
    if at != play.state.location {
        cannot(play, format!("{} bars the way at {}", npc.name, the(play.world.name(at))));
        return Ok(());
    }
    let threat = npc.field("threat");
    play.out.action = if threat.is_empty() { format!("{} does not let you pass.", npc.name) } else { sentence(threat) };
    play.effect(&Effect::Minutes(5))?;
    play.impossible(format!("{} bars the way", npc.name), "pay, make peace or fight; the way back is open");
    Ok(())
}

/// Minutes in words: `25 minutes`, `3 hours`.
pub(crate) fn spoken(minutes: u64) -> String {
    let hours = match minutes / 60 {
        1 => "an hour".to_owned(),
        hours => format!("{hours} hours"),
    };
    let left = match minutes % 60 {
        1 => "a minute".to_owned(),
        left => format!("{left} minutes"),
    };
    match (minutes / 60, minutes % 60) {
        (0, _) => left,
        (_, 0) => hours,
        (_, 1..5) => format!("a little over {hours}"),
        _ => format!("{hours} and {left}"),
    }
}

/// How a way is walked: how long, in what words, under which sky.
struct Walk {
    minutes: u64,
    told: String,
    sky: String,
}

/// The minutes of a way. A way with kilometres takes as long as the pace, the load and the weather let it.
fn pace(play: &mut Play<'_>, minutes: u64, km: u64) -> Result<Walk> {
    if km == 0 {
        return Ok(Walk { minutes, told: String::new(), sky: String::new() });
    }
    let body = play.found.body.to_lowercase();
    let has = |word: &str| body.contains(word);
    let pace = match () {
        () if has("slow") || has("careful") => Pace::Slow,
        () if has("forced") || has("hurry") || has("run") || has("fast") => Pace::Forced,
        () => Pace::March,
    };
    let pace = if play.load().1 { pace } else { Pace::Slow };
    let ((least, most), hours, fatigue) = survival::march(pace);
    let sky = weather(play);
    let slows = survival::rain(&sky);
    let per_day = (least + most) / 2 * slows / 100;
    let took = minutes + km * hours * 60 / per_day.max(1);
    play.state.fatigue = (play.state.fatigue + fatigue).clamp(0, 5);
    let pace = match pace {
        Pace::Slow => "slowly",
        Pace::March => "at a march",
        Pace::Forced => "at a forced march, fatigue +1",
    };
    // Any other kind of weather is for the eye.
    let rain = if slows < 100 { format!(", {sky}") } else { String::new() };
    Ok(Walk { minutes: took, told: format!("{km} km {pace}{rain}"), sky })
}

/// The kind of weather of a long way: a throw on the cartridge's table `Weather`. Empty where it has none.
fn weather(play: &mut Play<'_>) -> String {
    let Some(table) = play.world.tables.iter().find(|table| table.name == "Weather") else { return String::new() };
    let night = play.state.time.night();
    let row = table.throw_fitting(&mut play.dice, |row| fits(row, night, ""));
    let (event, kind) = (row.first().cloned().unwrap_or_default(), row.get(1).cloned().unwrap_or_default());
    if !event.is_empty() {
        play.event(event);
    }
    kind
}

/// Whether a row of a table fits the hour and the sky, by its notes: `day`, `night`, `clear`.
fn fits(row: &[String], night: bool, sky: &str) -> bool {
    let notes = row.get(2).map(String::as_str).unwrap_or_default();
    let covered = ["light rain", "heavy rain", "cloud"].contains(&sky);
    notes.split([',', ' ']).all(|word| match word {
        "day" => !night,
        "night" => night,
        "clear" => !covered,
        _ => true,
    })
}

/// A new place has something to meet, where the cartridge has a table for it.
fn meet(play: &mut Play<'_>, sky: &str) {
    let night = play.state.time.night();
    let name = if night { "Night" } else { "Travel" };
    if let Some(table) = play.world.tables.iter().find(|table| table.name == name) {
        // What was not met yet comes first.
        let noted = &play.state.memory.noted;
        let fresh = |row: &[String]| row.first().is_some_and(|event| !noted.contains(event));
        let any = table.rows.iter().any(|row| fits(row, night, sky) && fresh(row));
        let fit = |row: &[String]| fits(row, night, sky) && (!any || fresh(row));
        let row = table.throw_fitting(&mut play.dice, fit);
        if let Some(event) = row.first() {
            play.state.memory.note(event);
            play.event(event.clone());
        }
    }
}
