//! People whom a narrator has brought in: they are where they were brought in, and can be spoken to. The kernel knows nothing of
//! what they know, so it is the narrator who tells what they say.

use super::Play;
use super::unclear::cannot;
use crate::refs::normal;
use crate::rule::Effect;
use acheron_base::Result;

/// Speaks to the person whom the move names, if a narrator has brought in one of that name. False where it names none.
pub(super) fn run(play: &mut Play<'_>) -> Result<bool> {
    let said = format!(" {} ", normal(&play.found.body));
    let brought = play.state.memory.brought.iter();
    let named = brought.into_iter().find(|(stem, _)| said.contains(&format!(" {} ", normal(&stem.replace('_', " ")))));
    let Some((stem, place)) = named.map(|(stem, place)| (stem.clone(), place.clone())) else { return Ok(false) };
    let name = name(&stem);
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

/// The name of a person by the name of the page: `old_zelda` is Old Zelda.
fn name(stem: &str) -> String {
    stem.split('_').map(crate::grammar::capital).collect::<Vec<_>>().join(" ")
}
