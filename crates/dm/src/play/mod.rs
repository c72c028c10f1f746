//! Stage C3: plays a move. Each kind of move is a file; all of them change the state only through effects.
//!
//! It rolls where the outcome is open: a quest asks for a roll, a person must be persuaded, a thing is hidden, there is a fight, or
//! the player declares a risk. `turn` uses it.

mod act;
mod after;
mod bystander;
mod drink;
mod fight;
mod look;
mod manage;
mod narrated;
mod pass;
mod people;
mod quest;
mod step;
mod talk;
mod things;
mod travel;
mod unclear;
mod weapon;

#[cfg(test)]
pub(crate) use travel::spoken;

use crate::check::{Advantage, Ask, Check, Difficulty, Tier, throw};
use crate::dice::Dice;
use crate::ending::Epilogue;
use crate::engine::Rules;
use crate::grammar::capital;
use crate::hud::people;
use crate::input::{Header, Intent, Move};
use crate::mechanics::survival;
use crate::pc::Pc;
use crate::refs;
use crate::rule::Effect;
use crate::state::{State, Told};
use crate::verbs::{self, Verb};
use crate::world::{Cartridge, Object};
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
    /// Whether the narrator tells of the action, so that it needs no word that the kernel knows.
    pub narrated: bool,
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
    /// All that followed, in the order in which it came: events, levels, clocks.
    pub after: Vec<String>,
    pub indicators: Vec<String>,
    pub clocks: Vec<String>,
    /// Why nothing came of it, where nothing did.
    pub no_progress: Option<String>,
    pub alternative: Option<String>,
    pub cost: Vec<String>,
    /// What would be understood or could be asked, where the move was not.
    pub hints: Vec<String>,
    pub epilogue: Option<Epilogue>,
    /// The move asked for something that is told, and changes nothing by that.
    pub said: bool,
    /// The effects of a narrator that break a rule, each with its reason.
    pub reports: Vec<String>,
    /// What a narrator proposed that does not fit what came of the move. A narrator cannot know that, so it is no fault.
    pub set_aside: Vec<String>,
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
    /// A second order of the same input, which is not played.
    pub left: Option<&'a str>,
    pub state: State,
    pub dice: Dice,
    pub out: Outcome,
    /// Chapters of the governance panel, where the move settled it.
    pub settled: Option<String>,
}

/// Plays the move to its end: what it does, what a narrator adds, what it sets off.
pub fn run(play: &mut Play<'_>) -> Result<()> {
    // Whoever stands here has been met.
    let met: Vec<String> = people(&play.state, play.world).map(|npc| npc.handle.clone()).collect();
    met.iter().for_each(|npc| {
        play.state.memory.note(npc);
    });
    let moved = play.state.clone();
    if play.found.intent == Intent::Mind {
        inner_voice(play)?;
    } else if play.found.header != Header::Ask && verbs::denied(&play.found.body) {
        unclear::not_understood(play, "it says what is not to be done: say what is");
    } else if quest::advance(play)? || quest::deed(play)? {
        // A step that the cartridge waits for is possible, whatever the narrator says.
    } else if let Some(why) = play.judged.impossible.as_ref().filter(|_| may_forbid(play.found)) {
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
        quest::repeated(play);
    }
    if let Some(left) = play.left {
        play.row(crate::md::clip(left, 60), "left undone: one order in one input");
    }
    narrated::run(play, &moved)?;
    after::run(play, moved.time.minutes())?;
    if play.state.location != moved.location && !play.out.hints.is_empty() {
        play.out.hints = unclear::hints(play);
    }
    let out = &play.out;
    let nothing = play.state == moved && out.found.is_empty() && out.text.is_none() && out.inner.is_none() && !out.said;
    if nothing && out.no_progress.is_none() {
        play.out.no_progress = Some("nothing here answers to it".into());
    }
    Ok(())
}

