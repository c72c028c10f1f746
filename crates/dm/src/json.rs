//! The JSON files of a campaign (panels): merge patches (RFC 7396), the patch between two values, one rendering. Used
//! throughout this crate.

use serde_json::{Map, Value};

use acheron_base::{Error, Result};

/// Applies a merge patch.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            object.shift_remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The smallest merge patch that leads from `old` to `new`; `None` when they are the same.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) => {
                if let Some(inner) = difference(before, value) {
                    patch.insert(key.clone(), inner);
                }
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Some(Value::Object(patch))
}

/// How every panel stands on disk: two spaces, one final newline.
pub fn render(value: &Value) -> String {
    format!("{value:#}\n")
}

pub fn read(path: &str, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|fault| Error::invalid(format!("{path} is not JSON: {fault}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn row_97_a_merge_patch_changes_only_its_key() {
        let mut pack = json!({"spine": ["a"], "context": {"guide_shown": 0, "t": "day 1"}});
        merge(&mut pack, &json!({"context": {"guide_shown": 1}}));
        assert_eq!(pack, json!({"spine": ["a"], "context": {"guide_shown": 1, "t": "day 1"}}));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i32>().prop_map(|n| json!(n)), "[a-c]{0,2}".prop_map(|s| json!(s))];
        leaf.prop_recursive(3, 20, 3, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
                proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_difference_leads_from_the_old_to_the_new(old in value(), new in value()) {
            let mut target = old.clone();
            if let Some(patch) = difference(&old, &new) {
                merge(&mut target, &patch);
            }
            prop_assert_eq!(target, new);
        }
    }
}
