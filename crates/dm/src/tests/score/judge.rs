//! Judges one round by the engine: is what the player was shown true of the state before and after it?

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::state::State;
use crate::world::Cartridge;

/// The faults of one round.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Something was told that did not happen or could not yet, or something happened or was due and was not told.
    pub events: Vec<String>,
    /// A figure that is not that of the state, or a change that is not told.
    pub variables: Vec<String>,
}

/// A round: the panel before it, the panel after it, what was shown.
pub(super) struct Round<'a> {
    pub world: &'a Cartridge,
    pub before: &'a Value,
    pub after: &'a Value,
    pub shown: &'a str,
}

static CHANGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([\p{L}_]+) (-?\d+)(?:/\d+)? -> (-?\d+)(?:/\d+)?").unwrap());
static POINTS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bHP (?:is |now )*(\d+)( ->)?").unwrap());
static THROW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"d20\(([\d,]+)\)([+-]\d+)=(-?\d+) vs DC (-?\d+)( \(\w+\))? · (\w+)").unwrap());
static STAGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)^\| (.+) \| stage (\d+) of \d+ \|$").unwrap());
static QUEST: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?i)quest (.+?): (active|done|failed|hidden)").unwrap());
static ENDING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"Epilogue: ([^\n]+)").unwrap());

