//! Rows and pages: columns with values that the rules know, effects and conditions about things of the right kind.

use std::collections::BTreeMap;

use super::{fault, line_in};
use crate::authored::DEEDS;
use crate::load::named_handles;
use crate::refs::normal;
use crate::rule::{Condition, Effect, HOLDING, MOODS, Term, effects};
use crate::state::{LEVELS, State};
use crate::water;
use crate::world::{Cartridge, Fault, Object, ObjectKind, Stage};

/// The abilities of a character.
pub const STATS: [&str; 5] = ["str", "dex", "int", "will", "cha"];

pub fn faults(world: &Cartridge) -> Vec<Fault> {
    let mut faults = Vec::new();
    names(world, &mut faults);
    head(world, &mut faults);
    for object in &world.objects {
        columns(world, object, &mut faults);
    }
    for quest in &world.quests {
        let object = world.object(&quest.handle);
        let path = object.and_then(|own| own.path.as_deref()).unwrap_or("quests/QUEST_LOG.md");
        condition(world, path, line_in(world, path, "opens:"), &quest.opens, &mut faults);
        if quest.stages.is_empty() {
            faults.push(fault(
                path,
                1,
                format!("quest {} has no stages: write a table under `## Stages`", quest.handle),
            ));
        }
        if !quest.main && world.object(&quest.return_to).is_none() {
            faults.push(fault(
                "quests/QUEST_LOG.md",
                line_in(world, "quests/QUEST_LOG.md", &format!("| {} ", quest.handle)),
                format!("side quest {} needs a return_to, a place", quest.handle),
            ));
        }
        quest.stages.iter().for_each(|stage| step(world, path, stage, &mut faults));
    }
    world.deeds.iter().for_each(|deed| step(world, DEEDS, &deed.step, &mut faults));
    rules(world, &mut faults);
    faults
}

/// Names and aliases that mean two things: a player who types one is asked which.
fn names(world: &Cartridge, faults: &mut Vec<Fault>) {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for object in &world.objects {
        for name in std::iter::once(&object.name).chain(&object.aliases).map(|name| normal(name)) {
            let bare = name.strip_prefix("the ").unwrap_or(&name).to_owned();
            let other = *known.entry(bare.clone()).or_insert(&object.handle);
            if other != object.handle {
                let (path, line) = place_of(world, object, "name");
                faults.push(fault(
                    &path,
                    line,
                    format!("`{bare}` means {other} and {}: give one another name", object.handle),
                ));
            }
        }
    }
}

/// The page of the cartridge itself.
fn head(world: &Cartridge, faults: &mut Vec<Fault>) {
    let path = "CARTRIDGE.md";
    for (key, place) in [("start", &world.start), ("wakes_at", &world.wakes_at)] {
        let known = world.object(place).is_some_and(|own| own.kind == ObjectKind::Loc);
        if !known && (key == "start" || !place.is_empty()) {
            faults.push(fault(path, line_in(world, path, &format!("{key}:")), format!("{key} must name a place")));
        }
    }
    change(world, path, line_in(world, path, "falls:"), &world.falls, faults);
    for (words, list) in std::iter::once(("carries:", &world.carries))
        .chain(world.hooks.iter().map(|own| (own.text.as_str(), &own.carries)))
    {
        for thing in list.iter().filter(|own| world.object(own).is_some_and(|own| own.kind != ObjectKind::Item)) {
            faults.push(fault(path, line_in(world, path, words), format!("{thing} is carried and is not a thing")));
        }
    }
}

/// The file and line where a field of an object stands: its page, else its row.
fn place_of(world: &Cartridge, object: &Object, field: &str) -> (String, usize) {
    if let Some(path) = &object.path
        && let Some(text) = world.files.get(path)
        && let Some(at) =
            text.lines().position(|line| line.trim().trim_start_matches("- ").starts_with(&format!("{field}:")))
    {
        return (path.clone(), at + 1);
    }
    let index = match object.kind {
        ObjectKind::Loc => "locations/LOCATION_INDEX.md",
        ObjectKind::Npc => "characters/NPCs/npc_roster.md",
        ObjectKind::Item => "items/ITEM_INDEX.md",
        ObjectKind::Quest => "quests/QUEST_LOG.md",
        ObjectKind::Faction => "factions/FACTION_INDEX.md",
    };
    (index.to_owned(), line_in(world, index, &format!("| {} ", object.handle)))
}

