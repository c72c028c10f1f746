//! The proposal of a narrator, filtered field by field: a lawful field is accepted, any other is replaced by the kernel's own and
//! reported.
//!
//! A narrator never writes a file. It may judge, colour and suggest; the kernel decides.

mod caps;

use serde::Deserialize;
use serde_json::Value;

use crate::check::{Advantage, Difficulty, Tier, situational};
use crate::delta::apply::{self, Author};
use crate::delta::{Delta, DeltaItem, text};
use crate::files::ReadFiles;
use crate::input::{self, Input};
use crate::md::clip;
use crate::play::{Judgement, may_forbid};
use crate::prose::ProseFilter;
use crate::refs::normal;
use crate::rule::{Effect, effects};
use crate::state::State;
use crate::world::{Cartridge, ObjectKind};
use crate::{lint, refs};
use caps::{TurnCaps, is_reason};

/// The shape that a narrator is asked for. Every field is optional.
#[derive(Clone, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Proposal {
    /// Whether the dice should be asked.
    pub roll: Option<bool>,
    /// easy, standard, hard or extreme.
    pub difficulty: Option<String>,
    /// +2, 0 or -2.
    pub situational: Option<i64>,
    /// normal, advantage or disadvantage.
    pub advantage: Option<String>,
    /// Why the action cannot succeed at all.
    pub impossible: Option<String>,
    /// Effects in the kernel's language, such as `Rumor+1 (seen at the well)`.
    pub consequences: Vec<String>,
    /// The opening shot, two to four sentences.
    pub scene: Option<String>,
    /// What happened, for every outcome or by tier: failure, partial, success, great.
    pub prose: Option<Prose>,
    /// Three to five suggestions of the form `[ACT]{...}`.
    pub options: Vec<String>,
    /// A delta of the narrator's own: people to be filed, sections of Markdown pages.
    pub delta: Option<String>,
}

#[derive(Clone, Debug, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Prose {
    One(String),
    ByTier(std::collections::BTreeMap<String, String>),
}

/// The longest text of a narrator, in characters.
const LONGEST: usize = 2000;

/// The key of the reason why there is no proposal.
pub const FAILED: &str = "narrator_failed";

/// The key of the host's own sentence of why there is none. No narrator writes it: the host takes it out of every answer.
pub const STOPPED: &str = "narrator_stopped";

/// The accepted part of a proposal.
#[derive(Clone, Debug, Default)]
pub struct FilteredProposal {
    pub judged: Judgement,
    pub scene: Option<String>,
    prose: Option<Prose>,
    pub options: Vec<String>,
    pub delta: Delta,
    /// The fields that were refused, each with its reason.
    pub reports: Vec<String>,
}

/// Filters proposals; holds everything about the turn that a proposal is checked against.
pub struct ProposalFilter<'a> {
    pub world: &'a Cartridge,
    pub state: &'a State,
    pub files: &'a dyn ReadFiles,
    pub campaign: &'a str,
    pub session: &'a str,
    pub input: &'a str,
    pub pc: &'a str,
    /// What the players want kept out of the story.
    pub lines_veils: &'a str,
}

