//! Stage C3: plays a move. Each kind of move is a file; all of them change the state only through effects.
//!
//! It rolls where the outcome is open: a quest asks for a roll, a person must be persuaded, a thing is hidden, there is a fight, or
//! the player declares a risk. `turn` uses it.

mod act;
mod fight;
mod look;
mod manage;
mod quest;
mod talk;

use crate::check::{Advantage, Ask, Check, Difficulty, Tier, throw};
use crate::dice::Dice;
use crate::engine::Rules;
use crate::input::{Header, Intent, Move};
use crate::mechanics::survival;
use crate::pc::Pc;
use crate::rule::Effect;
use crate::state::{State, Told};
use crate::world::Cartridge;
use acheron_base::Result;

/// A narrator's judgement of a check. It does not change a DC that a table gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    pub roll: Option<bool>,
    pub difficulty: Option<Difficulty>,
    pub situational: i32,
    pub advantage: Advantage,
    pub impossible: Option<String>,
    pub consequences: Vec<Effect>,
}

/// The result of a move.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The action, in one paragraph.
    pub action: String,
    pub checks: Vec<Check>,
    /// The result table: action, result.
    pub rows: Vec<(String, String)>,
    pub found: Vec<String>,
    /// A summary of key text, never the text.
    pub text: Option<String>,
    pub inner: Option<String>,
    pub consequences: Vec<String>,
    pub indicators: Vec<String>,
    pub clocks: Vec<String>,
    /// Why nothing came of it, where nothing did.
    pub no_progress: Option<String>,
    pub alternative: Option<String>,
    pub cost: Vec<String>,
}

impl Outcome {
    pub fn tier(&self) -> Option<Tier> {
        self.checks.first().map(|check| check.tier)
    }
}

/// A move under way.
pub struct Play<'a> {
    pub world: &'a Cartridge,
    pub rules: &'a Rules,
    pub found: &'a Move,
    pub refs: &'a [String],
    pub pc: &'a Pc,
    pub judged: &'a Judgement,
    pub governance: &'a str,
    pub state: State,
    pub dice: Dice,
    pub out: Outcome,
    /// Chapters of the governance panel, where the move settled it.
    pub settled: Option<String>,
}

/// Plays the move to its end: what it does, what a narrator adds, what it sets off.
pub fn run(play: &mut Play<'_>) -> Result<()> {
    let moved = play.state.clone();
    if play.found.intent == Intent::Mind {
        inner_voice(play)?;
    } else if quest::advance(play)? {
        // A step that a quest waits for is possible, whatever the narrator says.
    } else if let Some(why) = &play.judged.impossible {
        play.impossible(why.clone(), "prepare for it first, or pay for it: declare `--risk high` on a smaller step");
    } else {
        match play.found.header {
            Header::Act => act::run(play)?,
            Header::Look => look::run(play)?,
            Header::Ask => talk::run(play)?,
            Header::Fight => fight::run(play)?,
            Header::Cast => look::cast(play)?,
            Header::Manage => manage::run(play)?,
            Header::Ooc => (),
        }
    }
    for effect in play.judged.consequences.clone() {
        play.effect(&effect)?;
    }
    let told = play.state.fire(play.world)?;
    play.tell(told);
    quest::open(play)?;
    let nothing =
        play.state == moved && play.out.found.is_empty() && play.out.text.is_none() && play.out.inner.is_none();
    if nothing && play.out.no_progress.is_none() && play.found.intent != Intent::Mgmt {
        play.out.no_progress = Some("nothing here answers to it".into());
    }
    Ok(())
}

