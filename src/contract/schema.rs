//! Schemas of Rust types, closed to unknown keys and combined into one document.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::Operation;

pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// One operation as described by a variant of the command type.
pub(super) struct Request {
    pub name: String,
    pub about: String,
    pub arguments: Value,
    pub bare: bool,
}

/// The variants of a command type, closed to unknown keys; their types go into `defs`.
pub(super) fn requests<C: JsonSchema>(defs: &mut Map<String, Value>) -> Vec<Request> {
    let mut schema = strict::<C>();
    if let Some(Value::Object(types)) = schema.get_mut("$defs").map(Value::take) {
        defs.extend(types);
    }
    let variants = match schema.get_mut("oneOf").map(Value::take) {
        Some(Value::Array(variants)) => variants,
        _ => vec![schema],
    };
    variants.into_iter().filter_map(request).collect()
}

/// The schema of a type that people write: closed to unknown keys at every depth, with its `$defs` inside.
pub fn strict<T: JsonSchema>() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    close(&mut schema, true);
    schema
}

fn request(mut variant: Value) -> Option<Request> {
    let about = variant["description"].as_str().unwrap_or_default().trim().to_owned();
    let properties = variant.get_mut("properties")?;
    let name = properties["op"]["const"].as_str()?.to_owned();
    let arguments = properties.get_mut("arguments").map(Value::take);
    let bare = arguments.is_none();
    let mut arguments = arguments.unwrap_or_else(|| json!({"type": "object"}));
    if arguments == json!({"type": "object"}) {
        arguments["additionalProperties"] = Value::Bool(false);
    }
    Some(Request { name, about, arguments, bare })
}

/// The schema of each operation's result: its own if it declares one, otherwise the output of the whole service.
pub(super) fn results<O: JsonSchema>(
    gives: impl Iterator<Item = Option<fn(&mut SchemaGenerator) -> Schema>>,
    defs: &mut Map<String, Value>,
) -> Vec<Value> {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut results: Vec<Value> = gives
        .map(|gives| gives.unwrap_or(|generator| generator.subschema_for::<O>())(&mut generator).to_value())
        .collect();
    let mut types = Value::Object(generator.take_definitions(true));
    // A type that is both read and written may differ between the two; then it has two names.
    let twofold: Vec<String> = types
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, schema)| defs.get(*name).is_some_and(|known| known != *schema))
        .map(|(name, _)| name.clone())
        .collect();
    for name in twofold {
        let (from, to) = (format!("#/$defs/{name}"), format!("#/$defs/{name}.read"));
        results
            .iter_mut()
            .chain([&mut types])
            .for_each(|schema| rename(schema, &|target| (target == from).then(|| to.clone())));
        if let Some(types) = types.as_object_mut()
            && let Some(schema) = types.remove(&name)
        {
            types.insert(format!("{name}.read"), schema);
        }
    }
    if let Value::Object(types) = types {
        defs.extend(types);
    }
    results
}

/// Moves the `$defs` of a foreign schema into ours, under a prefix.
pub(super) fn lift(mut schema: Value, prefix: &str, defs: &mut Map<String, Value>) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("$id");
    }
    let types = schema.as_object_mut().and_then(|object| object.remove("$defs"));
    let there = |target: &str| target.strip_prefix("#/$defs/").map(|name| format!("#/$defs/{prefix}.{name}"));
    rename(&mut schema, &there);
    if let Some(Value::Object(types)) = types {
        for (name, mut schema) in types {
            rename(&mut schema, &there);
            defs.insert(format!("{prefix}.{name}"), schema);
        }
    }
    schema
}

