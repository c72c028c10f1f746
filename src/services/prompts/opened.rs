//! An open prompt: its parameters, its visible sections, the model's replies, and its resources.
//!
//! Knows nothing of files; `files` shows it as a directory, `openings` keeps it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::resources::{Resources, Snapshot};
use acheron_base::{Error, Result};
use acheron_prompts::disclosure::Expansion;
use acheron_prompts::fault::Fault;
use acheron_prompts::manifest::{Headings, Need, Visibility};
use acheron_prompts::output::{Parsed, Repair, Unparsed};
use acheron_prompts::prompt::{Prompt, Session};
use acheron_prompts::render::Rendered;

pub struct Opened {
    pub id: String,
    pub tag: String,
    pub opened_at_ms: u64,
    /// Shared with the resource that takes it back.
    session: Arc<Mutex<Session>>,
    prompt: Mutex<Prompt>,
    said: Mutex<PromptReplies>,
    /// Corresponds to `bind(resources=)` in the origin.
    needs: Mutex<BTreeMap<String, Need>>,
    resources: Mutex<Arc<Resources>>,
    /// Instead of what the template says.
    time_limit_ms: Option<u64>,
    /// One tool at a time: a snapshot covers all resources.
    pub turn: Arc<tokio::sync::Mutex<()>>,
}

/// The last reply, and the last error.
#[derive(Default)]
struct PromptReplies {
    reply: Option<String>,
    output: Option<Parsed>,
    error: Option<Value>,
    snapshots: Vec<Snapshot>,
}

/// An open prompt as it is kept on disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedPrompt {
    pub id: String,
    pub prompt: String,
    pub tag: String,
    pub opened_at_ms: u64,
    pub deadline_ms: Option<u64>,
    pub headings: Option<Headings>,
    pub params: BTreeMap<String, Value>,
    pub session: Session,
    pub needs: BTreeMap<String, Need>,
    #[serde(default)]
    pub time_limit_ms: Option<u64>,
    pub reply: Option<String>,
    #[serde(default)]
    pub snapshots: Vec<Snapshot>,
    /// The template itself: a prompt that is open stays what it was, whatever is edited meanwhile.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// The JSON of a text; none if more of it may follow. What cannot become JSON is refused.
