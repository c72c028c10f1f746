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
        // A signal has no sentence of the program's: its last line was about something else.
        (-11, "", "reading page 3", "execution_failed: weather was ended by signal 11"),
        // The program's own error, whatever its exit code.
        (0, "{\"error\":{\"code\":\"not_found\",\"message\":\"no such town\"}}", "x", "not_found: no such town"),
        (0, "{\"error\":\"no such town\"}", "", "execution_failed: no such town"),
        (0, "", "", "execution_failed: weather printed nothing; its result must be one JSON value on standard output"),
        (
            0,
            " \n",
            "",
            "execution_failed: weather printed nothing; its result must be one JSON value on standard output",
        ),
        (
            0,
            "Traceback\u{1b}[0m: a town",
            "",
            "execution_failed: weather printed `Traceback\\u{1b}[0m: a town`, which is not one JSON value: expected value at \
             line 1 column 1",
        ),
    ] {
        assert_eq!(check(code, said, complaint), expected);
    }
    let long = check(0, &"x".repeat(5000), "");
    assert!(long.len() < 200 && long.contains("xxx…` (5000 bytes), which is not one JSON value"), "{long}");
    let broken = check(0, "{\"celsius\": \"warm\"}", "");
    assert!(broken.starts_with("execution_failed: the answer of weather is not what it promised: celsius"), "{broken}");
}

#[test]
fn a_result_may_have_a_key_named_error_if_its_schema_says_so() {
    let check = |schema: serde_json::Value, said: &str| {
        let go = Operation::new("go", Effect::Read).answers(schema);
        let contract = Contract::plain("lint", "Lints.", vec![go]).unwrap();
        let ended = ExitStatus { code: Some(0), signal: None };
        match answer(&contract, contract.operation("go").unwrap(), ended, said.as_bytes(), "") {
            Ok(value) => value.to_string(),
            Err(error) => error.message,
        }
    };
    let said = "{\"error\":\"unused\"}";
    assert_eq!(check(json!({"type": "object", "properties": {"error": {"type": "string"}}}), said), said);
    // Neither a schema nor another key: nothing but an error.
    assert_eq!(check(json!(true), said), "unused");
    assert_eq!(check(json!(true), "{\"error\":\"unused\",\"line\":3}"), "{\"error\":\"unused\",\"line\":3}");
    assert_eq!(check(json!(true), "{\"error\":null}"), "{\"error\":null}");
    assert_eq!(check(json!(true), ""), "null");
}
