//! One form for each JSON value, so that equal values have equal hashes.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A value as text without spaces, the keys of every object in order.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            text.push('{');
            for (at, key) in keys.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                _ = write!(text, "{}:", Value::String(key.clone()));
                write(&object[key], text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write(value, text);
            }
            text.push(']');
        }
        other => _ = write!(text, "{other}"),
    }
}

/// The SHA-256 of a value in its one form, as hexadecimal digits.
pub fn sha256(value: &Value) -> String {
    let digest = Sha256::digest(canonical(value).as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_does_not_count_and_everything_else_does() {
        let one = json!({"b": [1, {"y": 1, "x": null}], "a": "\"\n"});
        let two = json!({"a": "\"\n", "b": [1, {"x": null, "y": 1}]});
        assert_eq!(canonical(&one), r#"{"a":"\"\n","b":[1,{"x":null,"y":1}]}"#);
        assert_eq!(sha256(&one), sha256(&two));
        for other in [json!({"a": "\"\n", "b": [{"x": null, "y": 1}, 1]}), json!({"a": "\"\n", "b": [1]}), json!(1)] {
            assert_ne!(sha256(&one), sha256(&other), "{other}");
        }
    }
}
