//! Stage C4: renders the output in a fixed order. The narrator fills fields; the kernel sets the order.

use crate::grammar::{capital, joined, sentence, the};
use crate::hud::{exits, people};
use crate::menu::MenuItem;
use crate::play::Outcome;
use crate::state::State;
use crate::world::{Cartridge, Object, ObjectKind};

/// The opening shot without a narrator: where and when, something that is seen there, the smell, who is there and what presses.
/// Each scene of a place shows another of its facts, the ones that were not shown first.
pub fn scene(state: &State, world: &Cartridge, said: &str) -> String {
    let place = world.object(&state.location);
    let name = place.map_or_else(|| "nowhere in particular".to_owned(), |place| the(&place.name));
    let shown = state.memory.scenes.get(&state.location).copied().unwrap_or(0) as usize;
    let mut sentences = vec![format!("{}, {name}", capital(&state.time.to_string()))];
    sentences.extend(place.and_then(|place| fact(state, place, shown, said)));
    let smell = place.map_or("", |place| place.field("smell"));
    let people = present(state, world);
    let pressing = pressing(state, world);
    // Not every scene smells: where much is to be said, the smell is for the first one.
    let room = people.is_none() || pressing.is_none() || shown == 0;
    if !smell.is_empty() && room {
        sentences.push(format!("It smells of {smell}"));
    } else if smell.is_empty() && sentences.len() < 2 {
        sentences.push(if state.time.night() { "The dark is close".into() } else { "The day is plain".into() });
    }
    sentences.extend(people);
    sentences.extend(pressing.or_else(|| ways(state, world)));
    sentences.truncate(4);
    // A name such as "St. Bride" must not read as two sentences.
    let plain = |text: &String| format!("{}.", text.replace(['.', '!', '?'], ""));
    sentences.iter().map(plain).collect::<Vec<_>>().join(" ")
}

/// The fact of a place for its scene: those that hold, one after the other; not one that was just `said`.
fn fact(state: &State, place: &Object, shown: usize, said: &str) -> Option<String> {
    let held: Vec<&str> =
        place.facts.iter().filter(|fact| state.holds(&fact.when)).map(|fact| fact.text.as_str()).collect();
    let unsaid = |text: &&&str| !said.contains(text.trim_end_matches('.'));
    let own = held.iter().cycle().skip(shown).take(held.len()).find(unsaid).copied().unwrap_or(&place.summary);
    Some(capital(own.trim().trim_end_matches('.'))).filter(|text| !text.is_empty())
}

fn present(state: &State, world: &Cartridge) -> Option<String> {
    let here: Vec<String> =
        people(state, world).map(|npc| npc.name.clone()).chain(crate::hud::brought_here(state)).collect();
    let verb = if here.len() == 1 { "is" } else { "are" };
    let awake = (!here.is_empty()).then(|| format!("{} {verb} here", capital(&joined(&here))));
    let lying = |npc: &&Object| state.memory.down.contains_key(&npc.handle) && state.place_of(npc) == state.location;
    let down: Vec<String> = world.of(ObjectKind::Npc).filter(lying).map(|npc| npc.name.clone()).collect();
    let verb = if down.len() == 1 { "lies" } else { "lie" };
    let down = (!down.is_empty()).then(|| format!("{} {verb} here, unconscious", joined(&down)));
    match (awake, down) {
        (Some(awake), Some(down)) => Some(format!("{awake}, and {down}")),
        (awake, down) => awake.or(down),
    }
}

/// The visible clock that is nearest to its end.
fn pressing(state: &State, world: &Cartridge) -> Option<String> {
    let begun = state.shown_clocks(world).filter(|clock| clock.filled > 0);
    let clock = begun.max_by_key(|clock| clock.filled * 100 / clock.segments)?;
    Some(format!("The {} stands at {} of {}", clock.id, clock.filled, clock.segments))
}