impl ProposalFilter<'_> {
    pub fn apply(&self, value: &Value) -> FilteredProposal {
        let mut filtered = FilteredProposal::default();
        let Some(object) = value.as_object() else {
            filtered.reports.push("the proposal is not an object; the kernel narrates".into());
            return filtered;
        };
        // Field by field, so that one of the wrong type does not take the others with it.
        let mut raw = Proposal::default();
        for (key, value) in object {
            if let (FAILED, Some(why)) = (key.as_str(), value.as_str()) {
                filtered.reports.push(failed(&self.prose(&[]), why));
            } else if let (STOPPED, Some(why)) = (key.as_str(), value.as_str()) {
                filtered.reports.push(stopped(why));
            } else if !take(&mut raw, key, value) {
                filtered.reports.push(format!(
                    "{}: {}",
                    clip(key, 30),
                    if known(key) { "of the wrong type" } else { "no such field" }
                ));
            }
        }
        self.delta(&raw, &mut filtered);
        let filed = self.filed(&filtered);
        let prose = self.prose(&filed);
        self.judge(&raw, &prose, &mut filtered);
        words(raw, &prose, &mut filtered);
        filtered.judged.narrated = filtered.prose.is_some();
        let ours = object.get(STOPPED).and_then(Value::as_str).map(stopped);
        let discreet = |report: String| if Some(&report) == ours.as_ref() { report } else { prose.discreet(&report) };
        filtered.reports = filtered.reports.into_iter().map(discreet).collect();
        filtered
    }

    fn prose<'b>(&'b self, filed: &'b [String]) -> ProseFilter<'b> {
        let (world, state, input) = (self.world, self.state, self.input);
        ProseFilter {
            world,
            state,
            input,
            pc: self.pc,
            filed,
            lines_veils: self.lines_veils,
            untold: Default::default(),
        }
    }

    /// The people who have a page of the campaign, and those whom this proposal files.
    fn filed(&self, out: &FilteredProposal) -> Vec<String> {
        // A list that cannot be read knows nobody: the names are then refused, and the turn itself reports the fault.
        let pages = self.files.paths().unwrap_or_default();
        let own = out.delta.items.iter().map(|item| item.path.clone());
        let people = pages.into_iter().chain(own).filter(|path| path.starts_with("characters/NPCs_active/"));
        people.map(|path| path.replace(['/', '_', '.'], " ")).collect()
    }

    fn judge(&self, raw: &Proposal, prose: &ProseFilter<'_>, out: &mut FilteredProposal) {
        out.judged.roll = raw.roll;
        let why = raw.impossible.as_ref().map(|why| clip(why, 160)).filter(|why| !why.trim().is_empty());
        let forbids = match input::parse(self.input, &self.world.extra) {
            Ok(Input::Move(found)) => may_forbid(&found),
            _ => false,
        };
        if why.is_some() && !forbids {
            out.reports.push("impossible: the kernel knows how this is done".into());
        }
        out.judged.impossible = why.filter(|_| forbids).map(|why| {
            let faults = prose.faults(&why);
            let lawful = faults.is_empty();
            out.reports.extend(faults.into_iter().map(|fault| format!("impossible: {fault}")));
            if lawful { why } else { "it cannot succeed as it stands".to_owned() }
        });
        let mut keep =
            |field: &str, fault: acheron_base::Error| out.reports.push(format!("{field}: {}", fault.message));
        match raw.difficulty.as_deref().map(Difficulty::named).transpose() {
            Ok(difficulty) => out.judged.difficulty = difficulty,
            Err(fault) => keep("difficulty", fault),
        }
        match situational(raw.situational.unwrap_or(0)) {
            Ok(by) => out.judged.situational = by,
            Err(fault) => keep("situational", fault),
        }
        match raw.advantage.as_deref().map(Advantage::named).transpose() {
            Ok(advantage) => out.judged.advantage = advantage.unwrap_or_default(),
            Err(fault) => keep("advantage", fault),
        }
        let mut spent = TurnCaps::default();
        for text in &raw.consequences {
            match effects(text) {
                Ok(list) => {
                    for effect in list {
                        let said = || match prose.faults(effect.reason()).into_iter().next() {
                            Some(fault) => Err(fault),
                            None => Ok(()),
                        };
                        match self.allowed(&effect).and_then(|()| said()).and_then(|()| spent.take(&effect)) {
                            Ok(()) => out.judged.consequences.push(effect),
                            Err(why) => out.reports.push(format!("consequences: {why}")),
                        }
                    }
                }
                Err(fault) => out.reports.push(format!("consequences: {}", clip(&fault.message, 160))),
            }
        }
    }

    /// A narrator may change levels, clocks, time and hit points within limits, and use up what nobody needs. What is found, taken,
    /// moved and ended is the kernel's.
    fn allowed(&self, effect: &Effect) -> Result<(), String> {
        self.state.lawful(effect, self.world).map_err(|fault| fault.message)?;
        if let Effect::Lose(item) = effect
            && self.world.needs(item)
        {
            return Err(format!("`{effect}` would take away what the story needs"));
        }
        match effect {
            Effect::Level { reason, .. } | Effect::Tick { reason, .. } if !is_reason(reason) => {
                Err(format!("`{effect}` needs a reason of three words or more"))
            }
            Effect::Level { .. } | Effect::Tick { .. } | Effect::Minutes(_) | Effect::Hp(_) => Ok(()),
            Effect::Lose(item) if self.state.inventory.contains(item) => Ok(()),
            _ => Err(format!("`{effect}` is not a narrator's to decide")),
        }
    }

    fn delta(&self, raw: &Proposal, out: &mut FilteredProposal) {
        let Some(block) = &raw.delta else { return };
        let checked = text::parse(block).and_then(|delta| {
            apply::changes(&delta, self.files, self.campaign, self.session, Author::Narrator)?;
            let prose = self.prose(&[]);
            for item in &delta.items {
                // Players read the pages of people; notes are the narrator's own.
                let shown = !item.path.starts_with("notes/");
                if let Some(fault) = prose.page_fault(item.text(), shown) {
                    return Err(acheron_base::Error::invalid(fault));
                }
                if let Some(own) = self.of_the_world(item) {
                    return Err(acheron_base::Error::forbidden(format!(
                        "{} is {own}: a narrator writes pages only of people whom it brings in",
                        item.path
                    )));
                }
            }
            Ok(delta)
        });
        match checked {
            Ok(delta) => out.delta = delta,
            Err(fault) => out.reports.push(format!("delta: {}", clip(&fault.message, 160))),
        }
    }

    /// Who a page of a person is about, if that is the player's character or somebody or something of the world.
    fn of_the_world(&self, item: &DeltaItem) -> Option<String> {
        let stem = brought(&item.path)?;
        let heading = item.text().lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        let said = [normal(&stem.replace('_', " ")), normal(heading)];
        let is = |name: &str| {
            let name = normal(name);
            let bare = name.strip_prefix("the ").unwrap_or(&name).to_owned();
            !bare.is_empty() && said.iter().any(|own| *own == name || *own == bare)
        };
        if is(self.pc) {
            return Some("the player's character".into());
        }
        let object = self.world.objects.iter().find(|own| {
            let words = own.name.split(' ').filter(|_| own.kind == ObjectKind::Npc);
            is(&own.handle.trim_start_matches('@').replace('_', " "))
                || std::iter::once(own.name.as_str()).chain(own.aliases.iter().map(String::as_str)).chain(words).any(is)
        });
        object.map(|own| format!("{} of this world", own.name))
    }
}

