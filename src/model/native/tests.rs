use super::*;

fn call(id: &str, name: &str, arguments: &str) -> NativeCall {
    NativeCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

#[test]
fn every_call_of_a_conversation_has_an_id_of_its_own() {
    let long = "x".repeat(65);
    let ids = ["a", "", "a", "b", "call-2", "two words", &long, "old"];
    let kept = Some(KeptAnswer { api: "anthropic".into(), items: vec![] });
    let calls = ids.iter().map(|id| call(id, "file_list", "{}")).collect();
    let mut said = ModelAnswer { calls, kept, ..ModelAnswer::default() };
    said.name_calls(HashSet::from(["old".to_owned()]));
    let named: Vec<&str> = said.calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!((named[0], named[3]), ("a", "b"));
    assert_eq!(named.iter().collect::<HashSet<_>>().len(), named.len(), "{named:?}");
    assert!(!named.contains(&"old"), "a call before has it: {named:?}");
    assert_eq!(said.kept, None, "it has ids that are replaced");

    let kept = Some(KeptAnswer { api: "anthropic".into(), items: vec![json!(1)] });
    let mut good = ModelAnswer { calls: vec![call("a", "x", "")], kept: kept.clone(), ..ModelAnswer::default() };
    good.name_calls(HashSet::new());
    assert_eq!((good.calls[0].id.as_str(), good.kept), ("a", kept));
}

#[test]
fn arguments_that_cannot_be_read_are_sent_back_within_an_object() {
    for (written, sent) in [
        (r#"{"path": "a"}"#, r#"{"path": "a"}"#),
        ("", "{}"),
        ("{oops", r#"{"unreadable":"{oops"}"#),
        ("[1]", r#"{"unreadable":"[1]"}"#),
    ] {
        assert_eq!(call("a", "x", written).object_text(), sent);
        assert_eq!(
            Value::Object(call("a", "x", written).object()),
            serde_json::from_str::<Value>(sent).unwrap(),
            "{written}"
        );
    }
}
