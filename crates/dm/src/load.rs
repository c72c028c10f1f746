//! Reads a cartridge from its files. Every fault is collected with path and line.

mod mechanics;
mod quests;

use crate::files::{Files, ReadFiles, hidden};
use crate::input::Header;
use crate::md;
use crate::mechanics::{maps, tables};
use crate::rule::{clue_names, effects, handle};
use crate::world::*;
use crate::{authored, ending, index};
use acheron_base::{Error, Result};

pub(crate) use quests::stage;

pub(crate) const INDICATORS: &str = "lore/MECHANICS/INDICATORS.md";
pub(crate) const CLOCKS: &str = "lore/MECHANICS/CLOCKS.md";
const TABLES: &str = "lore/MECHANICS/RANDOM_TABLES.md";

/// The indices, and what they list. A cartridge may lack any of them.
const INDICES: [(ObjectKind, &str); 5] = [
    (ObjectKind::Loc, "locations/LOCATION_INDEX.md"),
    (ObjectKind::Npc, "characters/NPCs/npc_roster.md"),
    (ObjectKind::Item, "items/ITEM_INDEX.md"),
    (ObjectKind::Quest, "quests/QUEST_LOG.md"),
    (ObjectKind::Faction, "factions/FACTION_INDEX.md"),
];

/// The index that lists objects of a kind.
pub fn index_of_kind(kind: ObjectKind) -> &'static str {
    INDICES.iter().find(|(own, _)| *own == kind).map_or("", |(_, path)| path)
}

/// The kind of object that an index lists.
pub fn kind_of_index(path: &str) -> Option<ObjectKind> {
    INDICES.iter().find(|(_, own)| *own == path).map(|(kind, _)| *kind)
}

pub fn cartridge(source: &dyn ReadFiles) -> Result<Cartridge> {
    let mut files = Files::new();
    for path in source.paths()?.into_iter().filter(|path| !hidden(path)) {
        if let Some(text) = source.read(&path)? {
            files.insert(path, text);
        }
    }
    let text = |path: &str| files.get(path).map(String::as_str).unwrap_or_default();
    let head = text("CARTRIDGE.md");
    let id = md::field(head, "cartridge_id").ok_or_else(|| Error::invalid("CARTRIDGE.md names no cartridge_id"))?;
    let mut world = Cartridge {
        id: id.to_owned(),
        version: md::field(head, "version").unwrap_or("0.0.0").to_owned(),
        title: head.lines().find_map(md::heading).map_or(id, |(_, title)| title).to_owned(),
        start: md::field(head, "start").unwrap_or_default().to_owned(),
        theme: md::field(head, "theme").unwrap_or_default().to_owned(),
        hooks: lines(head, "hooks").iter().map(|line| hook(line)).collect(),
        spine: lines(head, "spine").into_iter().take(6).collect(),
        wakes_at: md::field(head, "wakes_at").unwrap_or_default().to_owned(),
        wakes: md::field(head, "wakes").unwrap_or_default().to_owned(),
        carries: named_handles(md::field(head, "carries").unwrap_or_default()),
        ..Cartridge::default()
    };
    match effects(md::field(head, "falls").unwrap_or_default()) {
        Ok(falls) => world.falls = falls,
        Err(wrong) => world.faults.push(fault("CARTRIDGE.md", line_of(head, "falls:"), wrong.message)),
    }
    world.invariants = lines(head, "invariants").iter().map(|line| invariant(line)).collect();
    flags(head, &mut world);
    for (kind, path) in INDICES {
        objects(kind, path, &files, head, &mut world);
    }
    for (name, stands_for) in
        md::fields(md::section(head, "headers").unwrap_or_default()).map(|own| (own.key, own.value))
    {
        match Header::named(stands_for.trim_matches(['[', ']'])) {
            Some(header) => world.extra.push((name.to_owned(), header)),
            None => world.faults.push(fault("CARTRIDGE.md", 1, format!("header {name} stands for no header"))),
        }
    }
    world.routes = routes(text("ROUTES.md"), head);
    if world.is_on("indicators") {
        mechanics::indicators(text(INDICATORS), &mut world);
    }
    mechanics::clocks(text(CLOCKS), &mut world);
    let (found, faults) = tables::read(TABLES, text(TABLES));
    world.tables = found;
    world.faults.extend(faults);
    if let Some((path, data)) = map_path(&files).and_then(|path| Some((path, files.get(path)?))) {
        match maps::read(path, data) {
            Ok(map) => world.map = map,
            Err(fault) => world.faults.push(fault),
        }
        let places = |at: &str| world.object(at).is_some_and(|object| object.kind == ObjectKind::Loc);
        let wrong = world.map.faults(places);
        // The line with the handles that the message names: a node, or a way between two.
        let line = |message: &str| {
            let bare = |word: &str| format!("\"{}\"", word.trim_end_matches([',', ':', ';']));
            let named: Vec<String> =
                message.split_whitespace().filter(|word| word.starts_with('@')).map(bare).collect();
            data.lines().position(|line| named.iter().all(|own| line.contains(own))).map_or(1, |at| at + 1)
        };
        world.faults.extend(wrong.into_iter().map(|message| fault(path, line(&message), message)));
    }
    quests::quests(&files, &mut world);
    let (deeds, faults) = authored::deeds(&files);
    world.deeds = deeds;
    world.faults.extend(faults);
    let (endings, faults) = ending::read(text(ending::PAGE));
    world.endings = endings;
    world.faults.extend(faults);
    quests::people(&mut world);
    quests::clues(&mut world);
    world.clue_names = files.values().flat_map(|text| clue_names(text)).collect();
    world.files = files;
    Ok(world)
}

