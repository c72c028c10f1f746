//! The state of a campaign: `STATE_PANEL.json` as typed data, what it answers, and ([`effects`]) how effects change it.
//!
//! Keys that the kernel does not know (such as `housing`, or a player's own) are kept unchanged.

mod effects;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::grammar::the;
use crate::memory::Memory;
use crate::rule::{Condition, Effect, Order, Term};
use crate::time::Time;
use crate::world::{Cartridge, Object, ObjectKind};

pub use effects::Told;

#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    pub id: String,
    pub segments: i64,
    pub filled: i64,
    pub visible: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    pub stage: usize,
    pub status: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub turn: u64,
    pub time: Time,
    pub location: String,
    pub hp: i64,
    pub indicators: BTreeMap<String, i64>,
    pub clocks: Vec<Clock>,
    pub inventory: Vec<String>,
    pub notes: Vec<String>,
    pub clues: Vec<String>,
    pub seen: Vec<String>,
    pub fired: Vec<String>,
    pub quests: BTreeMap<String, Progress>,
    /// Statuses that play has changed, by handle.
    pub statuses: BTreeMap<String, String>,
    /// The hit points left to opponents.
    pub foes: BTreeMap<String, i64>,
    /// How many secrets each person has told.
    pub told: BTreeMap<String, i64>,
    /// Minutes of the world when the last meal was eaten.
    pub ate: u64,
    pub fatigue: i64,
    /// The codes of this turn, and what they are bound to.
    pub hud: BTreeMap<String, String>,
    pub memory: Memory,
}

pub const FULL_HP: i64 = 12;

/// The levels that every world has, beside its indicators and the parts of a holding.
pub const LEVELS: [&str; 3] = ["day", "hp", "fatigue"];

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn clocks_has(panel: &Value, id: &str) -> bool {
    panel["clocks"].as_array().into_iter().flatten().any(|clock| clock["id"] == id)
}

fn numbers(value: &Value) -> BTreeMap<String, i64> {
    value.as_object().into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_i64()?))).collect()
}

