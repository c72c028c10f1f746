use super::*;
use proptest::prelude::*;

fn answer(side: &mut ClientSide, asked: &Value, result: Value) -> ClientStep {
    side.take(json!({"id": asked["id"], "result": result}).to_string().as_bytes())
}

fn opened() -> ClientSide {
    let mut side = ClientSide::default();
    let hello = side.greet("1");
    let greeted = answer(&mut side, &hello, json!({"protocolVersion": 1, "authMethods": [{"id": "key"}]}));
    assert_eq!(greeted.event, Some(ClientEvent::Greeted { logins: vec!["key".to_owned()] }));
    assert_eq!(side.prompt("early"), None);
    let new = side.open("/p");
    assert_eq!(answer(&mut side, &new, json!({"sessionId": "s"})).event, Some(ClientEvent::Opened));
    side
}

fn asks(side: &mut ClientSide, method: &str, params: Value) -> ClientStep {
    side.take(json!({"id": "a1", "method": method, "params": params}).to_string().as_bytes())
}

#[test]
fn a_turn_is_prompted_watched_and_ended() {
    let mut side = opened();
    let turn = side.prompt("hi").unwrap();
    assert_eq!(turn["params"]["prompt"][0]["text"], "hi");
    assert_eq!(side.prompt("again"), None, "one at a time");
    let update = |session: &str| {
        json!({"method": "session/update", "params": {"sessionId": session,
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "yo"}}}})
    };
    let heard = side.take(update("s").to_string().as_bytes());
    assert_eq!(heard.event, Some(ClientEvent::Update(ReceivedUpdate::Message("yo".into()))));
    assert_eq!(side.take(update("t").to_string().as_bytes()).event, None, "of another session");
    assert_eq!(side.take(b"npm warn").event, None);
    let ended = answer(&mut side, &turn, json!({"stopReason": "end_turn"}));
    assert_eq!(ended.event, Some(ClientEvent::Ended { stop: "end_turn".to_owned() }));
    assert_eq!(answer(&mut side, &turn, json!({"stopReason": "end_turn"})).event, None, "once");
}

#[test]
fn its_requests_are_answered_once_and_unknown_ones_are_refused() {
    let mut side = opened();
    let step = asks(&mut side, "fs/read_text_file", json!({"sessionId": "s", "path": "/a", "line": 2}));
    let Some(ClientEvent::File { request, file }) = step.event else { panic!("{step:?}") };
    assert_eq!(file, FileRequest::Read { path: "/a".into(), line: Some(2), limit: None });
    assert_eq!(side.answer(request, Ok(json!({"content": ""}))).unwrap()["id"], "a1");
    assert_eq!(side.answer(request, Ok(json!({}))), None);
    for (method, params, code) in [
        ("fs/read_text_file", json!({"sessionId": "t", "path": "/a"}), AcpFault::NOT_FOUND),
        ("fs/write_text_file", json!({"sessionId": "s", "path": "a", "content": ""}), AcpFault::INVALID_PARAMS),
        ("terminal/create", json!({"sessionId": "s"}), AcpFault::UNKNOWN_METHOD),
    ] {
        assert_eq!(asks(&mut side, method, params).send.unwrap()["error"]["code"], code, "{method}");
    }
    let params =
        json!({"sessionId": "s", "toolCall": {"title": "rm"}, "options": [{"optionId": "n", "kind": "reject_once"}]});
    let Some(ClientEvent::Permission { request, call, options }) =
        asks(&mut side, "session/request_permission", params).event
    else {
        panic!("no question")
    };
    assert_eq!((call.title.as_str(), options.len()), ("rm", 1));
    assert_eq!(side.decide(request, Some("n")).unwrap()["result"]["outcome"]["optionId"], "n");
}

#[test]
fn an_agent_of_another_version_is_refused() {
    let mut side = ClientSide::default();
    let hello = side.greet("1");
    let Some(ClientEvent::Refused { fault, .. }) = answer(&mut side, &hello, json!({"protocolVersion": 2})).event
    else {
        panic!("taken")
    };
    assert_eq!(fault.message, "it speaks version 2 of the protocol, and this host version 1");
}

proptest! {
    #[test]
    fn no_bytes_break_it(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..50)) {
        let mut side = opened();
        for line in lines {
            side.take(&line);
        }
        prop_assert!(side.prompt("still there").is_some());
    }

    /// A good message that was damaged somewhere.
    #[test]
    fn no_damage_breaks_it(at in 0_usize..100, byte in any::<u8>()) {
        let mut side = opened();
        let mut line = br#"{"id":"a1","method":"fs/read_text_file","params":{"sessionId":"s","path":"/a","line":2}}"#.to_vec();
        let at = at % line.len();
        line[at] = byte;
        side.take(&line);
        prop_assert!(side.open.len() <= 1);
    }
}
