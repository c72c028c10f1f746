//! All providers against a real server that misbehaves in every way, by one table.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{ProviderProtocol, RemoteModel};
use crate::model::anthropic::MessagesApi;
use crate::model::openai::ChatCompletions;
use crate::model::responses::ResponsesApi;
use crate::model::server::{ModelServer, OPENAI, Silence};
use crate::model::{AnswerPiece, Message, Model, ModelAnswer, ModelRequest, Usage};
use acheron_base::{Code, Error, Result};
use acheron_http::{Http, RetryPolicy, Secret};

const KEY: &str = "sk-trial-0123456789";
const PAST: &str = "retry-after: Sun, 06 Nov 1994 08:49:37 GMT";
const FUTURE: &str = "retry-after: Fri, 06 Nov 2082 08:49:37 GMT\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT";

/// One reaction of the server to a connection.
#[derive(Clone, Debug)]
enum ServerAction {
    /// Answers well, each chunk of the body apart.
    Well,
    /// The same, a byte a chunk, so that characters are cut.
    ByteByByte,
    /// Sends this many bytes of a good answer and closes.
    Cut(usize),
    /// Sends this many bytes of a good answer and then nothing, until the client is gone.
    Stall(usize),
    /// Takes the request and closes.
    Hangup,
    /// Takes the request and says nothing, until the client is gone.
    Mute,
    /// Another status with a body.
    Status(u16, &'static str, String),
    /// 200 with another body.
    Body(&'static str, String),
    /// A good answer that goes on and on.
    Endless,
}

/// The good answer of each provider, as a stream and whole. Says `Σ ok`, thinks `hm`, takes 7 and gives 5 tokens.
trait TestProtocol: ProviderProtocol {
    fn stream() -> String;
    fn unstreamed() -> String;
    fn delta(text: &str) -> String;
    fn native() -> String;
    fn overloaded() -> String;
}

fn events(all: &[serde_json::Value]) -> String {
    all.iter().map(|each| format!("event: {}\ndata: {each}\n\n", each["type"].as_str().unwrap_or("x"))).collect()
}

impl TestProtocol for ChatCompletions {
    fn stream() -> String {
        let delta = |delta| json!({"model": "m-1", "choices": [{"delta": delta}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}});
        events(&[
            delta(json!({"role": "assistant", "reasoning_content": "hm"})),
            delta(json!({"content": "Σ "})),
            delta(json!({"content": "ok"})),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
            usage,
        ]) + "data: [DONE]\n\n"
    }

    fn unstreamed() -> String {
        json!({"model": "m-1", "choices": [{"message": {"content": "Σ ok", "reasoning_content": "hm"}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5}})
        .to_string()
    }

    fn delta(text: &str) -> String {
        events(&[json!({"choices": [{"delta": {"content": text}}]})])
    }

    fn native() -> String {
        let call = json!({"index": 0, "function": {"name": "file_read", "arguments": "{}"}});
        events(&[json!({"choices": [{"delta": {"tool_calls": [call]}}]})]) + "data: [DONE]\n\n"
    }

    fn overloaded() -> String {
        events(&[json!({"error": {"type": "server_error", "message": "too hot"}})])
    }
}

impl TestProtocol for ResponsesApi {
    fn stream() -> String {
        let text = |delta: &str| json!({"type": "response.output_text.delta", "delta": delta});
        let usage = json!({"input_tokens": 7, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5});
        events(&[
            json!({"type": "response.created", "response": {"model": "m-1", "status": "in_progress", "usage": null}}),
            json!({"type": "response.output_item.added", "item": {"type": "reasoning", "summary": []}}),
            json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"}),
            json!({"type": "response.output_item.added", "item": {"type": "message", "content": []}}),
            text("Σ "),
            text("ok"),
            json!({"type": "response.completed", "response": {"model": "m-1", "status": "completed", "usage": usage}}),
        ])
    }

    fn unstreamed() -> String {
        json!({"model": "m-1", "status": "completed", "error": null, "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "Σ ok"}]}],
            "usage": {"input_tokens": 7, "output_tokens": 5}})
        .to_string()
    }

    fn delta(text: &str) -> String {
        events(&[json!({"type": "response.output_text.delta", "delta": text})])
    }

    fn native() -> String {
        let call = json!({"type": "function_call", "name": "file_read", "arguments": "{}"});
        let done = json!({"type": "response.output_item.done", "item": call});
        events(&[done, json!({"type": "response.completed", "response": {"usage": null}})])
    }

    fn overloaded() -> String {
        events(&[json!({"type": "error", "code": "server_error", "message": "too hot"})])
    }
}

impl TestProtocol for MessagesApi {
    fn stream() -> String {
        let delta = |delta| json!({"type": "content_block_delta", "index": 0, "delta": delta});
        events(&[
            json!({"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            delta(json!({"type": "thinking_delta", "thinking": "hm"})),
            json!({"type": "ping"}),
            delta(json!({"type": "text_delta", "text": "Σ "})),
            delta(json!({"type": "text_delta", "text": "ok"})),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
            json!({"type": "message_stop"}),
        ])
    }

    fn unstreamed() -> String {
        json!({"type": "message", "model": "m-1", "usage": {"input_tokens": 7, "output_tokens": 5},
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Σ ok"}]})
        .to_string()
    }

    fn delta(text: &str) -> String {
        events(&[json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}})])
    }

    fn native() -> String {
        let start = json!({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "file_read"}});
        events(&[start, json!({"type": "message_stop"})])
    }

    fn overloaded() -> String {
        events(&[json!({"type": "error", "error": {"type": "overloaded_error", "message": "too hot"}})])
    }
}

struct TestServer {
    url: String,
    /// Every request, head and body.
    heard: Arc<Mutex<Vec<String>>>,
    /// How many clients went away while the server was stalling.
    left: Arc<tokio::sync::Notify>,
}

impl TestServer {
    async fn open<V: TestProtocol>(actions: Vec<ServerAction>) -> TestServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let test_server = TestServer { url, heard: Arc::default(), left: Arc::default() };
        let (heard, left) = (test_server.heard.clone(), test_server.left.clone());
        tokio::spawn(async move {
            for action in actions {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let request = request(&mut stream).await;
                heard.lock().push(request);
                // The client may be gone at any moment, which is no fault here.
                drop(act::<V>(&mut stream, action, &left).await);
            }
        });
        test_server
    }
}

async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).to_string();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase().lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return text;
        }
    }
}

