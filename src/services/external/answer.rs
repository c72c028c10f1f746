//! What a program's end means: a result that keeps its promise, or an error with a sentence.

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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::Effect;

    fn check(code: i32, said: &str, complaint: &str) -> String {
        let today = Operation::new("today", Effect::Read)
            .answers(json!({"type": "object", "required": ["celsius"], "properties": {"celsius": {"type": "number"}}}));
        let contract = Contract::plain("weather", "The weather.", vec![today]).unwrap();
        let ended = if code < 0 {
            ExitStatus { code: None, signal: Some(-code) }
        } else {
            ExitStatus { code: Some(code), signal: None }
        };
        let operation = contract.operation("today").unwrap();
        match answer(&contract, operation, ended, said.as_bytes(), complaint) {
            Ok(value) => value.to_string(),
            Err(error) => format!("{}: {}", error.code.name(), error.message),
        }
    }

    #[test]
    fn every_end_of_a_program_has_its_sentence() {
        for (code, said, complaint, expected) in [
            (0, "{\"celsius\": 7}\n", "", "{\"celsius\":7}"),
            (1, "", "no route", "execution_failed: weather ended with exit code 1: no route"),
            (2, "", "", "execution_failed: weather ended with exit code 2"),
            (-9, "", "", "execution_failed: weather was ended by signal 9"),
            (1, "{\"error\":{\"code\":\"not_found\",\"message\":\"no such town\"}}", "x", "not_found: no such town"),
            (1, "{\"error\":\"no such town\"}", "", "execution_failed: no such town"),
            (1, "{\"error\":{\"code\":\"odd\",\"message\":\"m\"}}", "", "execution_failed: m"),
        ] {
            assert_eq!(check(code, said, complaint), expected);
        }
        let torn = check(0, "{\"celsius\"", "");
        assert!(torn.starts_with("execution_failed: the answer of weather is not one JSON value: "), "{torn}");
        let broken = check(0, "{\"celsius\": \"warm\"}", "");
        assert!(
            broken.starts_with("execution_failed: the answer of weather is not what it promised: celsius"),
            "{broken}"
        );
        assert!(check(0, "", "").contains("not what it promised"));
    }
}
