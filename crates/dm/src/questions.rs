//! Questions about the rules (`[OOC]`): an index of what players ask leads to the page that answers. `turn` and `brief` use it.

use crate::engine::Engine;
use crate::md;
use crate::refs::normal;
use crate::world::{Cartridge, ClockSpec};

const PAGE: &str = "QUESTIONS.md";
const CLOCKS: &str = "lore/MECHANICS/CLOCKS.md";
const INDICATORS: &str = "lore/MECHANICS/INDICATORS.md";

/// A row of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionEntry {
    /// Words and phrases, in normal form.
    pub asked: Vec<String>,
    pub page: String,
    pub answer: String,
}

/// The answer to a question: a sentence, the path of its page, and the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundAnswer {
    pub answer: String,
    pub page: String,
    pub text: String,
    /// Whether a page speaks of it at all.
    pub known: bool,
}

pub fn index(engine: &Engine) -> Vec<QuestionEntry> {
    let tables = md::tables(engine.page(PAGE).unwrap_or_default());
    let rows = tables
        .iter()
        .filter(|table| table.has("asked"))
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    rows.map(|(table, row)| QuestionEntry {
        asked: table.get(row, "asked").split(',').map(normal).filter(|words| !words.is_empty()).collect(),
        page: table.get(row, "page").to_owned(),
        answer: table.get(row, "answer").to_owned(),
    })
    .collect()
}

/// The page that answers a question: an indicator of this world by its name, else the best row of the index, else a clock.
pub fn find(question: &str, world: &Cartridge) -> FoundAnswer {
    let question = format!(" {} ", normal(question));
    if let Some(found) = indicator(&question, world) {
        return found;
    }
    // A phrase says more than a word, and several words more than one.
    let score = |entry: &QuestionEntry| -> usize {
        let met = entry.asked.iter().filter(|words| question.contains(&format!(" {words} ")));
        met.map(|words| 1 + 2 * words.matches(' ').count()).sum()
    };
    let rows = index(&world.engine);
    let mut best: Option<(usize, &QuestionEntry)> = None;
    for entry in &rows {
        let points = score(entry);
        if points > best.map_or(0, |(most, _)| most) {
            best = Some((points, entry));
        }
    }
    let page = |path: &str| world.engine.page(path).unwrap_or_default().to_owned();
    match best {
        Some((_, entry)) => FoundAnswer {
            answer: entry.answer.clone(),
            page: format!("engine/{}", entry.page),
            text: page(&entry.page),
            known: true,
        },
        None => clock(&question, world).unwrap_or_else(|| FoundAnswer {
            answer: "no page of the rules speaks of that; ask about checks, headers, fights, talk, rest, maps or saves"
                .into(),
            page: format!("engine/{PAGE}"),
            text: page(PAGE),
            known: false,
        }),
    }
}

/// What an indicator of the cartridge means, where the question names it.
fn indicator(question: &str, world: &Cartridge) -> Option<FoundAnswer> {
    let own = world.indicators.iter().find(|own| question.contains(&format!(" {} ", normal(&own.name))))?;
    let text = world.files.get(INDICATORS)?;
    let tables = md::tables(text);
    let meaning = tables.iter().filter(|table| table.has("indicator")).find_map(|table| {
        let row = table.rows.iter().find(|row| table.get(row, "indicator") == own.name)?;
        Some(table.get(row, "meaning").to_owned())
    });
    Some(FoundAnswer {
        answer: format!("{} is {}, from {} to {}", own.name, meaning.unwrap_or_default(), own.min, own.max),
        page: format!("cartridges/{}/{INDICATORS}", world.id),
        text: text.clone(),
        known: true,
    })
}

/// What a clock that the HUD shows is, where the question names it. Its page also has the clocks that nobody sees, so the sentence
/// is all that is told.
fn clock(question: &str, world: &Cartridge) -> Option<FoundAnswer> {
    let named = |own: &&ClockSpec| own.visible && question.contains(&format!(" {} ", normal(&own.id)));
    let own = world.clocks.iter().find(named)?;
    let moves = own.every.map_or_else(String::new, |minutes| format!(", one each {minutes} minutes"));
    let answer =
        format!("{} is a clock of {} segments{moves}; when it is full its event comes about", own.id, own.segments);
    let page = format!("cartridges/{}/{CLOCKS}", world.id);
    Some(FoundAnswer { text: answer.clone(), answer, page, known: true })
}
