//! Decides the next step of a turn. Pure: the transcript is the program counter.
//!
//! ```text
//! began ─→ ask ─→ said ─→ act ─→ outcome ─→ ask … ─→ rest
//!                   └ fault ─→ ask, at most three times in a row
//! ```
//!
//! In the native protocol an answer may have several calls, each with an outcome of its own ([`native`]).

use serde_json::{Value, json};

use super::budget::{BudgetLimits, Spent, Standing, standing};
use super::native;
use super::protocol::{self, ModelCall, ProtocolFault, Reading};
use super::transcript::{TranscriptRecord, TurnEnd};
use crate::agent::tools::{self, ToolCall};
use crate::model::{ModelAnswer, ModelProtocol};
use acheron_base::Error;

/// Consecutive malformed answers allowed.
pub(super) const FAULTS: usize = 3;
/// Consecutive failures of the same call allowed.
pub(super) const FAILURES: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub enum NextStep {
    /// Ask the model.
    Ask,
    /// Perform this call, after its intent is recorded if it has effects.
    Act(ModelCall),
    /// Record that this call cannot be read. It is not performed.
    Refuse(ProtocolFault),
    /// Record that a crash interrupted this call. It is not performed again.
    Interrupted(ModelCall),
    Rest(TurnEnd),
}

/// The next step of a turn that has used `spent` so far.
pub fn next(records: &[TranscriptRecord], spent: &Spent) -> NextStep {
    // Mail comes just before the model is asked, and changes nothing of what comes next.
    let end = records.iter().rposition(|record| !matches!(record, TranscriptRecord::Mail { .. }));
    let records = &records[..end.map_or(0, |end| end + 1)];
    match records.last() {
        None => NextStep::Rest(TurnEnd::failed("internal", Error::internal("a turn without a beginning"))),
        Some(TranscriptRecord::Ended { end, .. }) => NextStep::Rest(end.clone()),
        Some(TranscriptRecord::Began { .. } | TranscriptRecord::Mail { .. }) => ask(records, spent),
        _ if is_native(records) => native::next(records, spent),
        Some(TranscriptRecord::Said { said, .. }) => match protocol::read_as(said, reading(records)) {
            Ok(call) => NextStep::Act(call),
            Err(wrong) if faults(records) >= FAULTS => protocol_fault(&wrong, &words_of(said)),
            Err(_) => ask(records, spent),
        },
        // A reply only ends this turn, which has not ended: performing it now performs it once.
        Some(TranscriptRecord::Intent { call, .. }) if call.tool.acts() && reply(&call.tool).is_none() => {
            NextStep::Interrupted(call.clone())
        }
        Some(TranscriptRecord::Intent { call, .. }) => NextStep::Act(call.clone()),
        Some(TranscriptRecord::Outcome { result, .. }) => {
            let calls = calls(records);
            let Some((call, _)) = calls.last() else { return ask(records, spent) };
            if let Some(text) = reply(&call.tool).filter(|_| error(result).is_none()) {
                return NextStep::Rest(TurnEnd::Replied(text.to_owned()));
            }
            if failures(&calls) >= FAILURES {
                let why = error(result).and_then(|error| error["message"].as_str()).unwrap_or_default();
                return repeated_failure(call.tool.name(), why);
            }
            ask(records, spent)
        }
    }
}

/// Ends the turn after too many answers that could not be used.
pub(super) fn protocol_fault(wrong: &ProtocolFault, words: &str) -> NextStep {
    let (name, why) = (wrong.fault.name(), &wrong.why);
    let said = format!("the model broke the protocol {FAULTS} times in a row: {name}: {why}{words}");
    NextStep::Rest(TurnEnd::failed("protocol_fault", Error::provider(said)))
}

/// Ends the turn after too many failures of one call.
pub(super) fn repeated_failure(name: &str, why: &str) -> NextStep {
    let said = format!("the same {name} failed {FAILURES} times in a row: {why}");
    NextStep::Rest(TurnEnd::failed("repeated_failure", Error::failed(said)))
}

/// Asks the model, unless a budget is used up. A call that was already paid for is performed first.
pub(super) fn ask(records: &[TranscriptRecord], spent: &Spent) -> NextStep {
    match standing(&limits(records), spent) {
        Standing::Over(what) => {
            let error = Error::budget_exceeded(format!("the turn has used up its {what}"));
            NextStep::Rest(TurnEnd::failed("budget_exceeded", error))
        }
        _ => NextStep::Ask,
    }
}

/// The limits at the start of the turn.
pub fn limits(records: &[TranscriptRecord]) -> BudgetLimits {
    match records.first() {
        Some(TranscriptRecord::Began { limits, .. }) => *limits,
        _ => BudgetLimits::default(),
    }
}

/// How strictly the answers of the turn are read.
pub fn reading(records: &[TranscriptRecord]) -> Reading {
    match records.first() {
        Some(TranscriptRecord::Began { strict: true, .. }) => Reading::Strict,
        _ => Reading::Understanding,
    }
}