impl Play<'_> {
    pub(super) fn effect(&mut self, effect: &Effect) -> Result<()> {
        let told = self.state.apply(effect, self.world)?;
        self.tell(told);
        Ok(())
    }

    pub(super) fn effects(&mut self, effects: &[Effect]) -> Result<()> {
        effects.iter().try_for_each(|effect| self.effect(effect))
    }

    fn tell(&mut self, told: Vec<Told>) {
        for one in told {
            match one {
                Told::Indicator(text) => self.out.indicators.push(text),
                Told::Clock(text) => self.out.clocks.push(text),
                Told::Found(text) => self.out.found.push(text),
                Told::Event(text) => self.out.consequences.push(text),
            }
        }
    }

    pub(super) fn row(&mut self, action: impl Into<String>, result: impl Into<String>) {
        self.out.rows.push((action.into(), result.into()));
    }

    /// Refuses the action without a roll and suggests another.
    pub(super) fn impossible(&mut self, why: String, instead: &str) {
        self.row(self.found.action_summary.clone(), "impossible");
        self.out.no_progress = Some(why);
        self.out.alternative = Some(instead.to_owned());
    }

    /// The modifiers of every check: ability, hunger, fatigue, the situation.
    fn weights(&self, stat: &str) -> Vec<(String, i32)> {
        let days = self.state.time.minutes().saturating_sub(self.state.ate) / (24 * 60);
        let mut weights = vec![(stat.to_owned(), self.pc.modifier(stat) as i32)];
        for (name, by) in [
            ("hunger", survival::hunger(days) as i32),
            ("fatigue", -(self.state.fatigue.clamp(0, 5) as i32)),
            ("situation", self.judged.situational),
        ] {
            if by != 0 {
                weights.push((name.to_owned(), by));
            }
        }
        weights
    }

    /// A check at a DC that a table gives.
    pub(super) fn check_at(&mut self, what: &str, stat: &str, dc: i32) -> Tier {
        let ask = Ask { what: what.to_owned(), dc, modifiers: self.weights(stat), advantage: self.judged.advantage };
        let check = throw(&ask, &mut self.dice);
        let tier = check.tier;
        self.row(what.to_owned(), format!("{} ({})", tier.name(), check.formula));
        self.out.checks.push(check);
        tier
    }

    /// A check whose DC is judged: the narrator's difficulty or the standard one, kept within the declared risk.
    pub(super) fn check(&mut self, what: &str, stat: &str) -> Tier {
        let dc = self.judged.difficulty.unwrap_or(Difficulty::Standard).dc();
        let dc = self.found.risk.map_or(dc, |risk| risk.clamp(dc));
        self.check_at(what, stat, dc)
    }

    /// Applies the cost of a failure: the given one, else one by the declared risk, else time. It is never nothing.
    pub(super) fn pay(&mut self, given: &[Effect]) -> Result<()> {
        use super::input::Risk;
        let has = |name: &str| self.world.indicator(name).is_some();
        let level = |name: &str, reason: &str| Effect::Level { name: name.into(), by: 1, reason: reason.into() };
        let mut cost = given.to_vec();
        if cost.is_empty() {
            cost.push(Effect::Minutes(20));
            match self.found.risk {
                Some(Risk::Mid) if has("Rumor") => cost.push(level("Rumor", "a risk that failed")),
                Some(Risk::High) => {
                    cost.push(Effect::Hp(-2));
                    if has("Heat") {
                        cost.push(level("Heat", "a great risk that failed"));
                    }
                }
                _ => (),
            }
        }
        self.out.cost = cost.iter().map(Effect::to_string).collect();
        self.effects(&cost)
    }
}

/// An inner voice: a thought of the character, from the cartridge's table if it has one.
fn inner_voice(play: &mut Play<'_>) -> Result<()> {
    let voice = play.found.voice.clone().unwrap_or_default();
    let table = play.world.tables.iter().find(|table| table.name == "Inner");
    let thought = table.map(|table| {
        let own = |row: &&Vec<String>| row.get(1).is_some_and(|cell| *cell == voice);
        let said = table.rows.iter().find(own).map(|row| row[0].clone());
        said.unwrap_or_else(|| table.throw(&mut play.dice).1.first().cloned().unwrap_or_default())
    });
    let thought = thought
        .filter(|thought| !thought.is_empty())
        .unwrap_or_else(|| "stays silent, which says something too".into());
    play.out.action = format!("For a breath the world is far away and the voice of {voice} is near.");
    play.row(format!("listen to {voice}"), "heard");
    play.out.inner = Some(format!("{voice}: {thought}"));
    play.effect(&Effect::Minutes(1))
}
