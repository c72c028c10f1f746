//! The requests of an agent, asked in line while its turn runs. Without a terminal nothing can be asked: then it is told where to.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::approve::{ApprovalQuestion, PromptAnswer, read, waiting};

/// The time between two looks for a request.
const EVERY: Duration = Duration::from_millis(400);

pub(super) struct InlineRequests {
    dir: PathBuf,
    agent: String,
    /// There is a terminal at both ends.
    asks: bool,
    question: Option<ApprovalQuestion>,
    /// Requests that were left for later, or told of.
    passed: Vec<String>,
    looked: Option<Instant>,
}

impl InlineRequests {
    /// The requests of the agent whose directory is `home`, and of its helpers.
    pub fn new(home: &Path, asks: bool) -> InlineRequests {
        let agent = home.canonicalize().ok().and_then(|home| Some(home.file_name()?.to_string_lossy().into_owned()));
        let dir = home.parent().and_then(Path::parent).unwrap_or(home).join("approvals");
        let agent = agent.unwrap_or_default();
        InlineRequests { dir, agent, asks, question: None, passed: Vec::new(), looked: None }
    }

    /// Shows a request that has come, or looks whether the one that stands there was answered.
    pub fn look(&mut self) {
        if let Some(question) = &mut self.question {
            match question.look(Duration::ZERO) {
                None => return,
                Some(PromptAnswer::Decided) => (),
                Some(PromptAnswer::Skipped | PromptAnswer::End) => self.passed.push(question.id().to_owned()),
            }
            self.question = None;
        }
        if self.looked.is_some_and(|looked| looked.elapsed() < EVERY) {
            return;
        }
        self.looked = Some(Instant::now());
        let Ok(requests) = waiting(&self.dir) else { return };
        for request in requests {
            let word = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
            let (id, agent) = (word("id"), word("agent"));
            let mine = agent == self.agent || agent.starts_with(&format!("{}-", self.agent));
            if !mine || self.passed.contains(&id) {
                continue;
            }
            if let (true, Ok(request)) = (self.asks, read(&self.dir, &id)) {
                self.question = Some(ApprovalQuestion::begin(&self.dir, request));
                return;
            }
            let said = format!("it waits for approval: {}\n`acheron approve` answers it", word("summary"));
            eprintln!("{}", super::super::plain_text::for_stderr(&said));
            self.passed.push(id);
        }
    }
}
