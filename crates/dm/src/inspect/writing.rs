//! How the files are written: columns, fields and values that no rule reads, rows that lack a cell, pages that are too long or
//! hold what no page may. Each is a slip that would otherwise be passed over without a word.

use super::{fault, line_in};
use crate::authored::DEEDS;
use crate::ending::PAGE as ENDINGS;
use crate::input::Header;
use crate::load::{CLOCKS, INDICATORS, index_of_kind};
use crate::md::{self, Table};
use crate::world::{Cartridge, Fault, ObjectKind};
use acheron_base::nearest::nearest_within;

/// The longest page, in bytes.
const LONGEST: usize = 256 << 10;

const INDEX: &[&str] = &["@handle", "handle", "name", "one_line_summary", "status"];
const STEP: &[&str] = &["do", "says", "target", "at", "needs", "check", "gives", "cost", "text", "once", "to", "fails"];
const PERSON: &[&str] = &[
    "important",
    "disposition",
    "affiliation",
    "trust",
    "greeting",
    "goals",
    "insight",
    "level",
    "will",
    "hp",
    "str",
    "dex",
    "weapon",
    "armour",
    "wants",
    "thanks",
    "threat",
    "acts",
    "attack",
    "bars",
    "location",
    "role",
];
const PLACE: &[&str] = &["smell", "shelter", "water", "ground", "soil"];
const THING: &[&str] = &["at", "dc", "use", "food", "drink", "price", "seller", "weight", "text", "weapon", "again"];
const QUEST: &[&str] = &["kind", "giver", "return_to", "opens", "stakes"];
const STATUSES: [&str; 6] = ["active", "hidden", "inactive", "gone", "companion", "dead"];

/// What an object of a kind can have, in a column of its row or a field of its page.
fn fields_of(kind: ObjectKind) -> &'static [&'static str] {
    match kind {
        ObjectKind::Loc => PLACE,
        ObjectKind::Npc => PERSON,
        ObjectKind::Item => THING,
        ObjectKind::Quest => QUEST,
        ObjectKind::Faction => &[],
    }
}

pub fn faults(world: &Cartridge) -> Vec<Fault> {
    let mut faults = pages(world);
    head(world, &mut faults);
    tables(world, &mut faults);
    fields(world, &mut faults);
    routes(world, &mut faults);
    values(world, &mut faults);
    faults
}

/// Sizes and characters.
pub fn pages(world: &Cartridge) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in &world.files {
        if text.len() > LONGEST {
            faults.push(fault(path, 1, format!("the page is longer than {} KiB: cut it up", LONGEST >> 10)));
        }
        let strange = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        for (at, line) in text.lines().enumerate().filter(|(_, line)| line.contains(strange)) {
            let found = line.chars().find(|c| strange(*c)).map_or(0, u32::from);
            faults.push(fault(path, at + 1, format!("the control character U+{found:04X} does not stand in a page")));
        }
    }
    faults
}

fn head(world: &Cartridge, faults: &mut Vec<Fault>) {
    let path = "CARTRIDGE.md";
    let numbers: Vec<&str> = world.version.split('.').collect();
    if numbers.len() != 3 || !numbers.iter().all(|part| part.parse::<u32>().is_ok()) {
        let message = format!("version `{}` must be three numbers like 1.0.0", world.version);
        faults.push(fault(path, line_in(world, path, "version:"), message));
    }
    let text = world.files.get(path).map(String::as_str).unwrap_or_default();
    let spine = md::bullets(md::section(text, "spine").unwrap_or_default()).count();
    if !(4..=6).contains(&spine) {
        faults.push(fault(path, line_in(world, path, "## spine"), format!("the spine has 4 to 6 lines, not {spine}")));
    }
}

/// The columns of the tables that the rules read, by page.
fn tables(world: &Cartridge, faults: &mut Vec<Fault>) {
    for kind in ObjectKind::ALL {
        let known = [INDEX, fields_of(kind)].concat();
        check(world, index_of_kind(kind), &known, |table| table.has("@handle") || table.has("handle"), faults);
    }
    let levels = ["indicator", "min", "max", "start", "meaning", "when", "once", "event", "effect"];
    let levels = [levels.as_slice(), &["gate", "open when", "places", "reason"]].concat();
    check(world, INDICATORS, &levels, |_| true, faults);
    let clocks = ["clock", "segments", "visible", "every", "again", "until", "event", "effect"];
    check(world, CLOCKS, &clocks, |_| true, faults);
    check(world, DEEDS, STEP, |_| true, faults);
    check(world, ENDINGS, &["ending", "when", "title"], |_| true, faults);
    for path in world.of(ObjectKind::Quest).filter_map(|quest| quest.path.as_deref()) {
        check(world, path, STEP, |table| table.heading.eq_ignore_ascii_case("stages"), faults);
    }
}

