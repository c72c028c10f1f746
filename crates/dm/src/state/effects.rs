//! How effects change the state, and what the player is told of it: levels, clocks that go by themselves, triggers. Only `state`
//! has it; every change of a campaign's state goes through [`State::apply`].

use super::{FULL_HP, State};
use crate::grammar::{capital, the, the_first};
use crate::rule::Effect;
use crate::world::{Cartridge, ObjectKind};
use acheron_base::{Error, Result};

/// A change that the player is told of, by the slot of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Indicator(String),
    Clock(String),
    Found(String),
    Event(String),
}

impl State {
    /// Checks that the effect is possible in this world.
    pub fn lawful(&self, effect: &Effect, world: &Cartridge) -> Result<()> {
        let known = |handle: &str, kind: ObjectKind| match world.object(handle) {
            Some(object) if object.kind == kind => Ok(()),
            Some(_) => Err(Error::invalid(format!("{handle} is of another kind than `{effect}` needs"))),
            None => Err(Error::not_found(format!("unknown handle {handle}"))),
        };
        match effect {
            Effect::Level { name, .. } if world.indicator(name).is_none() => {
                let names: Vec<&str> = world.indicators.iter().map(|indicator| indicator.name.as_str()).collect();
                Err(Error::invalid(format!("unknown indicator {name}; this cartridge has {}", names.join(", "))))
            }
            Effect::Tick { clock, .. } if !self.clocks.iter().any(|own| own.id == *clock) => {
                Err(Error::invalid(format!("unknown clock {clock}")))
            }
            Effect::Take(item) | Effect::Lose(item) => known(item, ObjectKind::Item),
            Effect::Reveal(place) | Effect::Move(place) => known(place, ObjectKind::Loc),
            Effect::Mood(who, _) => known(who, ObjectKind::Npc),
            Effect::Put(what, place) => {
                known(place, ObjectKind::Loc)?;
                known(what, ObjectKind::Npc).or_else(|_| known(what, ObjectKind::Item))
            }
            Effect::Quest(quest, status) => {
                known(quest, ObjectKind::Quest)?;
                let lawful = matches!(status.as_str(), "active" | "done" | "failed" | "hidden");
                if lawful { Ok(()) } else { Err(Error::invalid(format!("a quest cannot be `{status}`"))) }
            }
            Effect::Clue(clue) if !world.clues.contains_key(clue) => {
                Err(Error::not_found(format!("unknown clue {clue}")))
            }
            Effect::Status(object, _) if world.object(object).is_none() => {
                Err(Error::not_found(format!("unknown handle {object}")))
            }
            _ => Ok(()),
        }
    }

    /// Lets one effect happen. Returns what is to be told of it; an effect that changes nothing tells nothing.
    pub fn apply(&mut self, effect: &Effect, world: &Cartridge) -> Result<Vec<Told>> {
        self.lawful(effect, world)?;
        let mut told = Vec::new();
        match effect {
            Effect::Level { name, by, reason } => {
                let (low, high) = world.indicator(name).map_or((0, 0), |found| (found.min, found.max));
                let value = self.indicators.entry(name.clone()).or_insert(0);
                let (before, wanted) = (*value, value.saturating_add(*by));
                *value = wanted.clamp(low, high);
                let way = if wanted > *value { "rise" } else { "fall" };
                let lost = (wanted - *value).abs();
                let over = if lost == 0 { String::new() } else { format!("; it cannot {way}, {lost} is lost") };
                told.push(Told::Indicator(match *value == before {
                    true => format!("{name} stays at {value} ({reason}{over})"),
                    false => format!("{name} {before} -> {value} ({reason}{over})"),
                }));
            }
            Effect::Tick { clock, by, reason } => told.extend(self.tick(clock, *by, reason, world)?),
            Effect::Take(item) => {
                if !self.inventory.contains(item) {
                    self.inventory.push(item.clone());
                    self.memory.placed.remove(item);
                    self.statuses.remove(item);
                    told.push(Told::Found(format!("{} ({item})", capital(world.name(item)))));
                }
            }
            Effect::Lose(item) => {
                // Where it lay before it was taken it lies no more; a seller who has more of it puts out another.
                if world.object(item).is_some_and(|own| own.field("again") == "yes") {
                    self.statuses.remove(item);
                } else {
                    self.statuses.insert(item.clone(), "gone".into());
                }
                self.memory.placed.remove(item);
                if self.inventory.contains(item) {
                    self.inventory.retain(|own| own != item);
                    told.push(Told::Event(format!("{} is gone", the_first(world.name(item)))));
                }
            }
            Effect::Clue(clue) => {
                if !self.clues.contains(clue) {
                    self.clues.push(clue.clone());
                    told.push(Told::Found(format!("Clue: {}", world.clue_name(clue))));
                }
            }
            Effect::Reveal(place) => {
                if self.status(world, place) == "hidden" {
                    self.statuses.insert(place.clone(), "active".into());
                    told.push(Told::Found(format!("The way to {}", the(world.name(place)))));
                }
            }
            Effect::Minutes(minutes) => {
                let before = self.time.minutes();
                self.time.pass(*minutes);
                told.extend(self.hours(before, world)?);
            }
            Effect::Hp(by) => {
                let before = self.hp;
                self.hp = self.hp.saturating_add(*by).clamp(0, FULL_HP);
                if self.hp != before {
                    told.push(Told::Event(format!("HP {before} -> {}", self.hp)));
                }
            }
            Effect::Status(object, status) => {
                self.statuses.insert(object.clone(), status.clone());
            }
            Effect::Quest(quest, status) => {
                let progress = self.quests.entry(quest.clone()).or_default();
                if progress.status != *status {
                    progress.status = status.clone();
                    told.push(Told::Event(format!("quest {}: {status}", world.name(quest))));
                }
            }
            Effect::Move(place) => {
                self.location = place.clone();
                self.memory.warned.clear();
                if !self.seen.contains(place) {
                    self.seen.push(place.clone());
                }
            }
            Effect::Put(what, place) => {
                self.inventory.retain(|own| own != what);
                self.memory.placed.insert(what.clone(), place.clone());
                // A thing that somebody puts down lies in plain sight.
                if world.object(what).is_some_and(|object| object.kind == ObjectKind::Item) {
                    self.statuses.insert(what.clone(), "active".into());
                }
            }
            Effect::Mood(who, mood) => {
                if self.memory.moods.insert(who.clone(), mood.clone()).as_ref() != Some(mood) {
                    told.push(Told::Event(format!("{} is {mood} now", the_first(world.name(who)))));
                }
            }
            Effect::Hold(part, by) => {
                let value = self.memory.holding.entry(part.clone()).or_insert(0);
                let before = *value;
                *value = before.saturating_add(*by).max(0);
                told.push(Told::Event(format!("your holding: {part} {before} -> {value}")));
            }
        }
        Ok(told)
    }

