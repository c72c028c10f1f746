//! Asking a model with an open prompt: render, ask, open or read what it asks for, ask again, understand the answer.
//!
//! A pure function decides what a reply requests; the loop carries it out and is bounded.

use std::collections::BTreeSet;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};

use super::Library;
use super::opened::Opened;
use crate::agent::ask::PaidModel;
use crate::model::{Message, ModelRequest};
use acheron_base::{Code, Error, Result};
use acheron_prompts::disclosure::{OPEN, READ};
use acheron_prompts::output::{Parsed, Repair, object_in};
use acheron_prompts::render::Rendered;
use acheron_prompts::tool;
use acheron_prompts::view::ToolShown;

/// How often a model is asked for one answer.
const ROUNDS: usize = 24;
const MAX_TOKENS: u32 = 4096;

/// A request in a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyRequest {
    Open {
        keys: Vec<String>,
        reason: String,
    },
    Read {
        key: String,
    },
    Call {
        tool: String,
        arguments: Value,
    },
    /// A tool that is not offered, or a call that is none.
    Wrong {
        why: String,
    },
    /// Nothing more: it is the answer.
    Answer,
}

/// A call is one object `{"tool_calls": [{"name", "arguments"}]}` with one call, as everywhere in this host.
pub fn wish(reply: &str, tools: &[ToolShown]) -> ReplyRequest {
    let Some(object) = object_in(reply, |value| value.get("tool_calls").is_some_and(Value::is_array)) else {
        return ReplyRequest::Answer;
    };
    let wrong = |why: String| ReplyRequest::Wrong { why };
    let [call] = object["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) else {
        return wrong("give exactly one call at a time".to_owned());
    };
    let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
    let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
    if !tools.iter().any(|tool| tool.name == name) {
        let known: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let known = if known.is_empty() { "there are no tools".to_owned() } else { known.join(", ") };
        return wrong(format!("there is no tool `{}`: {known}", acheron_prompts::names::clipped(name)));
    }
    let text = |field: &str| arguments.get(field).and_then(Value::as_str).map(str::to_owned);
    match name {
        OPEN => {
            let keys = arguments.get("section_keys").and_then(Value::as_array).into_iter().flatten();
            let keys = keys.filter_map(|key| key.as_str().map(str::to_owned)).collect();
            ReplyRequest::Open { keys, reason: text("reason").unwrap_or_default() }
        }
        READ => match text("section_key") {
            Some(key) => ReplyRequest::Read { key },
            None => wrong(format!("{READ} wants a section_key")),
        },
        name => ReplyRequest::Call { tool: name.to_owned(), arguments },
    }
}

/// Runs a tool of the prompt.
#[async_trait]
pub trait ToolRunner: Send + Sync {
    async fn call(&self, tool: &str, arguments: Value) -> Result<Value>;
}

#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Evaluated {
    /// The model's last reply.
    pub reply: String,
    /// The value of the declared type; null if none is declared.
    pub output: Value,
    /// How often it was asked.
    pub rounds: usize,
    /// Paths that were opened on the way.
    pub opened: Vec<String>,
    /// What was damaged or written otherwise in the answer, and how it was read.
    pub repairs: Vec<Repair>,
}

/// Asks until the model answers. Each section is opened at most once, since one that is open cannot be opened.
pub async fn evaluate(
    library: &Library,
    opened: &Opened,
    model: &PaidModel,
    runner: &dyn ToolRunner,
) -> Result<Evaluated> {
    let mut done: BTreeSet<String> = BTreeSet::new();
    let mut rendered = opened.render()?;
    let mut ask = begin(library, &rendered)?;
    for round in 1..=ROUNDS {
        let said = model.answer(ask.clone()).await?;
        let answer = match wish(&said.text, &rendered.tools) {
            ReplyRequest::Answer => return ended(opened, said.text, round, done),
            ReplyRequest::Open { keys, reason } => match opened.expand(&keys, &reason) {
                Ok(expansion) => {
                    done.extend(expansion.requested.into_keys());
                    // Opening begins anew: what was said about the shorter text is of no use.
                    rendered = opened.render()?;
                    ask = begin(library, &rendered)?;
                    continue;
                }
                Err(fault) => fault.to_string(),
            },
            ReplyRequest::Read { key } => match opened.prompt().read_section(&key) {
                Ok(text) => format!("Content of section '{key}':\n\n{text}"),
                Err(fault) => fault.to_string(),
            },
            ReplyRequest::Call { tool, arguments } => match runner.call(&tool, arguments).await {
                Ok(result) => format!("Result of {tool}:\n\n{}", tool::payload(&result)),
                Err(error) if error.code == Code::Cancelled => return Err(error),
                Err(error) => format!("{tool} failed: {error}"),
            },
            ReplyRequest::Wrong { why } => why,
        };
        ask.messages.push(Message::assistant(said.text));
        ask.messages.push(Message::user(answer));
    }
    Err(Error::budget_exceeded(format!("the model gave no answer in {ROUNDS} rounds")))
}

fn ended(opened: &Opened, reply: String, rounds: usize, done: BTreeSet<String>) -> Result<Evaluated> {
    let parsed: Option<Parsed> = opened.take_reply(&reply)?;
    let (output, repairs) = parsed.map_or((Value::Null, Vec::new()), |parsed| (parsed.value, parsed.repairs));
    Ok(Evaluated { reply, output, rounds, opened: done.into_iter().collect(), repairs })
}

/// The first question. How to call tools, and what the answer looks like, is a prompt itself.
fn begin(library: &Library, rendered: &Rendered) -> Result<ModelRequest> {
    let tools: Vec<Value> = rendered
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.params}))
        .collect();
    let params = json!({"Protocol": {
        "tools": tools, "output": rendered.output_schema.clone().unwrap_or(Value::Null),
        "typed": rendered.output_schema.is_some(), "equipped": !tools.is_empty(),
    }});
    let system = library.render("evaluate", "protocol", &params)?.text;
    Ok(ModelRequest {
        system,
        messages: vec![Message::user(rendered.text.clone())],
        max_tokens: MAX_TOKENS,
        ..ModelRequest::default()
    })
}

#[cfg(test)]
mod tests;
