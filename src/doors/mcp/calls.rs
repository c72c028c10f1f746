//! The three tools: their schemas, and what a call gives as text. A refusal is its code and its sentence.

use serde_json::{Map, Value, json};

use crate::agent::tools::{Misuse, ToolCall, perform, shown};
use crate::doors::tree::{DoorTree, Wait};
use acheron_base::{Code, Error, Result};

/// The longest text of one answer; what is longer comes in pages.
const PAGE: usize = 32 << 10;

/// The tools: name, description, schema, and whether it only reads. Every client puts them into the context of its model, so
/// they are short.
pub fn tool_schemas() -> [(&'static str, &'static str, Value, bool); 3] {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    let string = || json!({ "type": "string" });
    [
        (
            "file_read",
            "Read a file of the acheron tree; begin with /AGENTS.md. Waits until it is ready, unless wait_until_ready is false. \
             Long text comes in pages: go on at offset.",
            object(
                json!({ "path": string(), "offset": { "type": "integer" }, "wait_until_ready": { "type": "boolean" } }),
                json!(["path"]),
            ),
            true,
        ),
        (
            "file_write",
            "Write a file. JSON to control/<op>.json calls a service: its job_id leads to /agents/self/jobs/<job_id>/result.json.",
            object(
                json!({ "path": string(), "content": string(), "append": { "type": "boolean" } }),
                json!(["path", "content"]),
            ),
            false,
        ),
        (
            "file_list",
            "List a directory.",
            object(json!({ "path": string(), "recursive": { "type": "boolean" } }), json!(["path"])),
            true,
        ),
    ]
}

/// Calls a tool. An error is for the model to read.
pub async fn call(tree: &DoorTree, name: &str, mut arguments: Map<String, Value>) -> Result<String> {
    let offset = match name {
        "file_read" => offset(arguments.remove("offset"))?,
        _ => 0,
    };
    let call = ToolCall::read(name, arguments).map_err(|misuse| match misuse {
        Misuse::Unknown(said) => Error::unknown_operation(said),
        Misuse::Arguments(said) => Error::invalid(said),
    })?;
    match call {
        ToolCall::Read(read) => {
            let wait = if read.wait_until_ready { Wait::UntilReady } else { Wait::Never };
            let most = read.max_bytes.map_or(PAGE, |most| usize::try_from(most).unwrap_or(PAGE).clamp(1, PAGE));
            match page(tree, &read.path, offset, most, wait).await {
                Err(error) if error.code == Code::Busy && wait == Wait::Never => Ok("[not ready]".to_owned()),
                page => page,
            }
        }
        call => {
            let done = perform(&tree.tools(), &call).await;
            if let Some(error) = done.get("error") {
                return Err(serde_json::from_value(error.clone()).unwrap_or_else(|_| Error::failed(error.to_string())));
            }
            Ok(shown(&done).to_string())
        }
    }
}

fn offset(given: Option<Value>) -> Result<u64> {
    match given {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value.as_u64().ok_or_else(|| Error::invalid("offset is a number of bytes, 0 or more")),
    }
}

/// One page of a file: text, and where the next one begins.
async fn page(tree: &DoorTree, path: &str, offset: u64, most: usize, wait: Wait) -> Result<String> {
    let file = tree.open(path).await?;
    if offset > 0 {
        // A file that is computed shows one version from its beginning on.
        file.read(0, 1, wait).await?;
    }
    let bytes = file.rest(offset, most + 1, wait).await?;
    Ok(paged(&bytes, offset, most))
}

fn paged(bytes: &[u8], offset: u64, most: usize) -> String {
    let more = bytes.len() > most;
    let mut taken = &bytes[..bytes.len().min(most)];
    // The next page begins with a whole character.
    if more
        && let Err(error) = std::str::from_utf8(taken)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        taken = &taken[..error.valid_up_to()];
    }
    let text = String::from_utf8_lossy(taken);
    let lossy = if matches!(text, std::borrow::Cow::Owned(_)) {
        "\n[not UTF-8: what is no text is shown as \u{fffd}]"
    } else {
        ""
    };
    let next =
        if more { format!("\n[more: file_read with offset {}]", offset + taken.len() as u64) } else { String::new() };
    format!("{text}{lossy}{next}")
}

/// A refusal as the model reads it.
pub fn refusal(error: &Error) -> String {
    format!("{}: {}", error.code.name(), error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_of_the_tools_cost_at_most_250_tokens() {
        let tools: Vec<Value> = tool_schemas()
            .into_iter()
            .map(|(name, about, schema, _)| json!({ "name": name, "description": about, "inputSchema": schema }))
            .collect();
        let tokens = acheron_base::tokens::count(&Value::Array(tools).to_string());
        assert!(tokens <= 250, "{tokens} tokens");
    }

    #[test]
    fn pages_end_with_whole_characters_and_say_where_to_go_on() {
        assert_eq!(paged(b"abc", 0, 3), "abc");
        assert_eq!(paged(b"abcd", 10, 3), "abc\n[more: file_read with offset 13]");
        assert_eq!(paged("aäb".as_bytes(), 0, 2), "a\n[more: file_read with offset 1]");
        assert_eq!(paged(b"\xff", 0, 3), "\u{fffd}\n[not UTF-8: what is no text is shown as \u{fffd}]");
    }
}
