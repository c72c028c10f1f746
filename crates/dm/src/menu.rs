//! Stage C5: five suggestions, one of them risky. Each is an input that parses and whose references resolve.

use serde::{Deserialize, Serialize};

use crate::grammar::the;
use crate::hud::{exits, people, things};
use crate::input::{Header, Input, Risk, parse};
use crate::known::{goal, searched};
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind, Stage};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MenuItem {
    pub input: String,
    pub risky: bool,
}

pub const COUNT: usize = 5;

/// The menu: what a narrator offers (already checked), then what the quests wait for, then what is here, then what always works.
/// Everything in it is here, and is known to the player. A closed campaign offers to go on, and nothing else.
pub fn build(state: &State, world: &Cartridge, offered: &[String]) -> Vec<MenuItem> {
    if !state.memory.ended.is_empty() {
        let open = ["<play on>", "<continue>"].map(|input| MenuItem { input: input.into(), risky: false });
        return open.into();
    }
    let mut inputs: Vec<String> = offered.to_vec();
    let steps = waiting(state, world).filter_map(|(quest, stage)| toward(state, world, stage, &quest));
    let (far, near): (Vec<String>, Vec<String>) = steps.partition(|input| input.starts_with("[ACT]{go to "));
    inputs.extend(near);
    // What is here comes before the third way to somewhere else.
    inputs.extend(far.into_iter().take(2));
    for item in things(state, world) {
        let sold = people(state, world).any(|npc| npc.handle == item.field("seller"));
        inputs.push(format!("[ACT]{{{} {}}}", if sold { "buy" } else { "take" }, item.handle));
    }
    inputs.extend(people(state, world).filter_map(|npc| talk(state, npc)));
    inputs.push("[LOOK]{around}".into());
    let open = |place: &&Object| state.barred(&state.location, &place.handle, world).is_none();
    inputs.extend(exits(state, world).filter(open).map(|place| format!("[ACT]{{go to {}}}", place.handle)));
    inputs.push("[MANAGE]{status}".into());
    inputs.push("[MANAGE]{rest}".into());
    inputs.push("[ACT]{wait}".into());
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

/// Something to ask a person: a topic that is open, else what is not said, else peace. Nothing where all is told.
fn talk(state: &State, npc: &Object) -> Option<String> {
    if state.mood(npc) == "hostile" {
        return Some(format!("[ASK]{{make peace with {}}}", npc.handle));
    }
    let asked = |word: &str| state.memory.noted.iter().any(|own| *own == format!("{}:{word}", npc.handle));
    let open = npc.topics.iter().filter(|topic| state.holds(&topic.answer.when));
    let open = open.filter_map(|topic| topic.words.first()).find(|word| !asked(word));
    if let Some(word) = open {
        return Some(format!("[ASK]{{{} about {}}}", npc.handle, the(word)));
    }
    let secrets = (npc.easy_secrets.len() + npc.hard_secrets.len()) as i64;
    let told = state.told.get(&npc.handle).copied().unwrap_or(0);
    (told < secrets).then(|| format!("[ASK]{{press {} for what is not said}}", npc.handle))
}

fn is_risky(input: &str) -> bool {
    match parse(input, &[]) {
        Ok(Input::Move(found)) => found.risk == Some(Risk::High) || found.header == Header::Fight,
        _ => false,
    }
}

/// A risky suggestion that grows out of the situation: a foe, somebody who holds something back, something that is not free,
/// else this place itself.
fn bold(state: &State, world: &Cartridge) -> String {
    let here: Vec<&Object> = people(state, world).collect();
    if let Some(foe) = here.iter().find(|npc| state.mood(npc) == "hostile") {
        return format!("[FIGHT]{{{}}}", foe.handle);
    }
    let kept = |npc: &&&Object| {
        let secrets = (npc.easy_secrets.len() + npc.hard_secrets.len()) as i64;
        state.told.get(&npc.handle).copied().unwrap_or(0) < secrets
    };
    if let Some(npc) = here.iter().find(kept) {
        return format!("[ASK]{{threaten {} for the truth}} --risk high", npc.handle);
    }
    if let Some(item) = things(state, world).find(|item| here.iter().any(|npc| npc.handle == item.field("seller"))) {
        return format!("[ACT]{{steal {}}} --risk high", item.handle);
    }
    // What was searched to the end is not searched again.
    let done = state.memory.noted.contains(&searched(&state.location));
    let open = |place: &&Object| state.barred(&state.location, &place.handle, world).is_none();
    if let Some(place) = exits(state, world).filter(open).find(|_| done) {
        return format!("[ACT]{{hurry to {}}} --risk high", place.handle);
    }
    match world.object(&state.location) {
        Some(place) => format!("[LOOK]{{search {}, heedless of the noise}} --risk high", place.handle),
        None => "[LOOK]{search in haste} --risk high".into(),
    }
}

/// The stages that wait, of the active quests.
pub fn waiting<'a>(state: &'a State, world: &'a Cartridge) -> impl Iterator<Item = (String, &'a Stage)> {
    world.quests.iter().filter_map(|quest| {
        let progress = state.quests.get(&quest.handle).filter(|own| own.status == "active")?;
        Some((quest.handle.clone(), quest.stages.get(progress.stage)?))
    })
}

/// The input that a stage waits for, if it can be done here and now; or the way toward the place where it waits. Nothing that
/// the player has not seen is named.
fn toward(state: &State, world: &Cartridge, stage: &Stage, quest: &str) -> Option<String> {
    if let Some(at) = stage.at.as_ref().filter(|at| **at != state.location) {
        let pass = |place: &str| state.seen.iter().any(|own| own == place) && state.shut(place, world).is_none();
        let open = state.status(world, at) != "hidden" && state.shut(at, world).is_none();
        let way = world.map.path(&state.location, at, pass).filter(|_| open)?.0;
        let barred = way.windows(2).any(|pair| state.barred(&pair[0], &pair[1], world).is_some());
        return (!barred).then(|| format!("[ACT]{{go to {at}}}"));
    }
    let target = world.object(&stage.target);
    let known = match target.map(|object| object.kind) {
        Some(ObjectKind::Npc) => people(state, world).any(|npc| npc.handle == stage.target),
        Some(ObjectKind::Item) => {
            state.inventory.contains(&stage.target) || things(state, world).any(|own| own.handle == stage.target)
        }
        _ => true,
    };
    if !state.holds(&stage.needs) {
        return None;
    }
    if !known {
        let hidden = target.is_some_and(|object| object.kind == ObjectKind::Item);
        return hidden.then(|| "[LOOK]{around}".into());
    }
    let header = stage.headers.first().copied().unwrap_or(Header::Act);
    let handle = if stage.target.is_empty() { quest } else { &stage.target };
    let body = match stage.says.first() {
        Some(phrase) if phrase.contains(' ') => phrase.clone(),
        Some(word) if header == Header::Ask => format!("{handle} about {}", the(word)),
        Some(verb) => format!("{verb} {handle}"),
        None => handle.to_owned(),
    };
    Some(format!("[{}]{{{body}}}", header.name()))
}

/// The next choices of the player for the hot pack, one line each.
pub fn hooks(state: &State, world: &Cartridge) -> Vec<String> {
    waiting(state, world).map(|(quest, stage)| format!("{quest}: {}", goal(state, world, &quest, stage))).collect()
}
