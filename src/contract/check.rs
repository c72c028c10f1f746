//! Checking a value against a schema, with sentences for people: where it is wrong, and what was likely meant.
//!
//! It covers what schemars writes and what a service's author is likely to; a keyword that it does not know forbids
//! nothing. Every fault is found, not only the first. Work is bounded, whatever the schema and the value.

mod forms;
mod limits;

use serde_json::{Map, Value};

use acheron_base::nearest::{hint, nearest};
use acheron_base::quoted;

/// How many schemas a check may visit; recursive alternatives could otherwise take for ever.
const PATIENCE: usize = 200_000;
const DEPTH: usize = 200;
/// Nobody reads more faults than these, and each unknown key is compared with all known ones.
const FAULTS: usize = 100;

/// One thing that is wrong, and where: `agents.charon.limits.rounds`, `paths[2]`; empty for the value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub path: String,
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// Everything that `schema` has against `value`; `$ref`s are looked up in `root`.
pub fn faults(schema: &Value, root: &Value, value: &Value) -> Vec<Fault> {
    let mut check = Check { root, left: PATIENCE };
    let mut faults = Vec::new();
    check.value(schema, value, "", 0, &mut faults);
    if check.left == 0 {
        faults.push(Fault { path: String::new(), message: "too intricate to be checked".to_owned() });
    }
    faults
}

/// The faults as one sentence, the first three of them.
pub fn sentence(faults: &[Fault]) -> Option<String> {
    let first: Vec<_> = faults.iter().take(3).map(Fault::to_string).collect();
    let more = match faults.len() {
        0 => return None,
        count @ 4.. => format!("; and {} more", count - 3),
        _ => String::new(),
    };
    Some(first.join("; ") + &more)
}

struct Check<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize, faults: &mut Vec<Fault>) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || faults.len() >= FAULTS {
            return;
        }
        if depth > DEPTH {
            return fault(faults, path, "is nested too deeply");
        }
        let Some(schema) = schema.as_object() else {
            if schema == &Value::Bool(false) {
                fault(faults, path, "is not allowed here");
            }
            return;
        };
        let before = faults.len();
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            match self.root.pointer(target.trim_start_matches('#')) {
                Some(target) => self.value(target, value, path, depth + 1, faults),
                None => fault(faults, path, format!("refers to {target}, which is not in the schema")),
            }
        }
        limits::kind(schema, value, path, faults);
        if faults.len() > before {
            return; // of the wrong type altogether: what follows would only repeat it
        }
        limits::bounds(schema, value, path, faults);
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.value(part, value, path, depth + 1, faults);
        }
        for (word, exactly_one) in [("oneOf", true), ("anyOf", false)] {
            if let Some(forms) = schema.get(word).and_then(Value::as_array) {
                self.forms(forms, exactly_one, value, path, depth, faults);
            }
        }
        match value {
            Value::Object(object) => self.object(schema, object, path, depth, faults),
            Value::Array(items) => {
                let leading = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for (at, item) in items.iter().enumerate() {
                    if let Some(schema) = leading.get(at).or(schema.get("items")) {
                        self.value(schema, item, &format!("{path}[{at}]"), depth + 1, faults);
                    }
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        path: &str,
        depth: usize,
        faults: &mut Vec<Fault>,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let closed = schema.get("unevaluatedProperties") == Some(&Value::Bool(false));
        let mut meant = Vec::new();
        for (key, value) in object {
            if faults.len() >= FAULTS {
                return;
            }
            let here = join(path, key);
            if let Some(names) = schema.get("propertyNames") {
                let key = Value::String(key.clone());
                self.value(names, &key, &here, depth + 1, faults);
            }
            if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
                self.value(schema, value, &here, depth + 1, faults);
                continue;
            }
            let mut matching = patterns.into_iter().flatten().filter(|(pattern, _)| limits::matches(pattern, key));
            if let Some((_, schema)) = matching.next() {
                self.value(schema, value, &here, depth + 1, faults);
                continue;
            }
            let refused = match schema.get("additionalProperties") {
                Some(Value::Bool(allowed)) => !allowed,
                Some(schema) => {
                    self.value(schema, value, &here, depth + 1, faults);
                    false
                }
                None => closed && !self.keys(schema, 0).contains(&key.as_str()),
            };
            if refused {
                let known: Vec<&str> = self.keys(schema, 0).into_iter().filter(|known| *known != "_meta").collect();
                meant.extend(nearest(key, known.iter().copied()).filter(|name| !object.contains_key(*name)));
                let hint = hint(key, known.into_iter().filter(|known| !object.contains_key(*known)), "other keys");
                fault(faults, path, format!("unknown key {}{hint}", quoted(key)));
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            // A key that is misspelt is not also missing.
            if !object.contains_key(name) && !meant.contains(&name) {
                fault(faults, path, format!("{name} is missing"));
            }
        }
    }

    /// The names that an object of this schema may have, those of its alternatives and references included.
    fn keys(&self, schema: &'a Map<String, Value>, depth: usize) -> Vec<&'a str> {
        let mut keys: Vec<&str> = Vec::new();
        if depth > 8 {
            return keys;
        }
        keys.extend(
            schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key.as_str()),
        );
        let forms = ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        let target = schema.get("$ref").and_then(|target| self.root.pointer(target.as_str()?.trim_start_matches('#')));
        for schema in forms.chain(target).filter_map(Value::as_object) {
            keys.extend(self.keys(schema, depth + 1));
        }
        keys
    }
}

fn fault(faults: &mut Vec<Fault>, path: &str, message: impl Into<String>) {
    faults.push(Fault { path: path.to_owned(), message: message.into() });
}

/// The path of a key; one that is no ordinary word is quoted.
pub fn join(path: &str, key: &str) -> String {
    let ordinary = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (ordinary, path) {
        (false, _) => format!("{path}[{:?}]", key.chars().take(60).collect::<String>()),
        (true, "") => key.to_owned(),
        (true, _) => format!("{path}.{key}"),
    }
}
