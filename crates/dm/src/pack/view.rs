//! The hot pack as a comment block that can be read back: one line per key. Only `pack` uses it.

use serde_json::{Map, Value, json};

use super::{CAPS, WIDE, fit};
use acheron_base::{Error, Result};

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

/// The lines of a view, made by taking keys out of a pack: what is left over is kept as JSON.
#[derive(Default)]
struct ViewLines(Vec<String>);

impl ViewLines {
    fn texts(&mut self, from: &mut Map<String, Value>, keys: &[&str]) {
        for key in keys {
            if let Some(text) = from.get(*key).and_then(Value::as_str) {
                self.0.push(format!("{key}={}", escaped(text)));
                from.shift_remove(*key);
            }
        }
    }

    fn number(&mut self, from: &mut Map<String, Value>, key: &str) {
        if let Some(number) = from.get(key).and_then(Value::as_i64) {
            self.0.push(format!("{key}={number}"));
            from.shift_remove(key);
        }
    }

    fn list(&mut self, from: &mut Map<String, Value>, key: &str, cap: Option<usize>) {
        if let Some(entries) = from.get(key).and_then(texts) {
            let kept = cap.map_or_else(|| entries.clone(), |cap| fit(&entries, cap, WIDE));
            self.0.push(format!("{key}={}", joined(&kept)));
            from.shift_remove(key);
        }
    }

    fn rest(&mut self, key: &str, from: Map<String, Value>) {
        if !from.is_empty() {
            self.0.push(format!("{key}={}", escaped(&Value::Object(from).to_string())));
        }
    }
}

/// The comment view: fixed keys, at most 25 lines, no free text. [`parse`] reads it back.
pub fn comment(pack: &Value) -> String {
    let mut rest = pack.as_object().cloned().unwrap_or_default();
    let mut context = match rest.shift_remove("context") {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let mut view = ViewLines(vec![OPENER.to_owned()]);
    view.texts(&mut context, &["t", "loc", "pc"]);
    if let Some(indicators) = context.shift_remove("indicators") {
        view.0.push(levels(&indicators));
    }
    view.number(&mut context, "hp");
    CAPS.iter().for_each(|(key, cap)| view.list(&mut context, key, Some(*cap)));
    PACK_LISTS.iter().for_each(|key| view.list(&mut rest, key, None));
    view.number(&mut context, "guide_shown");
    view.texts(&mut context, &CONTEXT_TEXTS);
    view.texts(&mut rest, &PACK_TEXTS);
    view.rest("more_context", context);
    view.rest("more", rest);
    view.0.push("-->".to_owned());
    view.0.join("\n") + "\n"
}

/// One line of a view, put where it belongs.
fn read_line(line: &str, at: usize, pack: &mut Map<String, Value>, context: &mut Map<String, Value>) -> Result<()> {
    let wrong = |why: &str| Error::invalid(format!("line {at} of the context pack {why}"));
    let (key, value) = line.split_once('=').ok_or_else(|| wrong("is not key=value"))?;
    let number = |text: &str| text.parse::<i64>().map_err(|_| wrong("needs a number"));
    let object = |text: &str| match serde_json::from_str(&unescaped(text)) {
        Ok(Value::Object(own)) => Ok(own),
        _ => Err(wrong("needs a JSON object")),
    };
    let put = |place: &mut Map<String, Value>, value: Value| drop(place.insert(key.to_owned(), value));
    match key {
        "more" => pack.extend(object(value)?),
        "more_context" => context.extend(object(value)?),
        "indicators" => put(context, Value::Object(object(value)?)),
        key if NUMBERS.contains(&key) => put(context, json!(number(value)?)),
        key if PACK_LISTS.contains(&key) => put(pack, split(value)),
        key if PACK_TEXTS.contains(&key) => put(pack, json!(unescaped(value))),
        key if CAPS.iter().any(|(own, _)| *own == key) => put(context, split(value)),
        key if is_key(key) => put(context, json!(unescaped(value))),
        _ => {
            let mut levels = Map::new();
            for part in line.split(' ') {
                let (name, level) = part.split_once('=').ok_or_else(|| wrong("is not key=value"))?;
                levels.insert(name.to_owned(), json!(number(level)?));
            }
            context.insert("indicators".into(), Value::Object(levels));
        }
    }
    Ok(())
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
        if !line.is_empty() {
            read_line(line, at, &mut pack, &mut context)?;
        }
    }
    Err(Error::invalid("the context pack is not closed by a line that is -->"))
}
