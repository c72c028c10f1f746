//! Section 5: `acheron-mountspec(5)`, made from the schema of a mountspec. Used by `acheron man`.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::manual::{plain, tagged};
use crate::spec;

/// Renders the page from the schema, as `mountspec/SCHEMA.json` publishes it.
pub fn page(schema: &Value, version: &str) -> String {
    let mut out = format!(".TH ACHERON\\-MOUNTSPEC 5 \"\" \"acheron {}\" \"File formats\"\n", plain(version));
    out.push_str(".SH NAME\nacheron\\-mountspec \\- what an acheron host mounts\n");
    let idea = "A mountspec is a JSON object. acheron mount reads ./mountspec/default.json, or the file that --spec \
                names; acheron check lists its faults. Unknown keys are faults. Edits of a mounted mountspec take \
                effect at once, apart from the parts that the edit reports as at_next_mount (dm is one of them): these \
                wait for the next mount. A faulty edit changes nothing.";
    _ = write!(out, ".SH DESCRIPTION\n{}\n.SH KEYS\n", plain(idea));
    tagged(&mut out, keys(schema).into_iter());
    let parts = schema["$defs"].as_object().into_iter().flatten();
    out.push_str(".SH TYPES\n");
    for (name, part) in parts {
        _ = write!(out, ".SS {}\n{}\n", plain(name), plain(about(part)));
        tagged(&mut out, keys(part).into_iter());
        tagged(&mut out, choices(part).into_iter());
    }
    _ = write!(out, ".SH EXAMPLES\n.nf\n{}\n.fi\n", plain(spec::DEFAULT.trim_end()));
    out.push_str(".SH \"SEE ALSO\"\n.BR acheron (1),\n.BR acheron (4)\n");
    out
}

/// The keys of an object with their types, descriptions and defaults.
fn keys(schema: &Value) -> Vec<(String, String)> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let described = properties.filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| {
        let mut said = format!("{}.", type_of(value));
        if required.contains(&key.as_str()) {
            said.push_str(" Required.");
        }
        if !about(value).is_empty() {
            said = format!("{said} {}", about(value));
        }
        match &value["default"] {
            Value::Null => (),
            default if default.as_object().is_some_and(|it| it.is_empty()) => (),
            default => _ = write!(said, " Default: {default}."),
        }
        (key.clone(), said)
    });
    described.collect()
}

/// The words that a type allows.
fn choices(schema: &Value) -> Vec<(String, String)> {
    let listed = schema["oneOf"].as_array().into_iter().flatten();
    let words = listed.flat_map(|choice| {
        let plain = choice["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let named = choice["const"].as_str().into_iter().chain(plain);
        named.map(|word| (word.to_owned(), about(choice).to_owned())).collect::<Vec<_>>()
    });
    words.collect()
}

fn about(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// The type of a value in a few words: `string`, `list of Rule`, `object of Bind`.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().map(type_of).filter(|it| it != "null").collect::<Vec<_>>().join(" or ");
    }
    let word = |word: &str| match word {
        "array" if schema["items"].is_object() => format!("list of {}", type_of(&schema["items"])),
        "array" => "list".to_owned(),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", type_of(&schema["additionalProperties"]))
        }
        word => word.to_owned(),
    };
    match &schema["type"] {
        Value::String(one) => word(one),
        Value::Array(any) => {
            let words = any.iter().filter_map(Value::as_str).filter(|it| *it != "null").map(word);
            words.collect::<Vec<_>>().join(" or ")
        }
        _ => "any value".to_owned(),
    }
}
