//! The termination conditions of a payload: what must hold for the run to be over.
//!
//! An object names conditions and says of each whether it holds. A list names keys of the carried state; an entry that is
//! no key of it is a remark for people.

use serde_json::{Map, Value};

/// The conditions of one payload.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    pub hold: Vec<String>,
    pub open: Vec<String>,
}

impl Conditions {
    pub fn of(payload: &Value, state: &Map<String, Value>) -> Conditions {
        let mut conditions = Conditions::default();
        let mut take = |name: &str, holds: bool| {
            let to = if holds { &mut conditions.hold } else { &mut conditions.open };
            to.push(name.chars().take(80).collect());
        };
        match payload.get("termination_conditions") {
            Some(Value::Object(told)) => told.iter().for_each(|(name, holds)| take(name, holds == &Value::Bool(true))),
            Some(Value::Array(names)) => {
                for name in names.iter().filter_map(Value::as_str) {
                    if let Some(holds) = state.get(name) {
                        take(name, holds == &Value::Bool(true));
                    }
                }
            }
            _ => (),
        }
        conditions
    }

    /// Whether there are conditions and all of them hold.
    pub fn all_hold(&self) -> bool {
        self.open.is_empty() && !self.hold.is_empty()
    }
}
