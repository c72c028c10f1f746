//! A cartridge as data: places, people, things, quests, indicators, clocks, gates, routes. It is the same in every campaign.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use crate::engine::SharedEngine;
use crate::files::Files;
use crate::input::{Extra, Header};
use crate::mechanics::maps::Map;
use crate::mechanics::tables::RandomTable;
use crate::rule::{Condition, Effect};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ObjectKind {
    Loc,
    Npc,
    Item,
    Quest,
    Faction,
}

impl ObjectKind {
    pub const ALL: [ObjectKind; 5] =
        [ObjectKind::Loc, ObjectKind::Npc, ObjectKind::Item, ObjectKind::Quest, ObjectKind::Faction];

    /// The letter of its codes in the HUD.
    pub fn letter(self) -> char {
        match self {
            ObjectKind::Loc => 'L',
            ObjectKind::Npc => 'N',
            ObjectKind::Item => 'I',
            ObjectKind::Quest => 'Q',
            ObjectKind::Faction => 'F',
        }
    }

    /// A word for one of them, with its article.
    pub fn article(self) -> &'static str {
        match self {
            ObjectKind::Loc => "a place",
            ObjectKind::Npc => "a person",
            ObjectKind::Item => "an item",
            ObjectKind::Quest => "a quest",
            ObjectKind::Faction => "a faction",
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            ObjectKind::Loc => "loc",
            ObjectKind::Npc => "npc",
            ObjectKind::Item => "item",
            ObjectKind::Quest => "quest",
            ObjectKind::Faction => "faction",
        }
    }

    /// The stable id of a handle: `@gate` → `loc_gate`.
    pub fn id(self, handle: &str) -> String {
        format!("{}_{}", self.prefix(), handle.trim_start_matches('@'))
    }
}

/// Anything that can be spoken of.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub kind: ObjectKind,
    pub handle: String,
    pub name: String,
    pub summary: String,
    pub status: String,
    pub aliases: Vec<String>,
    /// Its own page, where it has one.
    pub path: Option<String>,
    /// The `key: value` lines of its page and the further columns of its index row.
    pub fields: BTreeMap<String, String>,
    pub easy_secrets: Vec<String>,
    pub hard_secrets: Vec<String>,
    /// The sentences of its page: what is seen there, or of it.
    pub facts: Vec<Fact>,
    /// What a person says for the asking.
    pub topics: Vec<Topic>,
}

/// A sentence about a place, a person or a thing, that may hold only at times.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub line: usize,
    pub when: Condition,
    pub text: String,
}

/// Something that a person talks about freely: the words that ask for it, and the answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    pub words: Vec<String>,
    pub answer: Fact,
}

impl Object {
    pub fn id(&self) -> String {
        self.kind.id(&self.handle)
    }

    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.field(name).parse().ok()
    }
}

/// One step of a quest: what must be done, where, with what; what it gives and what a failure costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub line: usize,
    pub headers: Vec<Header>,
    pub target: String,
    pub at: Option<String>,
    pub needs: Condition,
    pub stat: String,
    pub dc: Option<i32>,
    pub gives: Vec<Effect>,
    pub cost: Vec<Effect>,
    pub text: String,
    /// Words that mean this step: one word is a verb for the target, several words stand for themselves.
    pub says: Vec<String>,
    /// The person who is given the thing, where the target is a thing that is given.
    pub to: String,
    /// What is told when the check fails.
    pub fails: String,
}

/// Something that can be done in a place without a quest.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    pub step: Stage,
    /// Whether it can be done only once.
    pub once: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Quest {
    pub handle: String,
    pub main: bool,
    pub giver: String,
    pub return_to: String,
    pub stakes: String,
    pub opens: Condition,
    pub stages: Vec<Stage>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Indicator {
    pub name: String,
    pub min: i64,
    pub max: i64,
    pub start: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    pub when: Condition,
    pub shown: String,
    pub once: bool,
    pub event: String,
    pub effects: Vec<Effect>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub name: String,
    pub open_when: Condition,
    pub shown: String,
    /// What the player is told at the shut gate; where it is empty, what the condition lacks.
    pub reason: String,
    /// The places that cannot be entered while it is shut.
    pub places: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ClockSpec {
    pub id: String,
    pub segments: i64,
    pub visible: bool,
    /// Ticks by itself each so many minutes of the world.
    pub every: Option<u64>,
    pub event: String,
    pub effects: Vec<Effect>,
    /// Whether it begins anew once it is full.
    pub again: bool,
    /// It stands still, and is not shown, while this holds; an empty condition never stops it.
    pub until: Condition,
}

/// A beginning of the story, and the things that the character then carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hook {
    pub text: String,
    pub carries: Vec<String>,
}

/// A sentence that always holds in a world, and phrases of what therefore never happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invariant {
    pub text: String,
    /// A text in which all words of such a phrase stand in one sentence breaks it.
    pub never: Vec<String>,
}

