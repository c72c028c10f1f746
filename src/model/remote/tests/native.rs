//! Native calls in the exact shapes of the providers: streamed in fragments, whole, and sent back.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ServerAction, ShortTimeout, TestProtocol, TestServer, ask, events, remote};
use crate::model::anthropic::MessagesApi;
use crate::model::openai::ChatCompletions;
use crate::model::responses::ResponsesApi;
use crate::model::{
    AnswerPiece, KeptAnswer, Message, Model as _, ModelAnswer, ModelRequest, NativeCall, NativeResult, OfferedTool,
};
use acheron_base::Result;

const READ: &str = r#"{"path":"a"}"#;
const LIST: &str = r#"{"path":"Σ"}"#;

fn offering(messages: Vec<Message>) -> ModelRequest {
    let arguments = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let tools = Arc::new([OfferedTool { name: "file_read", about: "Reads.", arguments }]);
    ModelRequest { messages, tools: Some(tools), ..ask() }
}

fn call(id: &str, name: &str, arguments: &str) -> NativeCall {
    NativeCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// Two calls with words beside them and a thought, as each provider sends them.
trait NativeProtocol: TestProtocol {
    fn calls_streamed() -> String;
    fn calls_whole() -> String;
    /// What is kept of them, to be sent back.
    fn parts() -> Vec<Value>;
    /// The tools and the messages after the input, as the next request has them.
    fn sent() -> (Value, Value);
    fn sent_in(body: &Value) -> (Value, Value);
}

/// A text in pieces of three characters.
fn pieces(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(3).map(|chunk| chunk.iter().collect()).collect()
}

impl NativeProtocol for ChatCompletions {
    fn calls_streamed() -> String {
        let delta =
            |delta: Value| json!({"model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        let function = |index: u64, function: Value| json!({"tool_calls": [{"index": index, "function": function}]});
        let mut all = vec![
            delta(json!({"role": "assistant", "content": null, "reasoning_content": "h"})),
            delta(json!({"reasoning_content": "m"})),
            delta(json!({"content": "I look."})),
            delta(json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
                "function": {"name": "file_read", "arguments": ""}}]})),
        ];
        all.extend(pieces(READ).iter().map(|piece| delta(function(0, json!({ "arguments": piece })))));
        all.push(delta(json!({"tool_calls": [{"index": 1, "id": "c2", "type": "function",
            "function": {"name": "file_list", "arguments": ""}}]})));
        all.extend(pieces(LIST).iter().map(|piece| delta(function(1, json!({ "arguments": piece })))));
        all.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}));
        all.push(json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}));
        events(&all) + "data: [DONE]\n\n"
    }

    fn calls_whole() -> String {
        let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        json!({"model": "m-1", "choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant",
            "content": "I look.", "reasoning_content": "hm",
            "tool_calls": [call("c1", "file_read", READ), call("c2", "file_list", LIST)]}}],
            "usage": {"prompt_tokens": 7, "completion_tokens": 5}})
        .to_string()
    }

    fn parts() -> Vec<Value> {
        vec![json!({"reasoning_content": "hm"})]
    }

    fn sent() -> (Value, Value) {
        let tools = json!([{"type": "function", "function": {"name": "file_read", "description": "Reads.",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}]);
        let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        let messages = json!([
            {"role": "assistant", "content": "I look.", "reasoning_content": "hm",
             "tool_calls": [call("c1", "file_read", READ), call("c2", "file_list", LIST)]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
        ]);
        (tools, messages)
    }

    fn sent_in(body: &Value) -> (Value, Value) {
        (body["tools"].clone(), body["messages"].as_array().unwrap()[2..].iter().cloned().collect())
    }
}

impl NativeProtocol for MessagesApi {
    fn calls_streamed() -> String {
        let start =
            |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
        let usage = json!({"input_tokens": 7, "output_tokens": 1});
        let mut all = vec![
            json!({"type": "message_start", "message": {"model": "m-1", "content": [], "usage": usage}}),
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "h"})),
            delta(0, json!({"type": "thinking_delta", "thinking": "m"})),
            delta(0, json!({"type": "signature_delta", "signature": "EqQ/+=="})),
            stop(0),
            start(1, json!({"type": "redacted_thinking", "data": "b64"})),
            stop(1),
            start(2, json!({"type": "text", "text": ""})),
            delta(2, json!({"type": "text_delta", "text": "I look."})),
            stop(2),
        ];
        for (index, (id, name, arguments)) in [("c1", "file_read", READ), ("c2", "file_list", LIST)].iter().enumerate()
        {
            let index = index as u64 + 3;
            all.push(start(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
            all.push(delta(index, json!({"type": "input_json_delta", "partial_json": ""})));
            let pieces = pieces(arguments);
            all.extend(
                pieces.iter().map(|piece| delta(index, json!({"type": "input_json_delta", "partial_json": piece}))),
            );
            all.push(stop(index));
        }
        all.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}));
        all.push(json!({"type": "message_stop"}));
        events(&all)
    }

    fn calls_whole() -> String {
        json!({"type": "message", "model": "m-1", "stop_reason": "tool_use",
            "usage": {"input_tokens": 7, "output_tokens": 5}, "content": Self::parts()})
        .to_string()
    }

    fn parts() -> Vec<Value> {
        vec![
            json!({"type": "thinking", "thinking": "hm", "signature": "EqQ/+=="}),
            json!({"type": "redacted_thinking", "data": "b64"}),
            json!({"type": "text", "text": "I look."}),
            json!({"type": "tool_use", "id": "c1", "name": "file_read", "input": {"path": "a"}}),
            json!({"type": "tool_use", "id": "c2", "name": "file_list", "input": {"path": "Σ"}}),
        ]
    }

    fn sent() -> (Value, Value) {
        let tools = json!([{"name": "file_read", "description": "Reads.",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}]);
        let messages = json!([
            {"role": "assistant", "content": Self::parts()},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "one"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "two", "is_error": true,
                 "cache_control": {"type": "ephemeral"}},
            ]},
        ]);
        (tools, messages)
    }

    fn sent_in(body: &Value) -> (Value, Value) {
        (body["tools"].clone(), body["messages"].as_array().unwrap()[1..].iter().cloned().collect())
    }
}