/// SCHEMA.json: the document describes `control/invoke.json`; `$defs` has `<op>.arguments` and `<op>.result`.
pub(super) fn document(name: &str, about: &str, operations: &[Operation], types: Map<String, Value>) -> Value {
    let mut defs = Map::new();
    for Operation { name, about, arguments, result, .. } in operations {
        defs.insert(format!("{name}.request"), envelope(name, about, needed(arguments, &types)));
        defs.insert(format!("{name}.arguments"), arguments.clone());
        defs.insert(format!("{name}.result"), result.clone());
    }
    let requests: Vec<Value> =
        operations.iter().map(|operation| json!({"$ref": format!("#/$defs/{}.request", operation.name)})).collect();
    defs.extend(types);
    let mut document = json!({"$schema": DIALECT, "title": name, "description": about.trim()});
    match requests.is_empty() {
        true => document["not"] = json!({}), // it has no operations
        false => document["oneOf"] = Value::Array(requests),
    }
    document["$defs"] = Value::Object(defs);
    document
}

fn envelope(name: &str, about: &str, needed: bool) -> Value {
    let required = if needed { json!(["op", "arguments"]) } else { json!(["op"]) };
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "op": {"const": name},
            "arguments": {"$ref": format!("#/$defs/{name}.arguments")},
            "correlation_id": {"type": "string", "description": "a name of your own for the job: jobs/by/<correlation_id>"},
            "reason": {"type": "string", "description": "why you call; shown to the operator if the call must be approved"},
        },
        "required": required,
        "additionalProperties": false,
    })
}

fn needed(arguments: &Value, types: &Map<String, Value>) -> bool {
    let named = arguments["$ref"].as_str().and_then(|target| types.get(target.strip_prefix("#/$defs/")?));
    let required = |schema: &Value| schema["required"].as_array().is_some_and(|keys| !keys.is_empty());
    required(arguments) || named.is_some_and(required)
}

/// Checks that every `$ref` resolves and every definition is a schema.
pub(super) fn validate(document: &Value) -> Result<(), String> {
    for (name, schema) in document["$defs"].as_object().into_iter().flatten() {
        if !schema.is_object() && !schema.is_boolean() {
            return Err(format!("{name} is not a JSON Schema"));
        }
    }
    let mut open = vec![document];
    while let Some(schema) = open.pop() {
        match schema {
            Value::Object(object) => {
                if let Some(Value::String(target)) = object.get("$ref")
                    && target.strip_prefix('#').and_then(|pointer| document.pointer(pointer)).is_none()
                {
                    return Err(format!("{target} does not resolve"));
                }
                open.extend(object.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a name is a lower-case word that can be a file name and an identifier in any language.
pub fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

/// Forbids unknown keys wherever an object lists its keys; maps, and types that say `true`, stay open.
fn close(schema: &mut Value, seal: bool) {
    let Some(object) = schema.as_object_mut() else { return };
    let composed = ["allOf", "oneOf", "anyOf", "$ref"].iter().any(|word| object.contains_key(*word));
    let described = object.contains_key("properties") || object.get("type") == Some(&json!("object"));
    let decided = object.contains_key("additionalProperties") || object.contains_key("unevaluatedProperties");
    if seal && object.contains_key("properties") && !decided {
        // Beside alternatives, each part lacks the keys of the other: only the whole can be closed.
        let word = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        object.insert(word.to_owned(), Value::Bool(false));
    }
    for (word, inner) in object.iter_mut() {
        match word.as_str() {
            "properties" | "$defs" | "patternProperties" => {
                inner.as_object_mut().into_iter().flatten().for_each(|(_, schema)| close(schema, true));
            }
            "oneOf" | "anyOf" | "allOf" => {
                let seal = seal && !(composed && described) && word != "allOf";
                inner.as_array_mut().into_iter().flatten().for_each(|schema| close(schema, seal));
            }
            "prefixItems" => inner.as_array_mut().into_iter().flatten().for_each(|schema| close(schema, true)),
            "items" | "additionalProperties" => close(inner, true),
            _ => {}
        }
    }
}

fn rename(schema: &mut Value, other: &dyn Fn(&str) -> Option<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(target)) = object.get_mut("$ref")
                && let Some(new) = other(target)
            {
                *target = new;
            }
            object.values_mut().for_each(|inner| rename(inner, other));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| rename(inner, other)),
        _ => {}
    }
}
