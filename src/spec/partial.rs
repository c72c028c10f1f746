//! Reads the sound parts of a mountspec with faults, so that `check` reports the faults of those parts as well.
//!
//! Used by `Spec::check` alone. What it returns is never mounted.

use serde_json::{Map, Value};

use super::{Spec, ValueFault};
use crate::contract::check::join;

/// Maps from a name to an entry; an entry that cannot be read still has its name.
const ENTRIES: [&[&str]; 4] =
    [&["agents", "*"], &["projects", "*"], &["services", "*"], &["services", "*", "operations", "*"]];

/// The parts of a mountspec that can be read.
pub(super) struct PartialSpec {
    pub spec: Spec,
    /// The paths of what was left out.
    left_out: Vec<String>,
}

impl PartialSpec {
    /// Reads `value` without the parts that have one of these `faults`; none if even that cannot be read.
    pub fn read(mut value: Value, faults: &[ValueFault]) -> Option<PartialSpec> {
        let mut left_out = Vec::new();
        // An unknown key does not keep the others from being read.
        for fault in faults.iter().filter(|fault| !fault.message.starts_with("unknown key ")) {
            if let Some(path) = remove(&mut value, &mut Vec::new(), "", &fault.path) {
                left_out.push(path);
            }
        }
        Some(PartialSpec { spec: serde_json::from_value(value).ok()?, left_out })
    }

    /// Whether a fault of the parts that were read is one, and not a consequence of what was left out.
    pub fn counts(&self, fault: &ValueFault) -> bool {
        !self.left_out.iter().any(|path| {
            let below = fault
                .path
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['));
            let of_symbols = path.starts_with("symbols.") && fault.path.starts_with("symbols.");
            let of_prices = path.contains("prices") && fault.path.ends_with(".money");
            below || of_symbols || of_prices
        })
    }
}

/// Removes the part of `value` (which is at the path `here`) that `path` names; returns the path of what was removed. An
/// array is removed as a whole: the places of its other items would change.
fn remove(value: &mut Value, keys: &mut Vec<String>, here: &str, path: &str) -> Option<String> {
    let object = value.as_object_mut()?;
    let leads = |key: &String| {
        let at = join(here, key);
        path.strip_prefix(at.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('['))
    };
    // The longest, if a key looks like the path of another.
    let key = object.keys().filter(|key| leads(key)).max_by_key(|key| key.len())?.clone();
    let at = join(here, &key);
    keys.push(key.clone());
    let inner = object.get_mut(&key)?;
    if inner.is_object() && at != path {
        return remove(inner, keys, &at, path);
    }
    let entry = ENTRIES.iter().any(|pattern| {
        pattern.len() == keys.len() && pattern.iter().zip(keys.iter()).all(|(word, key)| *word == "*" || word == key)
    });
    if entry {
        *inner = Value::Object(Map::new());
    } else {
        object.shift_remove(&key);
    }
    Some(at)
}
