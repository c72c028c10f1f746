//! Quests: a move that fits the current stage advances the quest.

use super::Play;
use crate::check::Tier;
use crate::rule::{Condition, Effect, Term};
use crate::state::Progress;
use crate::world::Stage;
use acheron_base::Result;

/// Plays the first stage that this move answers to. False where none does.
pub(super) fn advance(play: &mut Play<'_>) -> Result<bool> {
    let world = play.world;
    let waiting = world.quests.iter().find_map(|quest| {
        let progress = play.state.quests.get(&quest.handle).filter(|own| own.status == "active")?;
        let stage = quest.stages.get(progress.stage)?;
        answers(play, stage).then_some((quest, progress.stage, stage))
    });
    let Some((quest, at, stage)) = waiting else { return Ok(false) };
    let name = world.name(&quest.handle).to_owned();
    play.out.action = format!("{} turns to {}.", pc(play), world.name(&stage.target));
    if !play.state.holds(&stage.needs) {
        let why = format!("it needs {}", lacking(play, &stage.needs));
        play.effect(&Effect::Minutes(10))?;
        play.impossible(why, "find what is missing first, or try another way in");
        return Ok(true);
    }
    let tier = match stage.dc {
        Some(dc) => play.check_at(&format!("{name}: {}", play.found.action_summary), &stage.stat, dc),
        None => Tier::Success,
    };
    if tier == Tier::Failure {
        play.pay(&stage.cost)?;
        play.out.no_progress = Some("the attempt fails at a price".into());
        play.out.alternative = Some("another try is open, and so is another way".into());
        return Ok(true);
    }
    play.effects(&stage.gives)?;
    play.effect(&Effect::Minutes(if tier == Tier::Partial { 20 } else { 10 }))?;
    if tier == Tier::Partial {
        play.out.cost = vec!["time 20".into()];
    }
    if tier == Tier::Great && play.state.hp < crate::state::FULL_HP {
        play.effect(&Effect::Hp(1))?;
    }
    play.out.text = Some(stage.text.clone()).filter(|text| !text.is_empty());
    let done = at + 1 == quest.stages.len();
    let status = if done { "done" } else { "active" };
    play.state.quests.insert(quest.handle.clone(), Progress { stage: at + 1, status: status.into() });
    play.row(name.clone(), if done { "done".into() } else { format!("stage {} of {}", at + 2, quest.stages.len()) });
    if done {
        let back = world.name(&quest.return_to).to_owned();
        play.out.consequences.push(format!("quest {name}: done; the way back leads to {back}"));
    }
    Ok(true)
}

fn pc(play: &Play<'_>) -> String {
    if play.pc.name.is_empty() { "The stranger".into() } else { play.pc.name.clone() }
}

fn answers(play: &Play<'_>, stage: &Stage) -> bool {
    let here = stage.at.as_ref().is_none_or(|at| *at == play.state.location);
    let spoken = stage.target.is_empty() || play.refs.contains(&stage.target);
    here && spoken && stage.headers.contains(&play.found.header)
}

/// The terms of a condition that do not hold, in words.
fn lacking(play: &Play<'_>, needs: &Condition) -> String {
    let world = play.world;
    let missing = needs.0.iter().filter(|term| !play.state.holds(&Condition(vec![(*term).clone()])));
    let words = missing.map(|term| match term {
        Term::Has(item) => format!("{} ({item})", world.name(item)),
        Term::Quest(quest, status) => format!("{} to be {status}", world.name(quest)),
        Term::Clue(clue) => format!("the clue {clue}"),
        Term::At(place) => format!("to be at {}", world.name(place)),
        Term::ClockFull(clock) => format!("the {clock} to be full"),
        Term::Level(name, _, _) => format!("another {name}"),
        Term::Not(_) => "something to be otherwise".to_owned(),
    });
    words.collect::<Vec<_>>().join(" and ")
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
