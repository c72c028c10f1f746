//! Checks a value against a schema and reports the faults as sentences: where the value is wrong, and which name was
//! probably meant.
//!
//! It covers the keywords that schemars writes and those that authors of services commonly use; unknown keywords are
//! ignored. All faults are reported, not only the first. The work is bounded for any schema and value.
//!
//! Every call passes here, and nothing else checks it. `jsonschema` is not used on that path: its faults name no nearest
//! key, and a validator has to be compiled for each schema. It checks what is checked once: a schema in a mountspec, and
//! the reply of a model. A test holds both against each other.

mod forms;
mod limits;

use serde_json::{Map, Value};

use acheron_base::nearest::{hint, nearest};
use acheron_base::quoted;

/// The number of schemas that a check may visit; recursive alternatives could otherwise take forever.
const MAX_VISITS: usize = 200_000;
const MAX_DEPTH: usize = 200;
/// The number of faults reported; each unknown key is compared with all known keys.
const MAX_FAULTS: usize = 100;

/// The number of schemas that are searched for the keys of an object.
const MAX_KEYS: usize = 1000;

/// A fault and its location: `agents.charon.limits.rounds`, `paths[2]`; an empty path is the value itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueFault {
    pub path: String,
    pub message: String,
}

impl std::fmt::Display for ValueFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// All faults of `value` under `schema`; `$ref`s are resolved in `root`.
pub fn faults(schema: &Value, root: &Value, value: &Value) -> Vec<ValueFault> {
    let mut check = SchemaCheck { root, left: MAX_VISITS };
    let mut faults = Vec::new();
    check.value(schema, value, "", 0, &mut faults);
    if check.left == 0 {
        faults.push(ValueFault { path: String::new(), message: "too complex to check".to_owned() });
    }
    faults
}

/// The first three faults as one sentence.
pub fn sentence(faults: &[ValueFault]) -> Option<String> {
    let first: Vec<_> = faults.iter().take(3).map(ValueFault::to_string).collect();
    let more = match faults.len() {
        0 => return None,
        count @ 4.. => format!("; and {} more", count - 3),
        _ => String::new(),
    };
    Some(first.join("; ") + &more)
}

struct SchemaCheck<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> SchemaCheck<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, path: &str, depth: usize, faults: &mut Vec<ValueFault>) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || faults.len() >= MAX_FAULTS {
            return;
        }
        if depth > MAX_DEPTH {
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
        faults: &mut Vec<ValueFault>,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let closed = schema.get("unevaluatedProperties") == Some(&Value::Bool(false));
        let mut meant = Vec::new();
        for (key, value) in object {
            if faults.len() >= MAX_FAULTS {
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
                None => closed && !self.keys(schema, 0, &mut { MAX_KEYS }).contains(&key.as_str()),
            };
            if refused {
                let known = self.keys(schema, 0, &mut { MAX_KEYS });
                let known: Vec<&str> = known.into_iter().filter(|known| *known != "_meta").collect();
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

    /// The keys that an object of this schema may have, including those of its alternatives and references.
    fn keys(&self, schema: &'a Map<String, Value>, depth: usize, left: &mut usize) -> Vec<&'a str> {
        let mut keys: Vec<&str> = Vec::new();
        *left = left.saturating_sub(1);
        if depth > 8 || *left == 0 {
            return keys;
        }
        keys.extend(
            schema.get("properties").and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key.as_str()),
        );
        let forms = ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
        let target = schema.get("$ref").and_then(|target| self.root.pointer(target.as_str()?.trim_start_matches('#')));
        for schema in forms.chain(target).filter_map(Value::as_object) {
            keys.extend(self.keys(schema, depth + 1, left));
        }
        keys
    }
}

fn fault(faults: &mut Vec<ValueFault>, path: &str, message: impl Into<String>) {
    faults.push(ValueFault { path: path.to_owned(), message: message.into() });
}

/// The path of a key; a key that is not a plain word is quoted.
pub fn join(path: &str, key: &str) -> String {
    let ordinary = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match (ordinary, path) {
        (false, _) => format!("{path}[{:?}]", key.chars().take(60).collect::<String>()),
        (true, "") => key.to_owned(),
        (true, _) => format!("{path}.{key}"),
    }
}
