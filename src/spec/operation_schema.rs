//! Checks the JSON Schemas that a mountspec gives for the arguments and results of a program's operations.
//!
//! A misspelt type would let any payload pass. Used by `sense`; the rules are the meta-schema's, from `jsonschema`.

use serde_json::Value;

use crate::contract::check::{ValueFault, join};
use acheron_base::nearest::hint;
use acheron_base::quoted;

const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// The first fault of a schema at `path`.
pub(super) fn fault(path: &str, schema: &Value) -> Option<ValueFault> {
    if !schema.is_object() && !schema.is_boolean() {
        let message = "is not a JSON Schema: it must be an object".to_owned();
        return Some(ValueFault { path: path.to_owned(), message });
    }
    let error = jsonschema::meta::validate(schema).err()?;
    let pointer = error.instance_path().to_string();
    let (at, value) = place(path, schema, &pointer);
    // Only the last key counts: a property may be called `type` too.
    let types = pointer.rsplit('/').find(|word| word.parse::<usize>().is_err()) == Some("type");
    match value {
        Value::String(word) if types => {
            let message = format!("{} is not known{}", quoted(word), hint(word, TYPES, "types"));
            Some(ValueFault { path: at, message })
        }
        Value::Array(words) if types => {
            let wrong = |word: &Value| !word.as_str().is_some_and(|word| TYPES.contains(&word));
            let (index, word) = words.iter().enumerate().find(|(_, word)| wrong(word))?;
            let word = word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            let message = format!("{} is not known{}", quoted(&word), hint(&word, TYPES, "types"));
            Some(ValueFault { path: format!("{at}[{index}]"), message })
        }
        _ => {
            let message = format!("is not valid in a JSON Schema: {error}");
            Some(ValueFault { path: at, message })
        }
    }
}

/// The path and the value that a JSON pointer into `schema` leads to.
fn place<'a>(path: &str, schema: &'a Value, pointer: &str) -> (String, &'a Value) {
    let (mut at, mut value) = (path.to_owned(), schema);
    for word in pointer.split('/').skip(1).map(|word| word.replace("~1", "/").replace("~0", "~")) {
        let inner = match value {
            Value::Array(items) => word.parse().ok().and_then(|index: usize| items.get(index)),
            value => value.get(&word),
        };
        let Some(inner) = inner else { break };
        at = if value.is_array() { format!("{at}[{word}]") } else { join(&at, &word) };
        value = inner;
    }
    (at, value)
}
