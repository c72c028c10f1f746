//! All providers against a real server: what it misbehaves in (`misbehaving`), the forms of requests and answers (`forms`), and
//! native calls (`native`). This file has the server.

mod forms;
mod misbehaving;
mod native;

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
use crate::model::{AnswerPiece, Message, Model, ModelAnswer, ModelRequest};
use acheron_base::Result;
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
