//! People whom a narrator has brought in: they are where they were brought in, and can be spoken to. The kernel knows nothing of
//! what they know, so it is the narrator who tells what they say.

use super::Play;
use super::unclear::cannot;
use crate::hud::brought_name;
use crate::refs::normal;
use crate::rule::Effect;
use acheron_base::Result;

/// Speaks to the person whom the move names, if a narrator has brought in one of that name. False where it names none.
pub(super) fn run(play: &mut Play<'_>) -> Result<bool> {
    let said = format!(" {} ", normal(&play.found.body));
    let Some((stem, place)) = named(play, &said) else { return Ok(false) };
    let name = brought_name(&stem);
    if place != play.state.location {
        cannot(play, format!("{name} is not here"));
        return Ok(true);
    }
    play.effect(&Effect::Minutes(2))?;
    let answered = play.judged.narrated;
    play.out.action = format!("{name} listens, and has nothing to say to that.");
    play.row(format!("talk to {name}"), if answered { "answered" } else { "nothing to say" });
    if !answered {
        play.out.no_progress = Some(format!("{name} is a bystander, and knows nothing of the story"));
    }
    Ok(true)
}

/// The person whom the words name: by the whole name, else by a part of it that means nobody else. Those who are here come first.
fn named(play: &Play<'_>, said: &str) -> Option<(String, String)> {
    let brought = &play.state.memory.brought;
    let has = |word: &str| said.contains(&format!(" {word} "));
    let whole = brought.iter().find(|(stem, _)| has(&normal(&stem.replace('_', " "))));
    let of_world = |word: &str| {
        let mut objects = play.refs.iter().filter_map(|own| play.world.object(own));
        objects.any(|own| normal(&own.name).split(' ').any(|part| part == word))
    };
    let part = |(stem, _): &(&String, &String)| {
        normal(&stem.replace('_', " ")).split(' ').any(|word| word.len() > 2 && has(word) && !of_world(word))
    };
    let mut parts: Vec<(&String, &String)> = brought.iter().filter(part).collect();
    parts.sort_by_key(|(_, place)| **place != play.state.location);
    whole.or(parts.first().copied()).map(|(stem, place)| (stem.clone(), place.clone()))
}

/// Looks at such a person. False where the move names none who is here.
pub(super) fn look(play: &mut Play<'_>) -> Result<bool> {
    let said = format!(" {} ", normal(&play.found.body));
    let found = named(play, &said).filter(|(_, place)| *place == play.state.location);
    let Some((stem, _)) = found else { return Ok(false) };
    let name = brought_name(&stem);
    play.out.action = format!("{name} is here, as the story has told.");
    play.row(format!("look at {name}"), "seen");
    play.out.said = true;
    Ok(true)
}
