//! The hot pack: the facts for the next turn. The JSON is authoritative; the comment block is rendered from it.

use serde_json::{Map, Value, json};

use crate::md::clip;
use crate::state::State;
use crate::world::{Cartridge, ObjectKind};
use acheron_base::{Error, Result};

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
    let timers: Vec<String> = state
        .clocks
        .iter()
        .filter(|clock| clock.visible)
        .map(|clock| format!("{} {}/{}", clock.id, clock.filled, clock.segments))
        .collect();
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

/// The opener of the comment view.
pub const OPENER: &str = "<!-- CONTEXT_PACK_NEXT";
/// Further lists and texts of the view: of the context first, then of the pack.
const CONTEXT_TEXTS: [&str; 3] = ["voice", "tone", "last_turn"];
const PACK_LISTS: [&str; 2] = ["spine", "key_npcs"];
const PACK_TEXTS: [&str; 2] = ["theme", "mainline"];
const NUMBERS: [&str; 2] = ["hp", "guide_shown"];

/// A value on one line. `|` separates entries, so it does not stand in one; nor does anything that would end the line or
/// the comment.
fn escaped(text: &str) -> String {
    let one_line = text.replace('\\', "\\\\").replace('|', "\\p").replace('\n', "\\n").replace('\r', "\\r");
    one_line.replace("-->", "--\\>")
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('p')) => out.push('|'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('e')) => (),
            ('\\', Some(other)) => out.push(other),
            _ => out.push(c),
        }
    }
    out
}

/// A list on one line; `-` is the empty one, so an entry that is `-` or nothing is marked.
fn joined(entries: &[String]) -> String {
    let entry = |text: &String| match text.as_str() {
        "" => "\\e".to_owned(),
        "-" => "\\-".to_owned(),
        text => escaped(text),
    };
    if entries.is_empty() { "-".into() } else { entries.iter().map(entry).collect::<Vec<_>>().join("|") }
}

fn split(line: &str) -> Value {
    if line == "-" { json!([]) } else { line.split('|').map(unescaped).collect() }
}

/// The list, if all of it is text.
fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|entry| entry.as_str().map(str::to_owned)).collect()
}

/// The indicators on one line, `Heat=1 Rumor=2`; as JSON where that could not be read back.
fn levels(indicators: &Value) -> String {
    let word = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') && !is_key(name);
    let plain = |(name, value): (&String, &Value)| word(name).then(|| Some(format!("{name}={}", value.as_i64()?)))?;
    let parts: Option<Vec<String>> = indicators.as_object().and_then(|all| all.iter().map(plain).collect());
    match parts.filter(|parts| !parts.is_empty()) {
        Some(parts) => parts.join(" "),
        None => format!("indicators={indicators}"),
    }
}

fn is_key(name: &str) -> bool {
    let lists = CAPS.iter().map(|(key, _)| *key).chain(PACK_LISTS);
    let texts = CONTEXT_TEXTS.into_iter().chain(PACK_TEXTS).chain(NUMBERS);
    lists.chain(texts).chain(["t", "loc", "pc", "indicators", "more", "more_context"]).any(|key| key == name)
}