async fn act<V: TestProtocol>(
    stream: &mut TcpStream,
    action: ServerAction,
    left: &tokio::sync::Notify,
) -> std::io::Result<()> {
    let head = |status: u16, extra: &str| format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{extra}\r\n\r\n");
    let chunked = head(200, "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked");
    let good = V::stream();
    match action {
        ServerAction::Hangup => (),
        ServerAction::Mute => while stream.read(&mut [0; 64]).await? > 0 {},
        ServerAction::Status(status, extra, body) => {
            stream.write_all((head(status, extra) + &body).as_bytes()).await?;
        }
        ServerAction::Body(kind, body) => {
            stream.write_all((head(200, &format!("content-type: {kind}")) + &body).as_bytes()).await?;
        }
        ServerAction::Endless => {
            stream.write_all(chunked.as_bytes()).await?;
            let delta = V::delta(&"x".repeat(60_000));
            for _ in 0..170 {
                chunk(stream, delta.as_bytes()).await?;
            }
        }
        ServerAction::Well | ServerAction::ByteByByte | ServerAction::Cut(_) | ServerAction::Stall(_) => {
            stream.write_all(chunked.as_bytes()).await?;
            let (size, end) = match action {
                ServerAction::ByteByByte => (1, good.len()),
                ServerAction::Cut(end) | ServerAction::Stall(end) => (100, end),
                _ => (100, good.len()),
            };
            for piece in good.as_bytes()[..end].chunks(size) {
                chunk(stream, piece).await?;
            }
            if let ServerAction::Stall(_) = action {
                while stream.read(&mut [0; 64]).await? > 0 {}
                left.notify_one();
            } else if end == good.len() {
                stream.write_all(b"0\r\n\r\n").await?;
            }
        }
    }
    stream.shutdown().await
}

async fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut whole = format!("{:x}\r\n", bytes.len()).into_bytes();
    whole.extend_from_slice(bytes);
    whole.extend_from_slice(b"\r\n");
    stream.write_all(&whole).await
}

