//! Stage C6: the HUD and its short codes. A code such as `L1` stands for a stable id, for one turn.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::md::clip;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind};

/// The most codes of one kind.
const MOST: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HudEntry {
    pub code: String,
    pub id: String,
    pub handle: String,
    pub name: String,
}

/// The places next to this one that are known.
pub fn exits<'a>(state: &'a State, world: &'a Cartridge) -> impl Iterator<Item = &'a Object> {
    let ways = world.map.ways(&state.location);
    world.of(ObjectKind::Loc).filter(move |place| {
        let way = ways.iter().any(|(to, _, _)| *to == place.handle);
        way && state.status(world, &place.handle) != "hidden" && world.map.known(&place.handle)
    })
}

/// The people who are here.
pub fn people<'a>(state: &'a State, world: &'a Cartridge) -> impl Iterator<Item = &'a Object> {
    // A companion is wherever the character is.
    world.of(ObjectKind::Npc).filter(|npc| match state.status(world, &npc.handle) {
        "companion" => true,
        "active" => state.place_of(npc) == state.location,
        _ => false,
    })
}

/// The things that lie here in plain sight and are not carried.
pub fn things<'a>(state: &'a State, world: &'a Cartridge) -> impl Iterator<Item = &'a Object> {
    world.of(ObjectKind::Item).filter(|item| {
        state.place_of(item) == state.location
            && state.status(world, &item.handle) == "active"
            && !state.inventory.contains(&item.handle)
    })
}

/// The name of a person whom a narrator brought in, by the name of the page: `old_zelda` is Old Zelda.
pub fn brought_name(stem: &str) -> String {
    stem.split('_').map(crate::grammar::capital).collect::<Vec<_>>().join(" ")
}

/// The names of those whom a narrator brought in here.
pub fn brought_here(state: &State) -> impl Iterator<Item = String> + '_ {
    let here = state.memory.brought.iter().filter(|(_, place)| **place == state.location);
    here.map(|(stem, _)| brought_name(stem)).take(MOST)
}

pub fn entries(state: &State, world: &Cartridge) -> Vec<HudEntry> {
    let carried = world.of(ObjectKind::Item).filter(|item| state.inventory.contains(&item.handle));
    let quests = world
        .of(ObjectKind::Quest)
        .filter(|quest| state.quests.get(&quest.handle).is_some_and(|own| own.status == "active"));
    let sides: Vec<&str> = people(state, world).map(|npc| npc.field("affiliation")).collect();
    let factions = world.of(ObjectKind::Faction).filter(|faction| sides.contains(&faction.handle.as_str()));
    let mut out = numbered(exits(state, world));
    out.extend(numbered(people(state, world)));
    out.extend(numbered(things(state, world).chain(carried)));
    out.extend(numbered(quests));
    out.extend(numbered(factions));
    out
}

fn numbered<'a>(objects: impl Iterator<Item = &'a Object>) -> Vec<HudEntry> {
    let entry = |(object, n): (&Object, usize)| HudEntry {
        code: format!("{}{n}", object.kind.letter()),
        id: object.id(),
        handle: object.handle.clone(),
        name: object.name.clone(),
    };
    objects.zip(1..=MOST).map(entry).collect()
}

pub fn bindings(entries: &[HudEntry]) -> BTreeMap<String, String> {
    entries.iter().map(|entry| (entry.code.clone(), entry.id.clone())).collect()
}

/// The HUD in at most ten lines: place and time, levels and clocks, then one line per kind of object.
pub fn render(state: &State, world: &Cartridge, entries: &[HudEntry]) -> String {
    let levels: Vec<String> = state.indicators.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let clocks: Vec<String> =
        state.shown_clocks(world).map(|clock| format!("{} {}/{}", clock.id, clock.filled, clock.segments)).collect();
    let mut lines = vec![
        format!("{} · {} · HP {}", state.time, world.name(&state.location), state.hp),
        clip(&levels.iter().chain(&clocks).cloned().collect::<Vec<_>>().join(" · "), 200),
    ];
    for kind in ObjectKind::ALL {
        let own: Vec<String> = entries
            .iter()
            .filter(|entry| entry.code.starts_with(kind.letter()))
            .map(|entry| format!("{} {}", entry.code, clip(&entry.name, 30)))
            .collect();
        // Those whom a narrator brought in have no code: they are called by name.
        let brought = brought_here(state).filter(|_| kind == ObjectKind::Npc).map(|name| clip(&name, 30));
        let own: Vec<String> = own.into_iter().chain(brought).collect();
        if !own.is_empty() {
            lines.push(own.join(" · "));
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.truncate(10);
    lines.join("\n") + "\n"
}