fn columns(world: &Cartridge, object: &Object, faults: &mut Vec<Fault>) {
    let mut wrong = |field: &str, message: String| {
        let (path, line) = place_of(world, object, field);
        faults.push(fault(&path, line, format!("{}: {message}", object.handle)));
    };
    let of_kind = [
        ("location", ObjectKind::Loc),
        ("at", ObjectKind::Loc),
        ("seller", ObjectKind::Npc),
        ("giver", ObjectKind::Npc),
        ("return_to", ObjectKind::Loc),
        ("affiliation", ObjectKind::Faction),
    ];
    for (field, kind) in of_kind {
        let own = object.field(field);
        let fits = own.is_empty() || own == "-" || world.object(own).is_none_or(|other| other.kind == kind);
        if !fits {
            wrong(field, format!("{field} {own} is not a {}", kind_name(kind)));
        }
    }
    if object.kind == ObjectKind::Npc && object.field("location").is_empty() {
        wrong("location", "a person needs a location".into());
    }
    for field in ["hp", "str", "dex", "trust", "insight", "level", "dc", "weight"] {
        let own = object.field(field);
        if !matches!(own, "" | "-") && own.parse::<i64>().is_err() {
            wrong(field, format!("{field} `{own}` is not a number"));
        }
    }
    for (field, lawful) in [
        ("disposition", MOODS.as_slice()),
        ("will", ["weak", "firm", "iron", "fanatic"].as_slice()),
        ("shelter", ["yes", "no"].as_slice()),
        ("again", ["yes", "no"].as_slice()),
        ("food", ["yes", "no"].as_slice()),
        ("drink", ["yes", "no"].as_slice()),
        ("important", ["yes", "no"].as_slice()),
        ("soil", ["poor", "fair", "good", "rich"].as_slice()),
    ] {
        let own = object.field(field);
        if !matches!(own, "" | "-") && !lawful.contains(&own) {
            wrong(field, format!("{field} `{own}` must be one of {}", lawful.join(", ")));
        }
    }
    {
        let rules = &world.engine.rules;
        let ground: Vec<&str> = rules.combat.grounds.iter().map(|own| own.name.as_str()).collect();
        let weapons: Vec<&str> = rules.combat.weapons.iter().map(|own| own.name.as_str()).collect();
        let armours: Vec<&str> = rules.combat.armours.iter().map(|own| own.name.as_str()).collect();
        for (field, lawful) in [("ground", ground), ("weapon", weapons), ("armour", armours)] {
            let own = object.field(field);
            if !matches!(own, "" | "-") && !lawful.contains(&own) {
                wrong(field, format!("{field} `{own}` must be one of {}", lawful.join(", ")));
            }
        }
    }
    match water::rule(object) {
        Ok(Some(when)) => {
            let (path, line) = place_of(world, object, "water");
            condition(world, &path, line, &when, faults);
        }
        Ok(None) => (),
        Err(message) => {
            let (path, line) = place_of(world, object, "water");
            faults.push(fault(&path, line, format!("{}: {message}", object.handle)));
        }
    }
    let mut wrong = |field: &str, message: String| {
        let (path, line) = place_of(world, object, field);
        faults.push(fault(&path, line, format!("{}: {message}", object.handle)));
    };
    for place in named_handles(object.field("bars")) {
        if world.object(&place).is_some_and(|own| own.kind != ObjectKind::Loc) {
            wrong("bars", format!("bars {place} is not a place"));
        }
    }
    if object.kind == ObjectKind::Item && !object.field("price").is_empty() && object.field("seller").is_empty() {
        wrong("price", "a thing with a price needs a seller".into());
    }
    for field in ["use", "price", "thanks", "acts"] {
        let (path, line) = place_of(world, object, field);
        match effects(object.field(field)) {
            Ok(list) => change(world, &path, line, &list, faults),
            Err(bad) => faults.push(fault(&path, line, format!("{}: {field}: {}", object.handle, bad.message))),
        }
    }
    let (path, _) = place_of(world, object, "name");
    let path = object.path.clone().unwrap_or(path);
    for fact in object.facts.iter().chain(object.topics.iter().map(|topic| &topic.answer)) {
        condition(world, &path, fact.line, &fact.when, faults);
    }
}

fn kind_name(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Loc => "place",
        ObjectKind::Npc => "person",
        ObjectKind::Item => "thing",
        ObjectKind::Quest => "quest",
        ObjectKind::Faction => "faction",
    }
}