impl NativeProtocol for ResponsesApi {
    fn calls_streamed() -> String {
        let kept = Self::parts();
        let added = |index: usize, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
        let done =
            |index: usize| json!({"type": "response.output_item.done", "output_index": index, "item": kept[index]});
        let mut all = vec![
            json!({"type": "response.created", "response": {"model": "m-1", "status": "in_progress", "usage": null}}),
            added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"}),
            done(0),
            added(1, json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []})),
            json!({"type": "response.output_text.delta", "output_index": 1, "delta": "I look."}),
            done(1),
        ];
        for (index, arguments) in [(2, READ), (3, LIST)] {
            let mut begun = kept[index].clone();
            begun["arguments"] = "".into();
            all.push(added(index, begun));
            all.extend(pieces(arguments).iter().map(|piece| {
                json!({"type": "response.function_call_arguments.delta", "output_index": index,
                    "item_id": kept[index]["id"], "delta": piece})
            }));
            all.push(
                json!({"type": "response.function_call_arguments.done", "output_index": index, "arguments": arguments}),
            );
            all.push(done(index));
        }
        let usage = json!({"input_tokens": 7, "output_tokens": 5});
        let response = json!({"model": "m-1", "status": "completed", "output": kept, "usage": usage});
        all.push(json!({"type": "response.completed", "response": response}));
        events(&all)
    }

    fn calls_whole() -> String {
        json!({"model": "m-1", "status": "completed", "error": null, "output": Self::parts(),
            "usage": {"input_tokens": 7, "output_tokens": 5}})
        .to_string()
    }

    fn parts() -> Vec<Value> {
        vec![
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "gAAA=="}),
            json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "I look.", "annotations": []}]}),
            json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "file_read", "arguments": READ}),
            json!({"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "file_list", "arguments": LIST}),
        ]
    }

    fn sent() -> (Value, Value) {
        let tools = json!([{"type": "function", "name": "file_read", "description": "Reads.", "strict": false,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]);
        let mut input = Self::parts();
        input.push(json!({"type": "function_call_output", "call_id": "c1", "output": "one"}));
        input.push(json!({"type": "function_call_output", "call_id": "c2", "output": "two"}));
        (tools, input.into())
    }

    fn sent_in(body: &Value) -> (Value, Value) {
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
        (body["tools"].clone(), body["input"].as_array().unwrap()[1..].iter().cloned().collect())
    }
}