/// The comment view: fixed keys, at most 25 lines, no free text. [`parse`] reads it back.
pub fn comment(pack: &Value) -> String {
    let (mut rest, mut context) = (pack.as_object().cloned().unwrap_or_default(), Map::new());
    if let Some(Value::Object(own)) = rest.shift_remove("context") {
        context = own;
    }
    let mut lines = vec![OPENER.to_owned()];
    let mut text = |from: &mut Map<String, Value>, key: &str| match from.get(key).and_then(Value::as_str) {
        Some(own) => {
            lines.push(format!("{key}={}", escaped(own)));
            from.shift_remove(key);
        }
        None => (),
    };
    ["t", "loc", "pc"].iter().for_each(|key| text(&mut context, key));
    let mut others: Vec<String> = Vec::new();
    if let Some(indicators) = context.shift_remove("indicators") {
        others.push(levels(&indicators));
    }
    let number = |from: &mut Map<String, Value>, key: &str, lines: &mut Vec<String>| {
        if let Some(own) = from.get(key).and_then(Value::as_i64) {
            lines.push(format!("{key}={own}"));
            from.shift_remove(key);
        }
    };
    number(&mut context, "hp", &mut others);
    let list = |from: &mut Map<String, Value>, key: &str, cap: Option<usize>, lines: &mut Vec<String>| {
        if let Some(entries) = from.get(key).and_then(texts) {
            lines.push(format!("{key}={}", joined(&cap.map_or(entries.clone(), |cap| fit(&entries, cap, WIDE)))));
            from.shift_remove(key);
        }
    };
    CAPS.iter().for_each(|(key, cap)| list(&mut context, key, Some(*cap), &mut others));
    PACK_LISTS.iter().for_each(|key| list(&mut rest, key, None, &mut others));
    number(&mut context, "guide_shown", &mut others);
    lines.extend(others);
    for (from, keys) in [(&mut context, CONTEXT_TEXTS.as_slice()), (&mut rest, PACK_TEXTS.as_slice())] {
        for key in keys {
            if let Some(own) = from.get(*key).and_then(Value::as_str) {
                lines.push(format!("{key}={}", escaped(own)));
                from.shift_remove(*key);
            }
        }
    }
    for (key, own) in [("more_context", context), ("more", rest)] {
        if !own.is_empty() {
            lines.push(format!("{key}={}", escaped(&Value::Object(own).to_string())));
        }
    }
    lines.push("-->".to_owned());
    lines.join("\n") + "\n"
}

/// The pack of a comment view.
pub fn parse(view: &str) -> Result<Value> {
    let mut lines = view.trim_start().split('\n').zip(1..);
    if lines.next().map(|(line, _)| line.trim_end()) != Some(OPENER) {
        return Err(Error::invalid(format!("a context pack begins with {OPENER} on a line of its own")));
    }
    let (mut pack, mut context) = (Map::new(), Map::new());
    for (line, at) in lines {
        if line.trim_end() == "-->" {
            pack.insert("context".into(), Value::Object(context));
            return Ok(Value::Object(pack));
        }
        if line.is_empty() {
            continue;
        }
        let wrong = |why: &str| Error::invalid(format!("line {at} of the context pack {why}"));
        let (key, value) = line.split_once('=').ok_or_else(|| wrong("is not key=value"))?;
        let number = |text: &str| text.parse::<i64>().map_err(|_| wrong("needs a number"));
        let object = |text: &str| match serde_json::from_str(&unescaped(text)) {
            Ok(Value::Object(own)) => Ok(own),
            _ => Err(wrong("needs a JSON object")),
        };
        match key {
            "more" => pack.extend(object(value)?),
            "more_context" => context.extend(object(value)?),
            "indicators" => {
                context.insert(key.into(), Value::Object(object(value)?));
            }
            key if NUMBERS.contains(&key) => {
                context.insert(key.into(), json!(number(value)?));
            }
            key if PACK_LISTS.contains(&key) => {
                pack.insert(key.into(), split(value));
            }
            key if PACK_TEXTS.contains(&key) => {
                pack.insert(key.into(), json!(unescaped(value)));
            }
            key if CAPS.iter().any(|(own, _)| *own == key) => {
                context.insert(key.into(), split(value));
            }
            key if is_key(key) => {
                context.insert(key.into(), json!(unescaped(value)));
            }
            _ => {
                let mut levels = Map::new();
                for part in line.split(' ') {
                    let (name, level) = part.split_once('=').ok_or_else(|| wrong("is not key=value"))?;
                    levels.insert(name.to_owned(), json!(number(level)?));
                }
                context.insert("indicators".into(), Value::Object(levels));
            }
        }
    }
    Err(Error::invalid("the context pack is not closed by a line that is -->"))
}

/// The spine: 4 to 6 lines of guidance.
pub fn spine(pack: &Value) -> Vec<String> {
    let lines = pack["spine"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lines.take(6).map(|line| clip(line, WIDE)).collect()
}

#[cfg(test)]
mod tests;
