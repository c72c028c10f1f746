//! Turns in the native protocol: what an answer with the provider's own calls means, and the next step after it. Pure, as
//! [`step`], which hands over to this file.
//!
//! The calls of an answer are performed in order, each with its own outcome. Words without a call are the reply. Nothing of
//! an answer is performed that was cut at its token limit, has too many calls, or is a call written as text; a single call
//! that cannot be read is refused, and the others are performed.

use std::collections::HashSet;

use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value, json};

use super::budget::{Spent, Standing, standing};
use super::protocol::{self, FaultKind, ModelCall, ProtocolFault};
use super::step::{self, FAILURES, FAULTS, NextStep, protocol_fault, words_of};
use super::strict_json::{MAX_VALUES, StrictReading};
use super::transcript::{TranscriptRecord, TurnEnd};
use super::written_call::is_written_call;
use crate::agent::tools::{Misuse, ToolCall, failure};
use crate::model::{ModelAnswer, NativeCall};
use acheron_base::Error;

/// The most calls of one answer.
pub const MAX_CALLS: usize = 64;

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeAnswer<'a> {
    /// It calls tools.
    Calls(&'a [NativeCall]),
    /// It is the reply.
    Reply(&'a str),
}

fn wrong<T>(fault: FaultKind, why: impl Into<String>) -> Result<T, ProtocolFault> {
    Err(ProtocolFault { fault, why: why.into() })
}

/// Reads an answer as a whole; its calls are read one by one ([`read_call`]).
pub fn read(said: &ModelAnswer) -> Result<NativeAnswer<'_>, ProtocolFault> {
    if said.cut {
        let why = "the answer was cut at its token limit, and nothing of it was performed; write less at a time";
        return wrong(FaultKind::Cut, why);
    }
    match said.calls.len() {
        0 => (),
        1..=MAX_CALLS => return Ok(NativeAnswer::Calls(&said.calls)),
        many => {
            let why =
                format!("the answer has {many} calls, and none was performed; make at most {MAX_CALLS} at a time");
            return wrong(FaultKind::ManyCalls, why);
        }
    }
    let words = protocol::thoughts(&said.text).1.trim();
    if words.is_empty() {
        return wrong(FaultKind::ZeroCalls, "the answer is empty; call a tool, or write your reply");
    }
    if is_written_call(words) {
        let why = "the answer is a call written as text, which was not performed; call the tool itself";
        return wrong(FaultKind::ProseAround, why);
    }
    Ok(NativeAnswer::Reply(words))
}

/// Reads one call.
pub fn read_call(call: &NativeCall) -> Result<ModelCall, ProtocolFault> {
    let name = &call.name;
    let misuse = |misuse| match misuse {
        Misuse::Unknown(why) => ProtocolFault { fault: FaultKind::UnknownTool, why },
        Misuse::Arguments(why) => ProtocolFault { fault: FaultKind::BadArguments, why },
    };
    if !ToolCall::is_tool(name) {
        return ToolCall::read(name, Map::new()).map_err(misuse).and_then(|_| wrong(FaultKind::UnknownTool, ""));
    }
    let arguments = arguments(&call.arguments).map_err(|why| {
        let why = format!("the arguments of {name} are not one JSON object: {why}");
        ProtocolFault { fault: FaultKind::BadArguments, why }
    })?;
    let tool = ToolCall::read(name, arguments).map_err(misuse)?;
    Ok(ModelCall { id: Some(call.id.clone()), deviates: false, tool })
}

/// Arguments without repeated keys; none at all are an empty object.
fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    let text = if text.trim().is_empty() { "{}" } else { text };
    let (mut room, mut reader) = (MAX_VALUES, serde_json::Deserializer::from_str(text));
    let read = StrictReading(&mut room).deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    match read.map_err(|fault| fault.0)?.0 {
        Value::Object(object) => Ok(object),
        _ => Err("another value".to_owned()),
    }
}

/// The first call of an answer; none in a reply.
pub fn first(said: &ModelAnswer) -> Result<Option<ModelCall>, ProtocolFault> {
    match read(said)? {
        NativeAnswer::Calls(calls) => calls.first().map(read_call).transpose(),
        NativeAnswer::Reply(_) => Ok(None),
    }
}

/// The ids of all calls so far.
pub fn ids(records: &[TranscriptRecord]) -> HashSet<String> {
    let said = records.iter().filter_map(said).flat_map(|said| &said.calls);
    said.map(|call| call.id.clone()).collect()
}

fn said(record: &TranscriptRecord) -> Option<&ModelAnswer> {
    match record {
        TranscriptRecord::Said { said, .. } => Some(said),
        _ => None,
    }
}

fn outcome(record: &TranscriptRecord) -> Option<&Value> {
    match record {
        TranscriptRecord::Outcome { result, .. } => Some(result),
        _ => None,
    }
}

/// An answer and the results of its calls so far.
struct NativeRound<'a> {
    said: &'a ModelAnswer,
    results: Vec<&'a Value>,
}

/// The rounds, newest first.
fn rounds(records: &[TranscriptRecord]) -> impl Iterator<Item = NativeRound<'_>> {
    let mut results = Vec::new();
    records.iter().rev().filter_map(move |record| {
        results.extend(outcome(record));
        let said = said(record)?;
        let mut results = std::mem::take(&mut results);
        results.reverse();
        Some(NativeRound { said, results })
    })
}

