//! Acting: what the first verb plainly means; without a known verb, what is named; else a risk that is declared.

use super::{Play, fight, look, manage, pass, talk, things, travel};
use crate::check::Tier;
use crate::hud::{self, people};
use crate::known::known;
use crate::play::unclear::{cannot, not_understood};
use crate::refs::normal;
use crate::rule::Effect;
use crate::verbs::{Verb, seeks};
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let spoken =
        |kind: ObjectKind| play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == kind);
    // A place that is not known is answered as one that does not exist.
    let place = spoken(ObjectKind::Loc).filter(|own| known(&play.state, world, own));
    let (item, npc) = (spoken(ObjectKind::Item), spoken(ObjectKind::Npc));
    let rest = play.rest();
    match play.verb() {
        Some(Verb::Inventory) => manage::inventory(play),
        Some(Verb::Status) => manage::status(play),
        Some(Verb::Map) => manage::map(play),
        Some(Verb::Wait) => pass::wait(play, &rest)?,
        Some(Verb::Rest) => pass::rest(play, &play.found.body.clone())?,
        Some(Verb::Look | Verb::Search | Verb::Read) => look::run(play)?,
        Some(Verb::Talk | Verb::Interrogate | Verb::Apologise) => talk::run(play)?,
        Some(Verb::Fight) => fight::run(play)?,
        Some(Verb::Cast) => look::cast(play)?,
        Some(Verb::Impossible(why)) => cannot(play, why),
        Some(Verb::Go) => go(play, place, npc)?,
        Some(Verb::Leave) if item.is_some() => things::run(play, Verb::Drop, item)?,
        Some(Verb::Leave) => leave(play)?,
        Some(Verb::Flee) => flee(play, place)?,
        Some(Verb::Use) if item.is_none() => free(play)?,
        Some(Verb::Take) if item.is_none() && everything(play) => {
            let here = people(&play.state, world);
            let sellers: Vec<&str> = here.map(|npc| npc.handle.as_str()).collect();
            let free = hud::things(&play.state, world).filter(|own| !sellers.contains(&own.field("seller")));
            let all: Vec<Object> = free.cloned().collect();
            things::several(play, Verb::Take, &all.iter().collect::<Vec<_>>())?;
        }
        Some(verb @ (Verb::Take | Verb::Drop)) if several(play) => {
            let all = play.refs.iter().filter_map(|own| world.object(own));
            let all: Vec<&Object> = all.filter(|own| own.kind == ObjectKind::Item).collect();
            things::several(play, verb, &all)?;
        }
        Some(verb) => things::run(play, verb, item)?,
        // A bare name is enough; a name among other words is no order that is known.
        None => match (place, item) {
            (Some(place), None) if play.other_words().is_empty() => travel::travel(play, place)?,
            (_, Some(item)) if play.other_words().is_empty() => things::handle(play, item)?,
            _ => free(play)?,
        },
    }
    Ok(())
}

/// Whether the words mean all that lies here, and something does.
fn everything(play: &Play<'_>) -> bool {
    let words = play.other_words();
    let all = words.iter().all(|word| ["everything", "all", "things", "it"].contains(&word.as_str()));
    let here: Vec<&str> = people(&play.state, play.world).map(|npc| npc.handle.as_str()).collect();
    let mut free = hud::things(&play.state, play.world).filter(|own| !here.contains(&own.field("seller")));
    !words.is_empty() && all && free.next().is_some()
}

/// Whether the words put several things into one list.
fn several(play: &Play<'_>) -> bool {
    let body = play.found.body.to_lowercase();
    let things = play.refs.iter().filter_map(|own| play.world.object(own)).filter(|own| own.kind == ObjectKind::Item);
    things.count() > 1 && (body.contains(" and ") || body.contains(','))
}

/// Goes to the place that is named, or to the person.
fn go(play: &mut Play<'_>, place: Option<&Object>, npc: Option<&Object>) -> Result<()> {
    let at = npc
        .and_then(|npc| play.world.object(play.state.place_of(npc)))
        .filter(|at| play.state.seen.contains(&at.handle));
    match place.or(at).cloned() {
        Some(place) => travel::travel(play, &place),
        None if play.found.risk.is_some() || !names_a_place(play) => free(play),
        None => {
            cannot(play, "no place of that name is known");
            Ok(())
        }
    }
}

