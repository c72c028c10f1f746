//! Conditions for showing a section, and for showing it in short. They are data, so a prompt file holds no code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::Record;

/// A condition on the section's params and on the session of the opened prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Condition {
    Always(bool),
    When(Test),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Test {
    /// The field is true: neither false, nor null, zero or empty.
    Param(String),
    /// The field is a text, list or object with something in it.
    Nonempty(String),
    /// The field has exactly this value.
    Eq {
        param: String,
        value: Value,
    },
    /// The session has this key, and it is true in the sense of `param`.
    Session(String),
    /// The session has exactly this value under this key.
    SessionEq {
        key: String,
        value: Value,
    },
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
}

impl Default for Condition {
    fn default() -> Self {
        Condition::Always(true)
    }
}

impl Condition {
    pub fn holds(&self, params: Option<&Value>, session: &Map<String, Value>) -> bool {
        let test = match self {
            Condition::Always(held) => return *held,
            Condition::When(test) => test,
        };
        let param = |name: &str| params.and_then(|params| params.get(name));
        match test {
            Test::Param(name) => truth(param(name)),
            Test::Nonempty(name) => match param(name) {
                Some(Value::String(text)) => !text.trim().is_empty(),
                Some(Value::Array(items)) => !items.is_empty(),
                Some(Value::Object(fields)) => !fields.is_empty(),
                _ => false,
            },
            Test::Eq { param: name, value } => param(name) == Some(value),
            Test::Session(key) => truth(session.get(key)),
            Test::SessionEq { key, value } => session.get(key) == Some(value),
            Test::All(all) => all.iter().all(|one| one.holds(params, session)),
            Test::Any(any) => any.iter().any(|one| one.holds(params, session)),
            Test::Not(one) => !one.holds(params, session),
        }
    }

    /// The first field that the condition names and the record does not have.
    pub fn stranger(&self, record: Option<&Record>) -> Option<&str> {
        match self {
            Condition::Always(_) => None,
            Condition::When(Test::Param(name) | Test::Nonempty(name) | Test::Eq { param: name, .. }) => {
                (!record.is_some_and(|record| record.has(name))).then_some(name)
            }
            Condition::When(Test::Session(_) | Test::SessionEq { .. }) => None,
            Condition::When(Test::All(several) | Test::Any(several)) => {
                several.iter().find_map(|one| one.stranger(record))
            }
            Condition::When(Test::Not(one)) => one.stranger(record),
        }
    }
}

fn truth(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Bool(held)) => *held,
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests;
