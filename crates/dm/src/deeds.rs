//! Sentences that claim a deed of the kernel: having, losing, dying, blows, pledges, endings, moods, light, time, levels. A narrator
//! may repeat what this turn has done; a sentence that claims anything else is taken out, and so is one that puts on the stage
//! what is not there ([`Presence`]) or tells an end that has not come. `turn` uses it, after the move was played.

mod claims;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

use crate::fold::Folded;
use crate::lint::ProseHit;
use crate::md::clip;
use crate::play::Outcome;
use crate::presence::Presence;
use crate::prose::secrets::{OpenPages, RUN, SaidSentence, UntoldSecret};
use crate::prose::words::{content, same};
use crate::prose::{CleanedProse, UntoldSecrets, sentences};
use crate::refs::normal;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind};
use claims::{DEEDS, DETERMINED, FOLK, NUMBER, treasure};

/// What the kernel has done in a turn, as the states before and after it tell.
pub struct TurnDeeds<'a> {
    pub world: &'a Cartridge,
    pub before: &'a State,
    pub after: &'a State,
    pub pc: &'a str,
    /// What the move is about, its words, and what the kernel tells of it, in normal form.
    about: &'a [String],
    body: String,
    told: String,
    /// Whether the move came to nothing.
    undone: bool,
    /// What is told only at an end, made when it is first needed.
    endings: UntoldSecrets<'a>,
    /// The patterns with the names of this world in them, made when they are first needed.
    patterns: OnceCell<Vec<DeedPattern>>,
}

/// What a text is for: a scene shows this place and no other; a suggestion may name whom to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    Scene,
    Prose,
    Suggestion,
}

/// A pattern with its name, and what bears it out.
struct DeedPattern {
    name: &'static str,
    regex: Regex,
    born_out: BornOut,
}

/// Whether the turn, or what stands after it, bears out what the sentence claims.
type BornOut = fn(&TurnDeeds<'_>, &Claim<'_>) -> bool;

/// A sentence in normal form, and the words of it that make the claim.
struct Claim<'a> {
    sentence: &'a str,
    /// Who or what it is about, and what is said of it, where the pattern names them.
    about: &'a str,
    said: &'a str,
}

/// The patterns of the worlds that are played: to make one takes longer than to use it a thousand times.
static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);

/// The most patterns that are kept: those of a dozen campaigns.
const KEPT: usize = 12 * DEEDS.len();

fn compiled(pattern: String) -> Option<Regex> {
    // A thread that panicked while it held the list left whole patterns in it.
    let mut kept = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = kept.get(&pattern) {
        return Some(found.clone());
    }
    let made = Regex::new(&pattern).ok()?;
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert(pattern, made.clone());
    Some(made)
}

/// Alternatives of a pattern; something that stands in no text where there are none.
fn either(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.filter(|word| word.chars().count() > 1).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    if words.is_empty() {
        "\u{1}".into()
    } else {
        words.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|")
    }
}