fn words(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

impl State {
    /// Reads a panel of any origin: `-` counts as nothing, a missing indicator has its start value.
    pub fn read(panel: &Value, world: &Cartridge) -> Self {
        let indicators = world.indicators.iter().map(|indicator| {
            let found = panel["indicators"][&indicator.name].as_i64();
            (indicator.name.clone(), found.unwrap_or(indicator.start).clamp(indicator.min, indicator.max))
        });
        let clocks = panel["clocks"].as_array().into_iter().flatten().filter_map(|clock| {
            let segments = clock["segments"].as_i64()?.clamp(1, 100);
            let filled = clock["filled"].as_i64().unwrap_or(0).clamp(0, segments);
            let visible = clock["visible"].as_bool().unwrap_or(true);
            Some(Clock { id: clock["id"].as_str()?.to_owned(), segments, filled, visible })
        });
        let mut clocks: Vec<Clock> = clocks.collect();
        // A panel of another hand may lack clocks that the cartridge has; they have not begun.
        for face in world.clocks.iter().filter(|face| !clocks_has(panel, &face.id)) {
            clocks.push(Clock { id: face.id.clone(), segments: face.segments, filled: 0, visible: face.visible });
        }
        let quests = panel["quests"].as_object().into_iter().flatten().map(|(handle, quest)| {
            let status = quest["status"].as_str().unwrap_or("active").to_owned();
            (handle.clone(), Progress { stage: quest["stage"].as_u64().unwrap_or(0) as usize, status })
        });
        State {
            turn: panel["turn"].as_u64().unwrap_or(0),
            time: Time::read(panel["time"].as_str().unwrap_or("-")),
            location: panel["location"].as_str().unwrap_or("-").to_owned(),
            hp: panel["hp"].as_i64().unwrap_or(FULL_HP),
            indicators: indicators.collect(),
            clocks,
            inventory: strings(&panel["inventory"]),
            notes: strings(&panel["notes"]),
            clues: strings(&panel["clues"]),
            seen: strings(&panel["seen"]),
            fired: strings(&panel["fired"]),
            quests: quests.collect(),
            statuses: words(&panel["statuses"]),
            foes: numbers(&panel["foes"]),
            told: numbers(&panel["told"]),
            ate: panel["ate"].as_u64().unwrap_or(0),
            fatigue: panel["fatigue"].as_i64().unwrap_or(0),
            hud: words(&panel["hud"]),
            memory: Memory::read(panel),
        }
    }

    /// The panel with this state in it; keys that the kernel does not own stay.
    pub fn write(&self, panel: &Value) -> Value {
        let mut out = panel.as_object().cloned().unwrap_or_default();
        let mut set = |key: &str, value: Value| {
            out.insert(key.to_owned(), value);
        };
        set("time", json!(self.time.to_string()));
        set("location", json!(self.location));
        let mut indicators = panel["indicators"].as_object().cloned().unwrap_or_else(Map::new);
        indicators.extend(self.indicators.iter().map(|(name, value)| (name.clone(), json!(value))));
        set("indicators", Value::Object(indicators));
        let clock = |clock: &Clock| json!({"id": clock.id, "segments": clock.segments, "filled": clock.filled, "visible": clock.visible});
        set("clocks", self.clocks.iter().map(clock).collect());
        set("inventory", json!(self.inventory));
        set("notes", json!(self.notes));
        set("turn", json!(self.turn));
        set("hp", json!(self.hp));
        set("clues", json!(self.clues));
        set("seen", json!(self.seen));
        set("fired", json!(self.fired));
        let quest = |(handle, quest): (&String, &Progress)| {
            (handle.clone(), json!({"stage": quest.stage, "status": quest.status}))
        };
        set("quests", Value::Object(self.quests.iter().map(quest).collect()));
        set("statuses", json!(self.statuses));
        set("foes", json!(self.foes));
        set("told", json!(self.told));
        set("ate", json!(self.ate));
        set("fatigue", json!(self.fatigue));
        set("hud", json!(self.hud));
        self.memory.write(&mut out);
        Value::Object(out)
    }

    pub fn holds(&self, condition: &Condition) -> bool {
        condition.0.iter().all(|term| self.true_of(term))
    }

    fn true_of(&self, term: &Term) -> bool {
        match term {
            Term::Level(name, order, than) => {
                let value = self.level(name);
                match order {
                    Order::Less => value < *than,
                    Order::AtMost => value <= *than,
                    Order::Equal => value == *than,
                    Order::AtLeast => value >= *than,
                    Order::More => value > *than,
                }
            }
            Term::Has(item) => self.inventory.contains(item),
            Term::Quest(quest, status) => self.quests.get(quest).is_some_and(|found| found.status == *status),
            Term::ClockFull(id) => self.clocks.iter().any(|clock| clock.id == *id && clock.filled == clock.segments),
            Term::Clue(clue) => self.clues.contains(clue),
            Term::At(place) => self.location == *place,
            Term::Seen(place) => self.seen.contains(place),
            Term::Gone(object) => self.statuses.get(object).is_some_and(|own| own == "gone"),
            Term::Night => self.time.night(),
            Term::Not(term) => !self.true_of(term),
        }
    }

    /// A level by its name: an indicator, or one of [`LEVELS`], which every world has.
    fn level(&self, name: &str) -> i64 {
        match name {
            _ if self.indicators.contains_key(name) => self.indicators[name],
            "day" => (self.time.minutes() / (24 * 60)) as i64 + 1,
            "hp" => self.hp,
            "fatigue" => self.fatigue,
            _ => self.memory.holding.get(name).copied().unwrap_or(0),
        }
    }

    /// The place where a person stands or a thing lies: as play has it, else as the cartridge has it.
    pub fn place_of<'a>(&'a self, object: &'a Object) -> &'a str {
        let column = if object.kind == ObjectKind::Npc { "location" } else { "at" };
        self.memory.placed.get(&object.handle).map_or_else(|| object.field(column), String::as_str)
    }

    /// How a person feels about the player: as play has it, else as the cartridge has it.
    pub fn mood<'a>(&'a self, npc: &'a Object) -> &'a str {
        self.memory.moods.get(&npc.handle).map_or_else(|| npc.field("disposition"), String::as_str)
    }

    pub fn trust(&self, npc: &Object) -> i64 {
        npc.number("trust").unwrap_or(0) + self.memory.trust.get(&npc.handle).copied().unwrap_or(0)
    }

    /// The status of an object: as play has it, else as the cartridge has it.
    pub fn status<'a>(&'a self, world: &'a Cartridge, handle: &str) -> &'a str {
        let own = self.statuses.get(handle).map(String::as_str);
        own.or_else(|| world.object(handle).map(|object| object.status.as_str())).unwrap_or("hidden")
    }

    /// Whether a clock stands still for good, as the cartridge has it (`until`).
    pub fn stopped(&self, clock: &str, world: &Cartridge) -> bool {
        let face = world.clocks.iter().find(|face| face.id == clock);
        face.is_some_and(|face| !face.until.0.is_empty() && self.holds(&face.until))
    }

    /// The clocks that the player sees: those that are visible and still go.
    pub fn shown_clocks<'a>(&'a self, world: &'a Cartridge) -> impl Iterator<Item = &'a Clock> {
        self.clocks.iter().filter(|clock| clock.visible && !self.stopped(&clock.id, world))
    }

    /// The person who bars the way from one place to the next (`bars`): hostile, awake and there.
    pub fn barred<'a>(&self, from: &str, to: &str, world: &'a Cartridge) -> Option<&'a Object> {
        world.of(ObjectKind::Npc).find(|npc| {
            let there = self.place_of(npc) == from && self.status(world, &npc.handle) == "active";
            there && self.mood(npc) == "hostile" && npc.field("bars").split([',', ' ']).any(|own| own == to)
        })
    }

    /// Why a price cannot be paid: a level would pass its end, hit points would run out, a thing is not there to give.
    pub fn unpayable(&self, price: &[Effect], world: &Cartridge) -> Option<String> {
        price.iter().find_map(|effect| match effect {
            Effect::Level { name, by, .. } => {
                let own = world.indicator(name)?;
                let value = self.level(name);
                let fits = (own.min..=own.max).contains(&value.saturating_add(*by));
                (!fits).then(|| format!("the price is {name} {}, and {name} stands at {value}", by.abs()))
            }
            Effect::Hp(by) => (self.hp.saturating_add(*by) <= 0)
                .then(|| format!("the price is HP {}, and HP is {}", by.abs(), self.hp)),
            Effect::Lose(item) => (!self.inventory.contains(item))
                .then(|| format!("the price is {}, which is not carried", the(world.name(item)))),
            _ => None,
        })
    }

    /// The gate that keeps this place shut, if one does.
    pub fn shut<'a>(&self, place: &str, world: &'a Cartridge) -> Option<&'a crate::world::Gate> {
        let keeps =
            |gate: &&crate::world::Gate| gate.places.iter().any(|own| own == place) && !self.holds(&gate.open_when);
        world.gates.iter().find(keeps)
    }
}

#[cfg(test)]
mod tests;
