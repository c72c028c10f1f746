//! Prompts: the blocks that a client sends, and the text that an agent reads of them.

use serde_json::Value;

use crate::message::{AcpFault, one_line};

/// One block of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptBlock {
    Text(String),
    /// A file that is only named.
    Link {
        uri: String,
        name: String,
    },
    /// A file with its text.
    Resource {
        uri: String,
        text: String,
    },
}

impl PromptBlock {
    /// Reads the blocks of `session/prompt`. Images, sound and bytes are refused: the capabilities do not offer them.
    pub fn read(prompt: &Value) -> Result<Vec<PromptBlock>, AcpFault> {
        let blocks = prompt.as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or_else(|| AcpFault::invalid("`prompt` is an array with at least one block"))?;
        blocks.iter().map(PromptBlock::one).collect()
    }

    fn one(block: &Value) -> Result<PromptBlock, AcpFault> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let read = match block["type"].as_str() {
            Some("text") => text(&block["text"]).map(PromptBlock::Text),
            Some("resource_link") => text(&block["uri"]).map(|uri| {
                let name = text(&block["name"]).unwrap_or_default();
                PromptBlock::Link { uri, name }
            }),
            Some("resource") => {
                let resource = &block["resource"];
                text(&resource["uri"])
                    .zip(text(&resource["text"]))
                    .map(|(uri, text)| PromptBlock::Resource { uri, text })
            }
            kind => {
                let kind = one_line(kind.unwrap_or("?"), 40);
                return Err(AcpFault::invalid(format!(
                    "an agent reads text and files, not a block of the type `{kind}`"
                )));
            }
        };
        read.ok_or_else(|| AcpFault::invalid("a block of `prompt` lacks its text or its uri"))
    }
}

/// The text that the agent reads. `place` finds the path in the tree of a path of this machine.
pub fn prompt_text(blocks: &[PromptBlock], place: &dyn Fn(&str) -> Option<String>) -> String {
    let named = |uri: &str| {
        let path = uri.strip_prefix("file://").map(decoded);
        path.as_deref().and_then(place).or(path).unwrap_or_else(|| uri.to_owned())
    };
    let mut text = String::new();
    for block in blocks {
        match block {
            PromptBlock::Text(piece) => text.push_str(piece),
            PromptBlock::Link { uri, name } => {
                let path = named(uri);
                match name.is_empty() || path.ends_with(name.as_str()) {
                    true => text.push_str(&format!("`{path}`")),
                    false => text.push_str(&format!("{} (`{path}`)", one_line(name, 200))),
                }
            }
            PromptBlock::Resource { uri, text: content } => {
                // A fence that the content cannot end.
                let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or_default();
                let fence = "`".repeat(longest.max(2) + 1);
                text.push_str(&format!(
                    "\n\n`{}`:\n{fence}\n{}\n{fence}\n\n",
                    named(uri),
                    content.trim_end_matches('\n')
                ));
            }
        }
    }
    text.trim().to_owned()
}

/// A path of a URI, without its escapes.
fn decoded(path: &str) -> String {
    let path = path.split(['#', '?']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        let escaped = match (byte, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*byte));
        if escaped.is_some() {
            rest = &after[2..];
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_one_text_with_paths_of_the_tree() {
        let prompt = json!([
            {"type": "text", "text": "Explain "},
            {"type": "resource_link", "uri": "file:///home/u/p/a%20b.rs", "name": "a b.rs"},
            {"type": "resource", "resource": {"uri": "file:///etc/x#L3", "text": "```\nx\n"}},
        ]);
        let place = |path: &str| path.strip_prefix("/home/u/p").map(|rest| format!("/projects/here/fs{rest}"));
        let text = prompt_text(&PromptBlock::read(&prompt).unwrap(), &place);
        assert_eq!(text, "Explain `/projects/here/fs/a b.rs`\n\n`/etc/x`:\n````\n```\nx\n````");
    }

    #[test]
    fn what_is_no_text_is_refused_with_the_reason() {
        for (prompt, said) in [
            (json!([]), "`prompt` is an array with at least one block"),
            (json!([{"type": "image", "data": ""}]), "an agent reads text and files, not a block of the type `image`"),
            (
                json!([{"type": "resource", "resource": {"uri": "x", "blob": "AA"}}]),
                "a block of `prompt` lacks its text or its uri",
            ),
        ] {
            assert_eq!(PromptBlock::read(&prompt).unwrap_err().message, said);
        }
    }
}