/// `A sentence. (carries: @thing, @thing)`
fn hook(line: &str) -> Hook {
    let (text, carries) = line.split_once("(carries:").unwrap_or((line, ""));
    Hook { text: text.trim().to_owned(), carries: named_handles(carries.trim_end().trim_end_matches(')')) }
}

/// The handles of a list.
pub(crate) fn named_handles(list: &str) -> Vec<String> {
    list.split([',', ' ']).filter(|own| own.starts_with('@')).map(str::to_owned).collect()
}

/// `A sentence. (never: phrase; phrase)`
fn invariant(line: &str) -> Invariant {
    let (text, never) = line.split_once("(never:").unwrap_or((line, ""));
    let phrases = never.trim_end().trim_end_matches(')').split(';').map(crate::refs::normal);
    Invariant { text: text.trim().to_owned(), never: phrases.filter(|phrase| !phrase.is_empty()).collect() }
}

/// The features that a cartridge can turn on and off.
const FLAGS: [&str; 4] = ["indicators", "map_system", "governance", "fiction_sync"];

fn flags(head: &str, world: &mut Cartridge) {
    for own in md::fields(md::section(head, "feature_flags").unwrap_or_default()) {
        let mut wrong = |message: String| {
            world.faults.push(fault("CARTRIDGE.md", line_of(head, &format!("{}:", own.key)), message));
        };
        match (FLAGS.contains(&own.key), own.value) {
            (false, _) => wrong(format!("unknown feature flag {}; there are {}", own.key, FLAGS.join(", "))),
            (true, "on") if own.key == "fiction_sync" => {
                wrong("fiction_sync cannot be on: fiction is never written by a turn; read story.md".to_owned());
            }
            (true, "on" | "off") => {
                world.flags.insert(own.key.to_owned(), own.value == "on");
            }
            (true, _) => wrong(format!("{} must be on or off, not `{}`", own.key, own.value)),
        }
    }
}

fn fault(path: &str, line: usize, message: impl Into<String>) -> Fault {
    Fault { path: path.to_owned(), line, message: message.into() }
}

/// The data of the map: `maps/<name>.data.json`. The name `.data.yaml` is an older one of the same JSON.
pub fn map_path(files: &Files) -> Option<&str> {
    let named = |end: &str| files.keys().find(|path| path.starts_with("maps/") && path.ends_with(end));
    named(".data.json").or_else(|| named(".data.yaml")).map(String::as_str)
}