    /// Clocks that go by themselves tick for each of their spans that has passed.
    fn hours(&mut self, before: u64, world: &Cartridge) -> Result<Vec<Told>> {
        let mut told = Vec::new();
        for face in &world.clocks {
            let Some(every) = face.every.filter(|every| *every > 0 && !self.stopped(&face.id, world)) else { continue };
            let ticks = self.time.minutes() / every - before / every;
            if ticks > 0 {
                told.extend(self.tick(&face.id, ticks.min(1000) as i64, "time passes", world)?);
            }
        }
        Ok(told)
    }

    fn tick(&mut self, id: &str, by: i64, reason: &str, world: &Cartridge) -> Result<Vec<Told>> {
        let face = world.clocks.iter().find(|face| face.id == id);
        let again = face.is_some_and(|face| face.again);
        let Some(clock) = self.clocks.iter_mut().find(|clock| clock.id == id) else { return Ok(Vec::new()) };
        let (before, wanted) = (clock.filled, clock.filled.saturating_add(by).max(0));
        // A clock that begins anew may come round more than once in a long time.
        let rounds = if again { (wanted / clock.segments).min(10) } else { 0 };
        clock.filled = if again { wanted % clock.segments } else { wanted.min(clock.segments) };
        if clock.filled == before && rounds == 0 {
            return Ok(Vec::new());
        }
        let reason = if reason.is_empty() { "it goes on" } else { reason };
        let mut told = Vec::new();
        // The player learns of a hidden clock by what it does, and by nothing else.
        if clock.visible {
            let (filled, segments) = (clock.filled, clock.segments);
            // What the HUD shows below is where the clock stands after it came round.
            let shown = match rounds {
                0 => format!("{filled}/{segments}"),
                _ => format!("{segments}/{segments}, then it begins again and stands at {filled}/{segments}"),
            };
            told.push(Told::Clock(format!("{id} {before}/{segments} -> {shown} ({reason})")));
        }
        let mark = format!("clock {id}");
        let full = clock.filled == clock.segments && !self.fired.contains(&mark);
        if full {
            self.fired.push(mark);
        }
        for round in 0..rounds.max(i64::from(full)) {
            let Some(face) = face else { break };
            if round == 0 {
                told.push(Told::Event(face.event.clone()));
            }
            for effect in &face.effects {
                told.extend(self.apply(effect, world)?);
            }
        }
        Ok(told)
    }

    /// Fires each trigger that holds and has not fired; one that may fire again is armed again once it no longer holds.
    pub fn fire(&mut self, world: &Cartridge) -> Result<Vec<Told>> {
        let mut told = Vec::new();
        // A trigger may set off another; each fires at most once in a turn.
        for _ in 0..world.triggers.len() {
            let due =
                world.triggers.iter().find(|trigger| !self.fired.contains(&trigger.shown) && self.holds(&trigger.when));
            let Some(trigger) = due else { break };
            self.fired.push(trigger.shown.clone());
            told.push(Told::Event(trigger.event.clone()));
            for effect in &trigger.effects {
                told.extend(self.apply(effect, world)?);
            }
        }
        let armed = world.triggers.iter().filter(|trigger| !trigger.once && !self.holds(&trigger.when));
        let armed: Vec<&str> = armed.map(|trigger| trigger.shown.as_str()).collect();
        self.fired.retain(|mark| !armed.contains(&mark.as_str()));
        Ok(told)
    }
}
