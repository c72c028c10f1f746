//! Records the answers of a run, and replays a recording.
//!
//! A recording has one line of NDJSON per answer: the agent, a digest of the request, and the answer or the error. A
//! replay returns the lines of each agent in order. It does not check the request, because ids and times differ between
//! runs; the digest shows where two runs diverge.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{AnswerPiece, Model, ModelAnswer, ModelRequest};
use acheron_base::{Error, Result};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordedAnswer {
    by: String,
    asked: String,
    /// Tools were offered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    native: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said: Option<ModelAnswer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<Error>,
    /// A request of a program, and its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exchange: Option<serde_json::Value>,
}

/// The file that a run is recorded to, if any.
#[derive(Debug, Default)]
pub struct Recording(OnceLock<Mutex<File>>);

impl Recording {
    /// Starts recording. An existing file is an error; nothing is appended to it.
    pub fn begin(&self, path: &Path) -> Result<()> {
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(path);
        let file = file.map_err(|error| {
            let why = format!("cannot record to {}: {error}", path.display());
            Error::new(Error::from(error).code, why)
        })?;
        match self.0.set(Mutex::new(file)) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::conflict("this run is already being recorded")),
        }
    }

    /// Wraps a model so that its answers to this agent are recorded.
    pub fn of(self: &Arc<Self>, agent: &str, model: Arc<dyn Model>) -> Arc<dyn Model> {
        Arc::new(RecordingModel { by: agent.to_owned(), model, recording: self.clone() })
    }

    fn write(&self, line: &RecordedAnswer) -> Result<()> {
        let Some(file) = self.0.get() else { return Ok(()) };
        let mut text = serde_json::to_string(line).map_err(|error| Error::internal(error.to_string()))?;
        text.push('\n');
        let mut file = file.lock();
        Ok(file.write_all(text.as_bytes())?)
    }
}

struct RecordingModel {
    by: String,
    model: Arc<dyn Model>,
    recording: Arc<Recording>,
}

#[async_trait]
impl Model for RecordingModel {
    fn name(&self) -> String {
        self.model.name()
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        let answer = self.model.answer(ask, watch).await;
        let (said, failed) = match &answer {
            Ok(said) => (Some(said.clone()), None),
            Err(error) => (None, Some(error.clone())),
        };
        let native = ask.tools.is_some();
        self.recording.write(&RecordedAnswer {
            by: self.by.clone(),
            asked: digest(ask),
            native,
            said,
            failed,
            exchange: None,
        })?;
        answer
    }

    fn is_billed(&self) -> bool {
        self.model.is_billed()
    }

    fn resume(&self, said: &[ModelAnswer]) {
        self.model.resume(said);
    }
}

fn digest(ask: &ModelRequest) -> String {
    let json = serde_json::to_vec(ask).unwrap_or_default();
    Sha256::digest(json).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A model that replays a recording.
#[derive(Debug)]
pub struct Replay {
    name: String,
    lines: Mutex<VecDeque<RecordedAnswer>>,
}

impl Replay {
    /// Reads the lines of one agent, or all lines if none is named. What programs asked through the gateway is not for it.
    pub fn read(name: &str, text: &str, agent: Option<&str>) -> Result<Replay> {
        let mut lines = VecDeque::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line: RecordedAnswer = serde_json::from_str(line)
                .map_err(|error| Error::invalid(format!("{name}, line {}: {error}", number + 1)))?;
            if line.exchange.is_some() {
                continue;
            }
            if agent.is_none_or(|agent| agent == line.by) {
                lines.push_back(line);
            }
        }
        Ok(Replay { name: name.to_owned(), lines: Mutex::new(lines) })
    }
}

#[async_trait]
impl Model for Replay {
    fn name(&self) -> String {
        format!("replay:{}", self.name)
    }

    async fn answer(&self, ask: &ModelRequest, watch: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        let line = self.lines.lock().pop_front();
        match line {
            // A turn would take the calls of the one protocol for the words of the other.
            Some(RecordedAnswer { native, .. }) if native != ask.tools.is_some() => Err(Error::provider(format!(
                "the recording {} was made with the other protocol: replay it with `\"protocol\": \"{}\"`",
                self.name,
                if native { "native" } else { "json" }
            ))),
            Some(RecordedAnswer { said: Some(said), .. }) => {
                if let Some(thoughts) = &said.thoughts {
                    watch(AnswerPiece::Thought(thoughts.clone()));
                }
                watch(AnswerPiece::Text(said.text.clone()));
                Ok(said)
            }
            Some(RecordedAnswer { failed: Some(error), .. }) => Err(error),
            Some(_) => Err(Error::provider(format!("the recording {} has a line without an answer", self.name))),
            None => Err(Error::provider(format!("the recording {} is at its end", self.name))),
        }
    }

    fn is_billed(&self) -> bool {
        false
    }

    fn resume(&self, said: &[ModelAnswer]) {
        // Ids may have been replaced since.
        let calls = |said: &ModelAnswer| -> Vec<(String, String)> {
            said.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
        };
        let mut lines = self.lines.lock();
        for given in said {
            let same = |said: &ModelAnswer| said.text == given.text && calls(said) == calls(given);
            if lines.front().is_some_and(|line| line.said.as_ref().is_some_and(same)) {
                lines.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::script::Script;

    #[tokio::test]
    async fn what_was_recorded_is_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.ndjson");
        let recording = Arc::new(Recording::default());
        recording.begin(&path).unwrap();
        let script: Arc<dyn Model> = Arc::new(Script::read("s", "\"one\"\n\"two\"").unwrap());
        let (ada, bob) = (recording.of("ada", script.clone()), recording.of("bob", script));
        let ask = ModelRequest { system: "be".into(), ..ModelRequest::default() };
        let mut first = Vec::new();
        for model in [&ada, &bob, &ada] {
            first.push(model.answer(&ask, &mut |_| ()).await);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let again = Replay::read("run", &text, Some("ada")).unwrap();
        assert_eq!(again.answer(&ask, &mut |_| ()).await, first[0]);
        assert_eq!(again.answer(&ask, &mut |_| ()).await, first[2]);
        let end = again.answer(&ask, &mut |_| ()).await.unwrap_err();
        assert_eq!(end.message, "the recording run is at its end");
        assert!(Recording::default().begin(&path).is_err(), "a recording is never overwritten");
    }
}
