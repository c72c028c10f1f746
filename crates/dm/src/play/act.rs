//! Acting: going, taking, using, daring.

use super::{Outcome, Play};
use crate::check::Tier;
use crate::hud::things;
use crate::rule::{Effect, effects};
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let spoken =
        |kind: ObjectKind| play.refs.iter().filter_map(|own| world.object(own)).find(|object| object.kind == kind);
    let (place, item) = (spoken(ObjectKind::Loc), spoken(ObjectKind::Item));
    match (place, item) {
        (Some(place), None) if place.handle != play.state.location => travel(play, place),
        (_, Some(item)) => handle(play, item),
        _ => dare(play),
    }
}

fn travel(play: &mut Play<'_>, place: &Object) -> Result<()> {
    let world = play.world;
    let pass =
        |state: &super::State, at: &str| state.seen.iter().any(|own| own == at) && state.shut(at, world).is_none();
    if let Some(gate) = play.state.shut(&place.handle, world) {
        let why = format!("{} is locked until {}", gate.name, gate.shown);
        play.effect(&Effect::Minutes(10))?;
        play.impossible(why, "meet the condition, or find another way round");
        return Ok(());
    }
    let hidden = play.state.status(world, &place.handle) == "hidden";
    let way = world.map.path(&play.state.location, &place.handle, |at| pass(&play.state, at));
    let Some((steps, minutes)) = way.filter(|_| !hidden) else {
        let why = format!("no known way leads from here to {}", if hidden { "that place" } else { &place.name });
        play.impossible(why, "explore what lies next to here; a way may be found, at the price of time");
        return Ok(());
    };
    let through: Vec<&str> = steps[1..steps.len().saturating_sub(1)].iter().map(|step| world.name(step)).collect();
    let by = if through.is_empty() { String::new() } else { format!(" by way of {}", through.join(" and ")) };
    play.out.action = format!("The way{by} takes {minutes} minutes and ends at {}.", place.name);
    let fresh = !play.state.seen.contains(&place.handle);
    play.effect(&Effect::Move(place.handle.clone()))?;
    play.effect(&Effect::Minutes(minutes))?;
    play.row(format!("go to {}", place.name), "arrived");
    if fresh {
        play.out.found.push(format!("{}: {}", place.name, place.summary));
        meet(play);
    }
    Ok(())
}

/// A new place has something to meet, where the cartridge has a table for it.
fn meet(play: &mut Play<'_>) {
    let name = if play.state.time.night() { "Night" } else { "Travel" };
    if let Some(table) = play.world.tables.iter().find(|table| table.name == name) {
        let row = table.throw(&mut play.dice).1;
        if let Some(event) = row.first() {
            play.out.consequences.push(event.clone());
        }
    }
}

fn handle(play: &mut Play<'_>, item: &Object) -> Result<()> {
    if play.state.inventory.contains(&item.handle) {
        return wield(play, item);
    }
    if things(&play.state, play.world).any(|own| own.handle == item.handle) {
        play.out.action = format!("{} changes hands.", item.name);
        play.effect(&Effect::Take(item.handle.clone()))?;
        play.effect(&Effect::Minutes(5))?;
        play.row(format!("take {}", item.name), "taken");
        return Ok(());
    }
    play.impossible(format!("{} is not at hand here", item.name), "look for it where it was last heard of");
    Ok(())
}

/// Uses what is carried: what its `use` column says, once.
fn wield(play: &mut Play<'_>, item: &Object) -> Result<()> {
    let uses = effects(item.field("use")).unwrap_or_default();
    if uses.is_empty() {
        play.effect(&Effect::Minutes(5))?;
        play.row(format!("use {}", item.name), "nothing");
        play.out.no_progress = Some(format!("{} finds no purchase here", item.name));
        return Ok(());
    }
    play.out.action = format!("{} is put to use.", item.name);
    play.row(format!("use {}", item.name), "used");
    play.effects(&uses)?;
    play.effect(&Effect::Minutes(5))
}

/// A free action: without a declared risk it simply takes time; with one the dice are asked.
fn dare(play: &mut Play<'_>) -> Result<()> {
    let asked = play.judged.roll.unwrap_or(play.found.risk.is_some());
    if !asked {
        play.effect(&Effect::Minutes(10))?;
        play.row(play.found.action_summary.clone(), "done");
        play.out.no_progress = Some("it takes its time, and nothing in the place answers to it".into());
        return Ok(());
    }
    let what = play.found.action_summary.clone();
    let tier = play.check(&what, "dex");
    if tier == Tier::Failure {
        play.pay(&[])?;
        play.out.no_progress = Some("the risk does not pay".into());
        return Ok(());
    }
    play.effect(&Effect::Minutes(10))?;
    gain(play, tier)
}

/// The gain of a risk that paid off: a hidden thing is found; a great success turns back a clock.
fn gain(play: &mut Play<'_>, tier: Tier) -> Result<()> {
    let Outcome { found, .. } = &play.out;
    let before = found.len();
    super::look::uncover(play, usize::from(tier > Tier::Partial) + 1)?;
    let clock = play
        .state
        .clocks
        .iter()
        .find(|clock| clock.filled > 0 && clock.filled < clock.segments)
        .map(|clock| clock.id.clone());
    match clock.filter(|_| tier == Tier::Great) {
        Some(clock) => play.effect(&Effect::Tick { clock, by: -1, reason: "a risk that paid".into() })?,
        None if play.out.found.len() == before => {
            play.out.no_progress = Some("it works, and there was no key clue in it".into());
        }
        None => (),
    }
    Ok(())
}
