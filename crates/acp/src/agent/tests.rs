use super::*;
use crate::update::{AcpToolCall, CallState};
use proptest::prelude::*;

fn side() -> AgentSide {
    let mut side = AgentSide::new("1");
    let hello = side.take(br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
    assert_eq!(hello.send.unwrap()["result"]["protocolVersion"], 1);
    side
}

fn take(side: &mut AgentSide, message: Value) -> AgentStep {
    side.take(message.to_string().as_bytes())
}

fn with_session() -> AgentSide {
    let mut side = side();
    let step = take(
        &mut side,
        json!({"id": 1, "method": "session/new", "params": {"cwd": "/p", "mcpServers": [{"name": "git"}]}}),
    );
    let Some(AgentEvent::New { request, directory, servers }) = step.event else { panic!("{step:?}") };
    assert_eq!((directory.as_str(), servers), ("/p", vec!["git".to_owned()]));
    side.begin("s");
    assert_eq!(side.answer(request, Ok(json!({"sessionId": "s"}))).unwrap()["id"], 1);
    assert_eq!(side.answer(request, Ok(json!({}))), None, "once");
    side
}

fn prompt(id: u64, session: &str) -> Value {
    json!({"id": id, "method": "session/prompt", "params": {"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]}})
}

fn question() -> AcpPermission {
    let call = AcpToolCall {
        id: "c".into(),
        title: "t".into(),
        kind: "execute",
        state: CallState::Pending,
        locations: vec![],
        new_text: None,
        input: Value::Null,
    };
    AcpPermission { call, options: vec![("yes".into(), "Allow".into(), "allow_once")] }
}

#[test]
fn what_comes_before_its_time_is_refused_with_the_reason() {
    let mut new = AgentSide::new("1");
    let said = |step: AgentStep| step.send.unwrap()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(said(take(&mut new, prompt(1, "s"))), "a connection begins with `initialize`");
    let mut side = side();
    assert_eq!(said(take(&mut side, prompt(1, "s"))), "there is no session `s`; begin one with `session/new`");
    assert_eq!(said(take(&mut side, json!({"id": 2, "method": "fly"}))), "there is no method `fly` here");
    assert_eq!(
        said(take(&mut side, json!({"id": 2, "method": "session/new", "params": {"cwd": "p"}}))),
        "`cwd` is an absolute path"
    );
    let mut side = with_session();
    assert!(matches!(take(&mut side, prompt(2, "s")).event, Some(AgentEvent::Prompt { .. })));
    assert!(said(take(&mut side, prompt(3, "s"))).starts_with("a turn of this session is under way"));
}

#[test]
fn a_prompt_is_answered_once_and_a_cancelled_one_as_cancelled() {
    let mut side = with_session();
    take(&mut side, prompt(2, "s"));
    assert_eq!(side.end_prompt("s", Ok(StopReason::EndTurn)).unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(side.end_prompt("s", Ok(StopReason::EndTurn)), None);
    let cancel = json!({"method": "session/cancel", "params": {"sessionId": "s"}});
    assert!(take(&mut side, cancel.clone()).event.is_none(), "there is nothing to cancel");
    for cancel in [cancel, json!({"method": "$/cancel_request", "params": {"requestId": 3}})] {
        take(&mut side, prompt(3, "s"));
        assert!(matches!(take(&mut side, cancel.clone()).event, Some(AgentEvent::Cancel { .. })), "{cancel}");
        assert!(take(&mut side, cancel).event.is_none(), "once");
        assert_eq!(side.ask("s", &question()), None, "a cancelled turn asks nothing");
        let ended = side.end_prompt("s", Err(AcpFault::invalid("x"))).unwrap();
        assert_eq!(ended["result"]["stopReason"], "cancelled");
    }
}

#[test]
fn a_question_is_answered_once_by_what_was_offered() {
    let mut side = with_session();
    assert_eq!(side.ask("s", &question()), None, "no turn");
    take(&mut side, prompt(2, "s"));
    for (answer, expected) in [
        (json!({"outcome": {"outcome": "selected", "optionId": "yes"}}), PermissionAnswer::Chosen("yes".into())),
        (json!({"outcome": {"outcome": "selected", "optionId": "root"}}), PermissionAnswer::Cancelled),
        (json!({"outcome": {"outcome": "cancelled"}}), PermissionAnswer::Cancelled),
        (json!(7), PermissionAnswer::Cancelled),
    ] {
        let (number, asked) = side.ask("s", &question()).unwrap();
        assert_eq!(asked["method"], "session/request_permission");
        let message = json!({"id": number, "result": answer});
        assert_eq!(
            take(&mut side, message.clone()).event,
            Some(AgentEvent::Permission { question: number, answer: expected })
        );
        assert!(take(&mut side, message).event.is_none(), "once");
    }
    let (number, _) = side.ask("s", &question()).unwrap();
    side.end_prompt("s", Ok(StopReason::EndTurn));
    assert!(take(&mut side, json!({"id": number, "result": {}})).event.is_none(), "its turn has ended");
}

/// Messages that a client could send, right and wrong, in any order.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let methods = prop::sample::select(vec![
        "initialize",
        "session/new",
        "session/load",
        "session/list",
        "session/prompt",
        "session/close",
        "session/cancel",
        "$/cancel_request",
        "authenticate",
        "x",
    ]);
    let params = prop_oneof![
        Just(json!({"sessionId": "s", "cwd": "/p", "prompt": [{"type": "text", "text": "x"}], "requestId": 3})),
        Just(json!({"sessionId": "t", "cwd": 7})),
        Just(json!([])),
    ];
    let message = (methods, params, prop::option::of(0..5_u64)).prop_map(|(method, params, id)| match id {
        Some(id) => json!({"id": id, "method": method, "params": params}).to_string().into_bytes(),
        None => json!({"method": method, "params": params}).to_string().into_bytes(),
    });
    let answer = (0..9_u64).prop_map(|id| json!({"id": id, "result": {}}).to_string().into_bytes());
    prop_oneof![8 => message, 1 => answer, 1 => prop::collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    /// Every request gets exactly one answer, at once or when the turn or the work ends; sessions stay bounded.
    #[test]
    fn every_request_is_answered_once(messages in prop::collection::vec(any_message(), 0..200)) {
        let mut side = AgentSide::new("1");
        let (mut owed, mut answered) = (0_usize, 0_usize);
        for message in messages {
            let is_request = matches!(AcpMessage::read(&message), Ok(AcpMessage::Request { .. }));
            let step = side.take(&message);
            owed += usize::from(is_request);
            if is_request && step.send.is_some() {
                answered += 1;
            }
            match step.event {
                Some(AgentEvent::New { request, .. }) => {
                    side.begin("s");
                    answered += usize::from(side.answer(request, Ok(json!({}))).is_some());
                }
                Some(AgentEvent::Load { request, .. } | AgentEvent::List { request, .. }) => {
                    answered += usize::from(side.answer(request, Err(AcpFault::invalid("no"))).is_some());
                }
                Some(AgentEvent::Cancel { session }) => {
                    answered += usize::from(side.end_prompt(&session, Ok(StopReason::Cancelled)).is_some());
                }
                _ => (),
            }
            prop_assert!(side.sessions.len() <= MOST_SESSIONS && side.open.is_empty() && side.questions.is_empty());
        }
        answered += usize::from(side.end_prompt("s", Ok(StopReason::EndTurn)).is_some());
        prop_assert_eq!(owed, answered);
    }
}
