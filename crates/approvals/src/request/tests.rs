use super::*;

#[test]
fn a_request_shows_everything_and_says_what_each_answer_writes() {
    let subject = Subject::Invoke {
        path: "/agents/ada/memory/control/delete.json".to_owned(),
        service: "memory".to_owned(),
        operation: "delete".to_owned(),
        effect: "write".to_owned(),
        arguments: json!({"name": "ford"}),
        runs: Value::Null,
    };
    let rule = json!({"ask": ["invoke"], "path": "/agents/self/memory/**"});
    let request = Request {
        agent: "ada".to_owned(),
        subject,
        facts: SubjectFacts { exact_only: false, risk: vec!["changes the state of this host".to_owned()] },
        rule: AskingRule { hash: "r".to_owned(), rule, always: true },
        stated_reason: Some("it is old".to_owned()),
    };
    let mut page = request.page();
    page["subject_sha256"] = json!("HASH");
    expect_test::expect![[r#"
        {
          "agent": "ada",
          "kind": "invoke",
          "summary": "ada calls memory.delete with {\"name\":\"ford\"}",
          "subject": {
            "path": "/agents/ada/memory/control/delete.json",
            "service": "memory",
            "operation": "delete",
            "effect": "write",
            "arguments": {
              "name": "ford"
            },
            "runs": null
          },
          "subject_sha256": "HASH",
          "risk": [
            "changes the state of this host"
          ],
          "stated_reason": "it is old",
          "matched_rule": {
            "ask": [
              "invoke"
            ],
            "path": "/agents/self/memory/**"
          },
          "offers": [
            {
              "answer": "allow",
              "does": "it is done, once"
            },
            {
              "answer": "deny: reason",
              "does": "it is not done, and the agent is told the reason"
            },
            {
              "answer": "allow for 10m",
              "does": "and what `writes` covers is not asked for that time",
              "writes": {
                "covers": "operation",
                "path": "/agents/ada/memory/control/delete.json"
              }
            },
            {
              "answer": "allow always",
              "does": "and what `writes` covers is not asked again until it is revoked",
              "writes": {
                "covers": "operation",
                "path": "/agents/ada/memory/control/delete.json"
              }
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&page).unwrap());
    let never = Request { rule: AskingRule { always: false, ..request.rule.clone() }, ..request };
    assert!(never.offers().iter().all(|offer| offer.answer != "allow always"));
}