/// Where patience is short.
#[derive(Clone, Copy, PartialEq)]
enum ShortTimeout {
    Nowhere,
    Connect,
    FirstByte,
    Idle,
}

/// Generous where an answer is to come, so that a busy machine fails nothing; short where silence is the point.
fn patience(brief: ShortTimeout) -> RetryPolicy {
    let wait = |at: ShortTimeout| if brief == at { Duration::from_millis(80) } else { Duration::from_secs(60) };
    let (connect, first_byte, idle) =
        (wait(ShortTimeout::Connect), wait(ShortTimeout::FirstByte), wait(ShortTimeout::Idle));
    let (pause, longest_pause) = (Duration::from_millis(1), Duration::from_secs(5));
    RetryPolicy { connect, first_byte, idle, attempts: 3, pause, longest_pause }
}

fn ask() -> ModelRequest {
    ModelRequest {
        system: "be".into(),
        messages: vec![Message::user("hi"), Message::user("there")],
        max_tokens: 99,
        ..ModelRequest::default()
    }
}

fn remote<V: TestProtocol>(url: &str, brief: ShortTimeout) -> RemoteModel<V> {
    let (preset, silence) = (&OPENAI, Silence::default());
    let server =
        ModelServer { preset, model: "m".into(), base_url: url.to_owned(), key: Some(Secret::new(KEY)), silence };
    RemoteModel::new(server, Arc::new(Http::new(patience(brief), acheron_base::Clock::real())), 7)
}

async fn trial<V: TestProtocol>(
    actions: Vec<ServerAction>,
    brief: ShortTimeout,
) -> (Result<ModelAnswer>, Vec<AnswerPiece>, TestServer) {
    let test_server = TestServer::open::<V>(actions).await;
    let mut pieces = Vec::new();
    let said = remote::<V>(&test_server.url, brief).answer(&ask(), &mut |piece| pieces.push(piece)).await;
    (said, pieces, test_server)
}

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

/// The answer of each API that was cut at its token limit, and a cache.
#[tokio::test]
async fn an_answer_that_was_cut_says_so_and_cached_tokens_are_counted() {
    async fn said<V: TestProtocol>(body: serde_json::Value) -> ModelAnswer {
        let action = ServerAction::Body("application/json", body.to_string());
        trial::<V>(vec![action], ShortTimeout::Nowhere).await.0.unwrap()
    }
    let chat = json!({"choices": [{"message": {"content": "a"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}});
    let messages = json!({"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "max_tokens",
        "usage": {"input_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3, "output_tokens": 1}});
    let responses = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
        "usage": {"input_tokens": 9, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 4}}});
    let answers = [
        said::<ChatCompletions>(chat).await,
        said::<MessagesApi>(messages).await,
        said::<ResponsesApi>(responses).await,
    ];
    for (answer, cache_write) in answers.iter().zip([0, 3, 0]) {
        let usage = Usage { cache_read: 4, cache_write, ..Usage::new(9, 1) };
        assert_eq!((answer.text.as_str(), answer.cut, answer.usage), ("a", true, usage));
    }
}

/// The form of each request: by schema, as an object, freely.
#[tokio::test]
async fn a_form_that_a_server_refuses_is_not_asked_for_again() {
    let refused =
        |word: &str| ServerAction::Status(400, "x: y", format!(r#"{{"error":{{"message":"no {word} here"}}}}"#));
    let actions = vec![refused("response_format"), refused("json_object"), ServerAction::Well, ServerAction::Well];
    let test_server = TestServer::open::<ChatCompletions>(actions).await;
    let model = remote::<ChatCompletions>(&test_server.url, ShortTimeout::Nowhere);
    let formed = ModelRequest { schema: Some(Arc::new(json!({"type": "object"}))), ..ask() };
    for _ in 0..2 {
        assert_eq!(model.answer(&formed, &mut |_| ()).await.unwrap().text, "Σ ok");
    }
    let heard = test_server.heard.lock();
    let form = |request: &String| {
        let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["response_format"]["type"].as_str().map(str::to_owned)
    };
    let forms: Vec<_> = heard.iter().map(form).collect();
    assert_eq!(forms, [Some("json_schema".to_owned()), Some("json_object".to_owned()), None, None]);
}
