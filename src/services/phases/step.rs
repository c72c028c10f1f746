//! The loop as a state machine: which phase is asked, what a reply means, when it is over.
//!
//! Pure. Its driver asks the model, performs the commands and reports their outcomes to it.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::command::{self, Diagnostic, RequestedCommand};
use super::narrative::narrative;
use super::payload::{self, NextPhase, NoPayload, Payload};
use super::set::{Phase, PhaseSet};
use super::termination::Conditions;
use acheron_base::{Error, Result};

/// The most bytes of `context_state` that are carried on.
pub const LARGEST_STATE: usize = 4096;
const CUT: &str = "the reply was cut at the token limit of the model";
/// The most commands that one reply may give.
pub const COMMANDS_PER_PHASE: usize = 32;
/// The most commands that one run may give.
pub const COMMANDS_PER_RUN: usize = 128;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The payload asked for no other phase, or the model said that it is complete.
    Complete,
    /// No phase was asked for, but a termination condition of the payload does not hold.
    Unfinished,
    /// The last reply was words without a payload.
    PlainText,
    /// The last reply had JSON or commands, but no payload that can be read.
    NoPayload,
    /// The last reply ends in the middle of an object or a thought, or the model was cut at its token limit.
    Cut,
    /// The last reply said nothing.
    Empty,
    UnknownPhase,
    /// The phase, or in a strict run its payload, does not allow the one that was asked for.
    RouteRefused,
    Cycle,
    Limit,
    Terminated,
    Cancelled,
    ModelError,
    Budget,
}

/// One reply, as it stands in the result.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub struct PhaseReply {
    pub phase_id: String,
    pub response: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_phase: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// The requests in a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyRequests {
    /// Commands to perform, in order.
    pub commands: Vec<RequestedCommand>,
    /// Commands beyond the caps, which are only reported.
    pub refused: Vec<RequestedCommand>,
    pub span: Option<Range<usize>>,
}

/// A run under way.
#[derive(Clone, Debug)]
pub struct PhaseLoop {
    set: PhaseSet,
    strict: bool,
    limit: usize,
    at: usize,
    visits: Vec<u32>,
    iterations: usize,
    commands: usize,
    /// The state that phases pass on to each other.
    pub state: Map<String, Value>,
    pub entries: Vec<PhaseReply>,
    /// What a person reads of the last reply.
    pub narrative: String,
    missing: Option<NoPayload>,
    /// The last reply was cut at the token limit of the model.
    cut: bool,
    stopped: Option<(Stop, String)>,
}

impl PhaseLoop {
    /// Begins at the first phase. `max_iterations` can only lower the limit of three rounds.
    pub fn begin(set: PhaseSet, strict: bool, max_iterations: Option<usize>) -> Result<PhaseLoop> {
        if set.is_empty() {
            return Err(Error::not_found(format!("there are no phases in the set {}", set.name)));
        }
        let most = set.len() * 3;
        let limit = max_iterations.unwrap_or(most).clamp(1, most);
        let mut visits = vec![0; set.len()];
        visits[0] = 1;
        Ok(PhaseLoop {
            set,
            strict,
            limit,
            at: 0,
            visits,
            iterations: 1,
            commands: 0,
            state: Map::new(),
            entries: Vec::new(),
            narrative: String::new(),
            missing: None,
            cut: false,
            stopped: None,
        })
    }

    /// The phase to ask now; none when the run is over.
    pub fn phase(&self) -> Option<&Phase> {
        self.stopped.is_none().then(|| &self.set.phases[self.at])
    }

    /// Why it is over, and the sentence that says so.
    pub fn stopped(&self) -> Option<(Stop, &str)> {
        self.stopped.as_ref().map(|(stop, why)| (*stop, why.as_str()))
    }

    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Whether symbols may still be changed: not by the last phase of a strict run.
    pub fn may_mutate(&self) -> bool {
        !(self.strict && self.at + 1 == self.set.len())
    }

    /// Ends the run for a reason from outside.
    pub fn stop(&mut self, stop: Stop, why: impl Into<String>) {
        self.stopped.get_or_insert_with(|| (stop, why.into()));
    }

    /// Takes the reply of the present phase.
    pub fn read_reply(&mut self, reply: &str) -> ReplyRequests {
        let marked = command::marked(reply);
        let search = payload::find(reply, &marked.commands);
        let emitted = search.payload.as_ref().map(|found| command::emitted(&found.value, &found.span));
        let found = command::all(marked, emitted.unwrap_or_default());
        let mut diagnostics = found.diagnostics;
        diagnostics.extend(search.rejected);
        (self.missing, self.cut) = (search.missing, false);
        self.narrative = narrative(reply, search.payload.as_ref(), &found.commands);
        let mut commands = found.commands;
        let room = COMMANDS_PER_PHASE.min(COMMANDS_PER_RUN - self.commands);
        let refused = commands.split_off(room.min(commands.len()));
        self.commands += commands.len();
        let (value, span) = match search.payload {
            Some(Payload { value, span }) => (Some(value), Some(span)),
            None => (None, None),
        };
        if let Some(fault) = value.as_ref().and_then(|value| self.carry(value)) {
            diagnostics.push(fault);
        }
        self.entries.push(PhaseReply {
            phase_id: self.set.phases[self.at].phase_id.clone(),
            response: reply.to_owned(),
            next_phase: value.as_ref().map(|value| value.get("next_phase").cloned().unwrap_or(Value::Null)),
            payload: value,
            diagnostics,
        });
        ReplyRequests { commands, refused, span }
    }