/// The protocol of the turn, which it keeps when the settings change.
pub fn is_native(records: &[TranscriptRecord]) -> bool {
    matches!(records.first(), Some(TranscriptRecord::Began { protocol: ModelProtocol::Native, .. }))
}

/// The most of a model's words in an error.
const WORDS: usize = 1000;

/// What the model said instead of a call, for the error of its turn: its words are not lost.
pub(super) fn words_of(said: &ModelAnswer) -> String {
    let words = protocol::thoughts(&said.text).1.trim();
    match words.char_indices().nth(WORDS) {
        _ if words.is_empty() => String::new(),
        None => format!("; it said: {words}"),
        Some((end, _)) => format!("; it said: {}…", &words[..end]),
    }
}

/// Whether this is the first call of the turn that was not written as the contract asks: it is told once.
fn first_deviation(records: &[TranscriptRecord]) -> bool {
    let mut deviations = records.iter().filter(|record| match record {
        TranscriptRecord::Said { said, .. } => {
            protocol::read_as(said, reading(records)).is_ok_and(|call| call.deviates)
        }
        _ => false,
    });
    deviations.next().is_some() && deviations.next().is_none()
}

/// The feedback to the model about the last round of `records`: the result of its call, or the fault of its answer.
/// `spent` is what the turn had used then.
pub fn feedback(records: &[TranscriptRecord], spent: &Spent) -> Option<Value> {
    let mut feedback = match records.last()? {
        TranscriptRecord::Said { said, .. } => {
            let wrong = protocol::read_as(said, reading(records)).err()?;
            json!({"protocol_fault": {
                "fault": wrong.fault.name(), "message": wrong.why, "in_a_row": faults(records), "allowed": FAULTS,
                "expected": {"tool_calls": [{"name": "file_read | file_write | file_list", "arguments": {}}]},
            }})
        }
        TranscriptRecord::Outcome { result, .. } => {
            let calls = calls(records);
            let (call, _) = calls.last()?;
            let mut feedback = told(call.id.as_deref(), call.tool.name(), result);
            if call.deviates && first_deviation(records) {
                feedback["form"] =
                    "your call was understood, but write the JSON object of the contract and nothing else".into();
            }
            if failures(&calls) == FAILURES - 1 {
                feedback["notice"] = FAILED_TWICE.into();
            }
            json!({ "tool_result": feedback })
        }
        _ => return None,
    };
    if let Standing::Soft(what) = standing(&limits(records), spent) {
        feedback["budget"] = write_soon(what).into();
    }
    Some(feedback)
}

pub(super) const FAILED_TWICE: &str = "this same call has failed twice; once more ends the turn, so change it";

pub(super) fn write_soon(what: &str) -> String {
    format!("80 % of this turn's {what} are used; write your reply soon")
}

/// What the model is told about one call: its result in short.
pub(super) fn told(id: Option<&str>, name: &str, result: &Value) -> Value {
    let mut told = json!({});
    if let Some(id) = id {
        told["id"] = id.into();
    }
    told["name"] = name.into();
    match error(result) {
        Some(error) => told["error"] = error.clone(),
        None => told["result"] = tools::shown(result),
    }
    told
}

/// The number of malformed answers at the end of the transcript.
fn faults(records: &[TranscriptRecord]) -> usize {
    let said = records.iter().rev().filter_map(|record| match record {
        TranscriptRecord::Said { said, .. } => Some(protocol::read_as(said, reading(records)).is_err()),
        TranscriptRecord::Outcome { .. } => Some(false),
        _ => None,
    });
    said.take_while(|fault| *fault).count()
}

/// The last calls with their results, in order: as many as are needed, because every step asks for them.
fn calls(records: &[TranscriptRecord]) -> Vec<(ModelCall, Option<&Value>)> {
    let mut calls = Vec::new();
    let mut outcome = None;
    for record in records.iter().rev() {
        match record {
            TranscriptRecord::Said { said, .. } => {
                calls.extend(protocol::read_as(said, reading(records)).ok().map(|call| (call, outcome.take())));
                if calls.len() == FAILURES {
                    break;
                }
            }
            TranscriptRecord::Outcome { result, .. } => outcome = Some(result),
            _ => (),
        }
    }
    calls.reverse();
    calls
}

/// The number of consecutive failures of the last call, with the same arguments.
fn failures(calls: &[(ModelCall, Option<&Value>)]) -> usize {
    let Some((last, _)) = calls.last() else { return 0 };
    let same = calls
        .iter()
        .rev()
        .take_while(|(call, result)| call.tool == last.tool && result.is_some_and(|result| error(result).is_some()));
    same.count()
}

pub(super) fn error(result: &Value) -> Option<&Value> {
    result.get("error").filter(|error| error.is_object())
}

/// The text, if the call is a reply.
pub fn reply(tool: &ToolCall) -> Option<&str> {
    let ToolCall::Write(write) = tool else { return None };
    let path = acheron_vfs::normalize(&write.path).ok()?;
    let (agents, rest) = path.strip_prefix("/agents/")?.split_once('/')?;
    (!agents.is_empty() && rest == "chat/control/reply").then_some(write.content.as_str())
}

#[cfg(test)]
mod tests;
