//! Values as the bytes of a file.

use bytes::Bytes;
use serde::Serialize;

/// One line of JSON.
pub fn line<T: Serialize>(value: &T) -> Bytes {
    // A room that most find large enough: growing by doubling copies it several times.
    let mut json = Vec::with_capacity(512);
    ended(serde_json::to_writer(&mut json, value).map(|()| json))
}

/// JSON for people.
pub fn pretty<T: Serialize>(value: &T) -> Bytes {
    ended(serde_json::to_vec_pretty(value))
}

/// An array of JSON, an element a line: for people who grep.
pub fn rows<T: Serialize>(values: &[T]) -> Bytes {
    let mut rows = Vec::new();
    for value in values {
        rows.extend_from_slice(if rows.is_empty() { b"[\n" } else { b",\n" });
        rows.extend_from_slice(&serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec()));
    }
    rows.extend_from_slice(if rows.is_empty() { b"[]\n" } else { b"\n]\n" });
    rows.into()
}

/// Only a map with keys that are no strings, or a `Serialize` that refuses, can fail; it shows as `null`.
fn ended(json: serde_json::Result<Vec<u8>>) -> Bytes {
    let mut json = json.unwrap_or_else(|_| b"null".to_vec());
    json.push(b'\n');
    json.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_json_too() {
        assert_eq!(rows::<u8>(&[]), "[]\n");
        assert_eq!(rows(&[1]), "[\n1\n]\n");
        assert_eq!(rows(&["a", "b"]), "[\n\"a\",\n\"b\"\n]\n");
    }
}
