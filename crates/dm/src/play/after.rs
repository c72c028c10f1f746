//! What a move sets off: people wake, hostile people act, triggers fire, the character falls, quests open, the story ends.

use super::travel::spoken;
use super::{Play, fight, quest};
use crate::ending;
use crate::grammar::{sentence, the};
use crate::hud::people;
use crate::input::Header;
use crate::rule::{Effect, effects};
use crate::state::FULL_HP;
use crate::world::Object;
use acheron_base::Result;

/// `before` is the minute of the world when the move began: where no time has passed, nobody acts.
pub(super) fn run(play: &mut Play<'_>, before: u64) -> Result<()> {
    fight::wake(play);
    if play.state.time.minutes() > before && !play.means_header(Header::Fight) {
        hostile(play)?;
    }
    let told = play.state.fire(play.world)?;
    play.tell(told);
    if play.state.hp == 0 {
        fall(play)?;
        let told = play.state.fire(play.world)?;
        play.tell(told);
    }
    quest::open(play)?;
    end(play);
    Ok(())
}

/// Hostile people here warn once, then do what their page says, or strike.
fn hostile(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    let foes: Vec<Object> =
        people(&play.state, world).filter(|npc| play.state.mood(npc) == "hostile").cloned().collect();
    for npc in foes.iter().take(2) {
        if play.state.hp == 0 {
            break;
        }
        if !play.state.memory.warned.contains(&npc.handle) {
            play.state.memory.warned.push(npc.handle.clone());
            let own = npc.field("threat");
            let threat = if own.is_empty() {
                format!("{} is hostile, and will strike if nothing changes", npc.name)
            } else {
                sentence(own)
            };
            play.event(threat);
            continue;
        }
        match effects(npc.field("acts")).unwrap_or_default().as_slice() {
            [] => fight::blow(play, npc)?,
            acts => {
                let own = npc.field("attack");
                play.event(if own.is_empty() {
                    format!("{} does what was threatened", npc.name)
                } else {
                    sentence(own)
                });
                play.effects(acts)?;
            }
        }
    }
    Ok(())
}

/// Falling is a cost and a new situation: hours lost, what the cartridge says of it, and one wakes elsewhere.
fn fall(play: &mut Play<'_>) -> Result<()> {
    let to = if play.world.wakes_at.is_empty() { play.world.start.clone() } else { play.world.wakes_at.clone() };
    let wakes = match play.world.wakes.as_str() {
        "" => format!("darkness; hours later, {}", the(play.world.name(&to))),
        own => own.to_owned(),
    };
    play.event(wakes);
    play.out.cost.push(spoken(480));
    if play.world.object(&to).is_some() {
        play.effect(&Effect::Move(to))?;
    }
    play.effect(&Effect::Minutes(480))?;
    play.effects(&play.world.falls.clone())?;
    let lost = FULL_HP / 2 - play.state.hp;
    play.effect(&Effect::Hp(lost))
}

/// Closes the campaign where an ending is reached.
fn end(play: &mut Play<'_>) {
    if !play.state.memory.ended.is_empty() {
        return;
    }
    if let Some(ending) = ending::reached(&play.state, play.world) {
        play.state.memory.ended = ending.id.clone();
        play.state.memory.endings.push(ending.id.clone());
        play.out.epilogue = Some(ending.epilogue(&play.state));
    }
}
