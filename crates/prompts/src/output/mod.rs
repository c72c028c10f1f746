//! Structured output: the type of the answer that a prompt asks for, and the search for that answer in a model's reply.
//!
//! A model wraps its JSON into prose, fences and thoughts, and damages it. Candidates are taken in order of trust, sound
//! ones first, and the first one that fits the type wins; every repair that was needed is listed. If none fits, the error
//! holds the whole reply and says of each what was wrong with it.

mod candidates;
mod convert;
mod lenient;
mod repair;
mod strict_json;

use jsonschema::Validator;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use candidates::CandidateValue;
use lenient::Unreadable;

use crate::fault::Fault;
use crate::manifest::{Container, Shape};
use crate::schema::{self, Complaint};
use acheron_base::Error;

pub use repair::Repair;
pub use strict_json::{parse as parse_json, parse_bytes as parse_json_bytes};

/// The longest reply that is looked into.
pub const REPLY_BYTES: usize = 4 << 20;
/// How many values of one answer may be set right.
const AMENDS: usize = 256;

/// The type of an answer.
pub struct Output {
    pub name: String,
    pub container: Container,
    /// Of the object, or of one element of the array.
    pub schema: Value,
    validator: Validator,
}

/// An answer that fits its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parsed {
    pub value: Value,
    /// Where in the reply it was found: `fence`, `message` or `text`.
    pub from: &'static str,
    /// What was damaged or written otherwise (`"42"` for 42), and how it was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
}

/// A reply in which no answer was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unparsed {
    pub message: String,
    /// `a.b[0]`: where in the best candidate the first fault is.
    pub path: String,
    pub output_type: String,
    /// The whole reply, as it came.
    pub raw: String,
    /// The candidates that were tried, best first.
    pub tried: Vec<Tried>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub from: &'static str,
    /// The byte of the reply at which it begins.
    pub start: usize,
    pub path: String,
    pub message: String,
}

/// The first object in a reply that the test takes, in the order of trust.
pub fn object_in(reply: &str, test: impl Fn(&Value) -> bool) -> Option<Value> {
    let short = reply.len() <= REPLY_BYTES;
    let found = short.then(|| candidates::of(reply)).into_iter().flatten();
    let sound = found.filter_map(|candidate| match candidate.value {
        CandidateValue::Sound(value) => Some(value),
        _ => None,
    });
    sound.into_iter().find(|value| value.is_object() && test(value))
}

/// Finds the answer of a Rust type in a reply: an object, strict in its keys, at every depth.
pub fn parse<T: DeserializeOwned + JsonSchema>(reply: &str) -> Result<T, Unparsed> {
    Output::of::<T>(Container::Object).and_then(|output| typed(&output, reply))
}

/// Finds an array of a Rust type in a reply.
pub fn parse_list<T: DeserializeOwned + JsonSchema>(reply: &str) -> Result<Vec<T>, Unparsed> {
    Output::of::<T>(Container::Array).and_then(|output| typed(&output, reply))
}

fn typed<T: DeserializeOwned>(output: &Output, reply: &str) -> Result<T, Unparsed> {
    let parsed = output.parse(reply)?;
    // A schema takes 1.0 for an integer and serde does not.
    let value = candidates::whole_numbers(parsed.value);
    serde_json::from_value(value).map_err(|error| output.unparsed(reply, error.to_string(), "", Vec::new()))
}

impl Output {
    pub fn new(shape: &Shape) -> Result<Output, String> {
        let of_object = shape.schema.get("type").and_then(Value::as_str) == Some("object");
        let composed = ["oneOf", "anyOf", "allOf", "$ref"].iter().any(|key| shape.schema.get(*key).is_some());
        if !of_object && !composed {
            return Err("the output type must be a record: a JSON Schema of type object".to_owned());
        }
        let schema = if shape.allow_extra_keys { shape.schema.clone() } else { schema::strict(shape.schema.clone()) };
        let validator = schema::compile(&schema).map_err(|why| format!("the output type: {why}"))?;
        Ok(Output { name: shape.name.clone(), container: shape.container, schema, validator })
    }

    /// The type of an answer from a Rust type.
    pub fn of<T: JsonSchema>(container: Container) -> Result<Output, Unparsed> {
        let name = T::schema_name().into_owned();
        let shape = Shape { name: name.clone(), schema: schema::of::<T>(), container, allow_extra_keys: false };
        Output::new(&shape).map_err(|message| Unparsed {
            message,
            path: String::new(),
            output_type: name,
            raw: String::new(),
            tried: Vec::new(),
        })
    }