pub fn whole_json(text: &[u8], what: &str) -> Result<Option<Value>> {
    match serde_json::from_slice::<Value>(text) {
        Err(error) if error.is_eof() => Ok(None),
        _ => acheron_prompts::output::parse_json_bytes(text)
            .map(Some)
            .map_err(|why| Error::invalid(format!("{what}: {why}"))),
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock()
}

impl Opened {
    /// The open prompt of what was saved; `prompt` is its template with the overrides of its tag.
    pub fn new(
        saved: SavedPrompt,
        mut prompt: Prompt,
        session: Arc<Mutex<Session>>,
        resources: Resources,
    ) -> Result<Opened> {
        prompt.headings = saved.headings;
        prompt.deadline_ms = saved.deadline_ms;
        prompt.bind(saved.params)?;
        {
            // The initial state of the resources stays below the saved one.
            let mut session = held(&session);
            session.values.extend(saved.session.values);
            session.visibility.extend(saved.session.visibility);
        }
        let opened = Opened {
            id: saved.id,
            tag: saved.tag,
            opened_at_ms: saved.opened_at_ms,
            session,
            prompt: Mutex::new(prompt),
            said: Mutex::new(PromptReplies { snapshots: saved.snapshots, ..PromptReplies::default() }),
            needs: Mutex::new(saved.needs),
            resources: Mutex::new(Arc::new(resources)),
            time_limit_ms: saved.time_limit_ms,
            turn: Arc::default(),
        };
        if let Some(reply) = saved.reply {
            let _ = opened.take_reply(&reply); // it was read before, and its error reported
        }
        Ok(opened)
    }

    pub fn saved(&self) -> SavedPrompt {
        let (prompt, said) = (self.prompt(), held(&self.said));
        let names = prompt.template.records.keys();
        SavedPrompt {
            id: self.id.clone(),
            prompt: prompt.template.id(),
            tag: self.tag.clone(),
            opened_at_ms: self.opened_at_ms,
            deadline_ms: prompt.deadline_ms,
            headings: prompt.headings,
            params: names.filter_map(|name| Some((name.clone(), prompt.bound(name)?.clone()))).collect(),
            session: prompt.session.clone(),
            needs: held(&self.needs).clone(),
            time_limit_ms: self.time_limit_ms,
            reply: said.reply.clone(),
            snapshots: said.snapshots.clone(),
            sources: prompt.template.sources.clone(),
        }
    }

    /// The prompt as it is now.
    pub fn prompt(&self) -> Prompt {
        let mut prompt = held(&self.prompt).clone();
        prompt.session = held(&self.session).clone();
        prompt
    }

    pub fn resources(&self) -> Arc<Resources> {
        held(&self.resources).clone()
    }

    /// The needs that were bound, beside those of the template.
    pub fn needs(&self) -> BTreeMap<String, Need> {
        held(&self.needs).clone()
    }

    pub fn session(&self) -> Arc<Mutex<Session>> {
        self.session.clone()
    }

    /// How long one evaluation may take.
    pub fn time_limit_ms(&self) -> Option<u64> {
        self.time_limit_ms.or_else(|| held(&self.prompt).template.time_limit_ms)
    }

    /// Takes other resources, and gives those that it had, still open.
    pub fn change_resources(&self, needs: BTreeMap<String, Need>, resources: Resources) -> Arc<Resources> {
        *held(&self.needs) = needs;
        std::mem::replace(&mut *held(&self.resources), Arc::new(resources))
    }

    /// Notes how a change went, for `error.json`: the last one counts.
    fn heard<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        held(&self.said).error = result.as_ref().err().and_then(|fault| serde_json::to_value(fault).ok());
        result
    }

    pub fn render(&self) -> Result<Rendered, Fault> {
        let rendered = self.prompt().render();
        // Looking mends nothing: what a change has left there stays.
        if rendered.is_err() { self.heard(rendered) } else { rendered }
    }

    pub fn bind_json(&self, params: &Value) -> Result<(), Fault> {
        let mut prompt = held(&self.prompt);
        let bound = prompt.bind_json(params).map(drop);
        drop(prompt);
        self.heard(bound)
    }

    /// The schema of `params/<Type>.json`.
    pub fn bind_text(&self, name: &str, text: &[u8]) -> Result<(), Fault> {
        let read = acheron_prompts::output::parse_json_bytes(text)
            .map_err(|why| Fault::validation(format!("params are one JSON object: {why}")).record(name));
        let bound = read.and_then(|value| held(&self.prompt).bind([(name, value)]).map(drop));
        self.heard(bound)
    }

    /// Whether params could be bound, without binding them. A text that is only the beginning of one can.
    pub fn check_params(&self, name: &str, text: &[u8]) -> Result<()> {
        let Some(value) = whole_json(text, "params are one JSON object")? else { return Ok(()) };
        self.prompt().bind([(name, value)]).map(drop)?;
        Ok(())
    }

    /// Whether a section could be shown so, without showing it.
    pub fn check_visibility(&self, path: &str, visibility: Visibility) -> Result<()> {
        Ok(self.prompt().set_visibility(path, visibility)?)
    }

    pub fn set_visibility(&self, path: &str, visibility: Visibility) -> Result<(), Fault> {
        let mut prompt = self.prompt();
        let set = prompt.set_visibility(path, visibility);
        if set.is_ok() {
            held(&self.session).visibility = prompt.session.visibility;
        }
        self.heard(set)
    }

    pub fn expand(&self, keys: &[String], reason: &str) -> Result<Expansion, Fault> {
        let expansion = self.heard(self.prompt().expansion(keys, reason))?;
        held(&self.session).visibility.extend(expansion.requested.clone());
        Ok(expansion)
    }

    /// Replaces the values that conditions look at.
    pub fn set_session(&self, values: Map<String, Value>) {
        held(&self.session).values = values;
    }

    /// Takes the model's answer, and finds the output in it if the prompt declares one.
    pub fn take_reply(&self, reply: &str) -> Result<Option<Parsed>, Unparsed> {
        let template = held(&self.prompt).template.clone();
        let parsed = template.output.as_ref().map(|output| output.parse(reply)).transpose();
        let mut said = held(&self.said);
        said.reply = Some(reply.to_owned());
        said.output = parsed.as_ref().ok().cloned().flatten();
        said.error = parsed.as_ref().err().map(|unparsed| {
            let mut error = json!({"kind": "output_parse", "code": "invalid_payload"});
            if let (Some(error), Ok(Value::Object(more))) = (error.as_object_mut(), serde_json::to_value(unparsed)) {
                error.extend(more);
            }
            error
        });
        parsed
    }

    pub fn reply(&self) -> Option<String> {
        held(&self.said).reply.clone()
    }

    pub fn error(&self) -> Option<Value> {
        held(&self.said).error.clone()
    }

    /// What was put right in the reply before its output could be read.
    pub fn repairs(&self) -> Vec<Repair> {
        held(&self.said).output.as_ref().map(|parsed| parsed.repairs.clone()).unwrap_or_default()
    }

    pub fn output(&self) -> Result<Value> {
        let said = held(&self.said);
        match (&said.output, &said.reply) {
            (Some(parsed), _) => Ok(parsed.value.clone()),
            (None, None) => Err(Error::not_found("nothing was written to reply yet")),
            (None, Some(_)) if said.error.is_some() => Err(Error::invalid("the reply has no output; see error.json")),
            (None, Some(_)) => Err(Error::not_found("this prompt does not declare structured output")),
        }
    }

    pub fn keep_snapshot(&self, snapshot: Snapshot) {
        const KEPT: usize = 32;
        let mut said = held(&self.said);
        said.snapshots.push(snapshot);
        if said.snapshots.len() > KEPT {
            let oldest = said.snapshots.remove(0);
            drop(said);
            self.resources().forget(&oldest);
        }
    }

    /// The snapshot of that id, or the newest of that tag.
    pub fn find_snapshot(&self, name: &str) -> Result<Snapshot> {
        let said = held(&self.said);
        let found = said.snapshots.iter().rev().find(|one| one.id == name || one.tag.as_deref() == Some(name));
        found.cloned().ok_or_else(|| {
            Error::not_found(format!("there is no snapshot `{}` of this prompt", acheron_prompts::names::clipped(name)))
        })
    }
}
