//! The conversation in a request for OpenAI's responses. Items and tools of types that other servers do not know are left out.

use serde_json::{Map, Value, json};

use super::AnswerCall;
use super::conversation::{CallResult, ContentPart, Conversation, ConversationTurn, FunctionTool, ToolChoice, text_of};

pub fn conversation(body: &Map<String, Value>) -> Conversation {
    let mut found = Conversation::default();
    found.add_system(body.get("instructions").and_then(Value::as_str).unwrap_or_default());
    match body.get("input") {
        Some(Value::String(text)) => found.user(vec![ContentPart::Text(text.clone())]),
        Some(Value::Array(items)) => items.iter().for_each(|item| add_item(&mut found, item)),
        _ => (),
    }
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    found.tools = tools.filter_map(tool).collect();
    found.tool_choice = match body.get("tool_choice") {
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Any),
            _ => None,
        },
        Some(choice) if choice["type"] == "function" => {
            choice["name"].as_str().map(|name| ToolChoice::Named(name.to_owned()))
        }
        _ => None,
    };
    found.parallel_calls = body.get("parallel_tool_calls").and_then(Value::as_bool);
    (found.temperature, found.top_p) = (body.get("temperature").cloned(), body.get("top_p").cloned());
    found.response_format = body.get("text").and_then(|text| format(&text["format"]));
    found
}

fn tool(tool: &Value) -> Option<FunctionTool> {
    if tool["type"] != "function" {
        return None;
    }
    let name = tool["name"].as_str()?.to_owned();
    let parameters = tool.get("parameters").filter(|schema| schema.is_object());
    let parameters = parameters.cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    Some(FunctionTool { name, about: tool["description"].as_str().unwrap_or_default().to_owned(), parameters })
}

/// The form of the answer as chat completions write it.
fn format(format: &Value) -> Option<Value> {
    match format["type"].as_str()? {
        "json_object" => Some(json!({"type": "json_object"})),
        "json_schema" => {
            let mut schema = format.as_object()?.clone();
            schema.remove("type");
            Some(json!({"type": "json_schema", "json_schema": schema}))
        }
        _ => None,
    }
}

fn add_item(found: &mut Conversation, item: &Value) {
    let word = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    match item["type"].as_str().unwrap_or("message") {
        "message" => match item["role"].as_str() {
            Some("assistant") => found.assistant(&text_of(&item["content"]), Vec::new()),
            Some("system" | "developer") => found.turns.push(ConversationTurn::System(text_of(&item["content"]))),
            _ => found.user(parts(&item["content"])),
        },
        "function_call" => {
            let call = AnswerCall { id: word("call_id"), name: word("name"), arguments: word("arguments") };
            found.assistant("", vec![call]);
        }
        "function_call_output" => {
            let output = &item["output"];
            let images = parts(output).into_iter().filter_map(|part| match part {
                ContentPart::Image(url) => Some(url),
                ContentPart::Text(_) => None,
            });
            let (id, images) = (word("call_id"), images.collect());
            found.turns.push(ConversationTurn::Result(CallResult { id, text: text_of(output), failed: false, images }));
        }
        _ => (), // reasoning, and what the server's own tools did
    }
}

fn parts(content: &Value) -> Vec<ContentPart> {
    match content {
        Value::String(text) => vec![ContentPart::Text(text.clone())],
        Value::Array(parts) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

fn part(part: &Value) -> Option<ContentPart> {
    match part["type"].as_str()? {
        "input_image" => part["image_url"].as_str().map(|url| ContentPart::Image(url.to_owned())),
        "input_text" | "output_text" | "text" => part["text"].as_str().map(|text| ContentPart::Text(text.to_owned())),
        _ => None,
    }
}
