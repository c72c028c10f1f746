//! Acting: what the first verb plainly means; without a known verb, what is named; else a risk that is declared.

use super::{Outcome, Play, fight, look, manage, pass, talk, things, travel};
use crate::check::Tier;
use crate::play::unclear::{cannot, not_understood};
use crate::rule::Effect;
use crate::verbs::Verb;
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let spoken =
        |kind: ObjectKind| play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == kind);
    let (place, item, npc) = (spoken(ObjectKind::Loc), spoken(ObjectKind::Item), spoken(ObjectKind::Npc));
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
        Some(Verb::Use) if item.is_none() => free(play)?,
        Some(verb) => things::run(play, verb, item)?,
        None => match (place, item) {
            (Some(place), None) => travel::travel(play, place)?,
            (_, Some(item)) => things::handle(play, item)?,
            (None, None) => free(play)?,
        },
    }
    Ok(())
}

/// Goes to the place that is named, or to the person.
fn go(play: &mut Play<'_>, place: Option<&Object>, npc: Option<&Object>) -> Result<()> {
    let at = npc
        .and_then(|npc| play.world.object(play.state.place_of(npc)))
        .filter(|at| play.state.seen.contains(&at.handle));
    match place.or(at).cloned() {
        Some(place) => travel::travel(play, &place),
        None if play.found.risk.is_some() => free(play),
        None => {
            cannot(play, "no place of that name is known");
            Ok(())
        }
    }
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
        play.out.action = format!("{} dares it, and it goes wrong.", play.pc_name());
        play.pay(&[])?;
        play.out.no_progress = Some("the risk does not pay".into());
        return Ok(());
    }
    play.out.action = format!("{} dares it, and takes no harm.", play.pc_name());
    play.effect(&Effect::Minutes(10))?;
    gain(play, tier)
}

/// The gain of a risk that paid off: a hidden thing is found; a great success turns back a clock.
fn gain(play: &mut Play<'_>, tier: Tier) -> Result<()> {
    let Outcome { found, .. } = &play.out;
    let before = found.len();
    look::uncover(play, usize::from(tier > Tier::Partial) + 1)?;
    let clock = play
        .state
        .clocks
        .iter()
        .find(|clock| clock.visible && clock.filled > 0 && clock.filled < clock.segments)
        .map(|clock| clock.id.clone());
    match clock.filter(|_| tier == Tier::Great) {
        Some(clock) => play.effect(&Effect::Tick { clock, by: -1, reason: "a risk that paid".into() })?,
        None if play.out.found.len() == before => {
            play.out.no_progress = Some("nothing that the world keeps has come of it".into());
        }
        None => (),
    }
    Ok(())
}
