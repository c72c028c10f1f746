//! The prompt of a phase: system texts, agents, symbols, history and the query, within the window.
//!
//! Items are dropped whole, the least relevant symbols and the oldest history first; only a message that is too long by
//! itself, and a query, are cut, with a mark. What was left out is reported. The assembled text never has more tokens
//! than the window.

use schemars::JsonSchema;
use serde::Serialize;

use super::budget::shares;
use acheron_base::delimited::harmless;
use acheron_base::tokens::{count, head};
use acheron_base::{Error, Result};

/// Room that is kept for the system block, even if that is shorter.
pub const SYSTEM_RESERVED: usize = 1000;
const CUT: &str = " … [cut]";
/// Headings and blank lines, whether or not all of them are used.
const FRAME: &str = "\n\nAGENTS:\n\n\nSYMBOLS:\n\n\nCHAT_HISTORY:\n\n\nCURRENT_QUERY: ";
/// Blanks that meet where texts are joined may cost a little more than they did apart.
const SEAMS: usize = 8;

/// A line of the ledger, and how much it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    pub id: String,
    pub text: String,
    pub relevance: u32,
    /// Asked for by a command of this run: half of the symbols' room is theirs.
    pub loaded: bool,
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub role: String,
    pub text: String,
}

/// Everything that a phase may be shown.
#[derive(Clone, Debug, Default)]
pub struct Material {
    pub system: Vec<String>,
    /// The state that phases pass on to each other, as JSON; shown with the system block when there is room.
    pub carried: Option<String>,
    pub agents: Vec<LedgerLine>,
    pub symbols: Vec<LedgerLine>,
    /// Oldest first.
    pub history: Vec<Turn>,
    pub query: String,
}

/// Something that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cut {
    /// `agents`, `symbols`, `history`, `query` or `context_state`.
    pub section: &'static str,
    /// Which one: an id, or the place of a turn counted from the oldest.
    pub item: String,
    /// Whether a part of it is still there.
    pub partly: bool,
}

/// A prompt, ready to be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Context {
    #[serde(skip)]
    pub text: String,
    pub tokens: usize,
    /// The tokens given to agents, symbols and history.
    pub budgets: [usize; 3],
    pub symbols: Vec<String>,
    pub agents: Vec<String>,
    pub cut: Vec<Cut>,
}

/// The words that begin the parts of a prompt.
const HEADINGS: [&str; 5] = ["SYSTEM:", "AGENTS:", "SYMBOLS:", "CHAT_HISTORY:", "CURRENT_QUERY:"];

impl Material {
    /// The same, in which nothing but the system texts can begin a part: what symbols, people and models say is data.
    fn as_data(&self) -> Material {
        let line = |own: &LedgerLine| LedgerLine { text: data(&own.text), ..own.clone() };
        let turn = |own: &Turn| Turn { role: data(&own.role), text: data(&own.text) };
        Material {
            system: self.system.clone(),
            carried: self.carried.as_deref().map(data),
            agents: self.agents.iter().map(line).collect(),
            symbols: self.symbols.iter().map(line).collect(),
            history: self.history.iter().map(turn).collect(),
            query: data(&self.query),
        }
    }
}