/// The name of a page of a person whom a narrator brings in, without its ending.
pub fn brought(path: &str) -> Option<&str> {
    path.strip_prefix("characters/NPCs_active/")?.strip_suffix(".md")
}

/// The report that there is no proposal. The reason comes from another program.
pub fn failed(prose: &ProseFilter<'_>, why: &str) -> String {
    let why = prose.message(why);
    if why.is_empty() { "the narrator failed".into() } else { format!("the narrator failed: {why}") }
}

/// The same of the host's own sentence, which is told as it is.
pub fn stopped(why: &str) -> String {
    format!("the narrator failed: {}", clip(&crate::fold::one_line(why), 400))
}

/// The words that a player sees: cleaned, and left to the kernel where nothing is left of them.
fn words(raw: Proposal, prose: &ProseFilter<'_>, out: &mut FilteredProposal) {
    let told = |field: &str, text: &str, reports: &mut Vec<String>| {
        if text.chars().count() > LONGEST {
            reports.push(format!("{field}: longer than {LONGEST} characters"));
            return None;
        }
        let cleaned = prose.clean(text);
        reports.extend(cleaned.reports.iter().map(|why| format!("{field}: {why}")));
        Some(cleaned.text).filter(|text| !text.is_empty())
    };
    if let Some(scene) = raw.scene.and_then(|scene| told("scene", &scene, &mut out.reports)) {
        match lint::scene(&scene) {
            Ok(()) => out.scene = Some(scene),
            Err(why) => out.reports.push(format!("scene: {why}")),
        }
    }
    out.prose = match raw.prose {
        Some(Prose::One(text)) => told("prose", &text, &mut out.reports).map(Prose::One),
        Some(Prose::ByTier(tiers)) => {
            let mut kept = std::collections::BTreeMap::new();
            for (tier, text) in tiers {
                if let Some(text) = told(&format!("prose.{}", clip(&tier, 12)), &text, &mut out.reports) {
                    kept.insert(tier, text);
                }
            }
            Some(Prose::ByTier(kept))
        }
        None => None,
    };
    let offered = raw.options.len();
    for option in raw.options.into_iter().take(5) {
        match self::option(&option, prose) {
            Ok(()) => out.options.push(option),
            // A report that quoted it would tell the secret again.
            Err(why) if why.starts_with("it tells") => out.reports.push(format!("options: {why}")),
            Err(why) => out.reports.push(format!("options: \"{}\" {why}", clip(&option, 40))),
        }
    }
    if offered > 0 && offered < 3 {
        out.reports.push(format!("options: 3-5 are asked for, {offered} came"));
    }
}

