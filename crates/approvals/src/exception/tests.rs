use serde_json::{Value, json};

use super::*;
use crate::SubjectFacts;

fn call(operation: &str, arguments: Value) -> Subject {
    Subject::Invoke {
        path: format!("/agents/ada/memory/control/{operation}.json"),
        service: "memory".to_owned(),
        operation: operation.to_owned(),
        effect: "write".to_owned(),
        arguments,
        runs: Value::Null,
    }
}

#[test]
fn an_exception_holds_for_its_agent_its_rule_its_time_and_what_it_covers() {
    let given = call("create", json!({"name": "a"}));
    let exception = |exact_only| Exception {
        id: "x".to_owned(),
        agent: "ada".to_owned(),
        of_rule: "r1".to_owned(),
        scope: given.scope("ada", &SubjectFacts { exact_only, risk: vec![] }),
        until_ms: Some(100),
        by: "operator".to_owned(),
        at_ms: 0,
        approval: "a".to_owned(),
    };
    let (same, other) = (given.clone(), call("create", json!({"name": "b"})));
    for (exact, agent, rule, subject, now_ms, lets) in [
        (false, "ada", "r1", &same, 99, true),
        (false, "ada", "r1", &other, 99, true),
        (false, "ada", "r1", &call("delete", json!({"name": "a"})), 99, false),
        (false, "bob", "r1", &same, 99, false),
        (false, "ada", "r2", &same, 99, false),
        (false, "ada", "r1", &same, 100, false),
        (true, "ada", "r1", &same, 99, true),
        (true, "ada", "r1", &other, 99, false),
    ] {
        let exception = exception(exact);
        assert_eq!(exception.lets(agent, rule, subject, now_ms), lets, "{exact} {agent} {rule} {subject:?} {now_ms}");
    }
}