/// The first line with these words in it; 1 if there is none.
pub(crate) fn line_of(text: &str, words: &str) -> usize {
    text.lines().position(|line| line.contains(words)).map_or(1, |at| at + 1)
}

fn lines(text: &str, title: &str) -> Vec<String> {
    md::bullets(md::section(text, title).unwrap_or_default()).map(str::to_owned).collect()
}

fn objects(kind: ObjectKind, path: &str, files: &Files, head: &str, world: &mut Cartridge) {
    let Some(text) = files.get(path) else { return };
    let index = index::read(text);
    for (table, row) in index.rows() {
        let own = table.get(row, "@handle");
        let own = if own.is_empty() { table.get(row, "handle") } else { own };
        let Ok(own) = handle(own) else {
            world.faults.push(fault(path, row.line, format!("`{own}` is not a handle like @old_gate")));
            continue;
        };
        if world.object(&own).is_some() {
            world.faults.push(fault(path, row.line, format!("{own} is used twice")));
            continue;
        }
        let mut aliases = index.aliases(&own);
        aliases.extend(index::aliases(md::section(head, "aliases").unwrap_or_default(), &own));
        let page_path = index.pointer(&own).map(|to| index::beside(path, to, files));
        if let Some(missing) = page_path.as_ref().filter(|page| !files.contains_key(page.as_str())) {
            world.faults.push(fault(path, row.line, format!("{own} points to {missing}, which is not there")));
        }
        let page = page_path.as_ref().and_then(|path| files.get(path)).map(String::as_str).unwrap_or_default();
        // The chapters below have lines of their own, such as secrets and topics.
        let top = page.find("\n## ").map_or(page, |end| &page[..end]);
        let keyed = md::fields(top).filter(|own| !own.key.starts_with("when "));
        let mut fields: std::collections::BTreeMap<String, String> =
            keyed.map(|own| (own.key.to_lowercase(), own.value.to_owned())).collect();
        fields.extend(
            table
                .columns
                .iter()
                .zip(&row.cells)
                .filter(|(_, cell)| !matches!(cell.as_str(), "" | "-"))
                .map(|(column, cell)| (column.to_lowercase(), cell.clone())),
        );
        let secrets = md::section(page, "Secrets").unwrap_or_default();
        let secret =
            |grade: &str| md::fields(secrets).filter(|own| own.key == grade).map(|own| own.value.to_owned()).collect();
        let (facts, mut wrong) = authored::facts_under(page, None);
        let (topics, bad) = authored::topics(page);
        wrong.extend(bad);
        let page_name = page_path.as_deref().unwrap_or(path);
        world.faults.extend(wrong.into_iter().map(|(line, message)| fault(page_name, line, message)));
        world.objects.push(Object {
            kind,
            facts,
            topics,
            name: Some(table.get(row, "name")).filter(|name| !name.is_empty()).unwrap_or(&own).to_owned(),
            summary: table.get(row, "one_line_summary").to_owned(),
            status: Some(table.get(row, "status")).filter(|name| !name.is_empty()).unwrap_or("active").to_owned(),
            aliases,
            path: page_path,
            easy_secrets: secret("easy"),
            hard_secrets: secret("hard"),
            fields,
            handle: own,
        });
    }
}

/// `- [LOOK] -> a.md, b.md`, with or without the bullet; the older form `[LOOK]: a.md` under `## routes` as well.
pub fn routes(text: &str, head: &str) -> Vec<(Header, Vec<String>)> {
    let old = md::section(head, "routes").unwrap_or_default();
    let all = text.lines().chain(old.lines());
    all.filter_map(|line| {
        let line = line.trim().trim_start_matches("- ");
        let (left, right) = line.split_once("->").or_else(|| line.split_once("]:"))?;
        let header = Header::named(left.trim().trim_start_matches('[').trim_end_matches(']'))?;
        let paths =
            right.split(',').map(|path| path.trim().trim_matches('`').to_owned()).filter(|path| !path.is_empty());
        Some((header, paths.collect()))
    })
    .collect()
}
