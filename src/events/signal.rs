//! `signal.json`: sends a signal to an agent.

use std::sync::Arc;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::selector::check_parameter;
use super::{EventLog, Selector, SignalType};
use crate::policy::PrincipalCaller;
use acheron_base::{Error, Result};
use acheron_vfs::{Answer, Caller};

/// The content of `signal.json`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    pub event_type: SignalType,
    #[serde(default)]
    pub parameter: Option<String>,
    #[serde(default)]
    pub payload: Value,
    /// The recipient; by default the agent that owns the file.
    #[serde(default)]
    pub to: Option<String>,
}

impl Signal {
    pub fn parse(value: Value) -> Result<Signal> {
        let signal: Signal =
            serde_json::from_value(value).map_err(|err| Error::invalid(format!("not a signal: {err}")))?;
        if let Some(parameter) = &signal.parameter {
            check_parameter(parameter)?;
        }
        Ok(signal)
    }

    /// Appends the signal to the log; the answer is its number, once it is durable.
    pub fn send(self, event_log: &Arc<EventLog>, caller: &Caller) -> Answer<Bytes> {
        let path = Selector::Signal(self.event_type, self.parameter.clone()).path(&event_log.agent);
        let from = caller.principal().to_string();
        let said = json!({
            "event_type": self.event_type,
            "parameter": self.parameter,
            "payload": self.payload,
            "from": from,
        });
        let agent = event_log.agent.clone();
        event_log
            .signal(&from, &path, said)
            .map(move |seq| acheron_vfs::line(&json!({ "ok": true, "event_id": seq, "to": agent })))
    }
}
