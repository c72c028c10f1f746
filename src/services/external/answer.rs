//! The meaning of a program's end: a result that fits its schema, or an error.

use serde_json::Value;

use crate::contract::{Contract, Operation, check};
use acheron_base::{Code, Error, Result, quoted};
use acheron_sandbox::ExitStatus;

/// As many bytes of a wrong answer are kept in the log.
const LOGGED: usize = 2048;
/// As many lines of it.
const LOGGED_LINES: usize = 20;

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
        let parsed = serde_json::from_slice(said).ok();
        return Err(parsed.as_ref().and_then(told).unwrap_or_else(|| match ended.signal {
            // The last line of its errors was written before, about something else.
            Some(signal) => Error::failed(format!("{name} was ended by signal {signal}")),
            None => {
                let why = if complaint.is_empty() { String::new() } else { format!(": {complaint}") };
                Error::failed(format!("{name} ended with exit code {}{why}", ended.status()))
            }
        }));
    }
    let empty = said.iter().all(u8::is_ascii_whitespace);
    let value =
        if empty { Value::Null } else { serde_json::from_slice(said).map_err(|err| not_json(name, said, &err))? };
    let faults = check::sentence(&check::faults(&operation.result, contract.schema(), &value));
    match (faults, told(&value)) {
        (Some(_), Some(error)) => Err(error),
        (None, Some(error))
            if value.as_object().is_some_and(|it| it.len() == 1) && !names_error(contract, operation) =>
        {
            Err(error)
        }
        (None, _) => Ok(value),
        (Some(_), None) if empty => {
            Err(Error::failed(format!("{name} printed nothing; its result must be one JSON value on standard output")))
        }
        (Some(faults), None) => Err(Error::failed(format!("the answer of {name} is not what it promised: {faults}"))),
    }
}

/// The beginning of what a program printed, for the log.
pub fn beginning(said: &[u8]) -> Vec<String> {
    let first = &said[..said.len().min(LOGGED)];
    let text = String::from_utf8_lossy(first);
    let plain = |line: &str| format!("stdout: {}", line.replace(char::is_control, "\u{fffd}"));
    let mut lines: Vec<String> = text.lines().take(LOGGED_LINES).map(plain).collect();
    if first.len() < said.len() || text.lines().count() > LOGGED_LINES {
        lines.push(format!("stdout: … ({} bytes)", said.len()));
    }
    lines
}

fn not_json(name: &str, said: &[u8], err: &serde_json::Error) -> Error {
    let text = String::from_utf8_lossy(&said[..said.len().min(400)]);
    let escape = |c: char| if c.is_control() { c.escape_debug().collect() } else { String::from(c) };
    let text = quoted(&text.trim().chars().map(escape).collect::<String>());
    let size = if text.ends_with("…`") { format!(" ({} bytes)", said.len()) } else { String::new() };
    Error::failed(format!("{name} printed {text}{size}, which is not one JSON value: {err}"))
}

/// An error that the program put into words: `{"error": {"code": "...", "message": "..."}}`.
fn told(value: &Value) -> Option<Error> {
    let error = value.get("error")?;
    let message = error.get("message").or(Some(error))?.as_str()?;
    let code = error.get("code").and_then(Value::as_str).and_then(Code::named).unwrap_or(Code::ExecutionFailed);
    Some(Error::new(code, message))
}

/// Whether results of this operation have a key `error` of their own.
fn names_error(contract: &Contract, operation: &Operation) -> bool {
    let target = operation.result.get("$ref").and_then(Value::as_str);
    let resolved = target.and_then(|target| contract.schema().pointer(target.trim_start_matches('#')));
    resolved.unwrap_or(&operation.result).pointer("/properties/error").is_some()
}

#[cfg(test)]
mod tests;
