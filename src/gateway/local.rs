//! Answers of models that have no server: scripts and recordings, in the language of the program that asks.

use std::sync::Arc;

use super::account::{USUAL_ANSWER, WantedRequest};
use super::client::{ClientGateway, ReadRequest, fault_of};
use super::forward::{event_stream, usage_of, usage_of_events};
use super::recording::{Exchange, RecordedRun};
use crate::model::{Message, ModelAnswer, ModelRequest, NativeCall, NativeResult};
use crate::spec::{ModelKind, ModelSpec};
use acheron_base::{Error, Result, blocking};
use acheron_gateway::{
    AnswerCall, AnswerEnd, AnswerIdentity, AnswerPart, AnswerWriter, CallResult, ContentPart, Conversation,
    ConversationTurn, GatewayRequest, StopReason, TokenUsage, WholeAnswer, whole_answer,
};
use acheron_http::server::{OutgoingAnswer, OutgoingBody};

impl ClientGateway {
    /// Answers from a script or a recording.
    pub async fn answer_here(&self, model: &ModelSpec, read: &ReadRequest) -> Result<OutgoingAnswer> {
        if model.kind == ModelKind::Replay {
            let run = self.recorded_run(model).await?;
            if !run.is_empty() {
                return self.replay(&run, model, read).await;
            }
        }
        let answered = self.ask_script(model, read).await;
        if let Err(error) = &answered {
            let line = self.line(&read.asked, model_name(model));
            self.books.refuse(line, error, fault_of(error).status(read.asked.dialect));
        }
        answered
    }

    async fn recorded_run(&self, model: &ModelSpec) -> Result<Arc<RecordedRun>> {
        let file = model.name.clone().unwrap_or_default();
        // Two requests at once must not read it twice: each would begin from its first line.
        let mut replayed = self.replayed.lock().await;
        match &*replayed {
            Some((known, run)) if *known == file => Ok(run.clone()),
            _ => {
                let (runtimes, name) = (self.gateway.models.runtimes.clone(), file.clone());
                let run = blocking(move || RecordedRun::read(&name, &runtimes.file_text(&name)?)).await?;
                let run = Arc::new(run);
                *replayed = Some((file, run.clone()));
                Ok(run)
            }
        }
    }

    async fn replay(&self, run: &RecordedRun, model: &ModelSpec, read: &ReadRequest) -> Result<OutgoingAnswer> {
        let line = self.line(&read.asked, model_name(model));
        let exchange = match run.answer(&read.asked).await {
            Ok(exchange) => exchange,
            Err(error) => {
                self.books.refuse(line, &error, fault_of(&error).status(read.asked.dialect));
                return Err(error);
            }
        };
        let input = self.input(&read.asked, false).await?;
        let (max_tokens, prices) = (read.asked.max_tokens(), model.prices);
        let wanted = WantedRequest { line, input, max_tokens, prices, billed: false, kept: None };
        let mut account = self.books.reserve(wanted).await?;
        account.begin(exchange.status);
        let body = exchange.answer.as_bytes();
        let (usage, output) = match exchange.stream {
            true => usage_of_events(read.asked.dialect, body),
            false => usage_of(read.asked.dialect, body),
        };
        account.complete(usage, output).await?;
        let body = OutgoingBody::Whole(exchange.answer.clone().into());
        Ok(match exchange.stream {
            true => OutgoingAnswer { status: exchange.status, ..event_stream(body) },
            false => OutgoingAnswer { body, ..OutgoingAnswer::json(exchange.status, &serde_json::Value::Null) },
        })
    }

    async fn ask_script(&self, model: &ModelSpec, read: &ReadRequest) -> Result<OutgoingAnswer> {
        let opened = self.gateway.models.of(&self.client.agent).open()?;
        let paid = opened.ok_or_else(|| {
            Error::unavailable(
                "the agent has no model: the guide only shows the tree around; name a model for it in the mountspec, such as \
                 {\"kind\": \"openai\", \"name\": \"...\"}",
            )
        })?;
        let mut line = self.line(&read.asked, model_name(model));
        let answered = paid.ask(model_request(&read.asked), &mut |_| ()).await?;
        let said = answered.said.clone();
        let identity = AnswerIdentity {
            id: line.id.replace(['-', '_'], ""),
            model: if read.asked.model.is_empty() { line.model.clone() } else { read.asked.model.clone() },
            created: line.at_ms / 1000,
            input: said.usage.input,
            wants_usage: read.asked.wants_usage(),
        };
        let (told, text) = rendered(&read.asked, identity, &whole(&said));
        (line.status, line.ms) = (told.status, self.books.clock.now_ms().saturating_sub(line.at_ms));
        line.first_byte_ms = Some(line.ms);
        line.set_usage(said.usage);
        line.money = model.prices.cost(said.usage);
        self.books.settle(answered, line).await?;
        if let Some(recorder) = &self.recorder {
            let mut exchange = Exchange::begin(recorder, &self.client, &read.asked).await?;
            exchange.add(&text);
            exchange.end(told.status);
        }
        Ok(told)
    }
}