fn step(world: &Cartridge, path: &str, step: &Stage, faults: &mut Vec<Fault>) {
    if step.dc.is_some() && !STATS.contains(&step.stat.as_str()) {
        let message = format!("`{}` is not an ability: {}", step.stat, STATS.join(", "));
        faults.push(fault(path, step.line, message));
    }
    if step.headers.is_empty() {
        faults.push(fault(path, step.line, "the column `do` names no header"));
    }
    if step.target.is_empty() && step.says.is_empty() {
        faults.push(fault(path, step.line, "a step needs a target or words (`says`), else any move does it"));
    }
    if let Some(at) = step.at.as_deref().and_then(|at| world.object(at)).filter(|at| at.kind != ObjectKind::Loc) {
        faults.push(fault(path, step.line, format!("{} is not a place", at.handle)));
    }
    if world.object(&step.to).is_some_and(|own| own.kind != ObjectKind::Npc) {
        faults.push(fault(path, step.line, format!("{} is not a person", step.to)));
    }
    condition(world, path, step.line, &step.needs, faults);
    change(world, path, step.line, &step.gives, faults);
    change(world, path, step.line, &step.cost, faults);
}

/// Triggers, gates, clocks and endings.
fn rules(world: &Cartridge, faults: &mut Vec<Fault>) {
    let path = "lore/MECHANICS/INDICATORS.md";
    for trigger in &world.triggers {
        let line = line_in(world, path, &trigger.event);
        condition(world, path, line, &trigger.when, faults);
        change(world, path, line, &trigger.effects, faults);
    }
    for gate in &world.gates {
        let line = line_in(world, path, &gate.name);
        condition(world, path, line, &gate.open_when, faults);
        if gate.places.is_empty() {
            faults.push(fault(path, line, format!("gate {} shuts no place", gate.name)));
        }
    }
    let path = "lore/MECHANICS/CLOCKS.md";
    for clock in &world.clocks {
        let line = line_in(world, path, &clock.event);
        change(world, path, line, &clock.effects, faults);
        condition(world, path, line, &clock.until, faults);
    }
    for ending in &world.endings {
        condition(world, crate::ending::PAGE, ending.line, &ending.when, faults);
        ending.lines.iter().for_each(|fact| condition(world, crate::ending::PAGE, fact.line, &fact.when, faults));
    }
}

/// Effects that the rules refuse in play.
fn change(world: &Cartridge, path: &str, line: usize, list: &[Effect], faults: &mut Vec<Fault>) {
    let state = State::read(&serde_json::json!({}), world);
    for effect in list {
        if let Err(wrong) = state.lawful(effect, world) {
            faults.push(fault(path, line, wrong.message));
        }
    }
}

/// Conditions that can never be true, because of what they name.
fn condition(world: &Cartridge, path: &str, line: usize, when: &Condition, faults: &mut Vec<Fault>) {
    for term in &when.0 {
        if let Some(message) = wrong(world, term) {
            faults.push(fault(path, line, message));
        }
    }
}

fn wrong(world: &Cartridge, term: &Term) -> Option<String> {
    let of_kind = |handle: &str, kind: ObjectKind| match world.object(handle) {
        Some(object) if object.kind == kind => None,
        Some(_) => Some(format!("{handle} is not a {}", kind_name(kind))),
        None => Some(format!("unknown handle {handle}")),
    };
    match term {
        Term::Level(name, ..) => {
            let known =
                world.indicator(name).is_some() || LEVELS.contains(&name.as_str()) || HOLDING.contains(&name.as_str());
            (!known).then(|| format!("unknown indicator {name}"))
        }
        Term::Has(item) => of_kind(item, ObjectKind::Item),
        Term::Quest(quest, status) => of_kind(quest, ObjectKind::Quest).or_else(|| {
            let lawful = matches!(status.as_str(), "active" | "done" | "failed" | "hidden");
            (!lawful).then(|| format!("a quest cannot be `{status}`"))
        }),
        Term::ClockFull(clock) => {
            (!world.clocks.iter().any(|own| own.id == *clock)).then(|| format!("unknown clock {clock}"))
        }
        Term::Clue(_) | Term::Night => None,
        Term::At(place) | Term::Seen(place) => of_kind(place, ObjectKind::Loc),
        Term::Gone(object) => world.object(object).is_none().then(|| format!("unknown handle {object}")),
        Term::Not(inner) => wrong(world, inner),
    }
}
