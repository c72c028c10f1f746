//! Handles: every `@handle` in a page of the cartridge must be known.

use std::collections::BTreeSet;

use super::fault;
use crate::md;
use crate::rule::Effect;
use crate::world::{Cartridge, Fault};
use acheron_base::nearest::nearest_within;

/// Every handle that no index, no effect and no list of maps knows.
pub fn faults(world: &Cartridge) -> Vec<Fault> {
    let mut known: BTreeSet<String> = world.objects.iter().map(|object| object.handle.clone()).collect();
    known.extend(clues(world));
    known.extend(maps(world));
    let mut faults = Vec::new();
    for (path, text) in world.files.iter().filter(|(path, _)| path.ends_with(".md")) {
        let mut fenced = false;
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            for handle in named(line).filter(|own| !fenced && !known.contains(own)) {
                // A handle that has the word in it is nearer than one with other letters.
                let part = handle.trim_start_matches('@').to_owned();
                let holds = |own: &&String| own.split(['@', '_']).any(|word| word == part);
                let near = known.iter().find(holds).map(String::as_str);
                let near = near.or_else(|| nearest_within(&handle, known.iter().map(String::as_str), 3));
                let near = near.map(|near| format!("; the nearest is {near}")).unwrap_or_default();
                faults.push(fault(path, at + 1, format!("unknown handle {handle}{near}")));
            }
        }
    }
    faults
}

/// The clues that some effect gives.
pub fn clues(world: &Cartridge) -> BTreeSet<String> {
    let given = world.effects();
    let clues = given.iter().filter_map(|effect| match effect {
        Effect::Clue(clue) => Some(clue.clone()),
        _ => None,
    });
    clues.collect()
}

fn maps(world: &Cartridge) -> Vec<String> {
    let text = world.files.get("maps/MAP_INDEX.md").map(String::as_str).unwrap_or_default();
    let tables = md::tables(text);
    tables.iter().flat_map(|table| table.rows.iter().map(|row| table.get(row, "@handle").to_owned())).collect()
}

/// The handles of a line; the head of a column is none.
fn named(line: &str) -> impl Iterator<Item = String> + '_ {
    let part = |c: char| !(c.is_alphanumeric() || c == '_' || c == '@');
    let words = line.split(part).filter(|word| word.len() > 1 && word.starts_with('@'));
    words.map(str::to_owned).filter(|word| word != "@handle" && !word[1..].chars().all(|c| c.is_ascii_digit()))
}