    /// Notes that the model was cut at its token limit while it said the last reply. What it has said stands; the run does not
    /// end with it as if it were whole.
    pub fn was_cut(&mut self) {
        self.cut = true;
        if let Some(entry) = self.entries.last_mut() {
            entry.diagnostics.push(Diagnostic { offset: entry.response.len(), message: CUT.to_owned() });
        }
    }

    /// Goes on to what the last reply asked for, or stops. A warning, if there is something to warn of.
    pub fn advance(&mut self) -> Option<String> {
        if self.stopped.is_some() {
            return None;
        }
        let payload = self.entries.last().and_then(|entry| entry.payload.clone());
        let Some(told) = &payload else {
            let (stop, why) = self.no_payload();
            self.stop(stop, why);
            return None;
        };
        let conditions = Conditions::of(told, &self.state);
        if self.cut && (conditions.all_hold() || matches!(payload::wish(told), NextPhase::None)) {
            return self.warn(Stop::Cut, CUT.to_owned());
        }
        if conditions.all_hold() {
            self.stop(Stop::Complete, format!("the termination conditions hold: {}", conditions.hold.join(", ")));
            return None;
        }
        let name = match payload::wish(told) {
            NextPhase::None if !conditions.open.is_empty() => {
                let open = conditions.open.join(", ");
                return self.warn(Stop::Unfinished, format!("no next phase was asked for, but {open} does not hold"));
            }
            NextPhase::None => {
                self.stop(Stop::Complete, "no next phase was asked for");
                return None;
            }
            NextPhase::Strange(shown) => {
                return self.warn(Stop::UnknownPhase, format!("next_phase is no name: {shown}"));
            }
            NextPhase::Phase(name) => name,
        };
        let shown: String = name.chars().take(80).collect();
        let Some(next) = self.set.find(&name) else {
            return self.warn(Stop::UnknownPhase, format!("there is no phase `{shown}`"));
        };
        if let Some(why) = self.refused_route(next, &shown) {
            return self.warn(Stop::RouteRefused, why);
        }
        let routes = told.get("valid_routes").and_then(Value::as_array);
        let allowed = routes.is_none_or(|routes| {
            routes.is_empty() || routes.iter().filter_map(Value::as_str).any(|route| self.set.find(route) == Some(next))
        });
        if !allowed && self.strict {
            return self.warn(Stop::RouteRefused, format!("`{shown}` is not among the valid routes of the payload"));
        }
        let id = self.set.phases[next].phase_id.clone();
        if self.visits[next] >= self.set.phases[next].max_visits {
            return self.warn(Stop::Cycle, format!("phase {id} was visited {} times already", self.visits[next]));
        }
        if self.iterations >= self.limit {
            return self.warn(Stop::Limit, format!("the limit of {} iterations is reached", self.limit));
        }
        self.at = next;
        self.visits[next] += 1;
        self.iterations += 1;
        (!allowed).then(|| format!("`{shown}` is not among the valid routes of the payload"))
    }

    /// Why the reply has no payload.
    fn no_payload(&self) -> (Stop, String) {
        let fault = self.entries.last().and_then(|entry| entry.diagnostics.last());
        if self.cut {
            return (Stop::Cut, CUT.to_owned());
        }
        match self.missing.unwrap_or(NoPayload::PlainText) {
            NoPayload::Empty => (Stop::Empty, "the reply is empty".to_owned()),
            NoPayload::CutObject => (Stop::Cut, "the reply ends in the middle of an object".to_owned()),
            NoPayload::CutThought => (Stop::Cut, "the reply ends in the middle of a thought".to_owned()),
            NoPayload::PlainText => (Stop::PlainText, "the reply is plain text".to_owned()),
            NoPayload::CommandsOnly => (Stop::NoPayload, "the reply has commands and no payload".to_owned()),
            NoPayload::Unreadable => (
                Stop::NoPayload,
                fault.map_or_else(
                    || "the reply has no object".to_owned(),
                    |fault| format!("the object is no JSON: {}", fault.message),
                ),
            ),
        }
    }

    /// The sentence that refuses the way to `next`, if the present phase declares its routes and that is none of them.
    fn refused_route(&self, next: usize, shown: &str) -> Option<String> {
        let own = &self.set.phases[self.at];
        let routes = own.routes.as_ref()?;
        if routes.iter().any(|route| self.set.find(route) == Some(next)) {
            return None;
        }
        let allowed = if routes.is_empty() { "no other".to_owned() } else { routes.join(", ") };
        Some(format!("phase {} may be followed by {allowed}, not by `{shown}`", own.phase_id))
    }

    fn warn(&mut self, stop: Stop, why: String) -> Option<String> {
        self.stop(stop, why.clone());
        Some(why)
    }

    /// Merges the payload's `context_state` into what is carried on.
    fn carry(&mut self, payload: &Value) -> Option<Diagnostic> {
        let told = match payload.get("context_state") {
            None | Some(Value::Null) => return None,
            Some(Value::Object(told)) => told,
            Some(_) => {
                let message = "context_state is not an object and is not carried on".to_owned();
                return Some(Diagnostic { offset: 0, message });
            }
        };
        let mut next = self.state.clone();
        next.extend(told.iter().map(|(key, value)| (key.clone(), value.clone())));
        let size = Value::Object(next.clone()).to_string().len();
        if size > LARGEST_STATE {
            let message = format!("context_state would have {size} bytes, over {LARGEST_STATE}; the last one is kept");
            return Some(Diagnostic { offset: 0, message });
        }
        self.state = next;
        None
    }
}

#[cfg(test)]
mod tests;
