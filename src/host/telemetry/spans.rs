//! Spans from the records that the host keeps anyway: jobs, and the transcripts of turns. Pure.
//!
//! Names and attributes are those of the conventions for generative AI of OpenTelemetry. What people and models said is left out.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::agent::transcript::TranscriptRecord;
use crate::jobs::TURN_SERVICE;
use crate::model::Usage;
use crate::state::jobs::JobRow;
use acheron_base::Error;

/// The kinds of spans: work inside, and calls of another server.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// One span.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    kind: u8,
    start_ms: u64,
    end_ms: u64,
    attributes: Vec<(&'static str, Value)>,
    error: Option<Error>,
    /// The job that a tool has started.
    started: Option<String>,
}

/// The spans of a job that has ended: one, and for a turn one for each call of its model and of its tools.
pub fn of_job(job: &JobRow, records: &[TranscriptRecord]) -> Vec<Span> {
    let turn = job.service == TURN_SERVICE;
    let mut whole = Span {
        trace: trace_of(&job.id),
        id: span_of(&job.id, 0),
        parent: None,
        name: format!("{} {}", job.service, job.operation),
        kind: INTERNAL,
        start_ms: job.started_at_ms.unwrap_or(job.created_at_ms),
        end_ms: job.updated_at_ms,
        attributes: vec![
            ("acheron.job.id", job.id.as_str().into()),
            ("acheron.job.state", job.state.name().into()),
            ("acheron.principal", job.principal.as_str().into()),
            ("gen_ai.agent.id", job.agent.as_str().into()),
            ("gen_ai.agent.name", job.agent.as_str().into()),
        ],
        error: job.error.clone(),
        started: None,
    };
    if !turn {
        whole.attributes.push(("acheron.service", job.service.as_str().into()));
        whole.attributes.push(("acheron.operation", job.operation.as_str().into()));
        return vec![whole];
    }
    whole.name = format!("invoke_agent {}", job.agent);
    whole.attributes.push(("gen_ai.operation.name", "invoke_agent".into()));
    whole.attributes.push(("gen_ai.conversation.id", job.agent.as_str().into()));
    let (mut spans, mut usage, mut called) = (Vec::new(), Usage::default(), None);
    for (number, record) in records.iter().enumerate() {
        let child = |name: String, kind, ms: u64, attributes| Span {
            trace: whole.trace.clone(),
            id: span_of(&job.id, number as u64 + 1),
            parent: Some(whole.id.clone()),
            name,
            kind,
            start_ms: record.at_ms().saturating_sub(ms),
            end_ms: record.at_ms(),
            attributes,
            error: None,
            started: None,
        };
        match record {
            TranscriptRecord::Said { ms, said, .. } => {
                usage = usage.plus(said.usage);
                let mut attributes = vec![
                    ("gen_ai.operation.name", "chat".into()),
                    ("gen_ai.request.model", said.model.as_str().into()),
                    ("gen_ai.response.model", said.model.as_str().into()),
                ];
                attributes.extend(counts(said.usage));
                spans.push(child(format!("chat {}", said.model), CLIENT, *ms, attributes));
            }
            TranscriptRecord::Intent { call, .. } => called = Some(call),
            TranscriptRecord::Mail { .. } => (),
            TranscriptRecord::Outcome { ms, result, .. } => {
                let Some(call) = called.take() else { continue };
                let tool = call.tool.name();
                let mut attributes = vec![
                    ("gen_ai.operation.name", "execute_tool".into()),
                    ("gen_ai.tool.name", tool.into()),
                    ("gen_ai.tool.type", "function".into()),
                ];
                attributes.extend(call.id.as_deref().map(|id| ("gen_ai.tool.call.id", id.into())));
                let mut span = child(format!("execute_tool {tool}"), INTERNAL, *ms, attributes);
                span.error = result.get("error").and_then(|error| serde_json::from_value(error.clone()).ok());
                span.started = result["job_id"].as_str().map(str::to_owned);
                spans.push(span);
            }
            TranscriptRecord::Began { .. } | TranscriptRecord::Ended { .. } => (),
        }
    }
    whole.attributes.extend(counts(usage));
    spans.insert(0, whole);
    spans
}

fn counts(usage: Usage) -> Vec<(&'static str, Value)> {
    let all = [
        ("gen_ai.usage.input_tokens", usage.input),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
    ];
    all.into_iter().map(|(key, count)| (key, count.into())).collect()
}

/// The body of one export: OTLP in JSON.
pub fn document(spans: &[Span], host: &str) -> Value {
    let resource = [
        ("service.name", "acheron".into()),
        ("service.version", env!("CARGO_PKG_VERSION").into()),
        ("service.instance.id", host.into()),
    ];
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{"scope": {"name": "acheron"}, "spans": spans.iter().map(shown).collect::<Vec<_>>()}],
    }]})
}

fn shown(span: &Span) -> Value {
    let nanoseconds = |ms: u64| (u128::from(ms) * 1_000_000).to_string();
    let mut all = span.attributes.clone();
    all.extend(span.error.as_ref().map(|error| ("error.type", error.code.name().into())));
    let mut shown = json!({
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": nanoseconds(span.start_ms),
        "endTimeUnixNano": nanoseconds(span.end_ms.max(span.start_ms)),
        "attributes": attributes(&all),
        "status": {},
    });
    if let Some(parent) = &span.parent {
        shown["parentSpanId"] = parent.as_str().into();
    }
    if let Some(error) = &span.error {
        shown["status"] = json!({"code": 2, "message": error.message});
    }
    if let Some(job) = &span.started {
        shown["links"] = json!([{"traceId": trace_of(job), "spanId": span_of(job, 0)}]);
    }
    shown
}

fn attributes(all: &[(&'static str, Value)]) -> Vec<Value> {
    let value = |value: &Value| match value {
        // Numbers of 64 bits are text in JSON.
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::String(text) => json!({"stringValue": text}),
        other => json!({"stringValue": other.to_string()}),
    };
    all.iter().map(|(key, it)| json!({"key": key, "value": value(it)})).collect()
}

fn trace_of(job: &str) -> String {
    hex(&Sha256::digest(job.as_bytes())[..16])
}

fn span_of(job: &str, number: u64) -> String {
    hex(&Sha256::digest(format!("{job}/{number}").as_bytes())[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
