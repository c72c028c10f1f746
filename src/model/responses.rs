//! The responses API of OpenAI and of servers that have taken it over.

use serde_json::{Value, json};

use super::answer_form::AnswerForm;
use super::openai::authorized;
use super::remote::{PartialAnswer, ProviderProtocol, RemoteModel, alternating};
use super::server::ModelServer;
use super::{MessageRole, ModelRequest};
use acheron_base::Error;
use acheron_http::{Failure, Request};

pub type OpenAiResponses = RemoteModel<ResponsesApi>;

pub struct ResponsesApi;

impl ProviderProtocol for ResponsesApi {
    const NAME: &'static str = "responses";

    fn request(server: &ModelServer, ask: &ModelRequest, form: AnswerForm) -> Request {
        let input: Vec<Value> = alternating(&ask.messages)
            .iter()
            .map(|message| {
                let role = if message.role == MessageRole::User { "user" } else { "assistant" };
                json!({"role": role, "content": message.text})
            })
            .collect();
        let mut body = json!({
            "model": server.model,
            "instructions": ask.system,
            "input": input,
            "max_output_tokens": ask.max_tokens,
            "stream": true,
            // Every request carries its whole conversation; the provider need not keep it.
            "store": false,
        });
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
            "response.output_item.added" | "response.output_item.done" => {
                answer.native_call |= is_call(&event["item"]);
            }
            "response.completed" | "response.incomplete" => {
                // A server may send whole items and no deltas.
                if answer.text.is_empty() {
                    take(&event["response"], answer);
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
}

fn is_call(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
}

/// Text, reasoning and native calls of a whole response.
fn take(response: &Value, answer: &mut PartialAnswer) {
    for item in response["output"].as_array().into_iter().flatten() {
        answer.native_call |= is_call(item);
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
