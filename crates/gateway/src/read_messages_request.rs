//! The conversation in a request of Anthropic's language. What only that language has (reasoning, caching, server tools,
//! context management) is left out.

use serde_json::{Map, Value};

use super::AnswerCall;
use super::conversation::{CallResult, ContentPart, Conversation, ConversationTurn, FunctionTool, ToolChoice, text_of};

/// The first block of one program's system prompt: it is for the provider's books, and differs between versions.
pub(crate) const BILLING: &str = "x-anthropic-billing-header";

pub fn conversation(body: &Map<String, Value>) -> Conversation {
    let mut found = Conversation::default();
    match body.get("system") {
        Some(Value::String(text)) => found.add_system(text),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.filter(|text| !text.starts_with(BILLING)).for_each(|text| found.add_system(text));
        }
        _ => (),
    }
    for message in body.get("messages").and_then(Value::as_array).into_iter().flatten() {
        add_message(&mut found, message);
    }
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    found.tools = tools.filter_map(tool).collect();
    if let Some(choice) = body.get("tool_choice") {
        found.tool_choice = match choice["type"].as_str() {
            Some("auto") => Some(ToolChoice::Auto),
            Some("any") => Some(ToolChoice::Any),
            Some("none") => Some(ToolChoice::None),
            Some("tool") => choice["name"].as_str().map(|name| ToolChoice::Named(name.to_owned())),
            _ => None,
        };
        found.parallel_calls = choice["disable_parallel_tool_use"].as_bool().map(|disabled| !disabled);
    }
    let stop = body.get("stop_sequences").and_then(Value::as_array).into_iter().flatten();
    found.stop = stop.filter_map(Value::as_str).map(str::to_owned).collect();
    (found.temperature, found.top_p) = (body.get("temperature").cloned(), body.get("top_p").cloned());
    found
}

/// A tool of the program's own; those of Anthropic's server have a type and no schema.
fn tool(tool: &Value) -> Option<FunctionTool> {
    let name = tool["name"].as_str()?.to_owned();
    let parameters = tool.get("input_schema").filter(|schema| schema.is_object())?.clone();
    Some(FunctionTool { name, about: tool["description"].as_str().unwrap_or_default().to_owned(), parameters })
}

fn add_message(found: &mut Conversation, message: &Value) {
    let content = &message["content"];
    let own;
    let blocks = match content {
        Value::Array(blocks) => blocks.as_slice(),
        Value::String(text) => {
            own = [serde_json::json!({"type": "text", "text": text})];
            &own
        }
        _ => &[],
    };
    match message["role"].as_str() {
        Some("assistant") => blocks.iter().for_each(|block| add_assistant(found, block)),
        Some("system") => found.turns.push(ConversationTurn::System(text_of(content))),
        _ => {
            // The results of calls come before anything else that the user says.
            for block in blocks.iter().filter(|block| block["type"] == "tool_result") {
                found.turns.push(ConversationTurn::Result(result(block)));
            }
            found.user(blocks.iter().filter_map(part).collect());
        }
    }
}

fn add_assistant(found: &mut Conversation, block: &Value) {
    match block["type"].as_str() {
        Some("text") => found.assistant(block["text"].as_str().unwrap_or_default(), Vec::new()),
        Some("tool_use") => {
            let word = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            let arguments = block.get("input").map_or_else(|| "{}".to_owned(), Value::to_string);
            found.assistant("", vec![AnswerCall { id: word("id"), name: word("name"), arguments }]);
        }
        _ => (), // reasoning, and the calls of the server's own tools
    }
}

fn result(block: &Value) -> CallResult {
    let content = &block["content"];
    let images = content.as_array().into_iter().flatten().filter_map(image).collect();
    let (id, failed) = (block["tool_use_id"].as_str().unwrap_or_default().to_owned(), block["is_error"] == true);
    CallResult { id, text: text_of(content), failed, images }
}

fn part(block: &Value) -> Option<ContentPart> {
    match block["type"].as_str()? {
        "text" => Some(ContentPart::Text(block["text"].as_str()?.to_owned())),
        "image" => image(block).map(ContentPart::Image),
        "document" => Some(ContentPart::Text(match block["source"]["data"].as_str() {
            Some(text) if block["source"]["type"] == "text" => text.to_owned(),
            _ => "[a document in a form that this model cannot read]".to_owned(),
        })),
        _ => None,
    }
}

/// The address of an image.
fn image(block: &Value) -> Option<String> {
    let source = block.get("source").filter(|_| block["type"] == "image")?;
    match source["type"].as_str()? {
        "url" => source["url"].as_str().map(str::to_owned),
        "base64" => {
            let kind = source["media_type"].as_str().unwrap_or("image/png");
            Some(format!("data:{kind};base64,{}", source["data"].as_str()?))
        }
        _ => None,
    }
}
