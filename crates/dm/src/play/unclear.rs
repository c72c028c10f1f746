//! What is not understood: it costs no time, and the player is told what would be understood here.

use super::Play;
use crate::grammar::the;
use crate::hud::{exits, people, things};
use crate::world::Object;

/// Answers a move that means nothing that can be done here. Nothing changes in the world.
pub(super) fn not_understood(play: &mut Play<'_>, why: impl Into<String>) {
    play.row(play.what(), "not understood");
    play.out.action = "Nothing is done, and no time passes.".into();
    play.out.no_progress = Some(why.into());
    play.out.hints = hints(play);
}

/// Answers a move that is understood and cannot be done, by a reason that stands in the world. No time passes.
pub(super) fn cannot(play: &mut Play<'_>, why: impl Into<String>) {
    play.row(play.what(), "impossible");
    play.out.action = "It cannot be done.".into();
    play.out.no_progress = Some(why.into());
    play.out.hints = hints(play);
}

/// What can be done here, by kind, in the player's words.
pub(super) fn hints(play: &Play<'_>) -> Vec<String> {
    let (state, world) = (&play.state, play.world);
    let line = |verb: &str, names: Vec<String>| (!names.is_empty()).then(|| format!("{verb} {}", names.join(", ")));
    let names = |list: Vec<&str>| list.into_iter().take(4).map(the).collect::<Vec<_>>();
    let for_sale = |item: &&Object| people(state, world).any(|npc| npc.handle == item.field("seller"));
    let open = |place: &&Object| state.barred(&state.location, &place.handle, world).is_none();
    let (sold, free): (Vec<&Object>, Vec<&Object>) = things(state, world).partition(for_sale);
    let carried = state.inventory.iter().map(|item| world.name(item)).collect();
    [
        line("[ACT] go to", names(exits(state, world).filter(open).map(|place| place.name.as_str()).collect())),
        line("[ACT] take", names(free.into_iter().map(|item| item.name.as_str()).collect())),
        line("[ACT] buy", names(sold.into_iter().map(|item| item.name.as_str()).collect())),
        line("[ACT] use, drop or give", names(carried)),
        line("[ASK]", names(people(state, world).map(|npc| npc.name.as_str()).collect())),
        Some("[LOOK] around, or at anything that is named here".to_owned()),
        Some("[ACT] wait, rest, eat, inventory; anything else with --risk low, mid or high".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
