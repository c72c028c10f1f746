//! Looking: open things are described, hidden things need a check.

use super::Play;
use crate::check::Tier;
use crate::hud::{exits, people, things};
use crate::rule::Effect;
use crate::world::{Object, ObjectKind};
use acheron_base::Result;

pub(super) fn run(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let spoken = play
        .refs
        .iter()
        .filter_map(|own| world.object(own))
        .find(|object| object.kind != ObjectKind::Loc || object.handle != play.state.location);
    match spoken {
        Some(object) => one(play, object),
        None => around(play),
    }
}

fn one(play: &mut Play<'_>, object: &Object) -> Result<()> {
    let world = play.world;
    let here = match object.kind {
        ObjectKind::Npc => people(&play.state, world).any(|own| own.handle == object.handle),
        ObjectKind::Item => {
            play.state.inventory.contains(&object.handle)
                || things(&play.state, world).any(|own| own.handle == object.handle)
        }
        ObjectKind::Loc => exits(&play.state, world).any(|own| own.handle == object.handle),
        ObjectKind::Quest | ObjectKind::Faction => true,
    };
    if !here {
        play.impossible(
            format!("{} cannot be seen from here", object.name),
            "go nearer, or ask somebody who has been there",
        );
        return Ok(());
    }
    play.out.action = format!("{} is looked at closely.", object.name);
    play.effect(&Effect::Minutes(5))?;
    play.row(format!("look at {}", object.name), "seen");
    play.out.found.push(format!("{}: {}", object.name, object.summary));
    // Key text is told in a sentence; the whole of it stays on its page.
    play.out.text = Some(object.field("text").to_owned()).filter(|text| !text.is_empty());
    Ok(())
}

fn around(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let name = world.name(&play.state.location).to_owned();
    play.out.action = format!("{name} is searched with the eyes, corner by corner.");
    let hidden = concealed(play).next().is_some();
    if play.judged.roll.unwrap_or(hidden || play.found.risk.is_some()) {
        let dc = concealed(play).next().and_then(|item| item.number("dc"));
        let tier = match dc {
            Some(dc) if play.found.risk.is_none() => play.check_at(&format!("search {name}"), "int", dc as i32),
            _ => play.check(&format!("search {name}"), "int"),
        };
        if tier == Tier::Failure {
            play.pay(&[])?;
        } else {
            uncover(play, if tier == Tier::Great { 2 } else { 1 })?;
            play.effect(&Effect::Minutes(10))?;
        }
    } else {
        play.effect(&Effect::Minutes(10))?;
        play.row(format!("look around {name}"), "seen");
    }
    let seen: Vec<String> = things(&play.state, world).map(|item| format!("{}: {}", item.name, item.summary)).collect();
    for line in seen {
        if !play.out.found.contains(&line) {
            play.out.found.push(line);
        }
    }
    if play.out.found.is_empty() {
        let reason =
            if play.state.time.night() { "it is too dark to see more" } else { "what there was to see has been seen" };
        play.out.no_progress = Some(format!("no key clue: {reason}"));
    }
    Ok(())
}

/// The hidden things here that have not been found.
fn concealed<'a>(play: &'a Play<'_>) -> impl Iterator<Item = &'a Object> {
    let (state, world) = (&play.state, play.world);
    world
        .of(ObjectKind::Item)
        .filter(move |item| item.field("at") == state.location && state.status(world, &item.handle) == "hidden")
}

/// Brings up to `count` hidden things to light.
pub(super) fn uncover(play: &mut Play<'_>, count: usize) -> Result<()> {
    let found: Vec<(String, String)> = concealed(play)
        .take(count)
        .map(|item| (item.handle.clone(), format!("{}: {}", item.name, item.summary)))
        .collect();
    for (handle, line) in found {
        play.effect(&Effect::Status(handle, "active".into()))?;
        play.out.found.push(line);
    }
    Ok(())
}

/// A spell or a rite: it always needs a check, and people who are present notice it.
pub(super) fn cast(play: &mut Play<'_>) -> Result<()> {
    play.out.action = "The words are spoken and the air takes note of them.".into();
    let what = play.found.action_summary.clone();
    let tier = play.check(&what, "will");
    if play.world.indicator("Rumor").is_some() && people(&play.state, play.world).next().is_some() {
        play.effect(&Effect::Level { name: "Rumor".into(), by: 1, reason: "a rite before witnesses".into() })?;
    }
    if tier == Tier::Failure {
        play.pay(&[])?;
        play.out.no_progress = Some("the rite slips and leaves only a taste of iron".into());
        return Ok(());
    }
    play.effect(&Effect::Minutes(10))?;
    uncover(play, 2)?;
    if play.out.found.is_empty() {
        play.out.no_progress = Some("no key clue: the light falls on nothing that was hidden".into());
    }
    Ok(())
}
