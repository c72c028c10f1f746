//! The three tools of an agent, `file_read`, `file_write` and `file_list`: their arguments and results.
//!
//! A call means the same on the tree of this process and on a mount used by a program outside ([`ToolBackend`]). Used by
//! the turns of an agent and by `cli`; of models it knows how tools are offered to them.

pub mod directory;
mod perform;
mod shown;
mod tagged;
pub mod tree;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::OfferedTool;
use acheron_base::nearest::nearest;

pub use directory::MountTools;
pub use perform::{EntryKind, ListedEntry, ReadBytes, ToolBackend, perform};
pub use shown::shown;

/// Default and maximum sizes of a read and of a listing.
const READ: u64 = 1 << 20;
const MOST_READ: u64 = 8 << 20;
const ENTRIES: u64 = 500;
const MOST_ENTRIES: u64 = 5000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRead {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub wait_until_ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    pub path: String,
    pub content: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create_parents: bool,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub wait_until_ready: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileList {
    #[serde(default = "here")]
    pub path: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_entries: Option<u64>,
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn here() -> String {
    ".".to_owned()
}

/// One tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "name", content = "arguments")]
pub enum ToolCall {
    #[serde(rename = "file_read")]
    Read(FileRead),
    #[serde(rename = "file_write")]
    Write(FileWrite),
    #[serde(rename = "file_list")]
    List(FileList),
}

/// The reason why a call is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misuse {
    Unknown(String),
    Arguments(String),
}

/// Each tool with its arguments; required ones come first and are marked with `!`.
const TOOLS: [(&str, &[&str]); 3] = [
    ("file_read", &["path!", "max_bytes", "wait_until_ready"]),
    ("file_write", &["path!", "content!", "append", "create_parents", "wait_until_ready"]),
    ("file_list", &["path", "recursive", "max_entries"]),
];

fn about(name: &str) -> &'static str {
    match name {
        "file_read" => "Reads a file. Waits until it is ready, unless wait_until_ready is false.",
        "file_write" => "Writes a file: replaces it, or appends. A write to a control file calls a service.",
        _ => "Lists a directory.",
    }
}

impl ToolCall {
    /// Whether there is a tool of that name.
    pub fn is_tool(name: &str) -> bool {
        TOOLS.iter().any(|(tool, _)| *tool == name)
    }

    /// The JSON Schema of an answer: one object with one call.
    pub fn answer_schema() -> Value {
        let names: Vec<&str> = TOOLS.iter().map(|(tool, _)| *tool).collect();
        let call = serde_json::json!({"type": "object", "required": ["name", "arguments"],
            "properties": {"name": {"enum": names}, "arguments": {"type": "object"}}});
        let calls = serde_json::json!({"type": "array", "minItems": 1, "maxItems": 1, "items": call});
        serde_json::json!({"type": "object", "required": ["tool_calls"], "properties": {"tool_calls": calls}})
    }

    /// The tools as they are offered to models that call them in their provider's own way.
    pub fn offered() -> Vec<OfferedTool> {
        let kind = |key: &str| match key {
            "path" | "content" => "string",
            "max_bytes" | "max_entries" => "integer",
            _ => "boolean",
        };
        let offered = |(name, known): &(&'static str, &[&str])| {
            let plain = known.iter().map(|key| key.trim_end_matches('!'));
            let properties: Map<String, Value> =
                plain.map(|key| (key.to_owned(), serde_json::json!({"type": kind(key)}))).collect();
            let required: Vec<&str> = known.iter().filter_map(|key| key.strip_suffix('!')).collect();
            let arguments = serde_json::json!({"type": "object", "properties": properties, "required": required,
                "additionalProperties": false});
            OfferedTool { name, about: about(name), arguments }
        };
        TOOLS.iter().map(offered).collect()
    }

    /// Parses a call of the tool `name`.
    pub fn read(name: &str, arguments: Map<String, Value>) -> Result<ToolCall, Misuse> {
        let Some((_, known)) = TOOLS.iter().find(|(tool, _)| *tool == name) else {
            let name: String = name.chars().take(80).collect();
            return Err(Misuse::Unknown(format!(
                "there is no tool `{name}`; the tools are file_read, file_write and file_list"
            )));
        };
        let plain = |key: &'static str| key.trim_end_matches('!');
        if let Some(strange) = arguments.keys().find(|key| !known.iter().any(|known| plain(known) == **key)) {
            let hint = nearest(strange, known.iter().map(|known| plain(known))).map_or_else(
                || format!("it takes {}", known.iter().map(|known| plain(known)).collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            let strange: String = strange.chars().take(80).collect();
            return Err(Misuse::Arguments(format!("{name} has no argument `{strange}`; {hint}")));
        }
        let missing =
            known.iter().filter_map(|known| known.strip_suffix('!')).find(|key| !arguments.contains_key(*key));
        if let Some(missing) = missing {
            return Err(Misuse::Arguments(format!("{name} needs `{missing}`")));
        }
        // Some programs write `null` for an absent optional argument.
        let arguments: Map<_, _> = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let call = serde_json::json!({"name": name, "arguments": arguments});
        let tool: ToolCall =
            serde_json::from_value(call).map_err(|error| Misuse::Arguments(format!("{name}: {error}")))?;
        if tool.path().contains('\0') {
            return Err(Misuse::Arguments(format!("{name}: a path must not contain NUL")));
        }
        Ok(tool)
    }

    pub fn name(&self) -> &'static str {
        match self {
            ToolCall::Read(_) => "file_read",
            ToolCall::Write(_) => "file_write",
            ToolCall::List(_) => "file_list",
        }
    }

    pub fn path(&self) -> &str {
        match self {
            ToolCall::Read(read) => &read.path,
            ToolCall::Write(write) => &write.path,
            ToolCall::List(list) => &list.path,
        }
    }

    /// Whether the call may have effects and therefore must not be repeated by mistake.
    pub fn acts(&self) -> bool {
        matches!(self, ToolCall::Write(_))
    }
}

/// The refusal of a write to a name that is not there and that its directory does not take. A hidden name is refused the same way.
fn cannot_be_made(path: &str) -> acheron_base::Error {
    acheron_base::Error::forbidden(format!("`{path}` does not exist and cannot be made"))
}

/// The result of a failed call.
pub fn failure(error: &acheron_base::Error) -> Value {
    serde_json::json!({ "error": error })
}

#[cfg(test)]
mod tests;
