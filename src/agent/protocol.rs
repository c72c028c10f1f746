//! Parses a model's answer: exactly one call, or a fault with its reason.
//!
//! Total: every text is one or the other. Each byte is read a bounded number of times, and everything but the call is
//! skipped, not stored, so a large hostile answer costs linear time and hardly any memory.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::deviation::{self, CallsFound};
use super::strict_json::{StrictFault, StrictValue};
use crate::agent::tools::{Misuse, ToolCall};
use crate::model::ModelAnswer;

/// One call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// It was understood, though not written as the contract asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deviates: bool,
    #[serde(flatten)]
    pub tool: ToolCall,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    ZeroCalls,
    ManyCalls,
    ProseAround,
    NativeCall,
    UnknownTool,
    BadArguments,
    NotJson,
    /// The answer ends at its token limit.
    Cut,
}

impl FaultKind {
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::ZeroCalls => "zero_calls",
            FaultKind::ManyCalls => "many_calls",
            FaultKind::ProseAround => "prose_around",
            FaultKind::NativeCall => "native_call",
            FaultKind::UnknownTool => "unknown_tool",
            FaultKind::BadArguments => "bad_arguments",
            FaultKind::NotJson => "not_json",
            FaultKind::Cut => "cut",
        }
    }
}

/// A fault and its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolFault {
    pub fault: FaultKind,
    pub why: String,
}

fn wrong<T>(fault: FaultKind, why: impl Into<String>) -> Result<T, ProtocolFault> {
    Err(ProtocolFault { fault, why: why.into() })
}

/// Longer ids are truncated: only the model uses them.
const LONGEST_ID: usize = 128;

/// How strictly answers are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// One call is understood in whatever form it comes.
    #[default]
    Understanding,
    /// The form of the contract and no other.
    Strict,
}

/// Parses an answer with understanding.
pub fn read(said: &ModelAnswer) -> Result<ModelCall, ProtocolFault> {
    read_as(said, Reading::Understanding)
}

/// Parses an answer, including the provider's flag for native calls.
pub fn read_as(said: &ModelAnswer, reading: Reading) -> Result<ModelCall, ProtocolFault> {
    if said.native_call {
        return wrong(
            FaultKind::NativeCall,
            "the provider's own function calling was used; write the JSON object as text",
        );
    }
    let read = parse(&said.text).or_else(|wrong| match reading {
        Reading::Understanding => understood(&said.text, wrong),
        Reading::Strict => Err(wrong),
    });
    read.map_err(|wrong| match said.cut {
        true => ProtocolFault {
            fault: FaultKind::Cut,
            why: "the answer was cut at its token limit; write less at a time, and long texts in several calls"
                .to_owned(),
        },
        false => wrong,
    })
}

/// The only call of an answer that is not written as the contract asks; otherwise what was wrong with it.
fn understood(text: &str, wrong: ProtocolFault) -> Result<ModelCall, ProtocolFault> {
    match deviation::find(text) {
        CallsFound::One(call) => one(call).map(|call| ModelCall { deviates: true, ..call }),
        CallsFound::Many(count) => Err(ProtocolFault {
            fault: FaultKind::ManyCalls,
            why: format!("the answer has {count} calls; give exactly one, then see its result"),
        }),
        CallsFound::None => Err(wrong),
    }
}

/// Splits leading reasoning, in the tags that open models use, from the answer.
///
/// A block at the start of the answer is a thought, as if the provider had separated it; anywhere else it is prose.
pub fn thoughts(text: &str) -> (Option<&str>, &str) {
    let start = text.trim_start();
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        if let Some((thought, rest)) = start.strip_prefix(open).and_then(|inner| inner.split_once(close)) {
            return (Some(thought.trim()), rest);
        }
    }
    (None, text)
}

