//! Stage C2: selects the few lines of the cartridge that a turn may use: routes, place, person, quest, mechanics, each with a limit.

use serde::Serialize;

use crate::files::hidden;
use crate::input::{Header, Intent, Move};
use crate::md::{clip, section};
use crate::refs::normal;
use crate::rule::Condition;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind, Quest};
use crate::{hud, load, md};

/// The most lines of a page that are looked at, and the longest snippet.
const LINES: usize = 12;
const WIDE: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// `[path: anchor]`
    pub from: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fetched {
    pub snippets: Vec<Snippet>,
    pub opened: Vec<String>,
    /// Routed files that are not there; they go into the delta.
    pub risk_flags: Vec<String>,
    pub notes: Vec<String>,
}

/// How many snippets a trigger may bring.
pub fn cap(trigger: &str) -> usize {
    match trigger {
        "governance" | "map" => 3,
        "combat" | "social" | "character" | "canon" | "place" => 2,
        _ => 1,
    }
}

/// The mechanism that a move sets off, and the anchor of its page.
pub fn mechanism(found: &Move) -> Option<(&'static str, &'static str, &'static str)> {
    let body = found.body.to_lowercase();
    Some(match found.intent {
        Intent::Combat => ("combat", "mechanics/COMBAT.md", "COMBAT::wounds"),
        Intent::Talk => ("social", "mechanics/SOCIAL_INVESTIGATION.md", "SOCIAL::insight"),
        Intent::Mgmt if body.contains("month") => ("governance", "mechanics/GOVERNANCE.md", "GOVERNANCE::tiers"),
        Intent::Mgmt => ("survival", "mechanics/SURVIVAL.md", "SURVIVAL::rest"),
        _ => return None,
    })
}

/// The files that a header leads to.
pub fn route(world: &Cartridge, header: Header) -> Vec<String> {
    world.routes.iter().filter(|(own, _)| *own == header).flat_map(|(_, paths)| paths.clone()).collect()
}

/// The lines that a turn may use. Each source has its own limit, so that none takes the room of another, and a file that
/// yields no line takes none.
pub fn fetch(found: &Move, refs: &[String], state: &State, world: &Cartridge) -> Fetched {
    let mut out = Fetched::default();
    if matches!(found.intent, Intent::Mind | Intent::Ooc) {
        return out;
    }
    let routed = route(world, found.header);
    if routed.is_empty() {
        out.notes.push(format!("no route for [{}]", found.header.name()));
    }
    for path in &routed {
        if hidden(path) {
            out.notes.push(format!("{path} is not read in play"));
        } else if !world.files.contains_key(path) {
            out.risk_flags.push(path.clone());
        }
    }
    let words = normal(&found.body);
    let spoken = |kind: ObjectKind| {
        refs.iter().filter_map(move |own| world.object(own)).filter(move |object| object.kind == kind)
    };
    let places: Vec<&Object> = world.object(&state.location).into_iter().chain(spoken(ObjectKind::Loc)).collect();
    let people: Vec<&Object> = spoken(ObjectKind::Npc).chain(hud::people(state, world)).collect();
    let active =
        world.quests.iter().filter(|own| state.quests.get(&own.handle).is_some_and(|own| own.status == "active"));
    let mut active: Vec<&Quest> = active.collect();
    active.sort_by_key(|quest| !quest.main);
    let quests: Vec<&Object> =
        spoken(ObjectKind::Quest).chain(active.iter().filter_map(|own| world.object(&own.handle))).collect();
    for (objects, limit) in [(places, cap("place")), (people, cap("character")), (quests, cap("quest"))] {
        out.objects(&objects, limit, &words, state, world);
    }
    if let Some((trigger, path, anchor)) = mechanism(found) {
        let page = world.engine.page(path).and_then(|page| section(page, anchor)).unwrap_or_default();
        out.page(path, anchor, telling(page, state, of_page), &words, cap(trigger));
    }
    let about: Vec<&str> = refs.iter().map(String::as_str).chain([state.location.as_str()]).collect();
    for path in routed.iter().filter(|path| !hidden(path)) {
        let Some(text) = world.files.get(path) else { continue };
        let mut lines = telling(text, state, of_page);
        lines.extend(rows(text, &about));
        out.page(path, "route", lines, &words, cap(folder(path)));
    }
    out
}