    /// The schema of the whole answer. An array stands under `items`, since providers want an object.
    pub fn whole(&self) -> Value {
        match self.container {
            Container::Object => self.schema.clone(),
            Container::Array => {
                let mut item = self.schema.clone();
                let defs = item.as_object_mut().and_then(|item| item.remove("$defs"));
                let mut whole = json!({
                    "type": "object", "required": ["items"], "additionalProperties": false,
                    "properties": {"items": {"type": "array", "items": item}},
                });
                if let Some(defs) = defs {
                    whole["$defs"] = defs; // references point to the root, which is the wrapper now
                }
                whole
            }
        }
    }

    /// How providers want to be told: `{"type":"json_schema", …}`.
    pub fn provider_format(&self) -> Value {
        let mut name = String::new();
        for c in self.name.chars() {
            match c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                true => name.push(c),
                false if name.ends_with('_') => {}
                false => name.push('_'),
            }
        }
        let name = match name.trim_matches('_') {
            "" => "prompt",
            name => name,
        };
        json!({"type": "json_schema", "json_schema": {"name": format!("{name}_schema"), "schema": self.whole()}})
    }

    /// The complaints about a value as an answer.
    pub fn complaints(&self, value: &Value) -> Vec<Complaint> {
        let here = |message: &str| vec![Complaint::whole(message)];
        match (self.container, value) {
            (Container::Object, Value::Object(_)) => schema::complaints(&self.validator, value),
            (Container::Object, _) => here("expected top-level JSON object"),
            (Container::Array, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    if !item.is_object() {
                        let mut said = here(&format!("array item at index {index} is not an object"));
                        said[0].path = format!("[{index}]");
                        said[0].pointer = format!("/{index}");
                        return said;
                    }
                    let mut said = schema::complaints(&self.validator, item);
                    if !said.is_empty() {
                        for one in &mut said {
                            one.pointer = format!("/{index}{}", one.pointer);
                            one.path = schema::path_of(&one.pointer);
                        }
                        return said;
                    }
                }
                Vec::new()
            }
            (Container::Array, _) => here("expected top-level JSON array"),
        }
    }

    /// Finds the answer in what a model said.
    pub fn parse(&self, reply: &str) -> Result<Parsed, Unparsed> {
        if reply.len() > REPLY_BYTES {
            return Err(self.unparsed("", format!("the reply is longer than {REPLY_BYTES} bytes"), "", Vec::new()));
        }
        let mut tried: Vec<Tried> = Vec::new();
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        for (place, candidate) in candidates::of(reply).into_iter().enumerate() {
            match candidate.value {
                CandidateValue::Sound(value) => {
                    sound.push((place, candidate.from, candidate.start, Ok((value, vec![]))));
                }
                CandidateValue::Mended(mended) => {
                    damaged.push((place, candidate.from, candidate.start, Ok((mended.value, mended.repairs))));
                }
                CandidateValue::Unreadable(why) => damaged.push((place, candidate.from, candidate.start, Err(why))),
            }
        }
        let mut order = Vec::new();
        for (place, from, start, value) in sound.into_iter().chain(damaged) {
            let (path, message) = match value {
                Ok((value, repairs)) => match self.fitted(value, repairs) {
                    Ok((value, repairs)) => return Ok(Parsed { value, from, repairs }),
                    Err(wrong) => (wrong.path, wrong.message),
                },
                Err(why) => (why.path, why.message),
            };
            order.push(place);
            tried.push(Tried { from, start, path, message });
        }
        let mut ranked: Vec<(usize, Tried)> = order.into_iter().zip(tried).collect();
        ranked.sort_by_key(|(place, _)| *place);
        let tried: Vec<Tried> = ranked.into_iter().map(|(_, tried)| tried).collect();
        let (path, message) = match tried.first() {
            Some(best) => (best.path.clone(), best.message.clone()),
            None => (String::new(), "no JSON object or array found in the reply".to_owned()),
        };
        Err(self.unparsed(reply, message, &path, tried))
    }

    /// The value as the type has it. One that stands under a key of its own, or alone where a list is wanted, is tried
    /// without that key, or in a list, if it does not fit as it is.
    fn fitted(&self, value: Value, repairs: Vec<Repair>) -> Result<(Value, Vec<Repair>), Unreadable> {
        let value = self.unwrapped(value);
        let wrong = match self.amended(value.clone(), repairs.clone()) {
            Ok(fitted) => return Ok(fitted),
            Err(wrong) => wrong,
        };
        let (other, what) = match (self.container, value) {
            (Container::Object, Value::Object(mut fields)) if fields.len() == 1 => {
                let Some((key, inner)) = fields.iter_mut().next() else { return Err(wrong) };
                if !inner.is_object()
                    || self.schema.pointer("/properties").is_some_and(|known| known.get(key).is_some())
                {
                    return Err(wrong);
                }
                (inner.take(), format!("the answer stood under the key `{}`", crate::names::clipped(key)))
            }
            (Container::Array, one @ Value::Object(_)) => {
                (Value::Array(vec![one]), "one item was read as a list of one".to_owned())
            }
            _ => return Err(wrong),
        };
        let mut repairs = repairs;
        repairs.push(Repair { path: String::new(), what });
        self.amended(other, repairs).map_err(|_| wrong)
    }

    /// `{"items": […]}` is an array too.
    fn unwrapped(&self, value: Value) -> Value {
        match (self.container, value) {
            (Container::Array, Value::Object(mut fields)) if fields.get("items").is_some_and(Value::is_array) => {
                fields.remove("items").unwrap_or_default()
            }
            (_, value) => value,
        }
    }

    /// The value, with what is written otherwise but loses nothing set right.
    fn amended(&self, mut value: Value, mut repairs: Vec<Repair>) -> Result<(Value, Vec<Repair>), Unreadable> {
        let most = repairs.len() + AMENDS;
        loop {
            let complaints = self.complaints(&value);
            if complaints.is_empty() {
                return Ok((value, repairs));
            }
            let before = repairs.len();
            let mut left: Option<Unreadable> = None;
            if let Some(repair) = renamed(&mut value, &complaints) {
                repairs.push(repair);
                continue;
            }
            for one in complaints.iter().take(most.saturating_sub(repairs.len())) {
                let converted = value.pointer_mut(&one.pointer).map(|place| (convert::convert(place, one), place));
                let message = match converted {
                    Some((Ok(Some((right, what))), place)) => {
                        *place = right;
                        repairs.push(Repair { path: one.path.clone(), what });
                        continue;
                    }
                    Some((Err(message), _)) => message,
                    _ => one.message.clone(),
                };
                left.get_or_insert_with(|| Unreadable { path: one.path.clone(), message });
            }
            if repairs.len() == before {
                let most = || format!("more than {AMENDS} values are written otherwise");
                return Err(left.unwrap_or_else(|| Unreadable { path: String::new(), message: most() }));
            }
        }
    }

    fn unparsed(&self, raw: &str, message: String, path: &str, tried: Vec<Tried>) -> Unparsed {
        Unparsed { message, path: path.to_owned(), output_type: self.name.clone(), raw: raw.to_owned(), tried }
    }
}