fn model_name(model: &ModelSpec) -> String {
    let kind = serde_json::to_value(model.kind).unwrap_or_default();
    format!("{}:{}", kind.as_str().unwrap_or_default(), model.name.as_deref().unwrap_or_default())
}

/// An answer in the form and language that a program asks for, and its bytes.
pub fn rendered(asked: &GatewayRequest, identity: AnswerIdentity, answer: &WholeAnswer) -> (OutgoingAnswer, Vec<u8>) {
    if !asked.stream {
        let value = whole_answer(asked.dialect, &identity, answer);
        return (OutgoingAnswer::json(200, &value), value.to_string().into_bytes());
    }
    let (mut writer, mut out) = (AnswerWriter::new(asked.dialect, identity), Vec::new());
    writer.begin(&mut out);
    for part in answer.parts() {
        match part {
            // In two pieces: a program that can only read one piece is found by its tests, not by its users.
            AnswerPart::Text(text) => {
                let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                let (first, rest) = text.split_at(middle);
                for piece in [first, rest].into_iter().filter(|piece| !piece.is_empty()) {
                    writer.part(&AnswerPart::Text(piece.to_owned()), &mut out);
                }
            }
            part => writer.part(&part, &mut out),
        }
    }
    writer.end(&answer.end, &mut out);
    (event_stream(OutgoingBody::Whole(out.clone().into())), out)
}

fn whole(said: &ModelAnswer) -> WholeAnswer {
    let reason = match (said.cut, said.calls.is_empty()) {
        (true, _) => StopReason::Length,
        (false, false) => StopReason::Calls,
        (false, true) => StopReason::End,
    };
    let call = |(number, call): (usize, &NativeCall)| {
        let id = if call.id.is_empty() { format!("call_{number}") } else { call.id.clone() };
        AnswerCall { id, name: call.name.clone(), arguments: call.object_text().into_owned() }
    };
    let usage = TokenUsage {
        input: Some(said.usage.input),
        output: Some(said.usage.output),
        cache_read: said.usage.cache_read,
        cache_write: said.usage.cache_write,
    };
    WholeAnswer {
        thoughts: said.thoughts.clone().unwrap_or_default(),
        text: said.text.clone(),
        calls: said.calls.iter().enumerate().map(call).collect(),
        end: AnswerEnd { reason, usage },
    }
}

/// The request as a script reads it.
fn model_request(asked: &GatewayRequest) -> ModelRequest {
    let Conversation { system, turns, .. } = asked.conversation();
    let mut messages: Vec<Message> = Vec::new();
    let mut results: Vec<NativeResult> = Vec::new();
    for turn in turns {
        if let ConversationTurn::Result(CallResult { id, text, failed, .. }) = turn {
            results.push(NativeResult { id, text, failed });
            continue;
        }
        if !results.is_empty() {
            messages.push(Message::results(std::mem::take(&mut results)));
        }
        messages.push(match turn {
            ConversationTurn::System(text) => Message::user(text),
            ConversationTurn::User(parts) => Message::user(ContentPart::text_of(&parts)),
            ConversationTurn::Assistant { text, calls } if calls.is_empty() => Message::assistant(text),
            ConversationTurn::Assistant { text, calls } => {
                let call = |call: AnswerCall| NativeCall { id: call.id, name: call.name, arguments: call.arguments };
                Message::calls(text, calls.into_iter().map(call).collect(), None)
            }
            ConversationTurn::Result(_) => continue,
        });
    }
    if !results.is_empty() {
        messages.push(Message::results(results));
    }
    let max_tokens = asked.max_tokens().unwrap_or(USUAL_ANSWER);
    // A script makes calls only for those who offer tools; which ones does not matter to it.
    let tools = asked.has_tools().then(|| Arc::from([]));
    ModelRequest { system, messages, max_tokens, tools, ..ModelRequest::default() }
}
