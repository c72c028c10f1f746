//! Endings: the conditions under which a cartridge's story is over, and the epilogue that closes it. `play` and `story` use it.

use crate::md;
use crate::rule::Condition;
use crate::state::State;
use crate::world::{Cartridge, Fact, Fault};

/// The page of a cartridge that lists its endings.
pub const PAGE: &str = "quests/ENDINGS.md";

#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    pub line: usize,
    pub id: String,
    pub when: Condition,
    pub title: String,
    /// The sentences of the epilogue; those that hold are told.
    pub lines: Vec<Fact>,
}

/// An ending as it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Epilogue {
    pub title: String,
    pub lines: Vec<String>,
}

impl Ending {
    pub fn epilogue(&self, state: &State) -> Epilogue {
        let lines = self.lines.iter().filter(|own| state.holds(&own.when)).map(|own| own.text.clone());
        Epilogue { title: self.title.clone(), lines: lines.collect() }
    }
}

/// The first ending whose time has come and that was not reached before.
pub fn reached<'a>(state: &State, world: &'a Cartridge) -> Option<&'a Ending> {
    let fresh = |ending: &&Ending| !state.memory.endings.contains(&ending.id);
    world.endings.iter().filter(fresh).find(|ending| state.holds(&ending.when))
}

/// The title of the ending that closed the campaign, if one did.
pub fn closed<'a>(state: &'a State, world: &'a Cartridge) -> Option<&'a str> {
    let id = Some(state.memory.ended.as_str()).filter(|id| !id.is_empty())?;
    Some(world.endings.iter().find(|ending| ending.id == id).map_or(id, |ending| ending.title.as_str()))
}

/// The titles of the endings that were reached, in their order.
pub fn passed(state: &State, world: &Cartridge) -> Vec<String> {
    let title = |id: &String| world.endings.iter().find(|ending| ending.id == *id).map(|ending| ending.title.clone());
    state.memory.endings.iter().filter_map(title).collect()
}

/// Reads the page: a table `ending | when | title`, and a chapter of sentences for each ending.
pub fn read(text: &str) -> (Vec<Ending>, Vec<Fault>) {
    let (mut endings, mut faults) = (Vec::new(), Vec::new());
    let mut wrong = |line: usize, message: String| faults.push(Fault { path: PAGE.into(), line, message });
    for table in md::tables(text).into_iter().filter(|table| table.has("ending")) {
        for row in &table.rows {
            let get = |column| table.get(row, column);
            let id = get("ending").to_owned();
            let when = Condition::parse(get("when")).unwrap_or_else(|fault| {
                wrong(row.line, fault.message);
                Condition::default()
            });
            if when.0.is_empty() {
                wrong(row.line, format!("the ending `{id}` has no condition, so it would end the first turn"));
            }
            let (lines, bad) = crate::authored::facts_under(text, Some(&id));
            bad.into_iter().for_each(|(line, message)| wrong(line, message));
            if lines.is_empty() {
                wrong(row.line, format!("the ending `{id}` has no chapter `## {id}` with a sentence in it"));
            }
            let title = Some(get("title")).filter(|title| !title.is_empty()).unwrap_or(&id).to_owned();
            endings.push(Ending { line: row.line, id, when, title, lines });
        }
    }
    (endings, faults)
}
