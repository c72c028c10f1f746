//! Checks a cartridge as its author needs it: every fault at once, each with file and line. The service and the command line use
//! it. The loader (`load`) finds what cannot be read; here is found what can be read and cannot be played.

mod handles;
mod objects;
mod search;
mod writing;

use serde::Serialize;

use crate::files::Files;
use crate::grammar::counted;
use crate::verbs::meaning;
use crate::world::{Cartridge, Fact, Fault, Object, ObjectKind};
use crate::{load, md};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    pub ok: bool,
    pub faults: Vec<Fault>,
    /// What is no fault and may still surprise the author.
    pub notes: Vec<String>,
    /// How much there is: places, people, things, quests, endings.
    pub summary: String,
}

impl Inspection {
    /// Adds faults that were found elsewhere.
    ///
    /// A page that cannot be read is there all the same: that another page names it is no second fault.
    pub fn add(&mut self, faults: Vec<Fault>) {
        for found in &faults {
            let (none, lost) = (format!("there is no {}", found.path), format!("{}, which is not there", found.path));
            self.faults.retain(|own| own.message != none && !own.message.ends_with(&lost));
        }
        self.faults.extend(faults);
        self.ok = self.faults.is_empty();
    }
}

/// The most places, people, things, quests and factions of a world together.
const MOST: usize = 1000;

/// Checks a cartridge that lies in a folder of this name.
pub fn inspect_folder(name: &str, files: &Files) -> Inspection {
    let mut report = inspect(files);
    let head = files.get("CARTRIDGE.md").map(String::as_str).unwrap_or_default();
    if let Some(id) = md::field(head, "cartridge_id").filter(|id| *id != name) {
        let message = format!("cartridge_id is `{id}`, and the folder is `{name}`: they must be equal");
        report.faults.insert(0, fault("CARTRIDGE.md", load::line_of(head, "cartridge_id"), message));
        report.ok = false;
    }
    report
}

pub fn inspect(files: &Files) -> Inspection {
    let world = match load::cartridge(files) {
        Ok(world) => world,
        Err(wrong) => {
            let faults = vec![fault("CARTRIDGE.md", 1, wrong.message)];
            return Inspection { ok: false, faults, notes: Vec::new(), summary: "no cartridge".into() };
        }
    };
    let mut faults = world.faults.clone();
    if world.objects.len() > MOST {
        // The searches below would take hours over it.
        let message = format!("a world has at most {MOST} places, people, things, quests and factions");
        faults.push(fault("CARTRIDGE.md", 1, message));
        return Inspection { ok: false, faults, notes: Vec::new(), summary: summary(&world) };
    }
    faults.extend(writing::faults(&world));
    faults.extend(handles::faults(&world));
    faults.extend(objects::faults(&world));
    faults.extend(map(&world));
    faults.extend(search::faults(&world));
    // The longer of two messages about the same says more, so it comes first and stays.
    let order =
        |fault: &Fault| (fault.path.clone(), fault.line, std::cmp::Reverse(fault.message.len()), fault.message.clone());
    faults.sort_by_key(order);
    // The loader and a check may find the same; the author needs it once.
    faults
        .dedup_by(|one, other| one.path == other.path && one.line == other.line && same(&one.message, &other.message));
    Inspection { ok: faults.is_empty(), faults, notes: notes(&world), summary: summary(&world) }
}

/// Whether two messages are about the same unknown handle, or equal.
fn same(one: &str, other: &str) -> bool {
    let handle = |text: &str| {
        text.strip_prefix("unknown handle ").map(|rest| rest.split([' ', ':', ';']).next().map(str::to_owned))
    };
    one == other || handle(one).is_some() && handle(one) == handle(other)
}

fn fault(path: &str, line: usize, message: impl Into<String>) -> Fault {
    Fault { path: path.to_owned(), line, message: message.into() }
}

/// The line of a file of the cartridge where these words stand first.
fn line_in(world: &Cartridge, path: &str, words: &str) -> usize {
    world.files.get(path).map_or(1, |text| load::line_of(text, words))
}

/// The map: it is there, every place is on it, and every place can be reached by it.
fn map(world: &Cartridge) -> Vec<Fault> {
    let index = "locations/LOCATION_INDEX.md";
    let places: Vec<&str> = world.of(ObjectKind::Loc).map(|place| place.handle.as_str()).collect();
    let Some(path) = load::map_path(&world.files) else {
        let none = world.is_on("map_system") && !places.is_empty();
        return none
            .then(|| fault("maps/MAP_INDEX.md", 1, "there is no map: write maps/<name>.data.json"))
            .into_iter()
            .collect();
    };
    let mut faults = Vec::new();
    let mut reached = vec![world.start.as_str()];
    let mut at = 0;
    while let Some(here) = reached.get(at).copied() {
        for (next, ..) in world.map.ways(here) {
            if !reached.contains(&next) {
                reached.push(next);
            }
        }
        at += 1;
    }
    for place in places {
        if !world.map.nodes.iter().any(|node| node.at == place) {
            faults.push(fault(path, 1, format!("{place} is not on the map: add a node for it")));
        } else if !reached.contains(&place) {
            let line = line_in(world, index, &format!("| {place} "));
            faults.push(fault(
                index,
                line,
                format!("{place} cannot be reached from {}: no way leads to it", world.start),
            ));
        }
    }
    faults
}

fn notes(world: &Cartridge) -> Vec<String> {
    let mut notes = Vec::new();
    if world.endings.is_empty() {
        notes.push(format!("there is no {}: the story never closes", crate::ending::PAGE));
    }
    if !world.quests.iter().any(|quest| quest.main) {
        notes.push("no quest is of kind main".to_owned());
    }
    for place in world.of(ObjectKind::Loc).filter(|place| place.facts.is_empty()) {
        notes.push(format!("{} has no facts, so every scene there is the same", place.handle));
    }
    for object in &world.objects {
        notes.extend(two_states(object));
    }
    notes
}

/// Two facts that begin with the same noun and may both hold: the one that is no longer true is told beside the other.
fn two_states(object: &Object) -> Vec<String> {
    let first = |fact: &Fact| meaning(&fact.text).into_iter().next();
    let pairs =
        object.facts.iter().enumerate().flat_map(|(at, one)| object.facts[at + 1..].iter().map(move |two| (one, two)));
    let both =
        pairs.filter(|(one, two)| first(one).is_some() && first(one) == first(two) && !one.when.excludes(&two.when));
    let note = |(one, two): (&Fact, &Fact)| {
        let noun = first(one).unwrap_or_default();
        format!(
            "{}: lines {} and {} tell of `{noun}` and may both hold: give each a `when` that denies the other",
            object.handle, one.line, two.line
        )
    };
    both.map(note).collect()
}

fn summary(world: &Cartridge) -> String {
    let count = |kind: ObjectKind| world.of(kind).count();
    let parts = [
        counted(count(ObjectKind::Loc), "place", "places"),
        counted(count(ObjectKind::Npc), "person", "people"),
        counted(count(ObjectKind::Item), "thing", "things"),
        counted(count(ObjectKind::Quest), "quest", "quests"),
        counted(world.endings.len(), "ending", "endings"),
    ];
    format!("{} {}: {}", world.id, world.version, parts.join(", "))
}

#[cfg(test)]
mod tests;