fn check(world: &Cartridge, path: &str, known: &[&str], reads: impl Fn(&Table) -> bool, faults: &mut Vec<Fault>) {
    let text = world.files.get(path).map(String::as_str).unwrap_or_default();
    for table in md::tables(text).iter().filter(|table| reads(table)) {
        for column in table.columns.iter().map(|column| column.to_lowercase()) {
            if !known.contains(&column.as_str()) {
                let message = format!("unknown column `{column}`{}", nearest(&column, known));
                faults.push(fault(path, table.line, message));
            }
        }
        for row in table.rows.iter().filter(|row| row.cells.len() != table.columns.len()) {
            let (cells, columns) = (row.cells.len(), table.columns.len());
            let message =
                format!("the row has {cells} cells, and the table {columns} columns: write - for none, and no |");
            faults.push(fault(path, row.line, message));
        }
    }
}

/// ``; the nearest is `x` ``, or what there is.
fn nearest(word: &str, known: &[&str]) -> String {
    match nearest_within(word, known.iter().copied(), 2) {
        Some(near) => format!("; the nearest is `{near}`"),
        None => format!("; there are {}", known.join(", ")),
    }
}

/// Lines of a page that look like a field and are none: they are no facts either, and nobody would ever read them.
fn fields(world: &Cartridge, faults: &mut Vec<Fault>) {
    for object in world.objects.iter().filter(|own| own.kind != ObjectKind::Faction) {
        let Some((path, text)) = object.path.as_ref().and_then(|path| Some((path, world.files.get(path)?))) else {
            continue;
        };
        let top = text.find("\n## ").map_or(text.as_str(), |end| &text[..end]);
        let known = fields_of(object.kind);
        for own in md::fields(top).filter(|own| !own.key.starts_with("when ")) {
            if !known.contains(&own.key.to_lowercase().as_str()) {
                let near = nearest(&own.key.to_lowercase(), known);
                let message = format!("unknown field `{}`{near}; a fact has no colon in its first words", own.key);
                faults.push(fault(path, own.line, message));
            }
        }
    }
}

fn routes(world: &Cartridge, faults: &mut Vec<Fault>) {
    let path = "ROUTES.md";
    let text = world.files.get(path).map(String::as_str).unwrap_or_default();
    for (at, line) in text.lines().enumerate() {
        let Some((left, right)) = line.trim().trim_start_matches("- ").split_once("->") else { continue };
        let header = left.trim().trim_matches(['[', ']']);
        if Header::named(header).is_none() {
            faults.push(fault(path, at + 1, format!("`{}` is not a header", left.trim())));
        }
        let pages = right.split(',').map(|page| page.trim().trim_matches('`')).filter(|page| !page.is_empty());
        for missing in pages.filter(|page| !world.files.contains_key(*page)) {
            faults.push(fault(path, at + 1, format!("there is no {missing}")));
        }
    }
}

fn values(world: &Cartridge, faults: &mut Vec<Fault>) {
    for object in world.objects.iter().filter(|own| !STATUSES.contains(&own.status.as_str())) {
        let path = index_of_kind(object.kind);
        let line = line_in(world, path, &format!("| {} ", object.handle));
        let message = format!("{}: status `{}` must be one of {}", object.handle, object.status, STATUSES.join(", "));
        faults.push(fault(path, line, message));
    }
    let page = |quest: &str| world.object(quest).and_then(|own| own.path.clone()).unwrap_or_default();
    let stages = world.quests.iter().flat_map(|quest| quest.stages.iter().map(|step| (page(&quest.handle), step)));
    for (path, step) in stages.chain(world.deeds.iter().map(|deed| (DEEDS.to_owned(), &deed.step))) {
        if let Some(dc) = step.dc.filter(|dc| !(8..=20).contains(dc)) {
            faults.push(fault(&path, step.line, format!("a check has a DC of 8 to 20, not {dc}")));
        }
    }
    let text = world.files.get(CLOCKS).map(String::as_str).unwrap_or_default();
    for table in md::tables(text).iter().filter(|table| table.has("clock")) {
        for row in &table.rows {
            for column in ["visible", "again"] {
                let own = table.get(row, column);
                if !matches!(own, "" | "yes" | "no") {
                    faults.push(fault(CLOCKS, row.line, format!("{column} `{own}` must be yes or no")));
                }
            }
            let every = table.get(row, "every");
            let minutes = every.strip_suffix(" min").and_then(|minutes| minutes.parse::<u64>().ok());
            if !every.is_empty() && minutes.is_none_or(|minutes| minutes == 0) {
                faults.push(fault(CLOCKS, row.line, format!("every `{every}` must be like `240 min`")));
            }
        }
    }
}
