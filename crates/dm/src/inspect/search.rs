//! Finds what can never be done: a search over the steps of all quests and deeds, with what each gives and takes.
//!
//! Dice, time and levels are taken as they come: a check can succeed, an indicator can reach any value within its bounds, a night
//! falls. What is carried, known, done, where people are and which places are open is followed exactly. A step that can spoil
//! nothing is taken at once, so that the search branches only where the order of steps matters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{fault, line_in};
use crate::ending::PAGE;
use crate::rule::{Condition, Effect, Order, Term};
use crate::world::{Cartridge, Fault, ObjectKind, Stage};

/// The most situations that are looked at; a cartridge with more is checked as far as that.
const MOST: usize = 20_000;

/// What matters about a game for what can be done next.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Situation {
    /// Each quest: how many stages are done, and its status.
    quests: BTreeMap<String, (usize, String)>,
    carried: BTreeSet<String>,
    gone: BTreeSet<String>,
    clues: BTreeSet<String>,
    deeds: BTreeSet<usize>,
    placed: BTreeMap<String, String>,
    statuses: BTreeMap<String, String>,
}

pub fn faults(world: &Cartridge) -> Vec<Fault> {
    let mut open: Vec<&str> = world.quests.iter().map(|quest| quest.handle.as_str()).collect();
    let mut endings: Vec<&crate::ending::Ending> = world.endings.iter().collect();
    let mut furthest: BTreeMap<&str, usize> = BTreeMap::new();
    let start = settle(
        world,
        Situation {
            quests: BTreeMap::new(),
            carried: world.carries.iter().cloned().collect(),
            gone: BTreeSet::new(),
            clues: BTreeSet::new(),
            deeds: BTreeSet::new(),
            placed: BTreeMap::new(),
            statuses: BTreeMap::new(),
        },
    );
    let (mut seen, mut queue) = (BTreeSet::from([start.clone()]), VecDeque::from([start]));
    while let Some(here) = queue.pop_front() {
        for (handle, (stage, status)) in &here.quests {
            if status == "done" || status == "failed" {
                open.retain(|own| own != handle);
            }
            if let Some(quest) = world.quests.iter().find(|quest| quest.handle == *handle) {
                let most = furthest.entry(&quest.handle).or_insert(0);
                *most = (*most).max(*stage);
            }
        }
        endings.retain(|ending| !holds(world, &here, &ending.when));
        if open.is_empty() && endings.is_empty() || seen.len() > MOST {
            break;
        }
        for next in steps(world, &here) {
            if seen.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    if seen.len() > MOST {
        return Vec::new();
    }
    let stuck = open.into_iter().filter_map(|handle| world.quests.iter().find(|quest| quest.handle == handle));
    let mut faults: Vec<Fault> =
        stuck.map(|quest| unfinished(world, quest, furthest.get(quest.handle.as_str()).copied())).collect();
    for ending in endings {
        faults.push(fault(PAGE, ending.line, format!("the ending `{}` can never be reached", ending.id)));
    }
    faults
}

/// The sentence about a quest that cannot be finished: where it stops.
fn unfinished(world: &Cartridge, quest: &crate::world::Quest, reached: Option<usize>) -> Fault {
    let object = world.object(&quest.handle);
    let path = object.and_then(|own| own.path.clone()).unwrap_or_else(|| "quests/QUEST_LOG.md".into());
    match reached.and_then(|at| quest.stages.get(at)) {
        Some(stage) => {
            let at = reached.unwrap_or(0) + 1;
            fault(&path, stage.line, format!("quest {} cannot be finished: nothing leads to stage {at}", quest.handle))
        }
        None => {
            let line = line_in(world, &path, "opens:");
            fault(&path, line, format!("quest {} cannot be finished: it never opens", quest.handle))
        }
    }
}

/// Opens the quests whose time has come.
fn settle(world: &Cartridge, mut here: Situation) -> Situation {
    for quest in &world.quests {
        let active = world.object(&quest.handle).is_some_and(|object| object.status != "hidden");
        if active && !here.quests.contains_key(&quest.handle) && holds(world, &here, &quest.opens) {
            here.quests.insert(quest.handle.clone(), (0, "active".into()));
        }
    }
    here
}

/// Every situation that one step leads to; only one where a step can spoil nothing.
fn steps(world: &Cartridge, here: &Situation) -> Vec<Situation> {
    let places = reachable(world, here);
    let mut all = Vec::new();
    for quest in &world.quests {
        let Some((at, _)) = here.quests.get(&quest.handle).filter(|(_, status)| status == "active") else { continue };
        let Some(stage) = quest.stages.get(*at).filter(|stage| possible(world, here, stage, &places)) else { continue };
        let mut next = here.clone();
        apply(&mut next, &stage.gives);
        let done = at + 1 == quest.stages.len();
        next.quests.insert(quest.handle.clone(), (at + 1, if done { "done" } else { "active" }.into()));
        let ends = done.then_some(quest.handle.as_str());
        if harmless(world, stage, ends) {
            return vec![settle(world, next)];
        }
        all.push(settle(world, next));
    }
    for (n, deed) in world.deeds.iter().enumerate().filter(|(n, _)| !here.deeds.contains(n)) {
        if deed.step.gives.iter().any(matters) && possible(world, here, &deed.step, &places) {
            let mut next = here.clone();
            apply(&mut next, &deed.step.gives);
            next.deeds.insert(n);
            all.push(settle(world, next));
        }
    }
    let due = world.triggers.iter().filter(|trigger| trigger.effects.iter().any(matters));
    for trigger in due.filter(|trigger| holds(world, here, &trigger.when)) {
        let mut next = here.clone();
        apply(&mut next, &trigger.effects);
        all.push(settle(world, next));
    }
    all
}

/// Whether an effect changes what can be done next.
fn matters(effect: &Effect) -> bool {
    use Effect::{Clue, Lose, Put, Quest, Reveal, Status, Take};
    matches!(effect, Take(_) | Lose(_) | Clue(_) | Put(..) | Status(..) | Reveal(_) | Quest(..))
}

/// Whether a step can make nothing impossible: it gives, and takes only what no other step asks for. `ends` is the quest that it
/// finishes.
fn harmless(world: &Cartridge, step: &Stage, ends: Option<&str>) -> bool {
    let steps = || {
        let stages = world.quests.iter().flat_map(|quest| &quest.stages);
        stages.chain(world.deeds.iter().map(|deed| &deed.step)).filter(|own| *own != step)
    };
    let conditions = || {
        let rules = world.gates.iter().map(|gate| &gate.open_when).chain(world.endings.iter().map(|own| &own.when));
        rules.chain(world.quests.iter().map(|quest| &quest.opens)).chain(world.triggers.iter().map(|own| &own.when))
    };
    let terms = || steps().map(|own| &own.needs).chain(conditions()).flat_map(|own| &own.0);
    let denied = |term: &Term| terms().any(|own| matches!(own, Term::Not(inner) if **inner == *term));
    let asked = |item: &str| {
        steps().any(|own| own.target == item) || terms().any(|own| matches!(own, Term::Has(other) if other == item))
    };
    let spoils = |effect: &Effect| match effect {
        Effect::Lose(item) => asked(item),
        Effect::Status(own, _) | Effect::Put(own, _) => steps().any(|step| step.target == *own) || asked(own),
        Effect::Quest(..) => true,
        Effect::Clue(clue) => denied(&Term::Clue(clue.clone())),
        _ => false,
    };
    let final_term = |quest: &str| Term::Quest(quest.to_owned(), "done".into());
    !step.gives.iter().any(spoils) && !ends.is_some_and(|quest| denied(&final_term(quest)))
}

fn possible(world: &Cartridge, here: &Situation, step: &Stage, places: &BTreeSet<String>) -> bool {
    let at = step.at.as_ref().is_none_or(|at| places.contains(at));
    let target = match world.object(&step.target) {
        Some(npc) if npc.kind == ObjectKind::Npc => {
            let status = here.statuses.get(&npc.handle).unwrap_or(&npc.status);
            let place = here.placed.get(&npc.handle).map_or_else(|| npc.field("location"), String::as_str);
            status == "active" && places.contains(place) && step.at.as_ref().is_none_or(|at| at == place)
        }
        Some(item) if item.kind == ObjectKind::Item => {
            // A step may bring a thing to light that lies nowhere yet, so a target of its own making counts.
            let made = step.gives.contains(&Effect::Take(item.handle.clone()));
            made || had(world, here, &item.handle, places)
        }
        _ => true,
    };
    at && target && step.needs.0.iter().all(|term| true_of(world, here, term, places))
}

/// Whether a thing is carried, or lies where one can go.
fn had(world: &Cartridge, here: &Situation, handle: &str, places: &BTreeSet<String>) -> bool {
    let lies = world.object(handle).is_some_and(|item| {
        let place = here.placed.get(handle).map_or_else(|| item.field("at"), String::as_str);
        places.contains(place) && !here.gone.contains(handle)
    });
    here.carried.contains(handle) || lies
}

fn apply(here: &mut Situation, effects: &[Effect]) {
    for effect in effects {
        match effect {
            Effect::Take(item) => {
                here.gone.remove(item);
                here.carried.insert(item.clone());
            }
            Effect::Lose(item) => {
                here.carried.remove(item);
                here.gone.insert(item.clone());
            }
            Effect::Clue(clue) => {
                here.clues.insert(clue.clone());
            }
            Effect::Put(what, place) => {
                here.carried.remove(what);
                here.placed.insert(what.clone(), place.clone());
            }
            Effect::Status(own, status) => {
                if status == "gone" {
                    here.gone.insert(own.clone());
                }
                here.statuses.insert(own.clone(), status.clone());
            }
            Effect::Reveal(place) => {
                here.statuses.insert(place.clone(), "active".into());
            }
            Effect::Quest(quest, status) => {
                let at = here.quests.get(quest).map_or(0, |(at, _)| *at);
                here.quests.insert(quest.clone(), (at, status.clone()));
            }
            _ => (),
        }
    }
}

/// The places that can be walked to: by the map, through open gates.
fn reachable(world: &Cartridge, here: &Situation) -> BTreeSet<String> {
    let mut places = BTreeSet::from([world.start.clone()]);
    loop {
        let before = places.len();
        for place in places.clone() {
            for (next, ..) in world.map.ways(&place) {
                let status = here.statuses.get(next).map(String::as_str);
                let hidden = status.or_else(|| world.object(next).map(|own| own.status.as_str())) == Some("hidden");
                let shut = world.gates.iter().any(|gate| {
                    let open = gate.open_when.0.iter().all(|term| true_of(world, here, term, &places));
                    gate.places.iter().any(|own| own == next) && !open
                });
                if !hidden && !shut {
                    places.insert(next.to_owned());
                }
            }
        }
        if places.len() == before {
            return places;
        }
    }
}

fn holds(world: &Cartridge, here: &Situation, when: &Condition) -> bool {
    let places = if when.0.is_empty() { BTreeSet::new() } else { reachable(world, here) };
    when.0.iter().all(|term| true_of(world, here, term, &places))
}

fn true_of(world: &Cartridge, here: &Situation, term: &Term, places: &BTreeSet<String>) -> bool {
    match term {
        Term::Level(name, order, than) => match world.indicator(name) {
            Some(own) => match order {
                Order::Less => own.min < *than,
                Order::AtMost => own.min <= *than,
                Order::Equal => (own.min..=own.max).contains(than),
                Order::AtLeast => own.max >= *than,
                Order::More => own.max > *than,
            },
            None => true,
        },
        Term::Has(item) => had(world, here, item, places),
        Term::Quest(quest, status) => here.quests.get(quest).is_some_and(|(_, own)| own == status),
        Term::Clue(clue) => here.clues.contains(clue),
        Term::At(place) | Term::Seen(place) => places.contains(place),
        Term::Gone(object) => here.gone.contains(object),
        Term::ClockFull(clock) => world.clocks.iter().any(|own| own.id == *clock),
        Term::Night => true,
        Term::Not(inner) => match &**inner {
            Term::Quest(..) | Term::Clue(_) | Term::Gone(_) => !true_of(world, here, inner, places),
            _ => true,
        },
    }
}
