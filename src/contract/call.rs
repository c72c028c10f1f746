//! Parses the content written to a control file into a call: the envelope, the arguments, the typed command.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Contract;
use super::check::{self, ValueFault};
use super::tagged::TaggedCall;
use acheron_base::nearest::hint;
use acheron_base::{Error, Result, quoted};

/// The bytes of a reason.
const LONGEST_REASON: usize = 2000;

/// One command, checked against its contract.
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    pub op: String,
    pub arguments: Value,
    /// A name for the job, chosen by the caller.
    pub correlation_id: Option<String>,
    /// Why the caller makes the call, in its own words; shown to the operator if the call must be approved.
    pub reason: Option<String>,
}

impl Contract {
    /// Parses the content of `control/invoke.json`: `{"op", "arguments"?, "correlation_id"?, "reason"?}`.
    pub fn envelope(&self, value: Value) -> Result<Envelope> {
        let mut object = object(value)?;
        let op = match object.remove("op") {
            Some(Value::String(op)) => op,
            Some(_) => return Err(Error::invalid("op must be a string")),
            None => {
                let names: Vec<_> = self.operations.iter().map(|operation| operation.name.as_str()).collect();
                return Err(Error::invalid(format!("op is missing; operations are {}", names.join(", "))));
            }
        };
        let arguments = object.remove("arguments").unwrap_or_else(|| json!({}));
        let correlation_id = object.remove("correlation_id");
        let reason = object.remove("reason");
        if let Some(key) = object.keys().next() {
            let known = ["op", "arguments", "correlation_id", "reason"];
            // Arguments beside `op` are the most common mistake: say where they belong.
            return Err(Error::invalid(
                match self.operation(&op).is_ok_and(|op| op.arguments["properties"].get(key).is_some()) {
                    true => format!("{key} belongs in `arguments`: {{\"op\": {op:?}, \"arguments\": {{{key:?}: …}}}}"),
                    false => format!("unknown key {}{}", quoted(key), hint(key, known, "keys of a call")),
                },
            ));
        }
        self.call(op, arguments, correlation_id, reason)
    }

    /// Parses the content of `control/<op>.json`: the arguments, with an optional `_meta` key.
    pub fn arguments(&self, op: &str, value: Value) -> Result<Envelope> {
        let mut object = object(value)?;
        let (correlation_id, reason) = match object.remove("_meta") {
            None => (None, None),
            Some(Value::Object(mut meta)) => {
                let (id, reason) = (meta.remove("correlation_id"), meta.remove("reason"));
                if let Some(key) = meta.keys().next() {
                    let hint = hint(key, ["correlation_id", "reason"], "keys of _meta");
                    return Err(Error::invalid(format!("_meta: unknown key {}{hint}", quoted(key))));
                }
                (id, reason)
            }
            Some(_) => return Err(Error::invalid("_meta must be an object, such as {\"correlation_id\": \"mine\"}")),
        };
        self.call(op.to_owned(), Value::Object(object), correlation_id, reason)
    }

    /// Converts a call to the service's own command type.
    pub fn command<C: DeserializeOwned>(&self, op: &str, arguments: &Value) -> Result<C> {
        let arguments = (!self.operation(op)?.bare).then_some(arguments);
        C::deserialize(TaggedCall { op, arguments }).map_err(|err| Error::invalid(format!("{op}: {err}")))
    }

    fn call(
        &self,
        op: String,
        arguments: Value,
        correlation_id: Option<Value>,
        reason: Option<Value>,
    ) -> Result<Envelope> {
        self.check(&op, &arguments)?;
        let correlation_id = match correlation_id {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(correlation(id)?),
            Some(_) => return Err(Error::invalid("correlation_id must be a string")),
        };
        let reason = match reason {
            None | Some(Value::Null) => None,
            Some(Value::String(reason)) if reason.len() <= LONGEST_REASON => Some(reason),
            Some(_) => return Err(Error::invalid(format!("reason must be a text of at most {LONGEST_REASON} bytes"))),
        };
        Ok(Envelope { op, arguments, correlation_id, reason })
    }
}

/// A correlation id becomes a name in `jobs/by/`, so it must be a valid file name.
fn correlation(id: String) -> Result<String> {
    let fault = match id.as_str() {
        "" => "must not be empty",
        "." | ".." => "cannot be . or ..",
        id if id.len() > 128 => "is longer than 128 bytes",
        id if id.contains(['/', '\0']) || id.chars().any(char::is_control) => "contains a slash or a control character",
        _ => return Ok(id),
    };
    Err(Error::invalid(format!("correlation_id {fault}; it becomes a name in jobs/by/")))
}

fn object(value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(object) => Ok(object),
        other => {
            let fault = check::faults(&json!({"type": "object"}), &Value::Null, &other);
            Err(Error::invalid(format!("a command {}", fault.first().map_or("", |ValueFault { message, .. }| message))))
        }
    }
}
