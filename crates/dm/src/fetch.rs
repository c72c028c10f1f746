//! Stage C2: selects the few lines of the cartridge that a turn may use: routes, place, person, quest, mechanics, each with a limit.

use serde::Serialize;

use crate::engine;
use crate::files::hidden;
use crate::input::{Header, Intent, Move};
use crate::md::{clip, section};
use crate::refs::normal;
use crate::world::{Cartridge, ObjectKind};

const FILES: usize = 3;
const LINES: usize = 12;
const SNIPPETS: usize = 4;
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
        "survival" | "table" => 1,
        "governance" | "map" => 3,
        "combat" | "social" | "character" | "canon" => 2,
        _ => SNIPPETS,
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

pub fn fetch(found: &Move, refs: &[String], here: &str, quests: &[String], world: &Cartridge) -> Fetched {
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
    let spoken = |kind: ObjectKind| {
        refs.iter().filter_map(move |own| world.object(own)).filter(move |object| object.kind == kind)
    };
    let place = world.object(here).into_iter().chain(spoken(ObjectKind::Loc));
    let quest = quests.iter().filter_map(|own| world.object(own));
    let wanted = place.chain(spoken(ObjectKind::Npc)).chain(spoken(ObjectKind::Quest)).chain(quest);
    let words = normal(&found.body);
    for object in wanted {
        let Some(path) = object.path.as_ref().filter(|path| !hidden(path)) else { continue };
        let limit = if object.kind == ObjectKind::Npc { cap("character") } else { 1 };
        take(path, world.files.get(path), &object.name, &words, limit, &mut out);
    }
    if let Some((trigger, path, anchor)) = mechanism(found) {
        let page = engine::page(path).and_then(|page| section(page, anchor)).map(str::to_owned);
        take(path, page.as_ref(), anchor, &words, cap(trigger), &mut out);
    }
    for path in routed.iter().filter(|path| !hidden(path)) {
        take(path, world.files.get(path), "route", &words, 1, &mut out);
    }
    out
}

/// Takes at most `limit` snippets of one file, the lines that speak most of the move first.
fn take(path: &str, text: Option<&String>, anchor: &str, words: &str, limit: usize, out: &mut Fetched) {
    let room = SNIPPETS - out.snippets.len();
    let Some(text) = text.filter(|_| room > 0 && out.opened.len() < FILES && !out.opened.iter().any(|own| own == path))
    else {
        return;
    };
    out.opened.push(path.to_owned());
    let telling = |line: &&str| line.len() > 8 && !line.starts_with(['#', '|']) && !is_secret(line);
    let mut lines: Vec<&str> = text.lines().map(str::trim).filter(telling).take(LINES).collect();
    let score = |line: &str| normal(line).split(' ').filter(|word| word.len() > 3 && words.contains(word)).count();
    lines.sort_by_key(|line| std::cmp::Reverse(score(line)));
    for line in lines.into_iter().take(limit.min(room)) {
        let from = format!("[{path}: {anchor}]");
        out.snippets.push(Snippet { from, text: clip(line.trim_start_matches("- "), WIDE) });
    }
}

/// The lines of a page that are secret.
fn is_secret(line: &str) -> bool {
    let line = line.trim_start_matches("- ");
    line.starts_with("easy:") || line.starts_with("hard:") || line.starts_with("stakes:")
}

#[cfg(test)]
mod tests;