impl NativeRound<'_> {
    fn calls(&self) -> &[NativeCall] {
        match read(self.said) {
            Ok(NativeAnswer::Calls(calls)) => calls,
            _ => &[],
        }
    }

    /// Whether nothing in the answer could be used.
    fn is_fault(&self) -> bool {
        match read(self.said) {
            Err(_) => true,
            Ok(NativeAnswer::Calls(calls)) => calls.iter().all(|call| read_call(call).is_err()),
            Ok(NativeAnswer::Reply(_)) => false,
        }
    }

    /// Its last call, if that has failed.
    fn failed_last(&self) -> Option<&NativeCall> {
        let calls = self.calls();
        let result = self.results.get(calls.len().checked_sub(1)?)?;
        step::error(result).and(calls.last())
    }
}

/// The next step after an answer.
pub fn next(records: &[TranscriptRecord], spent: &Spent) -> NextStep {
    let Some(round) = rounds(records).next() else { return step::ask(records, spent) };
    let calls = match read(round.said) {
        Ok(NativeAnswer::Reply(text)) => return NextStep::Rest(TurnEnd::Replied(text.to_owned())),
        Ok(NativeAnswer::Calls(calls)) => calls,
        Err(wrong) => return faulty(records, spent, &wrong, round.said),
    };
    let done = round.results.len();
    // A reply ends the turn, and the calls behind it are not performed.
    if let Some((call, result)) = done.checked_sub(1).and_then(|at| Some((calls.get(at)?, round.results[at])))
        && step::error(result).is_none()
        && let Ok(ModelCall { tool, .. }) = read_call(call)
        && let Some(text) = step::reply(&tool)
    {
        return NextStep::Rest(TurnEnd::Replied(text.to_owned()));
    }
    match calls.get(done) {
        Some(call) => perform(call, done, records, spent),
        None => after_calls(&round, records, spent),
    }
}

/// Performs a call, refuses it, or notes that a crash has interrupted it.
fn perform(call: &NativeCall, done: usize, records: &[TranscriptRecord], spent: &Spent) -> NextStep {
    // An answer with many calls is one round, but it takes the time of all of them.
    let seconds = step::limits(records).seconds.filter(|seconds| spent.ms >= seconds.saturating_mul(1000));
    if done > 0 && seconds.is_some() {
        let error = Error::budget_exceeded("the turn has used up its seconds");
        return NextStep::Rest(TurnEnd::failed("budget_exceeded", error));
    }
    match read_call(call) {
        Err(wrong) => NextStep::Refuse(wrong),
        Ok(call) => match records.last() {
            Some(TranscriptRecord::Intent { .. }) if call.tool.acts() && step::reply(&call.tool).is_none() => {
                NextStep::Interrupted(call)
            }
            _ => NextStep::Act(call),
        },
    }
}

fn after_calls(round: &NativeRound<'_>, records: &[TranscriptRecord], spent: &Spent) -> NextStep {
    if let Some(Err(wrong)) = round.calls().last().map(read_call)
        && round.is_fault()
    {
        return faulty(records, spent, &wrong, round.said);
    }
    if let Some(call) = round.failed_last()
        && failures(records) >= FAILURES
    {
        let why = round.results.last().and_then(|result| step::error(result));
        let why = why.and_then(|error| error["message"].as_str()).unwrap_or_default();
        return step::repeated_failure(&call.name, why);
    }
    step::ask(records, spent)
}

fn faulty(records: &[TranscriptRecord], spent: &Spent, wrong: &ProtocolFault, said: &ModelAnswer) -> NextStep {
    match faults(records) >= FAULTS {
        true => protocol_fault(wrong, &words_of(said)),
        false => step::ask(records, spent),
    }
}

/// The number of answers at the end of which nothing could be used.
fn faults(records: &[TranscriptRecord]) -> usize {
    rounds(records).take_while(NativeRound::is_fault).count()
}

/// The number of answers at the end whose last call is the same and has failed. The same call twice in one answer is one
/// failure: the model has not seen the first when it makes the second.
fn failures(records: &[TranscriptRecord]) -> usize {
    let last = rounds(records).next();
    let Some(last) = last.as_ref().and_then(NativeRound::failed_last) else { return 0 };
    let same = |round: &NativeRound<'_>| {
        round.failed_last().is_some_and(|call| call.name == last.name && call.arguments == last.arguments)
    };
    rounds(records).take_while(same).count()
}

/// The result of a call that is refused.
pub fn refusal(wrong: &ProtocolFault) -> Value {
    let why = wrong.why.as_str();
    failure(&match wrong.fault {
        FaultKind::UnknownTool => Error::unknown_operation(why),
        _ => Error::invalid(why),
    })
}

/// What the model is told about each call of the last round, or once about an answer of which nothing was performed. `None`
/// while a call is under way.
pub fn feedback(records: &[TranscriptRecord], spent: &Spent) -> Option<Vec<Value>> {
    let round = rounds(records).next()?;
    let calls = match read(round.said) {
        Ok(NativeAnswer::Calls(calls)) => calls,
        Ok(NativeAnswer::Reply(_)) => return None,
        Err(wrong) => {
            let expected = "calls of file_read, file_write and file_list, or a reply in words";
            return Some(vec![json!({"protocol_fault": {
                "fault": wrong.fault.name(), "message": wrong.why, "in_a_row": faults(records), "allowed": FAULTS,
                "expected": expected,
            }})]);
        }
    };
    if round.results.len() < calls.len() {
        return None;
    }
    let told = |(call, result): (&NativeCall, &&Value)| step::told(Some(&call.id), &call.name, result);
    let mut all: Vec<Value> = calls.iter().zip(&round.results).map(told).collect();
    if let Some(last) = all.last_mut() {
        if failures(records) == FAILURES - 1 {
            last["notice"] = step::FAILED_TWICE.into();
        }
        if let Standing::Soft(what) = standing(&step::limits(records), spent) {
            last["budget"] = step::write_soon(what).into();
        }
    }
    Some(all.into_iter().map(|told| json!({ "tool_result": told })).collect())
}

#[cfg(test)]
mod tests;
