//! The content of a memory: text or JSON, and how it changes.

use serde_json::Value;

use acheron_base::{Error, Result, utf8};

/// The largest item, in bytes as they are kept.
pub const LIMIT: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Text(String),
    Json(Value),
}

/// A change of a memory's content.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentChange {
    Replace(Value),
    /// A JSON merge patch (RFC 7396).
    Patch(Value),
    Append(Value),
    /// The same once more.
    Keep,
}

impl Content {
    /// A JSON string is text; anything else stays JSON.
    pub fn given(value: Value) -> Result<Content> {
        match value {
            Value::String(text) => Content::Text(text),
            value => Content::Json(value),
        }
        .fitting()
    }

    /// The bytes written to the file. JSON stays JSON as long as it is; a text that happens to look like
    /// JSON stays text.
    pub fn written(bytes: &[u8], before: &Content) -> Result<Content> {
        let text = std::str::from_utf8(bytes)
            .map_err(|err| Error::invalid(format!("a memory is UTF-8 text; byte {} is not", err.valid_up_to())))?;
        let json = match before {
            Content::Json(_) => serde_json::from_str(text).ok().filter(|value: &Value| !value.is_string()),
            Content::Text(_) => None,
        };
        json.map_or_else(|| Content::Text(text.to_owned()), Content::Json).fitting()
    }

    /// Whether bytes that are written at `start` may be a part of a memory.
    pub fn check_part(part: &[u8], start: usize) -> Result<()> {
        match utf8::fault(part, start == 0) {
            None => Ok(()),
            Some(at) => Err(Error::invalid(format!("a memory is UTF-8 text; byte {} is not", start + at))),
        }
    }

    /// The content as stored.
    pub fn kept(form: &str, text: String) -> Result<Content> {
        match form {
            "json" => serde_json::from_str(&text)
                .map(Content::Json)
                .map_err(|err| Error::internal(format!("the database holds a memory that is not JSON: {err}"))),
            _ => Ok(Content::Text(text)),
        }
    }

    pub fn form(&self) -> &'static str {
        match self {
            Content::Text(_) => "text",
            Content::Json(_) => "json",
        }
    }

    /// As it is kept, and shown by `cat`.
    pub fn text(&self) -> String {
        match self {
            Content::Text(text) => text.clone(),
            Content::Json(value) => format!("{value}\n"),
        }
    }

    /// As it stands in a result.
    pub fn value(self) -> Value {
        match self {
            Content::Text(text) => Value::String(text),
            Content::Json(value) => value,
        }
    }

    pub fn changed(self, change: ContentChange) -> Result<Content> {
        match (self, change) {
            (_, ContentChange::Replace(value)) => Content::given(value),
            (same, ContentChange::Keep) => Ok(same),
            (Content::Json(mut value), ContentChange::Patch(patch)) => {
                merge(&mut value, patch);
                Content::given(value)
            }
            (Content::Text(_), ContentChange::Patch(_)) => {
                Err(Error::invalid("a patch changes JSON, and this memory is text: give `content` or `append`"))
            }
            (Content::Text(text), ContentChange::Append(Value::String(more))) => Content::Text(text + &more).fitting(),
            (Content::Text(_), ContentChange::Append(_)) => {
                Err(Error::invalid("only a string can be appended to a memory that is text"))
            }
            (Content::Json(Value::Array(mut items)), ContentChange::Append(item)) => {
                items.push(item);
                Content::Json(Value::Array(items)).fitting()
            }
            (Content::Json(_), ContentChange::Append(_)) => {
                Err(Error::invalid("one can append to a text or to a JSON array: give `content` or `patch`"))
            }
        }
    }

    fn fitting(self) -> Result<Content> {
        let size = match &self {
            Content::Text(text) => text.len(),
            Content::Json(_) => self.text().len(),
        };
        match size {
            0..=LIMIT => Ok(self),
            _ => Err(Error::too_large(format!("a memory holds at most {LIMIT} bytes, and this has {size}"))),
        }
    }
}

/// RFC 7396: objects are merged, null removes, anything else replaces.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (key, change) in patch {
        match change {
            // keeps the order of the others
            Value::Null => drop(fields.shift_remove(&key)),
            change => merge(fields.entry(key).or_insert(Value::Null), change),
        }
    }
}

#[cfg(test)]
mod tests;