async fn answered<V: NativeProtocol>(
    actions: Vec<ServerAction>,
    ask: &ModelRequest,
) -> (Result<ModelAnswer>, Vec<Value>) {
    let server = TestServer::open::<V>(actions).await;
    let said = remote::<V>(&server.url, ShortTimeout::Nowhere).answer(ask, &mut |_| ()).await;
    let body = |request: &String| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    let heard = server.heard.lock().iter().map(body).collect();
    (said, heard)
}

/// The answer is the same streamed, byte by byte and whole; what is sent back is what came.
async fn calls<V: NativeProtocol>() {
    let actions = [
        ServerAction::Body("text/event-stream", V::calls_streamed()),
        ServerAction::Body("application/json", V::calls_whole()),
    ];
    for action in actions {
        let (said, _) = answered::<V>(vec![action], &offering(vec![Message::user("hi")])).await;
        let said = said.unwrap();
        assert_eq!(said.calls, [call("c1", "file_read", READ), call("c2", "file_list", &said.calls[1].arguments)]);
        assert_eq!(said.calls[1].object(), call("", "", LIST).object());
        assert_eq!((said.text.as_str(), said.thoughts.as_deref()), ("I look.", Some("hm")), "{}", V::NAME);
        assert!(said.native_call && !said.cut && said.usage.output == 5);
        assert_eq!(said.kept, Some(KeptAnswer { api: V::NAME.to_owned(), items: V::parts() }));

        let result = |id: &str, text: &str, failed| NativeResult { id: id.into(), text: text.into(), failed };
        let answer = Message::calls(said.text.as_str(), said.calls.clone(), said.kept.clone());
        let results = Message::results(vec![result("c1", "one", false), result("c2", "two", true)]);
        let next = offering(vec![Message::user("hi"), answer, results]);
        let (said, heard) = answered::<V>(vec![ServerAction::Well], &next).await;
        assert_eq!(said.unwrap().calls, []);
        assert_eq!(V::sent_in(&heard[0]), V::sent(), "{}", V::NAME);
    }
    // The arguments of a call count while they come.
    let server = TestServer::open::<V>(vec![ServerAction::Body("text/event-stream", V::calls_streamed())]).await;
    let mut given = String::new();
    let mut watch = |piece| {
        if let AnswerPiece::Call(text) = piece {
            given.push_str(&text);
        }
    };
    remote::<V>(&server.url, ShortTimeout::Nowhere).answer(&offering(vec![]), &mut watch).await.unwrap();
    assert!(given.starts_with(READ) && given.len() >= READ.len() + LIST.len(), "{given}");
}

#[tokio::test]
async fn calls_come_in_fragments_and_go_back_with_the_reasoning_unchanged() {
    calls::<ChatCompletions>().await;
    calls::<MessagesApi>().await;
    calls::<ResponsesApi>().await;
}

