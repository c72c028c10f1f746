//! The result of a tool: a value, and files beside it.

use bytes::Bytes;
use serde_json::Value;

use crate::names::UniqueNames;
use crate::resources::{ResourceBytes, decoded, extension, last_part};
use crate::text::{one_line, printable};
use crate::{MOST_FILE_BYTES, MOST_FILES};

/// The longest message of a failed call, in characters.
const MESSAGE: usize = 4000;

/// What a call of a tool gave.
#[derive(Debug, PartialEq)]
pub struct ToolResult {
    /// The structured result, otherwise the text; or the sentence of the server that it failed.
    pub outcome: Result<Value, String>,
    pub files: Vec<ToolResultFile>,
}

/// An image, a sound or another blob of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResultFile {
    pub name: String,
    pub bytes: Bytes,
    /// The line that stands for it in a text: `[files/image-1.png: image/png, 95 bytes]`.
    pub line: String,
}

/// Reads the result of `tools/call`.
pub fn read(result: &Value) -> ToolResult {
    let mut reader = Reader { names: UniqueNames::default(), files: Vec::new(), room: MOST_FILE_BYTES, number: 0 };
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let lines: Vec<String> = blocks.iter().map(|block| reader.block(block)).collect();
    let text = lines.join("\n");
    let failed = result["isError"] == Value::Bool(true);
    let outcome = match result.get("structuredContent").filter(|value| !value.is_null()) {
        _ if failed => {
            let said = printable(&text);
            let said = said.trim();
            let short: String = said.chars().take(MESSAGE).collect();
            let more = if short.len() < said.len() { "…" } else { "" };
            Err(if said.is_empty() { "the tool failed and gave no reason".to_owned() } else { short + more })
        }
        // The text beside it is a copy.
        Some(value) => Ok(value.clone()),
        None => Ok(Value::String(text)),
    };
    ToolResult { outcome, files: reader.files }
}

struct Reader {
    names: UniqueNames,
    files: Vec<ToolResultFile>,
    room: usize,
    number: usize,
}

impl Reader {
    /// A block as text; a blob becomes a file, and its line stands here.
    fn block(&mut self, block: &Value) -> String {
        let word = |key: &str| block[key].as_str().unwrap_or_default();
        match word("type") {
            "text" => word("text").to_owned(),
            kind @ ("image" | "audio") => {
                self.number += 1;
                let mime = one_line(word("mimeType"), 100);
                let name = format!("{kind}-{}{}", self.number, extension(&mime));
                self.file(&name, &mime, "", decoded(word("data")).map_err(|error| error.message))
            }
            "resource" => {
                let resource = &block["resource"];
                let uri = one_line(resource["uri"].as_str().unwrap_or_default(), 300);
                let mime = one_line(resource["mimeType"].as_str().unwrap_or_default(), 100);
                let mut name = last_part(&uri).to_owned();
                if !name.contains('.') {
                    name.push_str(extension(if mime.is_empty() && resource["text"].is_string() {
                        "text/plain"
                    } else {
                        &mime
                    }));
                }
                self.file(
                    &name,
                    &mime,
                    &format!(", of {uri}"),
                    ResourceBytes::part(resource).map_err(|error| error.message),
                )
            }
            "resource_link" => format!("[resource {}: {}]", one_line(word("name"), 100), one_line(word("uri"), 300)),
            other => format!("[content of the type {}, which is not known]", one_line(other, 40)),
        }
    }

    fn file(&mut self, name: &str, mime: &str, more: &str, bytes: Result<Vec<u8>, String>) -> String {
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(why) => return format!("[no file {}: {why}]", one_line(name, 100)),
        };
        if self.files.len() == MOST_FILES || bytes.len() > self.room {
            return format!(
                "[no file for {} bytes of {mime}: a call keeps at most {MOST_FILES} files and {MOST_FILE_BYTES} bytes]",
                bytes.len()
            );
        }
        self.room -= bytes.len();
        let name = self.names.file(name);
        let mime = if mime.is_empty() { "data" } else { mime };
        let line = format!("[files/{name}: {mime}, {} bytes{more}]", bytes.len());
        self.files.push(ToolResultFile { name, bytes: bytes.into(), line: line.clone() });
        line
    }
}

#[cfg(test)]
mod tests;
