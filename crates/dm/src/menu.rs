//! Stage C5: five suggestions, one of them risky. Each is an input that parses and whose references resolve.

use serde::{Deserialize, Serialize};

use crate::hud::{exits, people, things};
use crate::input::{Header, Input, Risk, parse};
use crate::state::State;
use crate::world::{Cartridge, Stage};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MenuItem {
    pub input: String,
    pub risky: bool,
}

pub const COUNT: usize = 5;

/// The menu: what a narrator offers (already checked), then what the quests wait for, then what is here, then what always works.
pub fn build(state: &State, world: &Cartridge, offered: &[String]) -> Vec<MenuItem> {
    let mut inputs: Vec<String> = offered.to_vec();
    for (quest, stage) in waiting(state, world) {
        inputs.push(toward(state, world, stage, &quest));
    }
    inputs.extend(things(state, world).map(|item| format!("[ACT]{{take {}}}", item.handle)));
    inputs.extend(people(state, world).map(|npc| format!("[ASK]{{{} about what troubles this place}}", npc.handle)));
    inputs.push("[LOOK]{around}".into());
    inputs.extend(exits(state, world).map(|place| format!("[ACT]{{go to {}}}", place.handle)));
    inputs.push("[MANAGE]{status}".into());
    inputs.push("[MANAGE]{rest}".into());
    inputs.push("[ACT]{inner: alertness}".into());
    let mut items: Vec<MenuItem> = Vec::new();
    for input in inputs {
        let risky = is_risky(&input);
        if items.len() < COUNT && !items.iter().any(|item| item.input == input) {
            items.push(MenuItem { input, risky });
        }
    }
    if !items.iter().any(|item| item.risky) {
        items.truncate(COUNT - 1);
        items.push(MenuItem { input: bold(state, world), risky: true });
    }
    items
}

fn is_risky(input: &str) -> bool {
    match parse(input, &[]) {
        Ok(Input::Move(found)) => found.risk == Some(Risk::High) || found.header == Header::Fight,
        _ => false,
    }
}

/// A risky suggestion.
fn bold(state: &State, world: &Cartridge) -> String {
    let foe = people(state, world).find(|npc| npc.field("disposition") == "hostile");
    match (foe, exits(state, world).next()) {
        (Some(foe), _) => format!("[FIGHT]{{{} before anyone can stop it}}", foe.handle),
        (None, Some(_)) => "[ACT]{break in where the locals never go} --risk high".into(),
        (None, None) => "[CAST]{call on what sleeps below} --risk high".into(),
    }
}

/// The stages that wait, of the active quests.
pub fn waiting<'a>(state: &'a State, world: &'a Cartridge) -> impl Iterator<Item = (String, &'a Stage)> {
    world.quests.iter().filter_map(|quest| {
        let progress = state.quests.get(&quest.handle).filter(|own| own.status == "active")?;
        Some((quest.handle.clone(), quest.stages.get(progress.stage)?))
    })
}

/// The input that a stage waits for; or the step toward the place where it waits.
fn toward(state: &State, world: &Cartridge, stage: &Stage, quest: &str) -> String {
    let there = stage.at.as_ref().filter(|at| **at != state.location);
    match there {
        None => {
            let header = stage.headers.first().copied().unwrap_or(Header::Act);
            let target = if stage.target.is_empty() { quest } else { &stage.target };
            format!("[{}]{{{target}}}", header.name())
        }
        Some(at) => {
            let known = |place: &str| state.seen.iter().any(|own| own == place);
            let step =
                world.map.path(&state.location, at, known).map(|(steps, _)| steps[1.min(steps.len() - 1)].clone());
            match step.filter(|step| state.status(world, step) != "hidden") {
                Some(_) if state.status(world, at) != "hidden" => format!("[ACT]{{go to {at}}}"),
                _ => "[LOOK]{around}".into(),
            }
        }
    }
}

/// The next choices of the player for the hot pack, one line each.
pub fn hooks(state: &State, world: &Cartridge) -> Vec<String> {
    let lines = waiting(state, world).map(|(quest, stage)| {
        let at = stage.at.as_deref().unwrap_or(state.location.as_str());
        format!("{quest}: {} at {at}", if stage.target.is_empty() { "look" } else { &stage.target })
    });
    lines.collect()
}
