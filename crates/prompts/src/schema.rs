//! JSON Schema as prompts use it: made strict, compiled once, and its complaints put into sentences with a path such as
//! `a.b[0]`.

use jsonschema::error::ValidationErrorKind as Reason;
use jsonschema::{PatternOptions, Validator};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

/// Longer schemas are refused; they would cost more to compile than any prompt is worth.
const SCHEMA_BYTES: usize = 256 * 1024;
/// The most complaints that are reported.
const COMPLAINTS: usize = 16;

/// One thing that a value does wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Complaint {
    /// `a.b[0]`, empty for the value itself.
    pub path: String,
    /// The same place as a JSON pointer.
    pub pointer: String,
    pub message: String,
    /// The types that would be right, if the type is what is wrong.
    pub wanted: Vec<String>,
    /// The values that would be right, if there are only a few.
    pub options: Vec<Value>,
    /// The required field that is missing.
    pub missing: Option<String>,
    /// Keys that are not permitted.
    pub extra: Vec<String>,
}

impl Complaint {
    /// A complaint about the whole value.
    pub fn whole(message: &str) -> Complaint {
        Complaint { message: message.to_owned(), ..Complaint::default() }
    }
}

impl std::fmt::Display for Complaint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// The strict schema of a Rust type: descriptions from its doc comments, no unknown keys at any depth.
pub fn of<T: JsonSchema>() -> Value {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    schema.remove("$schema");
    strict(schema.to_value())
}

/// Forbids unknown keys in every object of a schema that does not speak of them itself.
pub fn strict(mut schema: Value) -> Value {
    close(&mut schema, true);
    schema
}

fn close(schema: &mut Value, alone: bool) {
    let Value::Object(object) = schema else { return };
    let composed = ["allOf", "anyOf", "oneOf"].iter().any(|key| object.contains_key(*key));
    let silent = !object.contains_key("additionalProperties") && !object.contains_key("unevaluatedProperties");
    if alone && silent && (object.contains_key("properties") || object.contains_key("required")) {
        // Beside alternatives only `unevaluatedProperties` sees the keys that these know.
        let keyword = if composed { "unevaluatedProperties" } else { "additionalProperties" };
        object.insert(keyword.to_owned(), Value::Bool(false));
    }
    let beside = object.contains_key("properties");
    for (keyword, inner) in object.iter_mut() {
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                inner.as_object_mut().into_iter().flat_map(Map::values_mut).for_each(|part| close(part, true));
            }
            "items" | "additionalProperties" | "not" | "contains" => close(inner, true),
            "prefixItems" => inner.as_array_mut().into_iter().flatten().for_each(|part| close(part, true)),
            "allOf" => inner.as_array_mut().into_iter().flatten().for_each(|part| close(part, false)),
            "anyOf" | "oneOf" => inner.as_array_mut().into_iter().flatten().for_each(|part| close(part, !beside)),
            _ => {}
        }
    }
}

/// Makes a schema ready for use, or says why it is none.
/// Whether a schema has only types and properties, each written as it must be: such a one can be compiled.
pub fn is_plain(schema: &Value) -> bool {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    let Value::Object(object) = schema else { return schema.is_boolean() };
    object.iter().all(|(keyword, inner)| match keyword.as_str() {
        "type" => {
            known(inner)
                || inner
                    .as_array()
                    .is_some_and(|kinds| !kinds.is_empty() && all_differ(kinds) && kinds.iter().all(known))
        }
        "properties" => inner.as_object().is_some_and(|properties| properties.values().all(is_plain)),
        "required" => inner.as_array().is_some_and(|names| names.iter().all(Value::is_string) && all_differ(names)),
        "items" | "additionalProperties" | "unevaluatedProperties" => is_plain(inner),
        "description" | "title" => inner.is_string(),
        "default" | "x-as" | "x-null" | "x-indent" => true,
        _ => false,
    })
}

fn all_differ(values: &[Value]) -> bool {
    values.iter().enumerate().all(|(at, value)| !values[..at].contains(value))
}

pub fn compile(schema: &Value) -> Result<Validator, String> {
    if schema.to_string().len() > SCHEMA_BYTES {
        return Err(format!("the schema is longer than {SCHEMA_BYTES} bytes"));
    }
    // The linear engine: a pattern out of a file must not be able to run for ever.
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
        .offline()
        .build(schema)
        .map_err(|error| format!("not a JSON Schema: {error}"))
}

pub fn complaints(validator: &Validator, value: &Value) -> Vec<Complaint> {
    validator.iter_errors(value).take(COMPLAINTS).map(|error| complaint(&error)).collect()
}

fn complaint(error: &jsonschema::ValidationError<'_>) -> Complaint {
    let pointer = error.instance_path().as_str().to_owned();
    let mut about = Complaint { path: path_of(&pointer), pointer, ..Complaint::default() };
    about.message = match error.kind() {
        Reason::Required { property } => {
            about.missing = property.as_str().map(str::to_owned);
            format!("missing required field: `{}`", property.as_str().unwrap_or_default())
        }
        Reason::AdditionalProperties { unexpected } | Reason::UnevaluatedProperties { unexpected } => {
            about.extra.clone_from(unexpected);
            format!("extra keys not permitted: {}", Value::from(unexpected.clone()))
        }
        Reason::Type { kind } => {
            about.wanted = types(kind);
            match error.instance().as_ref() {
                Value::Null => "value cannot be null".to_owned(),
                value => format!("expected {}, not {}", about.wanted.join(" or "), kind_of(value)),
            }
        }
        Reason::Enum { options } => {
            about.options = options.as_array().cloned().unwrap_or_default();
            shortened(&error.to_string())
        }
        Reason::Constant { expected_value } => {
            about.options = vec![expected_value.as_ref().clone()];
            shortened(&error.to_string())
        }
        Reason::AnyOf { context } | Reason::OneOfNotValid { context } => {
            // Of the alternatives, the one that came furthest says most.
            let best = context.iter().flatten().max_by_key(|inner| inner.instance_path().as_str().len());
            if let Some(inner) = best.filter(|inner| inner.instance_path().as_str().len() > about.pointer.len()) {
                return complaint(inner);
            }
            for inner in context.iter().flatten().map(complaint) {
                about.wanted.extend(inner.wanted);
                about.options.extend(inner.options);
            }
            "fits none of the forms that are allowed here".to_owned()
        }
        _ => shortened(&error.to_string()),
    };
    about
}

fn types(kind: &jsonschema::error::TypeKind) -> Vec<String> {
    match kind {
        jsonschema::error::TypeKind::Single(one) => vec![one.to_string()],
        jsonschema::error::TypeKind::Multiple(set) => {
            let mut all: Vec<String> = set.iter().map(|one| one.to_string()).collect();
            all.sort_by_key(|one| one == "null");
            all
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `/a/b/0` as `a.b[0]`.
pub fn path_of(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&part);
        }
    }
    path
}

/// The parts of a schema that a field's `$ref` leads to; one step, within the schema.
pub fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// The schema of an object about which nothing is known.
pub fn anything() -> Value {
    json!({"type": "object"})
}

#[cfg(test)]
mod tests;