fn ways(state: &State, world: &Cartridge) -> Option<String> {
    let names: Vec<String> = exits(state, world).map(|place| the(&place.name)).collect();
    match names.as_slice() {
        [] => None,
        [one] => Some(format!("One way leads on, to {one}")),
        _ => Some(format!("Ways lead to {}", joined(&names))),
    }
}

/// The result in one sentence, for the Decision and the load.
pub fn resolution(out: &Outcome) -> String {
    let mut text = match out.rows.first() {
        Some((action, result)) => format!("{action}: {result}"),
        None => "it is noted".into(),
    };
    if let Some(why) = &out.no_progress {
        text.push_str(&format!("; no new progress: {why}"));
    }
    if let Some(ending) = &out.epilogue {
        text.push_str(&format!("; the story ends: {}", ending.title));
    }
    text
}

pub struct Page<'a> {
    pub scene: &'a str,
    pub action: &'a str,
    pub out: &'a Outcome,
    pub risk: Option<&'a str>,
    pub menu: &'a [MenuItem],
    pub hud: &'a str,
    pub guide: bool,
    pub corrections: &'a [String],
}

/// Slots one to five.
pub fn output(page: &Page<'_>) -> String {
    let out = page.out;
    let mut text = String::new();
    if page.guide {
        text.push_str(GUIDE);
    }
    text.push_str(&format!("[Scene]\n{}\n\n[Adjudication]\n", page.scene));
    if out.checks.is_empty() {
        text.push_str(if out.alternative.is_some() {
            "No throw: it cannot succeed as it stands.\n"
        } else {
            "No check was needed.\n"
        });
    }
    for check in &out.checks {
        let risk = page.risk.map(|risk| format!("risk {risk} · ")).unwrap_or_default();
        text.push_str(&format!("{}: {risk}DC {} · {} · {}\n", check.what, check.dc, check.formula, check.tier.name()));
    }
    text.push_str(&format!("\n[Result]\n{}\n", page.action));
    if !out.rows.is_empty() {
        text.push_str("\n| action | result |\n|---|---|\n");
        for (action, result) in &out.rows {
            text.push_str(&format!("| {} | {} |\n", action.replace('|', "/"), result.replace('|', "/")));
        }
    }
    let mut block = |title: &str, lines: &[String]| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}:\n"));
            lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
        }
    };
    block("Discoveries", &out.found);
    if let Some(why) = &out.no_progress {
        let lead = if out.found.is_empty() { "No key clue, no new progress" } else { "No new progress" };
        block("Nothing gained", &[format!("{lead}: {why}")]);
    }
    let mut after = out.after.clone();
    after.extend(out.cost.iter().map(|cost| format!("cost: {cost}")));
    block("Consequences", &after);
    block("A costly alternative", out.alternative.as_slice());
    block("What can be done here", &out.hints);
    block("Correction", page.corrections);
    if let Some(summary) = &out.text {
        text.push_str(&format!("\nSummary: {summary}\n"));
    }
    if let Some(voice) = &out.inner {
        text.push_str(&format!("\nInner voice: {voice}\n"));
    }
    if let Some(ending) = &out.epilogue {
        text.push_str(&format!("\nEpilogue: {}\n\n", ending.title));
        ending.lines.iter().for_each(|line| text.push_str(&format!("{}\n", sentence(line))));
        text.push_str("\nThe campaign is closed. `story.md` tells it from the beginning; <play on> opens it again.\n");
    }
    text.push_str("\n[Next Suggestions]\n");
    for (item, n) in page.menu.iter().zip(1..) {
        text.push_str(&format!("{n}. {}{}\n", item.input, if item.risky { "   (bold)" } else { "" }));
    }
    text.push_str(&format!("\n[HUD]\n{}", page.hud));
    text
}

/// Shown once after a campaign is begun or loaded.
pub const GUIDE: &str = "[Guide]\n\
Begin each input with a header: [ACT] [LOOK] [ASK] [FIGHT] [CAST] [MANAGE] [OOC], as in [LOOK]{the gate}.\n\
Things have codes in the HUD (L1, N1, I1, Q1) and handles (@name). `<continue>` picks the thread up again.\n\n";
