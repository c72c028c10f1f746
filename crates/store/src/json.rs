//! JSON in a column of text. Users of the store use it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use acheron_base::{Error, Result};

/// The value as JSON text.
pub fn of<T: Serialize>(value: &T) -> String {
    // Cannot fail: stored values have no maps with keys other than strings.
    serde_json::to_string(value).unwrap_or_else(|_| "null".into())
}

/// The value of JSON text from the database.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|err| Error::internal(format!("the database holds text that is not JSON: {err}")))
}
