//! The meaning of a program's end: a result that fits its schema, or an error.

use serde_json::Value;

use crate::contract::{Contract, Operation, check};
use acheron_base::{Code, Error, Result};
use acheron_sandbox::ExitStatus;

/// Reads the answer of a program that ended like this and said that; `complaint` is the last line of its errors.
pub fn answer(
    contract: &Contract,
    operation: &Operation,
    ended: ExitStatus,
    said: &[u8],
    complaint: &str,
) -> Result<Value> {
    let name = &contract.name;
    if ended.code != Some(0) {
        return Err(told(said).unwrap_or_else(|| {
            let how = match ended.signal {
                Some(signal) => format!("was ended by signal {signal}"),
                None => format!("ended with exit code {}", ended.status()),
            };
            let why = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
            Error::failed(format!("{name} {how}{why}"))
        }));
    }
    let value: Value = if said.iter().all(u8::is_ascii_whitespace) {
        Value::Null
    } else {
        serde_json::from_slice(said)
            .map_err(|err| Error::failed(format!("the answer of {name} is not one JSON value: {err}")))?
    };
    match check::sentence(&check::faults(&operation.result, contract.schema(), &value)) {
        None => Ok(value),
        Some(faults) => Err(Error::failed(format!("the answer of {name} is not what it promised: {faults}"))),
    }
}

/// An error that the program put into words: `{"error": {"code": "...", "message": "..."}}`.
fn told(said: &[u8]) -> Option<Error> {
    let value: Value = serde_json::from_slice(said).ok()?;
    let error = value.get("error")?;
    let message = error.get("message").or(Some(error))?.as_str()?;
    let code = error.get("code").and_then(Value::as_str).and_then(Code::named).unwrap_or(Code::ExecutionFailed);
    Some(Error::new(code, message))
}

#[cfg(test)]
mod tests;
