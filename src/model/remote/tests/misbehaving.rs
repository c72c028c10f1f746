//! A server that misbehaves in every way, by one table.

use std::time::Duration;

use tokio::net::TcpStream;

use super::{FUTURE, KEY, PAST, ServerAction, ShortTimeout, TestProtocol, TestServer, ask, remote, trial};
use crate::model::anthropic::MessagesApi;
use crate::model::openai::ChatCompletions;
use crate::model::responses::ResponsesApi;
use crate::model::{AnswerPiece, Model as _, Usage};
use acheron_base::{Code, Error, Result};

/// The result of each sequence of reactions: an answer, or a code and a part of the message.
async fn table<V: TestProtocol>() {
    let good = Ok(());
    let again = |body: &str| ServerAction::Status(429, "retry-after: 0", body.to_owned());
    let broken = || ServerAction::Status(500, "content-type: text/plain", "oh no".to_owned());
    let wrong_key = format!(r#"{{"error":{{"message":"bad key {KEY}"}}}}"#);
    let middle = V::stream().find("ok").unwrap();
    let html = "<!doctype html><title>hello</title>".to_owned();
    type Row = (Vec<ServerAction>, ShortTimeout, Result<(), (Code, &'static str)>, usize);
    let rows: Vec<Row> = vec![
        (vec![ServerAction::Well], ShortTimeout::Nowhere, good, 1),
        (vec![ServerAction::ByteByByte], ShortTimeout::Nowhere, good, 1),
        (vec![ServerAction::Body("application/json", V::unstreamed())], ShortTimeout::Nowhere, good, 1),
        (vec![ServerAction::Cut(middle), ServerAction::Well], ShortTimeout::Nowhere, good, 2),
        (vec![ServerAction::Cut(0), ServerAction::Hangup, ServerAction::Well], ShortTimeout::Nowhere, good, 3),
        (vec![again("{}"), broken(), ServerAction::Well], ShortTimeout::Nowhere, good, 3),
        (
            vec![ServerAction::Body("text/event-stream", V::overloaded()), ServerAction::Well],
            ShortTimeout::Nowhere,
            good,
            2,
        ),
        (vec![ServerAction::Cut(middle); 3], ShortTimeout::Nowhere, Err((Code::ProviderError, "(3 attempts)")), 3),
        (
            vec![ServerAction::Hangup; 3],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "the connection to 127.0.0.1:")),
            3,
        ),
        (
            vec![broken(), broken(), broken()],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "answered 500 Internal Server Error: oh no (3 attempts)")),
            3,
        ),
        (
            vec![ServerAction::Status(429, "retry-after: 3600", String::new())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, " GMT (3600 s from now)")),
            1,
        ),
        (vec![ServerAction::Status(503, PAST, String::new()), ServerAction::Well], ShortTimeout::Nowhere, good, 2),
        (
            vec![ServerAction::Status(503, FUTURE, String::new())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "503")),
            1,
        ),
        (
            vec![ServerAction::Status(401, "x: y", wrong_key)],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "401 Unauthorized: bad key [secret]; is ")),
            1,
        ),
        (
            vec![ServerAction::Status(404, "x: y", r#"{"error":{"message":"no model m"}}"#.into())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "404 Not Found: no model m; http://127.0.0.1:")),
            1,
        ),
        (
            vec![ServerAction::Status(302, "location: http://elsewhere/", String::new())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "it moved to http://elsewhere/")),
            1,
        ),
        (
            vec![ServerAction::Body("text/html", html.clone())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "is the base URL that of an ")),
            1,
        ),
        (
            vec![ServerAction::Body("application/json", html)],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "returned HTML instead")),
            1,
        ),
        (
            vec![ServerAction::Body("application/json", "{\"x".into())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "is not JSON")),
            1,
        ),
        (
            vec![ServerAction::Body("application/json", "{}".into())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "has no ")),
            1,
        ),
        (
            vec![ServerAction::Body("text/event-stream", "data: {oops\n\n".into())],
            ShortTimeout::Nowhere,
            Err((Code::ProviderError, "not JSON")),
            1,
        ),
        (vec![ServerAction::Endless], ShortTimeout::Nowhere, Err((Code::TooLarge, "larger than")), 1),
        (vec![ServerAction::Stall(middle); 3], ShortTimeout::Idle, Err((Code::Timeout, "silence from 127.0.0.1")), 3),
        (vec![ServerAction::Mute; 3], ShortTimeout::FirstByte, Err((Code::Timeout, "no answer from 127.0.0.1")), 3),
    ];
    for (actions, brief, wanted, requests) in rows {
        let name = format!("{} {actions:?}", V::NAME).chars().take(120).collect::<String>();
        let (said, _, test_server) = trial::<V>(actions, brief).await;
        match (said, wanted) {
            (Ok(said), Ok(())) => {
                assert_eq!(said.text, "Σ ok", "{name}");
                assert_eq!(said.thoughts.as_deref(), Some("hm"), "{name}");
                assert_eq!(Usage::new(said.usage.input, said.usage.output), Usage::new(7, 5), "{name}");
                assert_eq!((said.model.as_str(), said.native_call), ("m-1", false), "{name}");
            }
            (Err(Error { code, message }), Err((wanted, part))) => {
                assert_eq!(code, wanted, "{name}: {message}");
                assert!(message.contains(part), "{name}: {message}");
                assert!(!message.contains(KEY), "{name}: {message}");
            }
            (said, wanted) => panic!("{name}: {said:?}, not {wanted:?}"),
        }
        assert_eq!(test_server.heard.lock().len(), requests, "{name}");
    }
}

