//! Stage C4: renders the output in a fixed order. The narrator fills fields; the kernel sets the order.

use crate::hud::{exits, people};
use crate::menu::MenuItem;
use crate::play::Outcome;
use crate::state::State;
use crate::world::Cartridge;

/// The opening shot without a narrator: where, when, what it smells of, what presses.
pub fn scene(state: &State, world: &Cartridge) -> String {
    let place = world.object(&state.location);
    let name = place.map_or("Nowhere in particular", |place| place.name.as_str());
    let light = if state.time.night() { "The dark is close" } else { "The light is what it is" };
    let mut sentences = vec![format!("{}, {}", capital(&state.time.to_string()), name)];
    let smell = place.map_or("", |place| place.field("smell"));
    sentences.push(if smell.is_empty() { light.to_owned() } else { format!("It smells of {smell}") });
    let here: Vec<&str> = people(state, world).map(|npc| npc.name.as_str()).collect();
    if !here.is_empty() {
        sentences.push(format!("{} {} here", capital(&joined(&here)), if here.len() == 1 { "is" } else { "are" }));
    }
    let pressing = state
        .clocks
        .iter()
        .filter(|clock| clock.visible && clock.filled > 0)
        .max_by_key(|clock| clock.filled * 100 / clock.segments);
    match pressing {
        Some(clock) => sentences.push(format!("The {} stands at {} of {}", clock.id, clock.filled, clock.segments)),
        None => {
            let count = exits(state, world).count();
            let ways = ["no ways lead", "one way leads", "two ways lead", "three ways lead"]
                .get(count)
                .copied()
                .unwrap_or("many ways lead");
            sentences.push(capital(&format!("{ways} on")));
        }
    }
    sentences.truncate(4);
    // A name such as "St. Bride" must not read as two sentences.
    sentences
        .iter()
        .map(|text| text.replace(['.', '!', '?'], ""))
        .map(|text| format!("{text}."))
        .collect::<Vec<_>>()
        .join(" ")
}

fn joined(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
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
            "no throw: it cannot succeed as it stands\n"
        } else {
            "no check was needed\n"
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
        let lead = if out.found.is_empty() { "no key clue, no new progress" } else { "no new progress" };
        block("Nothing gained", &[format!("{lead}: {why}")]);
    }
    let mut after: Vec<String> = out.consequences.clone();
    after.extend(out.indicators.iter().chain(&out.clocks).cloned());
    after.extend(out.cost.iter().map(|cost| format!("cost: {cost}")));
    block("Consequences", &after);
    block("A costly alternative", out.alternative.as_slice());
    block("Correction", page.corrections);
    if let Some(summary) = &out.text {
        text.push_str(&format!("\nSummary: {summary}\n"));
    }
    if let Some(voice) = &out.inner {
        text.push_str(&format!("\nInner voice: {voice}\n"));
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
