//! The conversation in a request of Google's language, for models that have no language of their own.

use serde_json::{Map, Value};

use super::AnswerCall;
use super::conversation::{CallResult, ContentPart, Conversation, ConversationTurn, FunctionTool, text_of};

pub fn conversation(body: &Map<String, Value>) -> Conversation {
    let mut found = Conversation::default();
    let system = body.get("systemInstruction").or_else(|| body.get("system_instruction"));
    if let Some(system) = system {
        found.add_system(&text_of(&system["parts"]));
    }
    for content in body.get("contents").and_then(Value::as_array).into_iter().flatten() {
        let by_model = content["role"] == "model";
        for part in content["parts"].as_array().into_iter().flatten() {
            add_part(&mut found, part, by_model);
        }
    }
    for group in body.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let functions = group["functionDeclarations"].as_array().into_iter().flatten();
        found.tools.extend(functions.filter_map(tool));
    }
    found
}

fn tool(function: &Value) -> Option<FunctionTool> {
    let name = function["name"].as_str()?.to_owned();
    let schema = function.get("parametersJsonSchema").or_else(|| function.get("parameters")).cloned();
    let about = function["description"].as_str().unwrap_or_default().to_owned();
    Some(FunctionTool { name, about, parameters: schema.unwrap_or_default() })
}

fn add_part(found: &mut Conversation, part: &Value, by_model: bool) {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(call) = part.get("functionCall") {
        let arguments = call.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
        // Calls without an id are told apart by their names.
        let (id, name) =
            (call["id"].as_str().unwrap_or_else(|| call["name"].as_str().unwrap_or_default()), word(&call["name"]));
        found.assistant("", vec![AnswerCall { id: id.to_owned(), name, arguments }]);
    } else if let Some(given) = part.get("functionResponse") {
        let id = given["id"].as_str().or(given["name"].as_str()).unwrap_or_default().to_owned();
        let text = given.get("response").map(Value::to_string).unwrap_or_default();
        found.turns.push(ConversationTurn::Result(CallResult { id, text, ..CallResult::default() }));
    } else if let Some(text) = part["text"].as_str() {
        match by_model {
            true if part["thought"] == true => (),
            true => found.assistant(text, Vec::new()),
            false => found.user(vec![ContentPart::Text(text.to_owned())]),
        }
    }
}