/// A fault in a file, with its line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub path: String,
    pub line: usize,
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A whole cartridge.
#[derive(Clone, Debug, Default)]
pub struct Cartridge {
    pub id: String,
    pub version: String,
    pub title: String,
    pub start: String,
    pub theme: String,
    pub objects: Vec<Object>,
    pub quests: Vec<Quest>,
    pub indicators: Vec<Indicator>,
    pub triggers: Vec<Trigger>,
    pub gates: Vec<Gate>,
    pub clocks: Vec<ClockSpec>,
    pub deeds: Vec<Deed>,
    pub endings: Vec<Ending>,
    /// What happens when the character falls, and where they wake; the start if it is nowhere.
    pub falls: Vec<Effect>,
    pub wakes_at: String,
    /// What the character notices on waking there.
    pub wakes: String,
    /// What every character carries at the beginning.
    pub carries: Vec<String>,
    pub routes: Vec<(Header, Vec<String>)>,
    pub tables: Vec<RandomTable>,
    pub map: Map,
    pub extra: Vec<Extra>,
    pub hooks: Vec<Hook>,
    pub spine: Vec<String>,
    pub invariants: Vec<Invariant>,
    /// The feature flags that the cartridge sets.
    pub flags: BTreeMap<String, bool>,
    /// The clues that the cartridge can give, each with the sentence that it is given with.
    pub clues: BTreeMap<String, String>,
    /// The names of clues, where the effect that gives one has a name in brackets.
    pub clue_names: BTreeMap<String, String>,
    pub faults: Vec<Fault>,
    pub files: Files,
    /// The pages and tables of the rules that it is played by.
    pub engine: SharedEngine,
}

impl Cartridge {
    /// The sentence of a clue; the words of its handle if it has none.
    pub fn clue(&self, handle: &str) -> String {
        let own = self.clues.get(handle).filter(|sentence| !sentence.is_empty());
        own.cloned().unwrap_or_else(|| handle.trim_start_matches('@').replace('_', " "))
    }

    /// A clue in a few words.
    pub fn clue_name(&self, handle: &str) -> String {
        self.clue_names.get(handle).cloned().unwrap_or_else(|| handle.trim_start_matches('@').replace('_', " "))
    }

    /// Whether a feature is on; one that the cartridge does not speak of is, apart from the sync of fiction.
    pub fn is_on(&self, flag: &str) -> bool {
        self.flags.get(flag).copied().unwrap_or(flag != "fiction_sync")
    }

    /// Why a feature that is off is refused.
    pub fn off(&self, flag: &str) -> Option<String> {
        (!self.is_on(flag)).then(|| format!("{flag} is off in this cartridge"))
    }

    pub fn object(&self, handle: &str) -> Option<&Object> {
        self.objects.iter().find(|object| object.handle == handle)
    }

    pub fn by_id(&self, id: &str) -> Option<&Object> {
        self.objects.iter().find(|object| object.id() == id)
    }

    pub fn of(&self, kind: ObjectKind) -> impl Iterator<Item = &Object> {
        self.objects.iter().filter(move |object| object.kind == kind)
    }

    pub fn indicator(&self, name: &str) -> Option<&Indicator> {
        self.indicators.iter().find(|indicator| indicator.name == name)
    }

    /// Every effect that an author has written, wherever it stands.
    pub fn effects(&self) -> Vec<Effect> {
        let steps = self.quests.iter().flat_map(|quest| &quest.stages).chain(self.deeds.iter().map(|deed| &deed.step));
        let mut all: Vec<Effect> = steps.flat_map(|step| step.gives.iter().chain(&step.cost)).cloned().collect();
        all.extend(self.triggers.iter().flat_map(|trigger| trigger.effects.clone()));
        all.extend(self.clocks.iter().flat_map(|clock| clock.effects.clone()));
        all.extend(self.falls.clone());
        let written = ["use", "price", "thanks", "acts"];
        let fields = self.objects.iter().flat_map(|object| written.iter().map(|field| object.field(field)));
        all.extend(fields.filter_map(|text| crate::rule::effects(text).ok()).flatten());
        all
    }

    /// Whether a step, a gate, an ending or a person asks for this thing: without it the story could not go on.
    pub fn needs(&self, item: &str) -> bool {
        let steps = self.quests.iter().flat_map(|quest| &quest.stages).chain(self.deeds.iter().map(|deed| &deed.step));
        let mut conditions: Vec<&Condition> = self.quests.iter().map(|quest| &quest.opens).collect();
        conditions.extend(self.gates.iter().map(|gate| &gate.open_when));
        conditions.extend(self.endings.iter().map(|ending| &ending.when));
        let wanted = |own: &Object| own.field("wants").split([',', ' ']).any(|wanted| wanted == item);
        steps.into_iter().any(|step| step.target == item || step.needs.speaks_of(item))
            || conditions.into_iter().any(|condition| condition.speaks_of(item))
            || self.objects.iter().any(wanted)
    }

    /// The name of an object; its handle if the cartridge does not have it.
    pub fn name<'a>(&'a self, handle: &'a str) -> &'a str {
        self.object(handle).map_or(handle, |object| object.name.as_str())
    }
}
