//! The hot pack: the facts for the next turn. The JSON is authoritative; the comment block is rendered from it.

mod view;

use serde_json::{Value, json};

use crate::md::clip;
use crate::state::State;
use crate::world::{Cartridge, ObjectKind};

pub use view::{OPENER, comment, parse};

/// The lists of the context with their caps.
const CAPS: [(&str, usize); 6] =
    [("flags", 6), ("quests", 4), ("npcs", 4), ("inventory", 5), ("timers", 3), ("hooks", 5)];

/// The widest a line of the pack may be, in characters.
const WIDE: usize = 160;

/// Keeps a list within its cap and width: descriptions go first, then the last entries, then like ones are merged.
pub fn fit(entries: &[String], cap: usize, wide: usize) -> Vec<String> {
    let mut kept: Vec<String> = entries.to_vec();
    let length = |kept: &[String]| kept.iter().map(|entry| entry.chars().count() + 1).sum::<usize>();
    for at in (0..kept.len()).rev() {
        if length(&kept) <= wide && kept.len() <= cap {
            break;
        }
        if let Some((name, _)) = kept[at].split_once(": ") {
            kept[at] = name.to_owned();
        }
    }
    while kept.len() > cap || (length(&kept) > wide && kept.len() > 1) {
        kept.pop();
    }
    let mut merged: Vec<String> = Vec::new();
    for entry in kept {
        if !merged.contains(&entry) {
            merged.push(clip(&entry, wide));
        }
    }
    merged
}

/// The facts of the hot pack that are not in the state.
#[derive(Clone, Debug, Default)]
pub struct PackContext {
    pub pc: String,
    pub style: String,
    pub hooks: Vec<String>,
    pub last: String,
}

/// The context of the pack after a turn.
pub fn context(state: &State, world: &Cartridge, around: &PackContext, before: &Value) -> Value {
    let described = |handle: &String| match world.object(handle) {
        Some(object) => format!("{handle}: {}", clip(&object.summary, 40)),
        None => handle.clone(),
    };
    let quests: Vec<String> = state
        .quests
        .iter()
        .filter(|(_, quest)| quest.status == "active")
        .map(|(handle, quest)| format!("{handle}: stage {}", quest.stage + 1))
        .collect();
    let here = world
        .of(ObjectKind::Npc)
        .filter(|npc| state.place_of(npc) == state.location && state.status(world, &npc.handle) == "active");
    let npcs: Vec<String> = here.map(|npc| format!("{}: {}", npc.handle, clip(npc.field("role"), 30))).collect();
    let timers: Vec<String> =
        state.shown_clocks(world).map(|clock| format!("{} {}/{}", clock.id, clock.filled, clock.segments)).collect();
    let mut flags = vec![format!("STYLE={}", if around.style.is_empty() { "-" } else { &around.style })];
    flags.extend(state.fired.iter().map(|mark| format!("fired {mark}")));
    let items: Vec<String> = state.inventory.iter().rev().map(described).collect();
    let lists: [(&str, Vec<String>); 6] = [
        ("flags", flags),
        ("quests", quests),
        ("npcs", npcs),
        ("inventory", items),
        ("timers", timers),
        ("hooks", around.hooks.clone()),
    ];
    let mut out = before.as_object().cloned().unwrap_or_default();
    out.insert("t".into(), json!(state.time.to_string()));
    out.insert("loc".into(), json!(state.location));
    out.insert("pc".into(), json!(clip(&around.pc, 40)));
    out.insert("indicators".into(), json!(state.indicators));
    out.insert("hp".into(), json!(state.hp));
    for ((key, entries), (_, cap)) in lists.into_iter().zip(CAPS) {
        out.insert(key.into(), json!(fit(&entries, cap, WIDE)));
    }
    out.insert("last_turn".into(), json!(clip(&around.last, 120)));
    out.entry("guide_shown").or_insert(json!(0));
    Value::Object(out)
}

/// The spine: 4 to 6 lines of guidance.
pub fn spine(pack: &Value) -> Vec<String> {
    let lines = pack["spine"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.take(6).map(|line| clip(line, WIDE)).collect()
}

#[cfg(test)]
mod tests;