async fn asked<V: TestProtocol>() {
    let (said, pieces, test_server) =
        trial::<V>(vec![ServerAction::Cut(V::stream().find("ok").unwrap()), ServerAction::Well], ShortTimeout::Nowhere)
            .await;
    assert!(said.is_ok());
    let again = pieces.iter().position(|piece| *piece == AnswerPiece::Again).expect("a broken answer is begun anew");
    let text: String =
        pieces[again..].iter().filter_map(|p| if let AnswerPiece::Text(t) = p { Some(&**t) } else { None }).collect();
    assert_eq!(text, "Σ ok");
    for request in test_server.heard.lock().iter() {
        assert!(request.contains(KEY), "the key is in the header");
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(body.get("tools").is_none() && body.get("functions").is_none() && body.get("tool_choice").is_none());
        let messages = body.get("messages").unwrap_or(&body["input"]);
        let last = messages.as_array().unwrap().last().unwrap();
        let text = last["content"].as_str().or(last["content"][0]["text"].as_str());
        assert_eq!((last["role"].as_str(), text), (Some("user"), Some("hi\n\nthere")));
    }
    let (said, _, _) =
        trial::<V>(vec![ServerAction::Body("text/event-stream", V::native())], ShortTimeout::Nowhere).await;
    assert!(said.unwrap().native_call);
}

async fn dropped<V: TestProtocol>() {
    let test_server = TestServer::open::<V>(vec![ServerAction::Stall(V::stream().len() / 2)]).await;
    let model = remote::<V>(&test_server.url, ShortTimeout::Nowhere);
    let begun = tokio::sync::Notify::new();
    let question = ask();
    let mut watch = |_| begun.notify_one();
    tokio::select! {
        said = model.answer(&question, &mut watch) => panic!("{said:?}"),
        () = begun.notified() => (),
    }
    // The request was dropped with the future: the server sees its client leave.
    tokio::time::timeout(Duration::from_secs(60), test_server.left.notified())
        .await
        .expect("the connection was closed");
}

/// A server whose accept queue is full: further connections wait.
async fn crowded<V: TestProtocol>() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut crowd = Vec::new();
    while let Ok(Ok(one)) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
        crowd.push(one);
    }
    let said = remote::<V>(&format!("http://{address}"), ShortTimeout::Connect).answer(&ask(), &mut |_| ()).await;
    let error = said.unwrap_err();
    assert_eq!(error.code, Code::Timeout, "{error}");
    assert!(error.message.contains(&format!("the connection to {address}/")), "{error}");
}

macro_rules! every {
    ($($name:ident => $trial:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $name() {
            $trial::<ChatCompletions>().await;
            $trial::<MessagesApi>().await;
            $trial::<ResponsesApi>().await;
        }
    )*};
}

every! {
    a_misbehaving_server_yields_an_answer_or_a_clear_sentence => table,
    a_question_carries_the_key_in_its_header_and_no_tools => asked,
    a_cancelled_question_leaves_no_connection => dropped,
    a_server_that_lets_nobody_in_is_not_waited_for => crowded,
}