/// A text none of whose lines is a heading, and without the marks by which servers of models tell speakers apart.
fn data(text: &str) -> String {
    let is_heading = |line: &str| {
        let bare = line.trim_start_matches(|letter: char| !letter.is_alphanumeric()).to_ascii_uppercase();
        HEADINGS.iter().any(|heading| bare.starts_with(heading))
    };
    let line = |line: &str| if is_heading(line) { format!("| {line}") } else { line.to_owned() };
    harmless(&text.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

/// Puts a prompt together. Fails only if the system block alone does not leave room for a query.
pub fn assemble(material: &Material, window: usize) -> Result<Context> {
    let material = &material.as_data();
    let mut cut = Vec::new();
    let mut system: Vec<String> = material.system.iter().map(|text| format!("SYSTEM: {}", text.trim())).collect();
    let frame = tokens(FRAME) + tokens(CUT) + SEAMS;
    let fixed = cost(&system) + frame;
    if fixed + 16 > window {
        return Err(Error::budget_exceeded(format!(
            "the system block has {fixed} tokens and leaves no room in a window of {window}"
        )));
    }
    let room = window - fixed;
    let query = fitted(&material.query, room, || Cut { section: "query", item: String::new(), partly: true }, &mut cut);
    let mut room = room.saturating_sub(tokens(&query));
    if let Some(carried) = &material.carried {
        let line = format!("SYSTEM: context_state carried from the last phase: {carried}");
        if tokens(&line) < room / 4 {
            room -= tokens(&line) + 1;
            system.push(line);
        } else {
            cut.push(Cut { section: "context_state", item: String::new(), partly: false });
        }
    }
    let reserved = SYSTEM_RESERVED.saturating_sub(cost(&system)).min(room / 2);
    let available = room - reserved;
    let present = [!material.agents.is_empty(), !material.symbols.is_empty(), !material.history.is_empty()];
    let budgets = shares(available, present);
    let parts = pack_all(material, spilled(material, budgets, available));
    let mut blocks = vec![system.join("\n")];
    for (heading, pack) in [("AGENTS:", &parts.agents), ("SYMBOLS:", &parts.symbols), ("CHAT_HISTORY:", &parts.history)]
    {
        if !pack.lines.is_empty() {
            blocks.push(format!("{heading}\n{}", pack.lines.join("\n")));
        }
    }
    blocks.push(format!("CURRENT_QUERY: {query}"));
    blocks.retain(|block| !block.is_empty());
    let text = blocks.join("\n\n");
    for (section, pack) in [("agents", &parts.agents), ("symbols", &parts.symbols), ("history", &parts.history)] {
        cut.extend(pack.cut.iter().map(|(item, partly)| Cut { section, item: item.clone(), partly: *partly }));
    }
    let tokens = tokens(&text);
    let (symbols, agents) = (parts.symbols.ids, parts.agents.ids);
    Ok(Context { text, tokens, budgets, symbols, agents, cut })
}

/// The lines of one part that fit.
#[derive(Default)]
struct FittedLines {
    lines: Vec<String>,
    ids: Vec<String>,
    cost: usize,
    cut: Vec<(String, bool)>,
}

struct FittedParts {
    agents: FittedLines,
    symbols: FittedLines,
    history: FittedLines,
}

fn pack_all(material: &Material, rooms: [usize; 3]) -> FittedParts {
    FittedParts {
        agents: pack_lines(&material.agents, rooms[0]),
        symbols: pack_lines(&material.symbols, rooms[1]),
        history: pack_history(&material.history, rooms[2]),
    }
}

/// The budgets of the parts when each, in turn, also gets what the others leave over.
fn spilled(material: &Material, budgets: [usize; 3], available: usize) -> [usize; 3] {
    let mut rooms = budgets;
    for part in 0..3 {
        let packed = pack_all(material, rooms);
        let mut spent = [packed.agents.cost, packed.symbols.cost, packed.history.cost];
        spent[part] = 0;
        rooms[part] = rooms[part].max(available.saturating_sub(spent.iter().sum()));
    }
    rooms
}

/// Packs by falling relevance; the loaded ones first get half of the room, and then what is left.
fn pack_lines(lines: &[LedgerLine], room: usize) -> FittedLines {
    let mut order: Vec<&LedgerLine> = lines.iter().collect();
    order.sort_by_key(|line| std::cmp::Reverse(line.relevance));
    let mut taken = vec![false; order.len()];
    let mut cost = 0;
    let mut pass = |loaded: Option<bool>, most: usize| {
        for (place, line) in order.iter().enumerate() {
            let price = tokens(&line.text) + 1;
            if !taken[place] && loaded.is_none_or(|loaded| loaded == line.loaded) && cost + price <= most {
                taken[place] = true;
                cost += price;
            }
        }
    };
    pass(Some(true), room / 2);
    pass(Some(false), room);
    pass(None, room);
    let mut pack = FittedLines { cost, ..FittedLines::default() };
    for (line, taken) in order.into_iter().zip(taken) {
        if taken {
            pack.lines.push(line.text.clone());
            pack.ids.push(line.id.clone());
        } else {
            pack.cut.push((line.id.clone(), false));
        }
    }
    pack
}

/// Packs the newest first and gives them back in order. A turn that does not fit and is longer than half of the room is
/// cut with a mark, so that one long answer does not hide everything before it.
fn pack_history(history: &[Turn], room: usize) -> FittedLines {
    let mut pack = FittedLines::default();
    for (place, turn) in history.iter().enumerate().rev() {
        let mut line = format!("{}: {}", turn.role.to_uppercase(), turn.text);
        let most = (room / 2).max(8);
        let mut partly = false;
        if tokens(&line) + 1 > most && pack.cost + tokens(&line) + 1 > room {
            let kept = head(&line, most.saturating_sub(tokens(CUT) + 1) as u64).to_owned();
            line = kept + CUT;
            partly = true;
        }
        let price = tokens(&line) + 1;
        if pack.cost + price > room {
            pack.cut.push((place.to_string(), false));
            continue;
        }
        if partly {
            pack.cut.push((place.to_string(), true));
        }
        pack.cost += price;
        pack.lines.push(line);
    }
    pack.lines.reverse();
    pack.cut.reverse();
    pack
}

fn fitted(text: &str, room: usize, cut: impl FnOnce() -> Cut, cuts: &mut Vec<Cut>) -> String {
    if tokens(text) <= room {
        return text.to_owned();
    }
    cuts.push(cut());
    head(text, room.saturating_sub(tokens(CUT)) as u64).to_owned() + CUT
}

/// The cost of a text in tokens.
pub fn tokens(text: &str) -> usize {
    count(text) as usize
}

fn cost(lines: &[String]) -> usize {
    lines.iter().map(|line| tokens(line) + 1).sum()
}

#[cfg(test)]
mod tests;
