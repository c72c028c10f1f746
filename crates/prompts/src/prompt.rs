//! A prompt in use: a template, the params bound to it, its session and the overrides that apply.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::manifest::{Headings, Visibility};
use crate::names;
use crate::overrides::Overrides;
use crate::tree::PromptTemplate;

/// Mutable; a clone shares only what never changes.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub template: Arc<PromptTemplate>,
    pub session: Session,
    pub overrides: Arc<Overrides>,
    /// Instead of what the template says.
    pub headings: Option<Headings>,
    /// That of the job that opened it.
    pub deadline_ms: Option<u64>,
    bound: BTreeMap<String, Value>,
}

/// The state of an opened prompt: values for its conditions, and the visibility of its sections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub values: Map<String, Value>,
    /// By path; stronger than what the section says itself.
    pub visibility: BTreeMap<String, Visibility>,
}

impl Prompt {
    pub fn new(template: Arc<PromptTemplate>) -> Prompt {
        Prompt {
            template,
            session: Session::default(),
            overrides: Arc::default(),
            headings: None,
            deadline_ms: None,
            bound: BTreeMap::new(),
        }
    }

    /// Binds one instance per type; all of them or, if one is wrong, none. A type bound before is replaced.
    pub fn bind<S: Into<String>>(&mut self, given: impl IntoIterator<Item = (S, Value)>) -> Result<&mut Self, Fault> {
        let mut fresh = BTreeMap::new();
        for (name, value) in given {
            let name = name.into();
            let whole = self.instance(&name, &value)?;
            if fresh.insert(name.clone(), whole).is_some() {
                return Err(Fault::validation("the same params type is given twice in one call").record(name));
            }
        }
        self.bound.extend(fresh);
        Ok(self)
    }

    /// Binds the JSON of a caller: `{"Type": {…}}`, or `[{"type": "Type", "value": {…}}]`; for a prompt of one
    /// file the fields themselves.
    pub fn bind_json(&mut self, params: &Value) -> Result<&mut Self, Fault> {
        let refuse = || Fault::validation("params are an object of records by the name of their type");
        match params {
            Value::Null => Ok(self),
            Value::Object(fields) if self.template.single => match self.template.records.keys().next().cloned() {
                Some(name) => self.bind([(name, Value::Object(fields.clone()))]),
                None if fields.is_empty() => Ok(self),
                None => Err(Fault::validation("this prompt takes no params")),
            },
            Value::Object(records) => self.bind(records.clone()),
            Value::Array(records) => {
                let pairs = records.iter().map(|one| {
                    let name = one.get("type").and_then(Value::as_str).ok_or_else(refuse)?;
                    Ok((name.to_owned(), one.get("value").cloned().ok_or_else(refuse)?))
                });
                let pairs = pairs.collect::<Result<Vec<(String, Value)>, Fault>>()?;
                self.bind(pairs)
            }
            _ => Err(refuse()),
        }
    }

    fn instance(&self, name: &str, value: &Value) -> Result<Value, Fault> {
        let record = self.template.records.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.template.records.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Fault::validation(format!("unexpected params type `{}`; this prompt takes {known}", names::clipped(name)))
                .record(names::clipped(name))
        })?;
        let fields = value.as_object().ok_or_else(|| Fault::validation("params must be a record").record(name))?;
        let whole = record.completed(fields);
        match record.complaints(&whole).first() {
            None => Ok(whole),
            Some(complaint) => {
                let fault = Fault::validation(format!("params do not fit: {complaint}")).record(name);
                let field = complaint.path.split(['.', '[']).next().unwrap_or_default();
                Err(if record.has(field) { fault.placeholder(field) } else { fault })
            }
        }
    }

    pub fn bound(&self, name: &str) -> Option<&Value> {
        self.bound.get(name)
    }
}
