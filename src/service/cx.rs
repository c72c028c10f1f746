//! The context of one call, handed to the service that runs it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::ServiceContext;
use crate::events::{Commit, EventLog};
use crate::jobs::Job;
use acheron_base::{Clock, Result};
use acheron_store::Tx;
use acheron_store::Written;
use acheron_vfs::{Caller, Tree};

/// The caller, the job, and the parts of the host that a call may use.
#[derive(Clone)]
pub struct Cx {
    pub caller: Caller,
    /// The agent whose service is called.
    pub agent: String,
    pub job: Arc<Job>,
    /// The time limit of the call.
    pub deadline: Duration,
    pub clock: Clock,
    pub context: Arc<ServiceContext>,
}

impl Cx {
    pub fn job_id(&self) -> &str {
        &self.job.id
    }

    /// Adds a line to the job's `log.txt`.
    pub fn log(&self, line: &str) {
        self.job.log.line(line);
    }

    /// Sets the progress that `progress.json` shows.
    pub fn progress(&self, progress: Value) {
        let now = self.clock.now_ms();
        self.job.update(|it| {
            it.progress = Some(progress);
            it.updated_at_ms = now;
        });
    }

    /// Keeps a file beside the result, in `files/` of the job. The caller has bounded the bytes.
    pub fn keep_file(&self, name: String, bytes: Bytes) {
        self.job.keep_file(name, bytes);
        // The directory of the job was perhaps looked at before.
        self.context.jobs.of(&self.agent).notifier.name(&self.job.id);
    }

    /// Whether the call was cancelled. Futures are dropped in that case; threads have to check.
    pub fn is_cancelled(&self) -> bool {
        self.job.cancel.is_cancelled()
    }

    pub async fn cancelled(&self) {
        self.job.cancel.cancelled().await;
    }

    /// Ends the call by a change of the database: the change, the end of the job and its event are one commit, so that a
    /// crash leaves all of them or none. If `change` returns nothing, nothing is changed and the call goes on; if the call
    /// was cancelled meanwhile, `change` is undone. The call has to return what this returns.
    pub fn end_with(
        &self,
        change: impl FnOnce(&Commit<'_>) -> Result<Option<Value>> + Send + 'static,
    ) -> Result<Written<Option<Value>>> {
        Ok(self.context.runner.end_with(&self.job, &self.event_log()?, change))
    }

    pub fn tree(&self) -> Result<Tree> {
        self.context.tree()
    }

    /// The event log of the agent whose service is called.
    pub fn event_log(&self) -> Result<Arc<EventLog>> {
        self.context.event_logs.of(&self.agent)
    }
}

/// The context of one call of effect `write`.
pub struct WriteCx<'a> {
    pub commit: &'a Commit<'a>,
    pub caller: &'a Caller,
    pub job: &'a Arc<Job>,
    pub clock: &'a Clock,
    log: &'a Arc<EventLog>,
}

impl<'a> WriteCx<'a> {
    pub fn new(
        commit: &'a Commit<'a>,
        caller: &'a Caller,
        job: &'a Arc<Job>,
        clock: &'a Clock,
        log: &'a Arc<EventLog>,
    ) -> WriteCx<'a> {
        WriteCx { commit, caller, job, clock, log }
    }

    pub fn tx(&self) -> &'a Tx<'a> {
        self.commit.tx()
    }

    /// Emits an event of the agent whose service is called, in the same commit.
    pub fn emit(&self, kind: &str, path: &str, payload: Value) -> Result<()> {
        self.commit.emit(self.log, kind, path, payload).map(drop)
    }
}
