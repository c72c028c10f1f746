//! Quests: a move that means the current stage advances the quest.

use super::Play;
use super::step::{Step, means, means_again, play_step};
use crate::grammar::the;
use crate::rule::Effect;
use crate::state::Progress;
use crate::world::Stage;
use acheron_base::Result;

/// Plays the first stage that this move means. False where none is meant.
pub(super) fn advance(play: &mut Play<'_>) -> Result<bool> {
    let world = play.world;
    let waiting = world.quests.iter().find_map(|quest| {
        let progress = play.state.quests.get(&quest.handle).filter(|own| own.status == "active")?;
        let stage = quest.stages.get(progress.stage)?;
        means(play, stage).then_some((quest, progress.stage, stage))
    });
    let Some((quest, at, stage)) = waiting else { return Ok(false) };
    let name = world.name(&quest.handle).to_owned();
    if let Step::Failed = play_step(play, &name, stage)? {
        return Ok(true);
    }
    let done = at + 1 == quest.stages.len();
    let status = if done { "done" } else { "active" };
    play.state.quests.insert(quest.handle.clone(), Progress { stage: at + 1, status: status.into() });
    play.row(name.clone(), if done { "done".into() } else { format!("stage {} of {}", at + 2, quest.stages.len()) });
    if done {
        let back = match world.object(&quest.return_to) {
            Some(place) if place.handle != play.state.location => {
                format!("; the way back leads to {}", the(&place.name))
            }
            _ => String::new(),
        };
        play.event(format!("quest {name}: done{back}"));
    }
    Ok(true)
}

/// Plays the first deed of the cartridge that this move means. False where none is meant.
pub(super) fn deed(play: &mut Play<'_>) -> Result<bool> {
    let world = play.world;
    let key = |deed: &crate::world::Deed| {
        let step = &deed.step;
        format!("deed {} {} {}", step.at.as_deref().unwrap_or("-"), step.target, step.says.join("/"))
    };
    let found = world.deeds.iter().map(|deed| (deed, key(deed)));
    let found = found.into_iter().find(|(deed, _)| means(play, &deed.step));
    let Some((deed, key)) = found else { return Ok(false) };
    let name = play.what();
    if deed.once && play.state.memory.noted.contains(&key) {
        play.out.action = "It was done once, and once was all of it.".into();
        play.row(name, "done before");
        play.out.no_progress = Some("it cannot be done twice".into());
        return Ok(true);
    }
    if let Step::Done = play_step(play, &name, &deed.step)? {
        play.row(name, "done");
        play.state.memory.note(&key);
    }
    Ok(true)
}

/// The step of a quest that was done before and that this move means again.
pub(super) fn done_before<'a>(play: &Play<'a>) -> Option<&'a Stage> {
    let world = play.world;
    world.quests.iter().find_map(|quest| {
        let done = play.state.quests.get(&quest.handle).map_or(0, |own| own.stage);
        quest.stages.iter().take(done).find(|stage| means_again(play, stage))
    })
}

/// Answers a move that nothing else answers and that repeats a step of a quest. Nothing has changed by it.
pub(super) fn repeated(play: &mut Play<'_>) {
    let unanswered = play.out.rows.iter().any(|(_, result)| matches!(result.as_str(), "not understood" | "impossible"));
    if !unanswered || done_before(play).is_none() {
        return;
    }
    play.out = super::Outcome::default();
    play.out.action = "That was done before, and it stays done.".into();
    play.row(play.what(), "done before");
    play.out.no_progress = Some("it cannot be done twice".into());
}

/// Opens the quests whose time has come.
pub(super) fn open(play: &mut Play<'_>) -> Result<()> {
    let world = play.world;
    for quest in &world.quests {
        let fresh = !play.state.quests.contains_key(&quest.handle);
        let active = world.object(&quest.handle).is_some_and(|object| object.status != "hidden");
        if fresh && active && play.state.holds(&quest.opens) {
            play.effect(&Effect::Quest(quest.handle.clone(), "active".into()))?;
        }
    }
    Ok(())
}
