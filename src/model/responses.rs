//! The responses API of OpenAI and of servers that have taken it over.

use serde_json::{Value, json};

use super::answer_form::AnswerForm;
use super::call_assembly::CallFragment;
use super::openai::authorized;
use super::remote::{PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::server::ModelServer;
use super::{Message, MessageRole, ModelRequest, NativeCall, OfferedTool, ToolMessage};
use acheron_base::Error;
use acheron_http::{Failure, Request};

pub type OpenAiResponses = RemoteModel<ResponsesApi>;

pub struct ResponsesApi;

impl ProviderProtocol for ResponsesApi {
    const NAME: &'static str = "responses";

    fn request(server: &ModelServer, ask: &ModelRequest, form: AnswerForm) -> Request {
        let input: Vec<Value> = alternating(&ask.messages).iter().flat_map(sent).collect();
        let mut body = json!({
            "model": server.model,
            "instructions": ask.system,
            "input": input,
            "max_output_tokens": ask.max_tokens,
            "stream": true,
            // Every request carries its whole conversation; the provider need not keep it.
            "store": false,
        });
        if let Some(tools) = &ask.tools {
            body["tools"] = tools.iter().map(offered).collect();
        }
        if form == AnswerForm::Reasoning {
            // What the provider does not keep must be sent back, which only the encrypted form can be.
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        match (form, &ask.schema) {
            (AnswerForm::Schema, Some(schema)) => {
                let format = json!({"type": "json_schema", "name": "answer", "schema": **schema, "strict": false});
                body["text"] = json!({ "format": format });
            }
            (AnswerForm::Object, Some(_)) => body["text"] = json!({"format": {"type": "json_object"}}),
            _ => (),
        }
        authorized(server, server.post("/responses", &body))
    }

    fn event(event: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        match event["type"].as_str().unwrap_or_default() {
            "response.output_text.delta" => answer.text(event["delta"].as_str().unwrap_or_default()),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                answer.thought(event["delta"].as_str().unwrap_or_default());
            }
            "response.output_item.added" => begun(&event["item"], event["output_index"].as_u64(), answer),
            "response.function_call_arguments.delta" => {
                let (number, arguments) = (event["output_index"].as_u64(), event["delta"].as_str().unwrap_or_default());
                answer.call(CallFragment { number, arguments, ..CallFragment::default() });
            }
            "response.output_item.done" => done(&event["item"], event["output_index"].as_u64(), answer),
            "response.completed" | "response.incomplete" => {
                // A server may send whole items and no deltas.
                if answer.text.is_empty() && !answer.has_calls() {
                    take(&event["response"], answer);
                }
                if answer.items.is_empty() {
                    let output = event["response"]["output"].as_array().into_iter().flatten();
                    output.for_each(|item| answer.item(item.clone()));
                }
                note(&event["response"], answer);
                answer.finished = true;
            }
            "response.failed" => return Err(PartialAnswer::trouble(&event["response"]["error"])),
            "error" => return Err(PartialAnswer::trouble(event.get("error").unwrap_or(event))),
            _ => (), // the beginnings and ends of parts
        }
        Ok(())
    }

    fn whole(body: &Value, answer: &mut PartialAnswer) -> Result<(), Failure> {
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(PartialAnswer::trouble(error));
        }
        if !body["output"].is_array() {
            return Err(Error::provider("the answer of the model's server has no output in it").into());
        }
        take(body, answer);
        note(body, answer);
        Ok(())
    }

    /// All items, if the model's reasoning is among them in a form that may be sent back.
    fn kept(mut items: Vec<Value>, _: &[NativeCall]) -> Vec<Value> {
        let encrypted = |item: &Value| item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
        // The provider looks for other reasoning among what it has stored, and finds nothing.
        items.retain(|item| item["type"] != "reasoning" || encrypted(item));
        if items.iter().any(|item| item["type"] == "reasoning") { items } else { Vec::new() }
    }
}

fn offered(tool: &OfferedTool) -> Value {
    let OfferedTool { name, about, arguments } = tool;
    json!({"type": "function", "name": name, "description": about, "parameters": arguments, "strict": false})
}

/// A message as the items that the server takes.
fn sent(message: &Message) -> Vec<Value> {
    let role = if message.role == MessageRole::User { "user" } else { "assistant" };
    let words = |text: &str| json!({"role": role, "content": text});
    match message.tools.as_deref() {
        None => vec![words(&message.text)],
        Some(ToolMessage::Results(results)) => {
            let output = results
                .iter()
                .map(|result| json!({"type": "function_call_output", "call_id": result.id, "output": result.text}));
            output.collect()
        }
        Some(ToolMessage::Calls { kept: Some(kept), .. }) if kept.api == ResponsesApi::NAME => kept.items.clone(),
        Some(ToolMessage::Calls { calls, .. }) => {
            let call = |call: &NativeCall| {
                let arguments = call.object_text();
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
            };
            let said = Some(&message.text).filter(|text| !text.is_empty()).map(|text| words(text));
            said.into_iter().chain(calls.iter().map(call)).collect()
        }
    }
}

/// The call of an item, if it is one.
fn call(item: &Value, number: Option<u64>) -> Option<CallFragment<'_>> {
    let word = |key: &str| item[key].as_str().unwrap_or_default();
    let fragment = CallFragment { number, id: word("call_id"), name: word("name"), arguments: word("arguments") };
    (word("type") == "function_call").then_some(fragment)
}

/// Notes calls of whatever kind: those of the server's own tools were not offered.
fn note_call(item: &Value, answer: &mut PartialAnswer) {
    answer.native_call |= item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
}

/// An item that will grow.
fn begun(item: &Value, number: Option<u64>, answer: &mut PartialAnswer) {
    note_call(item, answer);
    if let Some(call) = call(item, number) {
        answer.call(call);
    }
}

/// A whole item.
fn done(item: &Value, number: Option<u64>, answer: &mut PartialAnswer) {
    note_call(item, answer);
    if let Some(call) = call(item, number) {
        answer.whole_call(call);
    }
    answer.item(item.clone());
}

/// Text, reasoning and native calls of a whole response.
fn take(response: &Value, answer: &mut PartialAnswer) {
    answer.items.clear();
    for (at, item) in response["output"].as_array().into_iter().flatten().enumerate() {
        done(item, Some(at as u64), answer);
        for part in item["summary"].as_array().into_iter().flatten() {
            if answer.thoughts.is_empty() {
                answer.thought(part["text"].as_str().unwrap_or_default());
            }
        }
        for part in item["content"].as_array().into_iter().flatten().filter(|part| part["type"] == "output_text") {
            answer.text(part["text"].as_str().unwrap_or_default());
        }
    }
}

fn note(response: &Value, answer: &mut PartialAnswer) {
    let usage = &response["usage"];
    answer.input = usage["input_tokens"].as_u64().or(answer.input);
    answer.output = usage["output_tokens"].as_u64().or(answer.output);
    answer.cache_read = usage["input_tokens_details"]["cached_tokens"].as_u64().unwrap_or(answer.cache_read);
    answer.cut |= response["incomplete_details"]["reason"] == "max_output_tokens";
    if let Some(model) = response["model"].as_str().filter(|model| !model.is_empty()) {
        answer.model = Some(model.to_owned());
    }
}
