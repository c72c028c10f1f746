//! The form in which a server is asked to answer: by a schema, as any JSON object, with its reasoning encrypted, or freely. A
//! server that refuses a form is not asked for it again while this process runs.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::ModelRequest;
use super::server::ModelServer;
use acheron_http::Failure;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    Schema,
    Object,
    /// With native calls: the reasoning in a form that can be sent back. Models that do not reason refuse it.
    Reasoning,
    Free,
}

/// An address, a model, and whether tools are offered.
type FormKey = (String, String, bool);

/// The forms that servers have refused, by address, model and first form: the next one that may be tried.
static TAKEN: LazyLock<Mutex<HashMap<FormKey, AnswerForm>>> = LazyLock::new(Mutex::default);

impl AnswerForm {
    /// The form for a request to a server.
    pub fn of(server: &ModelServer, ask: &ModelRequest) -> AnswerForm {
        let first = match (&ask.tools, &ask.schema) {
            (Some(_), _) => AnswerForm::Reasoning,
            (None, Some(_)) => AnswerForm::Schema,
            (None, None) => return AnswerForm::Free,
        };
        TAKEN.lock().get(&key(server, first)).copied().unwrap_or(first)
    }

    /// The next form, if the server has refused this one; it is remembered.
    pub fn after(self, failure: &Failure, server: &ModelServer) -> Option<AnswerForm> {
        const FORM: &[&str] = &["response_format", "json_schema", "json_object", "text.format", "schema", "grammar"];
        let (next, named) = match self {
            AnswerForm::Schema => (AnswerForm::Object, FORM),
            AnswerForm::Object => (AnswerForm::Free, FORM),
            AnswerForm::Reasoning => (AnswerForm::Free, &["encrypted", "include"][..]),
            AnswerForm::Free => return None,
        };
        let said = failure.error.message.to_ascii_lowercase();
        let refused = matches!(failure.status, Some(400 | 404 | 415 | 422 | 500 | 501));
        if !refused || !named.iter().any(|word| said.contains(word)) {
            return None;
        }
        TAKEN.lock().insert(key(server, self), next);
        Some(next)
    }

    /// The object that chat completions call `response_format`.
    pub fn response_format(self, ask: &ModelRequest) -> Option<Value> {
        match (self, &ask.schema) {
            (AnswerForm::Schema, Some(schema)) => {
                Some(json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": **schema}}))
            }
            (AnswerForm::Object, Some(_)) => Some(json!({"type": "json_object"})),
            _ => None,
        }
    }
}

fn key(server: &ModelServer, form: AnswerForm) -> FormKey {
    (server.base_url.clone(), server.model.clone(), form == AnswerForm::Reasoning)
}