impl Round<'_> {
    pub fn judge(&self) -> Verdict {
        let (before, after) = (State::read(self.before, self.world), State::read(self.after, self.world));
        let mut verdict = Verdict::default();
        self.levels(&before, &after, &mut verdict.variables);
        self.hud(&after, &mut verdict.variables);
        self.throws(&mut verdict.variables);
        self.quests(&before, &after, &mut verdict.events);
        self.due(&before, &after, &mut verdict.events);
        self.ending(&before, &after, &mut verdict.events);
        verdict
    }

    /// Changes are told, from the value before to the value after without a gap.
    fn levels(&self, before: &State, after: &State, faults: &mut Vec<String>) {
        let of = |state: &State| {
            let levels = state.indicators.iter().map(|(name, value)| (name.clone(), *value));
            levels.chain([("HP".to_owned(), state.hp)]).collect::<Vec<_>>()
        };
        for ((name, from), (_, to)) in of(before).into_iter().zip(of(after)) {
            let mut at = from;
            for told in CHANGE.captures_iter(self.shown).filter(|told| told[1] == name) {
                if told[2].parse() != Ok(at) {
                    faults.push(format!("{}: {name} stood at {at}", &told[0]));
                }
                at = told[3].parse().unwrap();
            }
            if at != to {
                faults.push(format!("{name} is told as {at} and is {to}"));
            }
        }
        for clock in after.clocks.iter().filter(|clock| clock.visible) {
            let again = self.world.clocks.iter().any(|face| face.id == clock.id && face.again);
            let last = CHANGE.captures_iter(self.shown).filter(|told| told[1] == clock.id).last();
            let told = last.map(|told| told[3].parse::<i64>().unwrap());
            let was = before.clocks.iter().find(|own| own.id == clock.id).map(|own| own.filled);
            if !again && told.or(was) != Some(clock.filled) {
                faults.push(format!("the clock {} is told as {told:?} and is {}", clock.id, clock.filled));
            }
        }
        for told in POINTS.captures_iter(self.shown).filter(|told| told.get(2).is_none()) {
            if told[1].parse() != Ok(after.hp) {
                faults.push(format!("{} is shown, and HP is {}", &told[0], after.hp));
            }
        }
    }

    fn hud(&self, after: &State, faults: &mut Vec<String>) {
        let hud = self.shown.rsplit("[HUD]\n").next().unwrap_or_default();
        let head = format!("{} · {} · HP {}\n", after.time, self.world.name(&after.location), after.hp);
        if !hud.starts_with(&head) {
            faults.push(format!("the HUD does not begin with {head}"));
        }
        let shown: Vec<&str> = hud.lines().nth(1).unwrap_or_default().split(" · ").collect();
        let levels = after.indicators.iter().map(|(name, value)| format!("{name} {value}"));
        let faces = after.shown_clocks(self.world);
        let own: Vec<String> =
            levels.chain(faces.map(|own| format!("{} {}/{}", own.id, own.filled, own.segments))).collect();
        if !own.is_empty() && shown != own {
            faults.push(format!("the HUD shows {shown:?}, and the state is {own:?}"));
        }
        if self.shown.matches("[HUD]\n").count() != 1 {
            faults.push("there is more than one HUD".into());
        }
    }

    /// The dice add up, and the word for it is right.
    fn throws(&self, faults: &mut Vec<String>) {
        for told in THROW.captures_iter(self.shown) {
            let rolls: Vec<i32> = told[1].split(',').map(|roll| roll.parse().unwrap()).collect();
            let (total, dc): (i32, i32) = (told[3].parse().unwrap(), told[4].parse().unwrap());
            let by: i32 = told[2].parse().unwrap();
            let tier = crate::check::Tier::of(total, dc).name();
            if !rolls.iter().any(|roll| roll + by == total) || *tier != told[6] {
                faults.push(format!("{} does not add up", &told[0]));
            }
        }
    }

    /// A stage that is told was the next one, was possible, and is done; one that is done is told.
    fn quests(&self, before: &State, after: &State, faults: &mut Vec<String>) {
        for quest in &self.world.quests {
            let name = self.world.name(&quest.handle);
            let (was, is) = (before.quests.get(&quest.handle), after.quests.get(&quest.handle));
            let (from, to) = (was.map_or(0, |own| own.stage), is.map_or(0, |own| own.stage));
            let status = |own: Option<&crate::state::Progress>| own.map(|own| own.status.clone()).unwrap_or_default();
            let told = STAGE.captures_iter(self.shown).find(|told| told[1].eq_ignore_ascii_case(name));
            let told = told.map(|told| told[2].parse::<usize>().unwrap() - 1);
            let told =
                told.or_else(|| self.shown.contains(&format!("| {name} | done |")).then_some(quest.stages.len()));
            if told.unwrap_or(from) != to {
                faults.push(format!("{name} is told as at stage {told:?} and is at {to}"));
            }
            if to != from {
                let stage = &quest.stages[from];
                let there = stage.at.as_ref().is_none_or(|at| *at == before.location);
                if to != from + 1 || !there || !before.holds(&stage.needs) {
                    faults.push(format!("stage {} of {name} came before its time", from + 1));
                }
            }
            let said = QUEST.captures_iter(self.shown).filter(|told| told[1].eq_ignore_ascii_case(name)).last();
            let said = said.map_or_else(|| status(was), |told| told[2].to_lowercase());
            if said != status(is) {
                faults.push(format!("{name} is told as {said:?} and is {:?}", status(is)));
            }
        }
    }

    /// What is due has happened, what happened is told, and nobody stands behind a shut gate.
    fn due(&self, before: &State, after: &State, faults: &mut Vec<String>) {
        for quest in self.world.quests.iter().filter(|quest| !after.quests.contains_key(&quest.handle)) {
            let hidden = self.world.object(&quest.handle).is_none_or(|own| own.status == "hidden");
            if !hidden && after.holds(&quest.opens) {
                faults.push(format!("{} should be open", quest.handle));
            }
        }
        let shown = self.shown.to_lowercase();
        for trigger in &self.world.triggers {
            let fired = after.fired.contains(&trigger.shown);
            if after.holds(&trigger.when) && !fired {
                faults.push(format!("due and not come: {}", trigger.event));
            }
            if fired && !before.fired.contains(&trigger.shown) && !shown.contains(&trigger.event.to_lowercase()) {
                faults.push(format!("come and not told: {}", trigger.event));
            }
        }
        let moved = before.location != after.location;
        let shut = |state: &State| state.shut(&after.location, self.world).is_some();
        if moved && shut(before) && shut(after) {
            faults.push(format!("{} is shut and was entered", after.location));
        }
    }

    /// An epilogue is told where an ending is reached whose conditions hold, and nowhere else.
    fn ending(&self, before: &State, after: &State, faults: &mut Vec<String>) {
        let came = Some(&after.memory.ended).filter(|id| !id.is_empty() && before.memory.ended.is_empty());
        let ending = came.and_then(|id| self.world.endings.iter().find(|own| own.id == *id));
        let told: Vec<String> = ENDING.captures_iter(self.shown).map(|told| told[1].trim().to_owned()).collect();
        let due: Vec<String> = ending.iter().map(|own| own.title.clone()).collect();
        if told != due {
            faults.push(format!("the epilogues {told:?} are told, and {due:?} is due"));
        }
        if ending.is_some_and(|own| !after.holds(&own.when)) {
            faults.push(format!("the ending {came:?} came before its time"));
        }
    }
}
