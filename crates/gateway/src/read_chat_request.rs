//! The conversation in a request for chat completions, for models that have no language of their own.

use serde_json::{Map, Value, json};

use super::AnswerCall;
use super::conversation::{CallResult, ContentPart, Conversation, ConversationTurn, FunctionTool, text_of};

pub fn conversation(body: &Map<String, Value>) -> Conversation {
    let mut found = Conversation::default();
    for message in body.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("system" | "developer") if found.turns.is_empty() => found.add_system(&text_of(content)),
            Some("system" | "developer") => found.turns.push(ConversationTurn::System(text_of(content))),
            Some("assistant") => {
                let calls = message["tool_calls"].as_array().into_iter().flatten().map(call).collect();
                found.assistant(&text_of(content), calls);
            }
            Some("tool" | "function") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
                let result = CallResult { id, text: text_of(content), ..CallResult::default() };
                found.turns.push(ConversationTurn::Result(result));
            }
            _ => found.user(parts(content)),
        }
    }
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    found.tools = tools.filter_map(tool).collect();
    found
}

fn tool(tool: &Value) -> Option<FunctionTool> {
    let function = tool.get("function")?;
    let (name, about) = (function["name"].as_str()?.to_owned(), function["description"].as_str().unwrap_or_default());
    let parameters = function.get("parameters").cloned().unwrap_or_else(|| json!({}));
    Some(FunctionTool { name, about: about.to_owned(), parameters })
}

fn call(call: &Value) -> AnswerCall {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let function = &call["function"];
    AnswerCall { id: word(&call["id"]), name: word(&function["name"]), arguments: word(&function["arguments"]) }
}

fn parts(content: &Value) -> Vec<ContentPart> {
    let part = |part: &Value| match part["image_url"]["url"].as_str() {
        Some(url) => Some(ContentPart::Image(url.to_owned())),
        None => part["text"].as_str().map(|text| ContentPart::Text(text.to_owned())),
    };
    match content {
        Value::String(text) => vec![ContentPart::Text(text.clone())],
        Value::Array(all) => all.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}
