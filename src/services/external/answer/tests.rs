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
    assert!(broken.starts_with("execution_failed: the answer of weather is not what it promised: celsius"), "{broken}");
    assert!(check(0, "", "").contains("not what it promised"));
}
