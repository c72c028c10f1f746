//! What the player knows: the places, people and things that play has shown. Whatever a player reads names nothing else.
//! `menu`, `campaign_pages` and the plays of things and looks use it.

use crate::hud::{people, things};
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind, Stage};

/// Whether play has shown this object to the player.
pub fn known(state: &State, world: &Cartridge, object: &Object) -> bool {
    let told = state.memory.noted.contains(&object.handle);
    match object.kind {
        ObjectKind::Loc => reachable(state, world, &object.handle),
        ObjectKind::Npc => {
            let met = state.seen.iter().any(|place| place == state.place_of(object));
            told || met && state.status(world, &object.handle) == "active" || here(people(state, world), object)
        }
        ObjectKind::Item => {
            told || state.status(world, &object.handle) == "gone"
                || state.inventory.contains(&object.handle)
                || here(things(state, world), object)
        }
        ObjectKind::Quest | ObjectKind::Faction => true,
    }
}

fn here<'a>(mut all: impl Iterator<Item = &'a Object>, object: &Object) -> bool {
    all.any(|own| own.handle == object.handle)
}

/// The note that a place was searched to the end.
pub fn searched(place: &str) -> String {
    format!("searched {place}")
}

/// Whether the place was visited, or a way that is known leads there.
fn reachable(state: &State, world: &Cartridge, place: &str) -> bool {
    let visited = |own: &str| state.seen.iter().any(|seen| seen == own);
    let open = state.status(world, place) != "hidden" && world.map.known(place);
    visited(place) || open && world.map.path(&state.location, place, visited).is_some()
}

/// A goal of a quest in the player's terms: whom or what and where, as far as that is known; else the quest's own sentence.
pub fn goal(state: &State, world: &Cartridge, quest: &str, stage: &Stage) -> String {
    let at = stage.at.as_deref().unwrap_or(state.location.as_str());
    let is_known = |handle: &str| world.object(handle).is_none_or(|object| known(state, world, object));
    // Where nobody has been yet there is at most a way; what is there shows on arrival.
    if !state.seen.iter().any(|own| own == at) {
        if reachable(state, world, at) && state.shut(at, world).is_none() {
            return format!("go to {at}");
        }
        let about = world.object(quest).map_or("", |own| own.summary.as_str());
        return if about.is_empty() { "look around".to_owned() } else { about.to_owned() };
    }
    match stage.target.as_str() {
        "" => format!("look at {at}"),
        target if is_known(target) => format!("{target} at {at}"),
        _ => format!("look around at {at}"),
    }
}
