//! A conversation as a request for chat completions.

use serde_json::{Map, Value, json};

use super::AnswerCall;
use super::conversation::{CallResult, ContentPart, Conversation, ConversationTurn, ToolChoice};

pub fn body(conversation: &Conversation, model: &str, stream: bool) -> Map<String, Value> {
    let mut body = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            body.insert(key.to_owned(), value);
        }
    };
    set("model", Some(model.into()));
    set("messages", Some(messages(conversation).into()));
    let tools: Vec<Value> = conversation.tools.iter().map(tool).collect();
    if !tools.is_empty() {
        set("tools", Some(tools.into()));
        set("tool_choice", conversation.tool_choice.as_ref().map(choice));
        set("parallel_tool_calls", conversation.parallel_calls.map(Value::from));
    }
    set("temperature", conversation.temperature.clone());
    set("top_p", conversation.top_p.clone());
    set("stop", Some(&conversation.stop).filter(|stop| !stop.is_empty()).map(|stop| json!(stop)));
    set("response_format", conversation.response_format.clone());
    if stream {
        set("stream", Some(true.into()));
        set("stream_options", Some(json!({"include_usage": true})));
    }
    body
}

fn tool(tool: &super::FunctionTool) -> Value {
    json!({"type": "function", "function": {"name": tool.name, "description": tool.about, "parameters": tool.parameters}})
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Any => "required".into(),
        ToolChoice::Named(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

fn messages(conversation: &Conversation) -> Vec<Value> {
    let mut messages = Vec::new();
    if !conversation.system.is_empty() {
        messages.push(json!({"role": "system", "content": conversation.system}));
    }
    // The results of the calls of one answer must follow each other; their images come after them.
    let mut images = Vec::new();
    for turn in &conversation.turns {
        match turn {
            ConversationTurn::Result(given) => {
                messages.push(result(given));
                images.extend(given.images.iter().map(|url| ContentPart::Image(url.clone())));
                continue;
            }
            _ if images.is_empty() => (),
            _ => messages.push(user(&std::mem::take(&mut images))),
        }
        messages.push(match turn {
            ConversationTurn::System(text) => json!({"role": "system", "content": text}),
            ConversationTurn::Assistant { text, calls } => assistant(text, calls),
            ConversationTurn::User(parts) => user(parts),
            ConversationTurn::Result(_) => continue,
        });
    }
    if !images.is_empty() {
        messages.push(user(&images));
    }
    messages
}

fn user(parts: &[ContentPart]) -> Value {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::Image(url) => json!({"type": "image_url", "image_url": {"url": url}}),
    };
    // Some servers take text alone.
    match parts.iter().all(|part| matches!(part, ContentPart::Text(_))) {
        true => json!({"role": "user", "content": ContentPart::text_of(parts)}),
        false => json!({"role": "user", "content": parts.iter().map(part).collect::<Vec<_>>()}),
    }
}

fn assistant(text: &str, calls: &[AnswerCall]) -> Value {
    let call = |call: &AnswerCall| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    let content = Some(text).filter(|text| !text.is_empty());
    let mut message = json!({"role": "assistant", "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().map(call).collect();
    }
    message
}

fn result(result: &CallResult) -> Value {
    let text = match (result.failed, result.text.as_str()) {
        (true, text) => format!("error: {text}"),
        (false, "") if !result.images.is_empty() => "[an image, which follows]".to_owned(),
        (false, text) => text.to_owned(),
    };
    json!({"role": "tool", "tool_call_id": result.id, "content": text})
}
