//! Values as the bytes of a file.

use bytes::Bytes;
use serde::Serialize;

/// One line of JSON.
pub fn line<T: Serialize>(value: &T) -> Bytes {
    ended(serde_json::to_vec(value))
}

/// JSON for people.
pub fn pretty<T: Serialize>(value: &T) -> Bytes {
    ended(serde_json::to_vec_pretty(value))
}

/// Only a map with keys that are no strings, or a `Serialize` that refuses, can fail; it shows as `null`.
fn ended(json: serde_json::Result<Vec<u8>>) -> Bytes {
    let mut json = json.unwrap_or_else(|_| b"null".to_vec());
    json.push(b'\n');
    json.into()
}
