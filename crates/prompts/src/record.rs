//! A record: the named type of a section's parameters, as JSON Schema; and how its values become text.
//!
//! A record comes from a file or from a Rust type. Both are the same thing afterwards.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use jsonschema::Validator;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use crate::schema::{self, Complaint};
use crate::template::{Dialect, INCLUDE_RECALL, Template, Values};

/// A value that became text longer than this is refused.
const VALUE_BYTES: usize = 1 << 20;

pub struct Record {
    pub name: String,
    pub schema: Value,
    fields: BTreeMap<String, FieldRule>,
    /// Compiled when it is first needed, if it is so plain that this cannot fail.
    validator: OnceLock<Result<Validator, String>>,
}

#[derive(Clone, Debug)]
struct FieldRule {
    required: bool,
    default: Option<Value>,
    shown: Rendering,
    /// An empty value is right for a null, because the schema says `"x-null": "omit"`.
    omits_null: bool,
    hangs: bool,
    /// The schema says that it is a list or an object.
    compound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rendering {
    Plain,
    Json,
    Bullets,
}

impl Record {
    pub fn new(name: &str, given: Value) -> Result<Record, String> {
        let whole = given.get("type").and_then(Value::as_str) == Some("object");
        if !whole {
            return Err(format!("params `{name}` must be a record: a JSON Schema of type object"));
        }
        let schema = schema::strict(given);
        let validator = OnceLock::new();
        if !schema::is_plain(&schema) {
            let compiled = schema::compile(&schema).map_err(|why| format!("params `{name}`: {why}"))?;
            _ = validator.set(Ok(compiled)); // it is new
        }
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = BTreeMap::new();
        for (field, its) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut read = FieldRule::read(schema::resolved(&schema, its), its)
                .map_err(|why| format!("params `{name}`, field `{field}`: {why}"))?;
            read.required = required.contains(&field.as_str()) && read.default.is_none();
            fields.insert(field.clone(), read);
        }
        Ok(Record { name: name.to_owned(), schema, fields, validator })
    }

    /// The record of a Rust type, under the name that the type has in its schema.
    pub fn of<T: JsonSchema>() -> Result<Record, String> {
        Record::new(&T::schema_name(), schema::of::<T>())
    }

    /// The record that a template of one file asks for: all that it names, each a text, a number or a truth value.
    pub fn asked_by(template: &Template, dialect: Dialect) -> Result<Record, String> {
        let mut properties = Map::new();
        for field in template.fields() {
            let kind = match (dialect, field.name.as_str()) {
                (Dialect::Recall, INCLUDE_RECALL) => json!("boolean"),
                _ => json!(["string", "number", "boolean"]),
            };
            properties.insert(field.name.clone(), json!({"type": kind}));
        }
        let required: Vec<&String> = properties.keys().collect();
        Record::new("Params", json!({"type": "object", "required": required, "properties": properties}))
    }

    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.keys().map(String::as_str)
    }

    /// Whether the field is a list or an object without a declared rendering; no template can name such a field.
    pub fn unshowable(&self, field: &str) -> bool {
        self.fields.get(field).is_some_and(|field| field.compound && field.shown == Rendering::Plain)
    }

    /// The record with nothing given: every field that has a default. `None` if a field is required and has none.
    pub fn empty(&self) -> Option<Value> {
        let bare = self.completed(&Map::new());
        self.fields.values().all(|field| !field.required).then_some(bare)
    }

    /// The given values, with defaults for the missing ones.
    pub fn completed(&self, given: &Map<String, Value>) -> Value {
        let mut all = given.clone();
        for (name, field) in &self.fields {
            if let (Some(default), false) = (&field.default, all.contains_key(name)) {
                all.insert(name.clone(), default.clone());
            }
        }
        Value::Object(all)
    }

    pub fn complaints(&self, value: &Value) -> Vec<Complaint> {
        match self.validator.get_or_init(|| schema::compile(&self.schema)) {
            Ok(validator) => schema::complaints(validator, value),
            Err(why) => vec![Complaint::whole(why)],
        }
    }

    /// The values of one instance, ready for a template.
    pub fn values<'a>(&'a self, instance: &'a Value) -> Instance<'a> {
        Instance { record: self, instance }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({} {})", self.name, self.schema)
    }
}

impl FieldRule {
    fn read(schema: &Value, own: &Value) -> Result<FieldRule, String> {
        let word = |keyword: &str| own.get(keyword).or_else(|| schema.get(keyword)).and_then(Value::as_str);
        let shown = match word("x-as") {
            None => Rendering::Plain,
            Some("json") => Rendering::Json,
            Some("bullets") => Rendering::Bullets,
            Some(other) => return Err(format!("x-as is json or bullets, not `{other}`")),
        };
        let flag = |keyword: &str, only: &str| match word(keyword) {
            None => Ok(false),
            Some(word) if word == only => Ok(true),
            Some(word) => Err(format!("{keyword} is {only}, not `{word}`")),
        };
        let kinds: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        Ok(FieldRule {
            required: false,
            default: own.get("default").or_else(|| schema.get("default")).cloned(),
            shown,
            omits_null: flag("x-null", "omit")?,
            hangs: flag("x-indent", "hang")?,
            compound: kinds.iter().any(|kind| matches!(*kind, "array" | "object")),
        })
    }
}

pub struct Instance<'a> {
    record: &'a Record,
    instance: &'a Value,
}

/// A placeholder that has no text: which, and why.
#[derive(Debug, PartialEq)]
pub struct Lack {
    pub field: String,
    pub why: String,
}

impl Values for Instance<'_> {
    type Lack = Lack;

    fn text(&self, name: &str, indent: &str) -> Result<String, Lack> {
        let lack = |why: String| Lack { field: name.to_owned(), why };
        let Some(field) = self.record.fields.get(name) else {
            return Err(lack("is not a field of the record".to_owned()));
        };
        let value = self.instance.get(name).unwrap_or(&Value::Null);
        let text = shown(value, field).map_err(lack)?;
        if text.len() > VALUE_BYTES {
            return Err(lack(format!("is longer than {VALUE_BYTES} bytes")));
        }
        Ok(if field.hangs { text.replace('\n', &format!("\n{indent}")) } else { text })
    }

    fn holds(&self, name: &str) -> Result<bool, Lack> {
        match self.instance.get(name) {
            Some(Value::Bool(held)) => Ok(*held),
            _ => Err(Lack { field: name.to_owned(), why: "must be true or false".to_owned() }),
        }
    }
}

fn shown(value: &Value, field: &FieldRule) -> Result<String, String> {
    match (value, field.shown) {
        (Value::Null, _) if field.omits_null => Ok(String::new()),
        (Value::Null, _) => Err("has no value".to_owned()),
        (value, Rendering::Json) => serde_json::to_string_pretty(value).map_err(|error| error.to_string()),
        (Value::Array(items), Rendering::Bullets) => {
            let lines: Result<Vec<String>, String> =
                items.iter().map(|item| Ok(format!("- {}", plain(item)?))).collect();
            Ok(lines?.join("\n"))
        }
        (value, _) => plain(value),
    }
}

fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        other => Err(format!("is {}, which has no text; say \"x-as\" in its schema", schema::kind_of(other))),
    }
}

#[cfg(test)]
mod tests;
