//! The forms of requests and answers.

use std::sync::Arc;

use serde_json::json;

use super::{ServerAction, ShortTimeout, TestProtocol, TestServer, ask, remote, trial};
use crate::model::anthropic::MessagesApi;
use crate::model::openai::ChatCompletions;
use crate::model::responses::ResponsesApi;
use crate::model::{Model as _, ModelAnswer, ModelRequest, Usage};

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
