//! Checks a panel against its required keys (`panels.json`).

use serde_json::Value;

use crate::engine::{PANELS, SharedEngine};
use acheron_base::{Error, Result};

/// The schema of a panel, by its file's name.
fn schema(path: &str) -> Option<Value> {
    let name = path.rsplit('/').next()?.strip_suffix(".json")?;
    let all: Value = serde_json::from_str(SharedEngine::default().page(PANELS)?).ok()?;
    all["panels"].get(name).cloned()
}

/// Refuses a panel that lacks something or holds the wrong kind of thing. Further keys are lawful.
pub fn check(path: &str, panel: &Value) -> Result<()> {
    let Some(schema) = schema(path) else { return Ok(()) };
    let object = panel.as_object().ok_or_else(|| Error::invalid(format!("{path} must be an object")))?;
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(key) {
            return Err(Error::invalid(format!("{path} would lack `{key}`")));
        }
    }
    for (key, wanted) in schema["properties"].as_object().into_iter().flatten() {
        let Some(value) = object.get(key) else { continue };
        if !fits(value, wanted) {
            let kind = wanted["type"].as_str().unwrap_or("value");
            let of = wanted["items"]["type"].as_str().map(|of| format!(" of {of}s")).unwrap_or_default();
            return Err(Error::invalid(format!("{path}: `{key}` must be an {kind}{of}")));
        }
    }
    Ok(())
}

fn fits(value: &Value, wanted: &Value) -> bool {
    match wanted["type"].as_str() {
        Some("string") => value.is_string(),
        Some("object") => value.is_object(),
        Some("array") => value
            .as_array()
            .is_some_and(|list| wanted.get("items").is_none_or(|of| list.iter().all(|one| fits(one, of)))),
        _ => true,
    }
}