/// What another provider gave is sent as calls and results, without its reasoning.
#[tokio::test]
async fn an_answer_of_another_provider_goes_back_as_plain_calls() {
    async fn plain<V: NativeProtocol>(api: &str) -> Value {
        let kept =
            Some(KeptAnswer { api: api.to_owned(), items: vec![json!({"type": "thinking", "signature": "secret"})] });
        let answer = Message::calls("", vec![call("c1", "file_read", "{oops")], kept);
        let results = Message::results(vec![NativeResult { id: "c1".into(), text: "no".into(), failed: true }]);
        let (_, heard) =
            answered::<V>(vec![ServerAction::Well], &offering(vec![Message::user("hi"), answer, results])).await;
        assert!(!heard[0].to_string().contains("secret"));
        V::sent_in(&heard[0]).1
    }
    let function = json!({"name": "file_read", "arguments": "{\"unreadable\":\"{oops\"}"});
    assert_eq!(
        plain::<ChatCompletions>("anthropic").await[0],
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
    );
    let block = json!({"type": "tool_use", "id": "c1", "name": "file_read", "input": {"unreadable": "{oops"}});
    assert_eq!(plain::<MessagesApi>("openai").await[0], json!({"role": "assistant", "content": [block]}));
    let item = json!({"type": "function_call", "call_id": "c1", "name": "file_read", "arguments": "{\"unreadable\":\"{oops\"}"});
    assert_eq!(plain::<ResponsesApi>("anthropic").await[0], item);
}

#[tokio::test]
async fn a_model_that_does_not_reason_is_asked_without_and_one_without_tools_is_explained() {
    let refused = |why: &str| ServerAction::Status(400, "x: y", json!({"error": {"message": why}}).to_string());
    let actions = vec![refused("Encrypted content is not supported with this model."), ServerAction::Well];
    let (said, heard) = answered::<ResponsesApi>(actions, &offering(vec![Message::user("hi")])).await;
    assert_eq!(said.unwrap().text, "Σ ok");
    assert!(heard[0].get("include").is_some() && heard[1].get("include").is_none());
    assert_eq!(heard[0]["tools"], heard[1]["tools"]);

    let (said, _) = answered::<ChatCompletions>(
        vec![refused("gemma does not support tools")],
        &offering(vec![Message::user("hi")]),
    )
    .await;
    let error = said.unwrap_err().message;
    assert!(error.contains("gemma does not support tools; does this model take tools?"), "{error}");
}

#[tokio::test]
async fn reasoning_that_cannot_be_sent_back_is_not() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let function = json!({"type": "function_call", "call_id": "c1", "name": "file_read", "arguments": READ});
    let body = json!({"status": "completed", "output": [item, function], "usage": null}).to_string();
    let (said, _) =
        answered::<ResponsesApi>(vec![ServerAction::Body("application/json", body)], &offering(vec![])).await;
    let said = said.unwrap();
    assert_eq!((said.calls.len(), said.kept), (1, None), "the provider has not stored it");

    // OpenRouter streams its details in pieces, and wants them back whole.
    let detail = |piece: Value| json!({"choices": [{"delta": {"reasoning_details": [piece]}}]});
    let stream = events(&[
        detail(json!({"type": "reasoning.text", "index": 0, "text": "h", "signature": null})),
        detail(json!({"type": "reasoning.text", "index": 0, "text": "m", "signature": "sig"})),
        detail(json!({"type": "reasoning.encrypted", "index": 1, "data": "x"})),
        json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "file_read", "arguments": {"path": "a"}}}]}}]}),
    ]) + "data: [DONE]\n\n";
    let (said, _) =
        answered::<ChatCompletions>(vec![ServerAction::Body("text/event-stream", stream)], &offering(vec![])).await;
    let said = said.unwrap();
    let details = json!([{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"}]);
    assert_eq!(said.kept.unwrap().items, [json!({ "reasoning_details": details })]);
    assert_eq!(said.calls, [call("c1", "file_read", r#"{"path":"a"}"#)], "some servers send the object itself");
}
