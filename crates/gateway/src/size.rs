//! What a model reads of a request: its texts, and the number of its images and files.

use serde_json::{Map, Value};

/// The tokens of an image or a file, which no text counts.
const MEDIA_TOKENS: u64 = 1600;
/// The tokens of a message or a tool beside its text.
const PART_TOKENS: u64 = 8;

/// The texts of a request, and the tokens of everything else in it.
#[derive(Debug, Default)]
pub struct RequestTexts<'a> {
    pub texts: Vec<&'a str>,
    pub other_tokens: u64,
}

/// The parts of a request that a model reads; the settings beside them are not.
const READ: [&str; 10] = [
    "system",
    "messages",
    "tools",
    "instructions",
    "input",
    "contents",
    "systemInstruction",
    "system_instruction",
    "response_format",
    "text",
];

/// The number of values in a JSON text, without reading it: those in arrays and the fields of objects. Of a text that is not
/// JSON, some number.
pub fn values(json: &[u8]) -> usize {
    let (mut count, mut in_text, mut escaped) = (0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => count += 1,
            _ => (),
        }
    }
    count
}

pub fn texts(body: &Map<String, Value>) -> RequestTexts<'_> {
    let mut found = RequestTexts::default();
    for (_, value) in body.iter().filter(|(key, _)| READ.contains(&key.as_str())) {
        found.walk(value);
    }
    found
}

impl<'a> RequestTexts<'a> {
    fn walk(&mut self, value: &'a Value) {
        match value {
            Value::String(text) if text.starts_with("data:") => self.other_tokens += MEDIA_TOKENS,
            Value::String(text) => self.texts.push(text),
            Value::Array(all) => all.iter().for_each(|each| self.walk(each)),
            Value::Object(all) => {
                self.other_tokens += PART_TOKENS;
                let media = ["media_type", "mimeType", "mime_type"].iter().any(|key| all.contains_key(*key));
                for (key, each) in all {
                    if media && key == "data" && each.is_string() {
                        self.other_tokens += MEDIA_TOKENS;
                    } else {
                        self.texts.push(key);
                        self.walk(each);
                    }
                }
            }
            Value::Number(_) | Value::Bool(_) => self.other_tokens += 2,
            Value::Null => self.other_tokens += 1,
        }
    }

    /// An estimate of all tokens, from the length.
    pub fn estimated(&self) -> u64 {
        let bytes: u64 = self.texts.iter().map(|text| text.len() as u64).sum();
        bytes.div_ceil(3) + self.other_tokens
    }
}
