//! Reads quests, the steps of quests and deeds, and what follows from them: the clues, the secrets that important people need.
//! Only `load` uses it; `authored` reads the steps of deeds.

use super::fault;
use crate::files::Files;
use crate::input::Header;
use crate::md::{self, Table};
use crate::rule::{Condition, Effect, effects, effects_each};
use crate::world::{Cartridge, Fault, ObjectKind, Quest, Stage};

pub(super) fn quests(files: &Files, world: &mut Cartridge) {
    let (mut quests, mut faults) = (Vec::new(), Vec::new());
    for object in world.of(ObjectKind::Quest) {
        let path = object.path.clone().unwrap_or_else(|| "quests/QUEST_LOG.md".into());
        let mut wrong = |line: usize, message: String| faults.push(fault(&path, line, message));
        let opens = Condition::parse(object.field("opens")).unwrap_or_else(|fault| {
            wrong(1, fault.message);
            Condition::default()
        });
        let page = object.path.as_ref().and_then(|path| files.get(path)).map(String::as_str).unwrap_or_default();
        let mut stages = Vec::new();
        for table in md::tables(page).into_iter().filter(|table| table.heading.eq_ignore_ascii_case("stages")) {
            for row in &table.rows {
                let (stage, unread) = stage(&table, row);
                unread.into_iter().for_each(|message| wrong(row.line, message));
                stages.push(stage);
            }
        }
        for stage in &stages {
            let named = stage.at.iter().chain([&stage.target, &stage.to]);
            for unknown in named.filter(|own| own.starts_with('@') && world.object(own).is_none()) {
                wrong(stage.line, format!("unknown handle {unknown}"));
            }
            for effect in stage.gives.iter().chain(&stage.cost) {
                if let Some(message) = unlawful(effect, world) {
                    wrong(stage.line, message);
                }
            }
        }
        quests.push(Quest {
            handle: object.handle.clone(),
            main: object.field("kind") == "main",
            giver: object.field("giver").to_owned(),
            return_to: object.field("return_to").to_owned(),
            stakes: object.field("stakes").to_owned(),
            opens,
            stages,
        });
    }
    world.quests = quests;
    world.faults.extend(faults);
}

/// The fault of an effect that can be found without a state: a name that the cartridge does not have.
fn unlawful(effect: &Effect, world: &Cartridge) -> Option<String> {
    match effect {
        Effect::Level { name, .. } if world.indicator(name).is_none() => Some(format!("unknown indicator {name}")),
        Effect::Tick { clock, .. } if !world.clocks.iter().any(|face| face.id == *clock) => {
            Some(format!("unknown clock {clock}"))
        }
        Effect::Take(own)
        | Effect::Lose(own)
        | Effect::Reveal(own)
        | Effect::Move(own)
        | Effect::Quest(own, _)
        | Effect::Mood(own, _)
        | Effect::Status(own, _) => world.object(own).is_none().then(|| format!("unknown handle {own}")),
        Effect::Put(own, place) => {
            let unknown = [own, place].into_iter().find(|own| world.object(own).is_none());
            unknown.map(|own| format!("unknown handle {own}"))
        }
        _ => None,
    }
}

/// One row of a table of stages or deeds, and every part of it that cannot be read: the author sees all of them at once.
pub(crate) fn stage(table: &Table, row: &md::Row) -> (Stage, Vec<String>) {
    let get = |column| table.get(row, column);
    let mut unread = Vec::new();
    let mut headers = Vec::new();
    for word in get("do").split(['/', ' ', ',']).filter(|word| !word.is_empty()) {
        match Header::named(word) {
            Some(header) => headers.push(header),
            None => unread.push(format!("`{word}` is not a header")),
        }
    }
    let (stat, dc) = match get("check").split_once(' ') {
        None if get("check").is_empty() => (String::new(), None),
        Some((stat, dc)) if dc.trim().parse::<i32>().is_ok() => (stat.to_owned(), dc.trim().parse().ok()),
        _ => {
            unread.push(format!("`{}` is not a check like \"dex 12\"", get("check")));
            (String::new(), None)
        }
    };
    let (needs, bad) = Condition::parse_each(get("needs"));
    unread.extend(bad);
    let (gives, bad) = effects_each(get("gives"));
    unread.extend(bad);
    let (cost, bad) = effects_each(get("cost"));
    unread.extend(bad);
    let stage = Stage {
        line: row.line,
        headers,
        target: get("target").to_owned(),
        at: Some(get("at")).filter(|at| !at.is_empty()).map(str::to_owned),
        needs,
        stat,
        dc,
        gives,
        cost,
        text: get("text").to_owned(),
        to: get("to").to_owned(),
        fails: get("fails").to_owned(),
        says: get("says").split(',').map(|own| own.trim().to_owned()).filter(|own| !own.is_empty()).collect(),
    };
    (stage, unread)
}

/// Someone important has two easy secrets and a hard one.
pub(super) fn people(world: &mut Cartridge) {
    let lacking = world
        .of(ObjectKind::Npc)
        .filter(|npc| npc.field("important") == "yes")
        .filter(|npc| npc.easy_secrets.len() < 2 || npc.hard_secrets.is_empty());
    let found: Vec<Fault> = lacking
        .map(|npc| {
            let message = format!("{} is important and needs two easy secrets and a hard one", npc.handle);
            fault(npc.path.as_deref().unwrap_or("characters/NPCs/npc_roster.md"), 1, message)
        })
        .collect();
    world.faults.extend(found);
}

/// Every clue that an effect of the cartridge gives. The first that gives it has the sentence.
pub(super) fn clues(world: &mut Cartridge) {
    let stages = world.quests.iter().flat_map(|quest| &quest.stages).map(|stage| (stage.gives.clone(), &stage.text));
    let clocks = world.clocks.iter().map(|clock| (clock.effects.clone(), &clock.event));
    let triggers = world.triggers.iter().map(|trigger| (trigger.effects.clone(), &trigger.event));
    let used = world.of(ObjectKind::Item).map(|item| (effects(item.field("use")).unwrap_or_default(), &item.summary));
    let mut found = std::collections::BTreeMap::new();
    let deeds = world.deeds.iter().map(|deed| (deed.step.gives.clone(), &deed.step.text));
    for (effects, sentence) in stages.chain(deeds).chain(clocks).chain(triggers).chain(used) {
        for effect in effects {
            if let Effect::Clue(clue) = effect {
                found.entry(clue).or_insert_with(|| sentence.clone());
            }
        }
    }
    // What a person or a price gives has no sentence of its own.
    for effect in world.effects() {
        if let Effect::Clue(clue) = effect {
            found.entry(clue).or_default();
        }
    }
    world.clues = found;
}