fn option(option: &str, prose: &ProseFilter<'_>) -> Result<(), String> {
    match input::parse(option, &prose.world.extra) {
        Ok(Input::Move(found)) => match refs::resolve(&found.body, prose.world, &Default::default()) {
            Ok(_) => {
                let said = std::iter::once(&found.body).chain(&found.intent_note);
                match said.flat_map(|text| prose.faults(text)).next() {
                    Some(fault) => Err(fault),
                    None => Ok(()),
                }
            }
            Err(unclear) => Err(unclear.sentence()),
        },
        Ok(Input::Control(_)) => Err("is a control instruction".into()),
        Err(refusal) => Err(refusal.sentence),
    }
}

impl FilteredProposal {
    /// The prose for how it came out.
    pub fn prose(&self, tier: Option<Tier>) -> Option<&str> {
        match self.prose.as_ref()? {
            Prose::One(text) => Some(text),
            Prose::ByTier(tiers) => tiers.get(tier.unwrap_or(Tier::Success).name()).map(String::as_str),
        }
    }
}

fn known(key: &str) -> bool {
    let fields = [
        "roll",
        "difficulty",
        "situational",
        "advantage",
        "impossible",
        "consequences",
        "scene",
        "prose",
        "options",
        "delta",
    ];
    fields.contains(&key)
}

fn take(raw: &mut Proposal, key: &str, value: &Value) -> bool {
    fn set<T: serde::de::DeserializeOwned>(slot: &mut T, value: &Value) -> bool {
        serde_json::from_value(value.clone()).map(|found| *slot = found).is_ok()
    }
    match key {
        "roll" => set(&mut raw.roll, value),
        "difficulty" => set(&mut raw.difficulty, value),
        "situational" => set(&mut raw.situational, value),
        "advantage" => set(&mut raw.advantage, value),
        "impossible" => set(&mut raw.impossible, value),
        "consequences" => set(&mut raw.consequences, value),
        "scene" => set(&mut raw.scene, value),
        "prose" => set(&mut raw.prose, value),
        "options" => set(&mut raw.options, value),
        "delta" => set(&mut raw.delta, value),
        _ => false,
    }
}
