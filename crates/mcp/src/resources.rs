//! The resources of a server as files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::Value;

use crate::names::UniqueNames;
use crate::text::one_line;
use acheron_base::{Error, Result};

/// The longest URI that is taken.
const URI: usize = 2048;

/// A resource that a server lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The name of its file.
    pub file: String,
    pub uri: String,
    /// The words of the server, in one line.
    pub about: String,
    pub mime: String,
}

/// A pattern of URIs that a server can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceTemplate {
    pub uri: String,
    pub about: String,
}

/// The resources among the entries of `resources/list`.
pub fn read(entries: &[Value], names: &mut UniqueNames) -> Vec<Resource> {
    let resource = |entry: &Value| {
        let uri = uri(&entry["uri"])?;
        let mime = one_line(entry["mimeType"].as_str().unwrap_or_default(), 100);
        let named = entry["name"].as_str().filter(|name| !name.trim().is_empty());
        let mut name = named.unwrap_or_else(|| last_part(&uri)).to_owned();
        if !name.contains('.') {
            name.push_str(extension(&mime));
        }
        let file = names.file(&name);
        Some(Resource { file, about: described(entry), mime, uri })
    };
    entries.iter().filter_map(resource).collect()
}

/// The templates among the entries of `resources/templates/list`.
pub fn templates(entries: &[Value]) -> Vec<ResourceTemplate> {
    let template = |entry: &Value| Some(ResourceTemplate { uri: uri(&entry["uriTemplate"])?, about: described(entry) });
    entries.iter().filter_map(template).collect()
}

fn uri(value: &Value) -> Option<String> {
    let uri = value.as_str()?;
    (!uri.is_empty() && uri.len() <= URI && !uri.chars().any(char::is_control)).then(|| uri.to_owned())
}

fn described(entry: &Value) -> String {
    one_line(entry["description"].as_str().or(entry["title"].as_str()).unwrap_or_default(), 300)
}

/// The part of a URI after its last slash.
pub fn last_part(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.rsplit('/').next().unwrap_or_default()
}

/// The usual extension of a media type.
pub fn extension(mime: &str) -> &'static str {
    match mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "image/png" => ".png",
        "image/jpeg" => ".jpg",
        "image/gif" => ".gif",
        "image/webp" => ".webp",
        "image/svg+xml" => ".svg",
        "audio/wav" | "audio/x-wav" => ".wav",
        "audio/mpeg" => ".mp3",
        "audio/ogg" => ".ogg",
        "application/json" => ".json",
        "application/pdf" => ".pdf",
        "text/markdown" => ".md",
        "text/html" => ".html",
        "text/csv" => ".csv",
        mime if mime.starts_with("text/") => ".txt",
        _ => ".bin",
    }
}

/// The content of a resource.
pub struct ResourceBytes;

impl ResourceBytes {
    /// The bytes in the result of `resources/read`: its parts in order.
    pub fn of(result: &Value) -> Result<Bytes> {
        let parts = result["contents"].as_array();
        let parts = parts.ok_or_else(|| Error::failed("the server returned no contents of the resource"))?;
        let mut all = Vec::new();
        for part in parts {
            all.extend(ResourceBytes::part(part)?);
        }
        Ok(all.into())
    }

    /// The bytes of one part: its text, or its decoded blob.
    pub(crate) fn part(part: &Value) -> Result<Vec<u8>> {
        match (part["text"].as_str(), part["blob"].as_str()) {
            (Some(text), _) => Ok(text.as_bytes().to_vec()),
            (None, Some(blob)) => decoded(blob),
            (None, None) => Err(Error::failed("the server returned a resource with neither text nor blob")),
        }
    }
}

/// Bytes from base64.
pub(crate) fn decoded(data: &str) -> Result<Vec<u8>> {
    STANDARD.decode(data.trim()).map_err(|_| Error::failed("the server returned data that is not base64"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn resources_have_names_of_files() {
        let entries = [
            json!({"uri": "demo://notes/1", "name": "Note 1", "mimeType": "text/plain", "description": "one\ntwo"}),
            json!({"uri": "file:///a/b.md?x=1"}),
            json!({"uri": "file:///c/b.md"}),
            json!({"uri": "x:\u{1b}"}),
        ];
        let found = read(&entries, &mut UniqueNames::without(&["README.md"]));
        let files: Vec<&str> = found.iter().map(|it| it.file.as_str()).collect();
        assert_eq!(files, ["Note_1.txt", "b.md", "b-2.md"]);
        assert_eq!(found[0].about, "one two");
    }

    #[test]
    fn contents_are_text_or_blobs() {
        let read = |value: Value| ResourceBytes::of(&value).map_err(|error| error.message);
        assert_eq!(read(json!({"contents": [{"text": "a"}, {"blob": "Yg=="}]})).unwrap(), "ab");
        assert_eq!(
            read(json!({"contents": [{"blob": "!"}]})).unwrap_err(),
            "the server returned data that is not base64"
        );
        assert!(read(json!({})).is_err() && read(json!({"contents": [{}]})).is_err());
    }
}