/// The trigger that a routed file counts as.
fn folder(path: &str) -> &'static str {
    match path {
        path if path.starts_with("lore/CANON/") => "canon",
        path if path.starts_with("lore/MIST/") => "mist",
        _ => "table",
    }
}

/// A line that may be told, and whether it is a sentence of its own and not a `key: value` line.
struct TellingLine {
    text: String,
    sentence: bool,
}

/// The first lines of a page that may be told: no headings, tables, secrets, rules, or sentences that do not hold now.
fn telling(page: &str, state: &State, told: fn(&str) -> bool) -> Vec<TellingLine> {
    let mut found = Vec::new();
    for line in page.lines().map(str::trim).filter(|line| line.len() > 8 && !line.starts_with(['#', '|'])) {
        let line = line.trim_start_matches("- ");
        let conditional = line.strip_prefix("when ").and_then(|rest| rest.split_once(": "));
        let (holds, text) = match conditional {
            Some((when, text)) => (Condition::parse(when).is_ok_and(|when| state.holds(&when)), text),
            None => (true, line),
        };
        let key = md::fields(text).next().map(|field| field.key.to_lowercase());
        let told = key.as_ref().is_none_or(|key| told(key));
        if holds && told && text.trim() != "RAG_HEAD:" {
            found.push(TellingLine { text: text.to_owned(), sentence: key.is_none() });
        }
    }
    found.truncate(LINES);
    found
}

/// The `key: value` lines of an object that are for telling; all others are rules or secrets.
fn of_object(key: &str) -> bool {
    ["smell", "goals", "greeting", "disposition", "role", "appearance"].contains(&key)
}

/// The `key: value` lines of any other page that are for telling: all but secrets.
fn of_page(key: &str) -> bool {
    !["easy", "hard", "stakes"].contains(&key)
}

/// The rows of an index about one of these handles.
fn rows(page: &str, about: &[&str]) -> Vec<TellingLine> {
    let index = crate::index::read(page);
    let own = index
        .rows()
        .filter(|(table, row)| about.contains(&table.get(row, "@handle")) && table.get(row, "status") != "hidden");
    own.map(|(table, row)| TellingLine {
        text: format!("{}: {}", table.get(row, "name"), table.get(row, "one_line_summary")),
        sentence: true,
    })
    .collect()
}

impl Fetched {
    /// The lines about objects of one kind: one of each first, then more of the first. One without a line has its summary.
    fn objects(&mut self, objects: &[&Object], limit: usize, words: &str, state: &State, world: &Cartridge) {
        let mut met: Vec<&str> = Vec::new();
        let own: Vec<&Object> = objects
            .iter()
            .copied()
            .filter(|object| {
                let fresh = !met.contains(&object.handle.as_str());
                met.push(&object.handle);
                fresh
            })
            .take(limit)
            .collect();
        let share = if own.is_empty() { 0 } else { limit / own.len() };
        for object in own {
            let path = object.path.as_ref().filter(|path| !hidden(path));
            let page = path.and_then(|path| world.files.get(path)).map(String::as_str).unwrap_or_default();
            // Chapters hold secrets, topics and stages; what is above them is for telling.
            let head = page.find("\n## ").map_or(page, |end| &page[..end]);
            let mut lines = telling(head, state, of_object);
            if lines.is_empty() && !object.summary.is_empty() {
                lines.push(TellingLine { text: object.summary.clone(), sentence: true });
            }
            let path = path.map_or_else(|| load::index_of_kind(object.kind).to_owned(), Clone::clone);
            self.page(&path, &object.name, lines, words, share.max(1));
        }
    }

    /// Takes at most `limit` lines: those that speak most of the move first, sentences before fields.
    fn page(&mut self, path: &str, anchor: &str, mut lines: Vec<TellingLine>, words: &str, limit: usize) {
        if lines.is_empty() || self.opened.iter().any(|own| own == path) {
            return;
        }
        let score = |line: &str| normal(line).split(' ').filter(|word| word.len() > 3 && words.contains(word)).count();
        lines.sort_by_key(|line| (std::cmp::Reverse(score(&line.text)), !line.sentence));
        self.opened.push(path.to_owned());
        for line in lines.into_iter().take(limit) {
            self.snippets.push(Snippet { from: format!("[{path}: {anchor}]"), text: clip(&line.text, WIDE) });
        }
    }
}

#[cfg(test)]
mod tests;