impl<'a> TurnDeeds<'a> {
    pub fn new(world: &'a Cartridge, before: &'a State, after: &'a State, pc: &'a str) -> TurnDeeds<'a> {
        let (body, told) = (String::new(), String::new());
        let (endings, patterns) = (OnceCell::new(), OnceCell::new());
        TurnDeeds { world, before, after, pc, about: &[], body, told, undone: false, endings, patterns }
    }

    /// The same, of a move: what it is about, its words, and what came of it.
    pub fn of_move(self, about: &'a [String], body: &str, out: &Outcome) -> TurnDeeds<'a> {
        let rows = out.rows.iter().map(|(action, result)| format!("{action} {result}"));
        let all =
            rows.chain([out.action.clone()]).chain(out.found.clone()).chain(out.text.clone()).chain(out.after.clone());
        let told = normal(&all.collect::<Vec<_>>().join(" . "));
        TurnDeeds { about, body: normal(body), told, undone: out.no_progress.is_some(), ..self }
    }

    fn patterns(&self) -> &[DeedPattern] {
        self.patterns.get_or_init(|| {
            let pattern = |(name, pattern, born_out): (&'static str, &str, BornOut)| {
                Some(DeedPattern { name, regex: compiled(self.pattern(pattern))?, born_out })
            };
            DEEDS.into_iter().filter_map(pattern).collect()
        })
    }

    /// The text without the sentences that claim what the kernel has not done.
    pub fn clean(&self, text: &str, kind: TextKind) -> CleanedProse {
        let mut out = CleanedProse { text: text.to_owned(), reports: Vec::new() };
        let mut hits = self.hits(text);
        let (folded, scene) = (Folded::new(text), kind == TextKind::Scene);
        let (world, before, after) = (self.world, self.before, self.after);
        let stage = Presence { world, before, after, about: self.about, told: &self.told };
        if kind != TextKind::Suggestion {
            hits.extend(stage.hits(&folded.text, scene).into_iter().map(|hit| hit.back(&folded)));
        }
        hits.extend(self.foretold(&folded.text).into_iter().map(|hit| hit.back(&folded)));
        out.cut(&hits);
        out
    }

    /// Sentences that tell an end that has not come.
    fn foretold(&self, text: &str) -> Vec<ProseHit> {
        if !self.after.memory.ended.is_empty() {
            return Vec::new();
        }
        let (pages, lines) = self.endings.get_or_init(|| {
            let pages = OpenPages::new(self.world, self.after);
            let lines = self.world.endings.iter().flat_map(|own| &own.lines);
            let lines = lines.map(|line| UntoldSecret::ending(&line.text, &pages)).collect();
            (pages, lines)
        });
        let told = |part: &std::ops::Range<usize>| {
            let said = normal(&text[part.clone()]);
            let (shown, words) = (self.told.contains(said.trim()), SaidSentence::new(&said));
            !shown && lines.iter().any(|own| own.repeated_in(&said, RUN) || own.paraphrased_in(&words, pages))
        };
        let parts = sentences(text).into_iter().filter(told);
        parts.map(|range| ProseHit { range, report: "it tells how the story may end".into() }).collect()
    }

    fn hits(&self, text: &str) -> Vec<ProseHit> {
        let folded = Folded::new(text);
        let mut hits = Vec::new();
        for DeedPattern { name, regex, born_out } in self.patterns() {
            for part in sentences(&folded.text) {
                let Some(found) = regex.captures(&folded.text[part.clone()]) else { continue };
                let group = |name: &str| found.name(name).map_or("", |own| own.as_str());
                let sentence = normal(&folded.text[part.clone()]);
                let claim = Claim { sentence: &sentence, about: group("about"), said: group("said") };
                if !born_out(self, &claim) {
                    let report = format!("\"{}\" has not happened ({name})", clip(found[0].trim(), 40));
                    hits.push(ProseHit { range: folded.back(&part), report });
                }
            }
        }
        hits
    }

    fn pattern(&self, pattern: &str) -> String {
        let pc = std::iter::once(self.pc.to_owned()).chain(self.pc.split(' ').next().map(str::to_owned));
        let who =
            either(pc.chain(["you".to_owned(), "your character".to_owned()]).filter(|own| !own.trim().is_empty()));
        let people = self.world.of(ObjectKind::Npc).flat_map(|npc| {
            std::iter::once(npc.name.clone()).chain(npc.name.split(' ').map(str::to_owned).collect::<Vec<_>>())
        });
        let people = people.filter(|word| word.chars().next().is_some_and(char::is_uppercase));
        let levels = self.world.indicators.iter().map(|own| own.name.clone());
        let people = either(people);
        let places = self.world.of(ObjectKind::Loc).map(|own| own.name.trim_start_matches("the ").to_owned());
        let places = either(places.chain([self.world.title.clone()]));
        let roles = self.world.of(ObjectKind::Npc).flat_map(|npc| npc.aliases.clone());
        let folk = format!("{people}|he|she|they|somebody|someone|{FOLK}|{}", either(roles));
        let filled = pattern.replace("WHO", &who).replace("FOLK", &folk).replace("NPC", &people);
        let filled = filled.replace("PLACE", &places).replace("NUMBER", NUMBER);
        let filled = filled.replace("LEVEL", &either(levels)).replace("DET", DETERMINED);
        // The sentences are English: whole Unicode classes would only make the patterns large.
        filled.replace(r"\w", "[A-Za-z]").replace(r"\s", "[ \n]").replace(r"\d", "[0-9]")
    }

    /// The things of the world that the sentence names; one whose name is only a part of another's is not meant.
    fn items(&self, claim: &Claim<'_>) -> Vec<&Object> {
        let said = format!(" {} ", claim.sentence);
        let called = |item: &Object| {
            let names = std::iter::once(&item.name).chain(&item.aliases).map(|name| normal(name));
            let names = names.map(|name| name.strip_prefix("the ").map_or(name.clone(), str::to_owned));
            let met = names.filter(|name| !name.is_empty() && said.contains(&format!(" {name} ")));
            met.max_by_key(String::len)
        };
        let met: Vec<(&Object, String)> =
            self.world.of(ObjectKind::Item).filter_map(|item| Some((item, called(item)?))).collect();
        let part = |name: &String| {
            met.iter().any(|(_, other)| other != name && format!(" {other} ").contains(&format!(" {name} ")))
        };
        met.iter().filter(|(_, name)| !part(name)).map(|(item, _)| *item).collect()
    }

    /// Whether the sentence names a thing of which this holds, and none of which it does not.
    fn names(&self, claim: &Claim<'_>, holds: impl Fn(&String) -> bool) -> bool {
        let named = self.items(claim);
        !named.is_empty() && named.iter().all(|item| holds(&item.handle)) && !treasure(claim.sentence)
    }

    fn lost(&self, item: &String) -> bool {
        self.before.inventory.contains(item) && !self.after.inventory.contains(item)
    }

    /// Whether a thing lies here for all to see.
    fn in_sight(&self, item: &Object) -> bool {
        crate::hud::things(self.after, self.world).any(|own| own.handle == item.handle)
    }

    fn person(&self, name: &str) -> Option<&Object> {
        let name = normal(name);
        self.world.of(ObjectKind::Npc).find(|npc| {
            let own = normal(&npc.name);
            own == name || own.split(' ').any(|word| word == name)
        })
    }

    fn alive(&self, npc: &Object) -> bool {
        matches!(self.after.status(self.world, &npc.handle), "active" | "companion" | "hidden")
    }

    /// The minutes that the turn took.
    fn elapsed(&self) -> u64 {
        self.after.time.minutes().saturating_sub(self.before.time.minutes())
    }

    /// Whether blows fell, or somebody here is set on them.
    fn fought(&self) -> bool {
        let hostile = |npc: &Object| self.after.mood(npc) == "hostile";
        self.before.hp > self.after.hp
            || self.before.foes != self.after.foes
            || crate::hud::people(self.after, self.world).any(hostile)
    }

    /// Whether somebody told something in this turn.
    fn learned(&self) -> bool {
        self.before.told != self.after.told || self.before.clues != self.after.clues || self.stepped()
    }

    /// Whether the move lit something, and it was done.
    fn lights_done(&self) -> bool {
        !self.undone && self.body.split(' ').any(|word| ["light", "kindle", "lit"].contains(&word))
    }

    /// Whether a page of this place tells of a light that burns.
    fn lit_here(&self) -> bool {
        let place = self.world.object(&self.after.location);
        let mut facts = place.into_iter().flat_map(|own| &own.facts).filter(|own| self.after.holds(&own.when));
        facts.any(|fact| {
            let words = content(&fact.text);
            words.iter().any(|word| same(word, "lamp")) && words.iter().any(|word| same(word, "burn"))
        })
    }

    /// Whether the clock of the world bears out an hour in words.
    fn is_hour(&self, said: &str) -> bool {
        let hour = self.after.time.minutes() / 60 % 24;
        match said.to_lowercase().as_str() {
            "midnight" => matches!(hour, 23 | 0),
            "noon" | "midday" => matches!(hour, 11..=13),
            "dawn" | "sunrise" => matches!(hour, 4..=8),
            "dusk" | "sunset" => matches!(hour, 16..=21),
            "night" | "darkness" => matches!(hour, 19..=23 | 0..=5),
            "evening" => matches!(hour, 16..=23),
            "morning" => matches!(hour, 4..=12),
            "afternoon" => matches!(hour, 12..=18),
            _ => false,
        }
    }

    /// Whether a step that an author wrote was done in this turn.
    fn stepped(&self) -> bool {
        let deeds = |state: &State| state.memory.noted.iter().filter(|own| own.starts_with("deed ")).count();
        self.before.quests != self.after.quests || deeds(self.after) > deeds(self.before)
    }

    /// Whether a quest is done that has a word of the sentence in its name.
    fn done_about(&self, sentence: &str) -> bool {
        let done = self.after.quests.iter().filter(|(_, own)| own.status == "done");
        let names: Vec<String> = done.map(|(handle, _)| normal(self.world.name(handle))).collect();
        let words = |name: &String| {
            name.split(' ').any(|word| word.len() > 3 && sentence.split(' ').any(|own| same(own, word)))
        };
        names.iter().any(words)
    }
}

#[cfg(test)]
mod tests;
