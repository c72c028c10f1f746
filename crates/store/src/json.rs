//! JSON in a column of text.

use serde::Serialize;
use serde::de::DeserializeOwned;

use acheron_base::{Error, Result};

pub fn of<T: Serialize>(value: &T) -> String {
    // cannot fail: what we keep has no maps with keys other than strings
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

pub fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|err| Error::internal(format!("the database holds text that is not JSON: {err}")))
}
