//! The speaker that answers a phase: a model behind a small trait, or the offline speaker when there is no model.

use async_trait::async_trait;
use serde_json::json;

use super::command::MARKER;
use acheron_base::Result;

/// A phase that wants an answer.
#[derive(Clone, Debug)]
pub struct Question {
    pub phase_id: String,
    /// The whole prompt.
    pub prompt: String,
    pub query: String,
    /// The symbols that the prompt shows.
    pub symbols: Vec<String>,
    /// The phase that stands next in the set, if there is one.
    pub following: Option<String>,
    pub iteration: usize,
}

/// The answer of a phase.
#[derive(Clone, Debug, Default)]
pub struct SpokenReply {
    pub text: String,
    /// The model did not come to its end: it was cut at its token limit.
    pub cut: bool,
}

impl From<String> for SpokenReply {
    fn from(text: String) -> SpokenReply {
        SpokenReply { text, cut: false }
    }
}

/// Something that can answer a phase.
#[async_trait]
pub trait Speaker: Send + Sync {
    /// Answers once. Dropping the future drops the request.
    async fn speak(&self, question: &Question) -> Result<SpokenReply>;
}

/// Goes through the phases in their order and reports what it finds, for a host without a model.
pub struct OfflineSpeaker;

#[async_trait]
impl Speaker for OfflineSpeaker {
    async fn speak(&self, question: &Question) -> Result<SpokenReply> {
        Ok(answer(question).into())
    }
}

fn answer(question: &Question) -> String {
    let Some(following) = &question.following else { return last(question) };
    let command = match question.iteration {
        1 => json!({"action": "query_symbols", "query": question.query, "k": 3}),
        2 => json!({"action": "recurse_graph", "depth": 1, "query": question.query}),
        _ => json!({"action": "query_symbols", "ids": question.symbols.iter().take(3).collect::<Vec<_>>()}),
    };
    let payload = json!({
        "phase_id": question.phase_id,
        "context_state": {"steps": question.iteration, "symbols": question.symbols.len()},
        "control_signature": {"emit": [command]},
        "valid_routes": [following],
        "next_phase": following,
    });
    format!("{payload}\n")
}

fn last(question: &Question) -> String {
    let shown: Vec<&str> = question.symbols.iter().take(5).map(String::as_str).collect();
    let narrative = format!(
        "I am a scripted guide, not a language model: I looked up what this host knows about your words. The symbols \
         that the last prompt showed first: {}.",
        shown.join(", ")
    );
    let payload = json!({"phase_id": question.phase_id, "narrative": narrative, "next_phase": null});
    let task = json!({"action": "dispatch_task", "task": "complete_inference_session",
        "payload": {"output_type": "narrative", "status": "complete"}});
    format!("{payload}\n{MARKER} {task}\n")
}
