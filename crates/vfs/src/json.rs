//! Values as the bytes of a file. Uses nothing of the tree.

use bytes::Bytes;
use serde::Serialize;

/// One line of JSON.
pub fn line<T: Serialize>(value: &T) -> Bytes {
    // Large enough for most values: growing by doubling would copy them several times.
    let mut json = Vec::with_capacity(512);
    ended(serde_json::to_writer(&mut json, value).map(|()| json))
}

/// Indented JSON, for people.
pub fn pretty<T: Serialize>(value: &T) -> Bytes {
    ended(serde_json::to_vec_pretty(value))
}

/// A JSON array with one element per line, for `grep`.
pub fn rows<T: Serialize>(values: &[T]) -> Bytes {
    let mut rows = Vec::new();
    for value in values {
        rows.extend_from_slice(if rows.is_empty() { b"[\n" } else { b",\n" });
        rows.extend_from_slice(&serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec()));
    }
    rows.extend_from_slice(if rows.is_empty() { b"[]\n" } else { b"\n]\n" });
    rows.into()
}

/// Serialisation fails only for a map whose keys are not strings, or where a `Serialize` refuses; the file then shows
/// `null`.
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
