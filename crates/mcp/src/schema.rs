//! The schema of a tool, of any draft, made usable in a document of ours: bounded, with its references inside itself, and
//! with descriptions of one harmless line.

use serde_json::{Map, Value};

use crate::text::one_line;
use acheron_base::{delimited, quoted};

/// The largest schema, in bytes of JSON.
pub const LARGEST: usize = 64 << 10;
/// The deepest nesting.
const DEEPEST: usize = 48;
/// The longest description of an argument, in characters.
const DESCRIPTION: usize = 300;

/// The schema as it can be used, or why it cannot.
pub fn usable(schema: &Value) -> Result<Value, String> {
    let Value::Object(given) = schema else {
        return match schema {
            Value::Bool(_) => Ok(schema.clone()),
            _ => Err("it is not an object".to_owned()),
        };
    };
    if !within_depth(schema, DEEPEST) {
        return Err(format!("it is nested more than {DEEPEST} deep"));
    }
    let bytes = schema.to_string().len();
    if bytes > LARGEST {
        return Err(format!("it has {bytes} bytes, and the most is {LARGEST}"));
    }
    let mut root = given.clone();
    ["$schema", "$id", "id", "$comment"].iter().for_each(|key| drop(root.remove(*key)));
    // Draft 7 calls them so.
    let mut defs = Map::new();
    for key in ["definitions", "$defs"] {
        if let Some(Value::Object(named)) = root.remove(key) {
            defs.extend(named);
        }
    }
    let own = own_name(&defs);
    let (mut root, mut defs) = (Value::Object(root), Value::Object(defs));
    let mut found = References { own: &own, itself: false, strange: None };
    found.rename(&mut root);
    found.rename(&mut defs);
    if let Some(target) = found.strange {
        return Err(format!("it refers to {}, which is not part of it", quoted(&target)));
    }
    let itself = found.itself;
    clean(&mut root, false)?;
    clean(&mut defs, true)?;
    let Value::Object(mut defs) = defs else { return Err("it is not an object".to_owned()) };
    let mut whole = match itself {
        true => {
            defs.insert(own.clone(), root);
            Map::from_iter([("$ref".to_owned(), Value::String(format!("#/$defs/{own}")))])
        }
        false => match root {
            Value::Object(root) => root,
            _ => Map::new(),
        },
    };
    if !defs.is_empty() {
        whole.insert("$defs".to_owned(), Value::Object(defs));
    }
    let whole = Value::Object(whole);
    match dangling(&whole, &whole) {
        Some(target) => Err(format!("it refers to {}, which is not part of it", quoted(target))),
        None => Ok(whole),
    }
}

fn within_depth(value: &Value, left: usize) -> bool {
    match value {
        _ if left == 0 => false,
        Value::Object(object) => object.values().all(|inner| within_depth(inner, left - 1)),
        Value::Array(items) => items.iter().all(|inner| within_depth(inner, left - 1)),
        _ => true,
    }
}

/// A name for the schema itself among its definitions.
fn own_name(defs: &Map<String, Value>) -> String {
    let mut name = "self".to_owned();
    while defs.contains_key(&name) {
        name.push('_');
    }
    name
}

/// Rewrites references so that all lead below `$defs`.
struct References<'a> {
    own: &'a str,
    /// One leads to the schema itself, or into it.
    itself: bool,
    strange: Option<String>,
}

impl References<'_> {
    fn rename(&mut self, schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                if let Some(Value::String(target)) = object.get_mut("$ref") {
                    self.target(target);
                }
                object.values_mut().for_each(|inner| self.rename(inner));
            }
            Value::Array(items) => items.iter_mut().for_each(|inner| self.rename(inner)),
            _ => {}
        }
    }

    fn target(&mut self, target: &mut String) {
        if let Some(rest) = target.strip_prefix("#/definitions/") {
            *target = format!("#/$defs/{rest}");
        } else if target.starts_with("#/$defs/") {
            // as it must be
        } else if target == "#" || target.starts_with("#/") {
            *target = format!("#/$defs/{}{}", self.own, &target[1..]);
            self.itself = true;
        } else {
            self.strange = Some(target.clone());
        }
    }
}

/// Shortens descriptions, and refuses keys that would break a line. `names` says that the keys here are names.
fn clean(schema: &mut Value, names: bool) -> Result<(), String> {
    match schema {
        Value::Object(object) => {
            object.remove("$comment");
            for (key, inner) in object.iter_mut() {
                if key.len() > 256 || key.chars().any(char::is_control) {
                    return Err(format!("it has the key {}", quoted(key)));
                }
                match (key.as_str(), &mut *inner) {
                    ("description" | "title", Value::String(text)) if !names => {
                        *text = delimited::harmless(&one_line(text, DESCRIPTION));
                    }
                    ("properties" | "patternProperties" | "$defs" | "definitions", _) if !names => clean(inner, true)?,
                    _ => clean(inner, false)?,
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|inner| clean(inner, false)),
        _ => Ok(()),
    }
}

fn dangling<'a>(schema: &'a Value, root: &Value) -> Option<&'a str> {
    match schema {
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str);
            let lost = target.filter(|target| root.pointer(&target[1..]).is_none());
            lost.or_else(|| object.values().find_map(|inner| dangling(inner, root)))
        }
        Value::Array(items) => items.iter().find_map(|inner| dangling(inner, root)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