/// Whether a narrator may say that the move cannot succeed: only where the kernel has no answer of its own. A narrator that forbids
/// looking, going and waiting would bring the game to a stand.
pub fn may_forbid(found: &Move) -> bool {
    let verb = verbs::verb(&found.body).map(|(verb, _)| verb);
    match found.header {
        Header::Fight | Header::Cast => true,
        Header::Act => matches!(verb, None | Some(Verb::Use | Verb::Fight | Verb::Cast | Verb::Impossible(_))),
        Header::Look | Header::Ask | Header::Manage | Header::Ooc => false,
    }
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
                Told::Indicator(text) => {
                    self.out.after.push(text.clone());
                    self.out.indicators.push(text);
                }
                Told::Clock(text) => {
                    self.out.after.push(text.clone());
                    self.out.clocks.push(text);
                }
                Told::Found(text) => self.out.found.push(text),
                Told::Event(text) => self.event(text),
            }
        }
    }

    /// Something that happens, told in its turn.
    pub(super) fn event(&mut self, text: String) {
        self.out.after.push(capital(&text));
        self.out.consequences.push(text);
    }

    /// Whether the move reads: a page, or a face.
    pub(super) fn reads(&self) -> bool {
        refs::normal(&self.found.body).split(' ').any(|word| word == "read")
    }

    pub(super) fn row(&mut self, action: impl Into<String>, result: impl Into<String>) {
        self.out.rows.push((action.into(), result.into()));
    }

    /// The verb of the move, where it has one that is known.
    pub(super) fn verb(&self) -> Option<Verb> {
        verbs::verb(&self.found.body).map(|(verb, _)| verb)
    }

    /// What stands after the verb; the whole body where there is none.
    pub(super) fn rest(&self) -> String {
        verbs::verb(&self.found.body).map_or_else(|| self.found.body.clone(), |(_, rest)| rest)
    }

    /// Whether the move is one of this header, by its own or by its verb.
    pub(super) fn means_header(&self, header: Header) -> bool {
        let by_verb = match self.verb() {
            Some(Verb::Talk) => Some(Header::Ask),
            Some(Verb::Look | Verb::Search) => Some(Header::Look),
            Some(Verb::Fight) => Some(Header::Fight),
            _ => None,
        };
        self.found.header == header || self.found.header == Header::Act && by_verb == Some(header)
    }

    /// The words that name what the move is about: names, aliases, handles, codes.
    pub(super) fn name_words(&self) -> Vec<String> {
        let mut words: Vec<String> = self.state.hud.keys().map(|code| code.to_lowercase()).collect();
        for object in self.refs.iter().filter_map(|own| self.world.object(own)) {
            words.push(object.handle.trim_start_matches('@').to_owned());
            let names = std::iter::once(&object.name).chain(&object.aliases);
            words.extend(names.flat_map(|name| refs::normal(name).split(' ').map(str::to_owned).collect::<Vec<_>>()));
        }
        words
    }

    /// The words of the body that carry meaning and name nothing.
    pub(super) fn unnamed_words(&self) -> Vec<String> {
        let names = self.name_words();
        verbs::meaning(&self.found.body).into_iter().filter(|word| !names.contains(word)).collect()
    }

    /// The same, of what stands after the verb.
    pub(super) fn other_words(&self) -> Vec<String> {
        let names = self.name_words();
        verbs::meaning(&self.rest()).into_iter().filter(|word| !names.contains(word)).collect()
    }

    /// The move in a few words, for the table of results.
    pub(super) fn what(&self) -> String {
        crate::md::clip(&self.found.body.split_whitespace().collect::<Vec<_>>().join(" "), 60)
    }

    /// The character's name, as a fighter.
    pub(super) fn pc_name(&self) -> String {
        if self.pc.name.is_empty() { "The stranger".into() } else { self.pc.name.clone() }
    }

    /// The pounds that are carried (`weight` column).
    pub(super) fn pounds(&self) -> u64 {
        let items = self.state.inventory.iter().filter_map(|item| self.world.object(item));
        items.map(|item| item.number("weight").unwrap_or(0).clamp(0, 10_000) as u64).sum()
    }

    /// The penalty of the load, and whether one can run with it.
    pub(super) fn load(&self) -> (i64, bool) {
        survival::load(self.pounds())
    }

    /// What weighs on every check: hunger, thirst, load, fatigue. Thirst counts in a world that has water to drink.
    pub(super) fn burdens(&self) -> Vec<(String, i32)> {
        let days = |since: u64| self.state.time.minutes().saturating_sub(since) / (24 * 60);
        let water = |own: &Object| !matches!(own.field("water"), "" | "-" | "no") || own.field("drink") == "yes";
        let dry = self.world.objects.iter().any(water);
        let thirst = if dry { survival::thirst(days(self.state.memory.drank)) } else { 0 };
        let all = [
            ("hunger", survival::hunger(days(self.state.ate))),
            ("thirst", thirst),
            ("load", self.load().0),
            ("fatigue", -self.state.fatigue.clamp(0, 5)),
        ];
        all.into_iter().filter(|(_, by)| *by != 0).map(|(name, by)| (name.to_owned(), by as i32)).collect()
    }

    /// Refuses the action without a roll and suggests another.
    pub(super) fn impossible(&mut self, why: String, instead: &str) {
        self.row(self.what(), "impossible");
        if self.out.action.is_empty() {
            self.out.action = "It cannot be done.".into();
        }
        self.out.no_progress = Some(why);
        self.out.alternative = Some(instead.to_owned());
    }

    /// The modifiers of every check: ability, what weighs on it, the situation.
    fn weights(&self, stat: &str) -> Vec<(String, i32)> {
        let mut weights = vec![(stat.to_owned(), self.pc.modifier(stat) as i32)];
        weights.extend(self.burdens());
        if self.judged.situational != 0 {
            weights.push(("situation".to_owned(), self.judged.situational));
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
        // What else it takes is told as it changes; lost time would pass unseen.
        let time = cost.iter().filter_map(|effect| match effect {
            Effect::Minutes(minutes) => Some(travel::spoken(*minutes)),
            _ => None,
        });
        self.out.cost = time.collect();
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