/// Parses the text of an answer.
pub fn parse(text: &str) -> Result<ModelCall, ProtocolFault> {
    let text = thoughts(text).1.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return wrong(FaultKind::ZeroCalls, "the answer is empty; exactly one call is needed");
    }
    if let Some(tag) = NATIVE_TAGS.into_iter().find(|tag| text.starts_with(tag)) {
        return wrong(
            FaultKind::NativeCall,
            format!("the answer begins with `{tag}`, a provider's own way of calling"),
        );
    }
    if !text.starts_with('{') {
        return no_object_first(text);
    }
    let (answer, rest) = object(text)?;
    let rest = rest.trim_start();
    if !rest.is_empty() {
        return match object(rest) {
            Ok((AnswerObject { calls: Some(_), .. }, _)) => {
                wrong(FaultKind::ManyCalls, "the answer has more than one object; give one, with one call")
            }
            _ => wrong(FaultKind::ProseAround, "there is text after the JSON object; write nothing but the object"),
        };
    }
    answer.judge()
}

/// The tags of native calls that a model writes as text.
const NATIVE_TAGS: [&str; 7] =
    ["<tool_call>", "<function_call", "<function=", "<invoke", "[TOOL_CALLS]", "<|python_tag|>", "<|tool"];

/// The fault of an answer that does not begin with an object: prose around an object, or no object at all.
fn no_object_first(text: &str) -> Result<ModelCall, ProtocolFault> {
    let inside = text.find("{\"tool_calls\"").or_else(|| text.find('{'));
    if let Some(at) = inside
        && let Ok((AnswerObject { calls: Some(_), .. }, _)) = object(&text[at..])
    {
        let why = match text.starts_with("```") {
            true => "there is a code fence around the JSON object; leave it out",
            false => "there is text before the JSON object; write nothing but the object",
        };
        return wrong(FaultKind::ProseAround, why);
    }
    if let Some(tag) = NATIVE_TAGS.into_iter().find(|tag| text.contains(tag)) {
        return wrong(FaultKind::NativeCall, format!("the answer has `{tag}` in it, a provider's own way of calling"));
    }
    match text.starts_with(['[', '"']) {
        true => wrong(FaultKind::NotJson, "the answer is JSON, but not an object; give an object with `tool_calls`"),
        false => wrong(
            FaultKind::NotJson,
            "the answer is not a JSON object; write text for people to the reply with file_write",
        ),
    }
}

/// Parses one object at the start of the text; returns the rest.
fn object(text: &str) -> Result<(AnswerObject, &str), ProtocolFault> {
    let mut reader = serde_json::Deserializer::from_str(text).into_iter::<AnswerObject>();
    match reader.next() {
        Some(Ok(answer)) => Ok((answer, &text[reader.byte_offset()..])),
        Some(Err(error)) => wrong(FaultKind::NotJson, format!("the JSON is broken: {error}")),
        None => wrong(FaultKind::NotJson, "there is no JSON"),
    }
}

/// The relevant keys of the object.
#[derive(Default)]
struct AnswerObject {
    calls: Option<Calls>,
    /// `tool_calls` is repeated.
    twice: bool,
    /// A key that only native calls have.
    native: Option<String>,
}

enum Calls {
    List {
        first: Option<Result<StrictValue, StrictFault>>,
        count: u64,
    },
    /// Not a list.
    Other,
}

impl AnswerObject {
    fn judge(self) -> Result<ModelCall, ProtocolFault> {
        if self.twice {
            return wrong(FaultKind::ManyCalls, "`tool_calls` is repeated in the object");
        }
        match (self.calls, self.native) {
            (Some(Calls::List { first: None, .. }), _) => wrong(FaultKind::ZeroCalls, "`tool_calls` is empty"),
            (Some(Calls::List { first: Some(first), count: 1 }), _) => match first {
                Ok(call) => one(call),
                Err(StrictFault(why)) => wrong(FaultKind::BadArguments, format!("the call is not readable: {why}")),
            },
            (Some(Calls::List { count, .. }), _) => wrong(
                FaultKind::ManyCalls,
                format!("`tool_calls` has {count} calls; give exactly one, then see its result"),
            ),
            (Some(Calls::Other), _) => wrong(FaultKind::BadArguments, "`tool_calls` is not a list"),
            (None, Some(key)) => wrong(
                FaultKind::NativeCall,
                format!("the object has `{key}`, as a provider's own call has; put the call into `tool_calls`"),
            ),
            (None, None) => wrong(FaultKind::ZeroCalls, "the object has no `tool_calls`"),
        }
    }
}

