//! The record of a run: what its files show, while it runs and afterwards.
//!
//! It holds everything that was said, so it lives in memory and, when the run is over, sealed on the disk.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::context::Context;
use super::step::Stop;
use acheron_base::Clock;

/// Receives the events of a run, without the texts of the model.
pub type NotifyRun = dyn Fn(&str, Value) + Send + Sync;

/// One run.
pub struct Run {
    pub id: String,
    pages: Mutex<RunPages>,
    over: watch::Sender<bool>,
    clock: Clock,
    tell: Box<NotifyRun>,
}

/// Everything that the files of a run show.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunPages {
    pub status: Status,
    /// What a person reads.
    pub reply: String,
    /// The whole answer. Records of older versions have it under `reply`.
    #[serde(default)]
    pub reply_raw: String,
    /// The last prompt, as it was asked.
    pub context: String,
    pub trace: Vec<Value>,
    pub commands: Vec<Value>,
    pub symbols: Vec<String>,
}

/// `status.json` of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    pub run_id: String,
    pub session_id: String,
    pub set: String,
    /// `running`, `done` or `failed`.
    pub state: String,
    pub phase_id: Option<String>,
    pub iteration: usize,
    pub stop_reason: Option<Stop>,
    pub message: String,
    pub started_at_ms: u64,
    pub updated_at_ms: u64,
}

impl Run {
    pub fn new(id: &str, session: &str, set: &str, clock: Clock, tell: Box<NotifyRun>) -> Arc<Run> {
        let now = clock.now_ms();
        let status = Status {
            run_id: id.to_owned(),
            session_id: session.to_owned(),
            set: set.to_owned(),
            state: "running".to_owned(),
            started_at_ms: now,
            updated_at_ms: now,
            ..Status::default()
        };
        let pages = Mutex::new(RunPages { status, ..RunPages::default() });
        Arc::new(Run { id: id.to_owned(), pages, over: watch::Sender::new(false), clock, tell })
    }

    pub fn pages(&self) -> RunPages {
        self.lock().clone()
    }

    /// Waits until the run is over.
    pub async fn over(&self) {
        let mut over = self.over.subscribe();
        _ = over.wait_for(|over| *over).await; // cannot be closed: we hold it
    }

    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// A phase begins, or none.
    pub fn moved(&self, phase: Option<&str>, iteration: usize) {
        let now = self.clock.now_ms();
        let mut pages = self.lock();
        pages.status.phase_id = phase.map(str::to_owned).or(pages.status.phase_id.take());
        pages.status.iteration = iteration;
        pages.status.updated_at_ms = now;
        drop(pages);
        if let Some(phase) = phase {
            (self.tell)("phase", json!({"run_id": self.id, "phase_id": phase, "iteration": iteration}));
        }
    }

    /// A prompt is about to be asked.
    pub fn asked(&self, phase: &str, context: &Context) {
        self.trace(json!({"event": "context", "phase_id": phase, "context": context}));
        self.lock().context.clone_from(&context.text);
        let shown = json!({"run_id": self.id, "phase_id": phase, "tokens": context.tokens,
            "symbols": context.symbols.len(), "agents": context.agents.len(), "cut": context.cut.len()});
        (self.tell)("context", shown);
    }

    pub fn trace(&self, mut line: Value) {
        line["at_ms"] = json!(self.clock.now_ms());
        self.lock().trace.push(line);
    }

    /// A command was performed. `action` is one of the known names.
    pub fn obeyed(&self, phase: &str, action: &str, outcome: &Value) {
        let mut line = outcome.clone();
        line["phase_id"] = json!(phase);
        self.lock().commands.push(line);
        (self.tell)("command", json!({"run_id": self.id, "phase_id": phase, "action": action}));
    }

    pub fn symbols(&self, ids: Vec<String>) {
        self.lock().symbols = ids;
    }

    pub fn replied(&self, reply: &str, raw: &str) {
        let mut pages = self.lock();
        reply.clone_into(&mut pages.reply);
        raw.clone_into(&mut pages.reply_raw);
    }

    /// The run is over; the first reason stays.
    pub fn ended(&self, stop: Stop, why: &str) {
        let mut pages = self.lock();
        if pages.status.stop_reason.is_some() {
            return;
        }
        let failed = matches!(stop, Stop::ModelError | Stop::Cancelled) || pages.reply.is_empty();
        pages.status.state = if failed { "failed" } else { "done" }.to_owned();
        pages.status.stop_reason = Some(stop);
        why.clone_into(&mut pages.status.message);
        pages.status.updated_at_ms = self.clock.now_ms();
        drop(pages);
        self.trace(json!({"event": "end", "stop_reason": stop, "message": why}));
        self.over.send_replace(true);
        (self.tell)("end", json!({"run_id": self.id, "stop_reason": stop}));
    }

    fn lock(&self) -> MutexGuard<'_, RunPages> {
        self.pages.lock()
    }
}
