//! Requests of OpenAI's two languages, as far as an agent can follow them: whom they ask, and what is new. Pure.
//!
//! Clients send the whole conversation each time. The agent keeps its own, so that only the last message is new, and it must be
//! the user's. What shapes the answer of a bare model (`temperature`, `tools`, …) is ignored.

use serde_json::Value;

use acheron_base::{Error, Result};

/// One turn that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRequest {
    pub model: String,
    pub input: String,
    pub stream: bool,
    /// A stream ends with the usage.
    pub include_usage: bool,
    /// The conversation that it says to belong to.
    pub conversation: Option<String>,
    /// The answer that it says to follow.
    pub previous: Option<String>,
}

/// Reads a body of `/v1/chat/completions`.
pub fn chat(body: &[u8]) -> Result<TurnRequest> {
    let body = object(body)?;
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let last = messages.and_then(|messages| messages.last());
    let last = last.ok_or_else(|| Error::invalid("`messages` is an array with at least one message"))?;
    if last["role"] != "user" {
        return Err(Error::invalid("the last of `messages` has the role `user`: it is what is new to the agent"));
    }
    Ok(TurnRequest {
        model: model(&body)?,
        input: text(&last["content"])?,
        stream: body["stream"] == true,
        include_usage: body["stream_options"]["include_usage"] == true,
        conversation: word(&body["metadata"]["conversation_id"]),
        previous: None,
    })
}

/// Reads a body of `/v1/responses`.
pub fn responses(body: &[u8]) -> Result<TurnRequest> {
    let body = object(body)?;
    let input = match &body["input"] {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let user = items.iter().rev().find(|item| item["role"] == "user");
            match (items.last(), user) {
                (Some(last), Some(user)) if last == user => text(&user["content"])?,
                _ => {
                    let said = "the last item of `input` has the role `user`: it is what is new to the agent";
                    return Err(Error::invalid(said));
                }
            }
        }
        _ => return Err(Error::invalid("`input` is a text or an array of items")),
    };
    let conversation = word(&body["conversation"]).or_else(|| word(&body["conversation"]["id"]));
    Ok(TurnRequest {
        model: model(&body)?,
        input,
        stream: body["stream"] == true,
        include_usage: true,
        conversation,
        previous: word(&body["previous_response_id"]),
    })
}

fn object(body: &[u8]) -> Result<Value> {
    match serde_json::from_slice(body) {
        Ok(body @ Value::Object(_)) => Ok(body),
        Ok(_) => Err(Error::invalid("the body is a JSON object")),
        Err(err) => Err(Error::invalid(format!("the body is not JSON: {err}"))),
    }
}

fn model(body: &Value) -> Result<String> {
    word(&body["model"]).ok_or_else(|| Error::invalid("`model` is the name of an agent; /v1/models lists them"))
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A text, or parts that are all text.
fn text(content: &Value) -> Result<String> {
    let parts = match content {
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => return Err(Error::invalid("`content` is a text or an array of parts")),
    };
    let mut text = String::new();
    for part in parts {
        match (part["type"].as_str(), part["text"].as_str()) {
            (Some("text" | "input_text"), Some(piece)) => text.push_str(piece),
            (kind, _) => {
                let kind = acheron_base::quoted(kind.unwrap_or("?"));
                return Err(Error::invalid(format!("an agent reads text, not a part of the type {kind}")));
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_of_the_user_is_what_is_new() {
        let chat = |body: Value| chat(body.to_string().as_bytes()).map(|it| it.input).map_err(|error| error.message);
        let user = |content: Value| serde_json::json!({"role": "user", "content": content});
        for (messages, expected) in [
            (serde_json::json!([user("a".into()), {"role": "assistant", "content": "b"}, user("c".into())]), Some("c")),
            (
                serde_json::json!([user(
                    serde_json::json!([{"type": "text", "text": "x"}, {"type": "text", "text": "y"}])
                )]),
                Some("xy"),
            ),
            (serde_json::json!([user(serde_json::json!([{"type": "image_url", "image_url": {}}]))]), None),
            (serde_json::json!([user("a".into()), {"role": "assistant", "content": "b"}]), None),
            (serde_json::json!([]), None),
            (Value::Null, None),
        ] {
            let said = chat(serde_json::json!({"model": "m", "messages": messages, "temperature": 0, "unknown": {}}));
            assert_eq!(said.as_deref().ok(), expected, "{said:?}");
        }
        let responses =
            |input: Value| responses(serde_json::json!({"model": "m", "input": input}).to_string().as_bytes());
        assert_eq!(responses("hi".into()).unwrap().input, "hi");
        let parts = serde_json::json!([user(serde_json::json!([{"type": "input_text", "text": "hi"}]))]);
        assert_eq!(responses(parts).unwrap().input, "hi");
        assert!(responses(serde_json::json!([{"type": "function_call_output"}])).is_err());
    }
}