/// Parses the only call.
fn one(call: StrictValue) -> Result<ModelCall, ProtocolFault> {
    let serde_json::Value::Object(mut call) = call.0 else {
        return wrong(FaultKind::BadArguments, "a call is an object with `name` and `arguments`");
    };
    if call.contains_key("function") || call.get("type").is_some_and(|kind| kind == "function" || kind == "tool_use") {
        return wrong(
            FaultKind::NativeCall,
            "the call has a provider's own form; give `name` and `arguments` directly",
        );
    }
    let id = match call.shift_remove("id") {
        None | Some(serde_json::Value::Null) => None,
        Some(serde_json::Value::String(id)) => Some(id.chars().take(LONGEST_ID).collect()),
        Some(other) => Some(other.to_string().chars().take(LONGEST_ID).collect()),
    };
    let Some(serde_json::Value::String(name)) = call.shift_remove("name") else {
        return wrong(FaultKind::BadArguments, "the call has no `name`, which is a string");
    };
    let arguments = match call.shift_remove("arguments") {
        None => serde_json::Map::new(),
        Some(serde_json::Value::Object(arguments)) => arguments,
        Some(serde_json::Value::String(_)) => {
            return wrong(FaultKind::BadArguments, "`arguments` is a string; write the object itself");
        }
        Some(_) => return wrong(FaultKind::BadArguments, "`arguments` is not an object"),
    };
    match ToolCall::read(&name, arguments) {
        Err(Misuse::Unknown(why)) => wrong(FaultKind::UnknownTool, why),
        _ if !call.is_empty() => {
            let strange = call.keys().next().map_or("", String::as_str);
            let strange: String = strange.chars().take(80).collect();
            wrong(FaultKind::BadArguments, format!("a call has `id`, `name` and `arguments`, but no `{strange}`"))
        }
        Err(Misuse::Arguments(why)) => wrong(FaultKind::BadArguments, why),
        Ok(tool) => Ok(ModelCall { id, deviates: false, tool }),
    }
}

impl<'de> Deserialize<'de> for AnswerObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnswerKeys;
        impl<'de> Visitor<'de> for AnswerKeys {
            type Value = AnswerObject;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnswerObject, A::Error> {
                let mut answer = AnswerObject::default();
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    match &*key {
                        "tool_calls" if answer.calls.is_none() => answer.calls = Some(map.next_value()?),
                        "tool_calls" => {
                            answer.twice = true;
                            map.next_value::<IgnoredAny>()?;
                        }
                        // Other keys beside the calls are ignored.
                        key => {
                            if matches!(key, "function_call" | "function" | "name" | "tool" | "arguments" | "tool_use")
                            {
                                answer.native.get_or_insert_with(|| key.to_owned());
                            }
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(answer)
            }
        }
        deserializer.deserialize_map(AnswerKeys)
    }
}

impl<'de> Deserialize<'de> for Calls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Calls;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Calls, A::Error> {
                let mut room = super::strict_json::MAX_VALUES;
                let first = seq.next_element_seed(super::strict_json::StrictReading(&mut room))?;
                let mut count = u64::from(first.is_some());
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(Calls::List { first, count })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Calls, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Calls::Other)
            }

            fn visit_str<E>(self, _: &str) -> Result<Calls, E> {
                Ok(Calls::Other)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Calls, E> {
                Ok(Calls::Other)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Calls, E> {
                Ok(Calls::Other)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Calls, E> {
                Ok(Calls::Other)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Calls, E> {
                Ok(Calls::Other)
            }

            fn visit_unit<E>(self) -> Result<Calls, E> {
                Ok(Calls::Other)
            }
        }
        deserializer.deserialize_any(List)
    }
}

#[cfg(test)]
mod tests;