/// Leaves: for the place that is named, else by the only way, or by the only one to where one has been.
fn leave(play: &mut Play<'_>) -> Result<()> {
    const HERE: [&str; 9] = ["place", "room", "house", "building", "way", "came", "now", "outside", "back"];
    let world = play.world;
    let named = play.refs.iter().filter_map(|own| world.object(own));
    let mut named = named.filter(|own| own.kind == ObjectKind::Loc && known(&play.state, world, own));
    if let Some(place) = named.find(|own| own.handle != play.state.location).cloned() {
        return travel::travel(play, &place);
    }
    if play.other_words().iter().any(|word| !HERE.contains(&word.as_str())) {
        return free(play);
    }
    let ways = open_ways(play);
    let mut been = ways.iter().filter(|way| play.state.seen.contains(&way.handle));
    let to = match (ways.as_slice(), been.next(), been.next()) {
        ([only], ..) => Some(only.clone()),
        (_, Some(back), None) => Some(back.clone()),
        _ => None,
    };
    match to {
        Some(to) => travel::travel(play, &to),
        None => {
            let none = ways.is_empty();
            cannot(
                play,
                if none { "no way out of here is open" } else { "more than one way leads from here: say which" },
            );
            Ok(())
        }
    }
}

/// The ways from here that nothing shuts or bars.
fn open_ways(play: &Play<'_>) -> Vec<Object> {
    let (state, world) = (&play.state, play.world);
    let open = |own: &&Object| {
        state.shut(&own.handle, world).is_none() && state.barred(&state.location, &own.handle, world).is_none()
    };
    hud::exits(state, world).filter(open).cloned().collect()
}

/// Runs from here: to the place that is named, else back to where one came from, else by the first way that is open.
fn flee(play: &mut Play<'_>, place: Option<&Object>) -> Result<()> {
    let ways = open_ways(play);
    let back = play.state.seen.iter().rev().find_map(|own| ways.iter().find(|way| way.handle == *own));
    let to = place.filter(|own| own.handle != play.state.location).or(back).or(ways.first());
    match to.cloned() {
        Some(to) => travel::travel(play, &to),
        None => {
            cannot(play, "no way out of here is open");
            Ok(())
        }
    }
}

/// Whether the verb asks for a place, so that one is lacking. One rides and follows other things too.
fn names_a_place(play: &Play<'_>) -> bool {
    let words = normal(&play.found.body);
    !words.split(' ').any(|word| ["ride", "sail", "follow", "cross", "run"].contains(&word)) || words.contains(" to ")
}

/// A free action: with a declared risk, or where a narrator asks for one, the dice decide; a narrator may also tell of one that
/// needs none. Otherwise nobody understands it.
fn free(play: &mut Play<'_>) -> Result<()> {
    let asked = play.judged.roll.unwrap_or(play.found.risk.is_some());
    if !asked && !play.judged.narrated {
        let what = play.what();
        not_understood(play, format!("nothing here answers to \"{what}\""));
        return Ok(());
    }
    if !asked {
        play.effect(&Effect::Minutes(10))?;
        play.row(play.what(), "told");
        return Ok(());
    }
    let what = play.what();
    let tier = play.check(&what, "dex");
    if tier == Tier::Failure {
        play.out.action = "You dare it, and it goes wrong.".into();
        play.pay(&[])?;
        play.out.no_progress = Some("the risk does not pay".into());
        return Ok(());
    }
    play.out.action = "You dare it, and take no harm.".into();
    play.effect(&Effect::Minutes(10))?;
    gain(play, tier)
}

/// The gain of a risk that paid off is in what was tried: one who seeks finds what is hidden here. The clocks of the world go on.
fn gain(play: &mut Play<'_>, tier: Tier) -> Result<()> {
    let before = play.out.found.len();
    if seeks(&play.found.body) {
        look::uncover(play, usize::from(tier > Tier::Partial) + 1)?;
    }
    if play.out.found.len() == before {
        play.out.no_progress = Some("it leaves no mark on the world".into());
    }
    Ok(())
}