/// A required field that is there under another spelling gets its name: `Score` for `score`.
fn renamed(value: &mut Value, complaints: &[Complaint]) -> Option<Repair> {
    let fold = |key: &str| key.to_lowercase().replace(['_', '-', ' '], "");
    for missing in complaints {
        let Some(field) = &missing.missing else { continue };
        let extra = complaints.iter().filter(|other| other.pointer == missing.pointer).flat_map(|other| &other.extra);
        let mut alike = extra.filter(|key| fold(key) == fold(field));
        let (Some(key), None) = (alike.next(), alike.next()) else { continue };
        let fields = value.pointer_mut(&missing.pointer)?.as_object_mut()?;
        let held = fields.remove(key)?;
        fields.insert(field.clone(), held);
        let path = schema::path_of(&format!("{}/{field}", missing.pointer));
        return Some(Repair { path, what: format!("the key was written `{}`", crate::names::clipped(key)) });
    }
    None
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Output({} {:?})", self.name, self.container)
    }
}

impl std::fmt::Display for Unparsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

impl std::error::Error for Unparsed {}

impl From<Unparsed> for Fault {
    fn from(unparsed: Unparsed) -> Self {
        Fault::output(format!("the reply has no {}: {unparsed}", unparsed.output_type))
    }
}

impl From<Unparsed> for Error {
    fn from(unparsed: Unparsed) -> Self {
        Fault::from(unparsed).into()
    }
}

#[cfg(test)]
mod damaged;
#[cfg(test)]
mod tests;
