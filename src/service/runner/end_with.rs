//! Calls of effect `execute` that end by a change of the database, such as a lease that is taken when there is something to
//! lease. The change, the end of the job and its event are one commit: no crash leaves the change without the job that tells
//! of it.

use std::sync::Arc;

use serde_json::Value;

use super::JobRunner;
use super::write::{ended_record, status_path};
use crate::events::{Commit, EventLog, commit};
use crate::jobs::{Job, JobSnapshot, JobState, stored_result};
use crate::state::{audit, jobs as journal};
use acheron_base::{Error, Result, failpoint};
use acheron_store::Written;

impl JobRunner {
    /// Makes `change` and ends `job` with what it returns; if that is nothing, the job goes on.
    pub fn end_with(
        &self,
        job: &Arc<Job>,
        log: &Arc<EventLog>,
        change: impl FnOnce(&Commit<'_>) -> Result<Option<Value>> + Send + 'static,
    ) -> Written<Option<Value>> {
        let (job, log, clock) = (job.clone(), log.clone(), self.jobs.clock().clone());
        commit(&self.store, move |commit| {
            let Some(result) = change(commit)? else { return Ok(None) };
            failpoint::step("end_with.changed");
            // From here on a cancellation comes too late; one that was earlier undoes the change.
            job.decide()?;
            let at_ms = clock.now_ms();
            let stored = stored_result(&job, result.clone());
            if !journal::settle(commit.tx(), &job.id, JobState::Done, Some(&stored), None, at_ms)? {
                return Err(Error::internal(format!("the journal has no running job {}", job.id)));
            }
            audit::note(commit.tx(), &ended_record(&job, JobState::Done, at_ms));
            let outcome = Some(Arc::new(Ok(result.clone())));
            let now = JobSnapshot { state: JobState::Done, updated_at_ms: at_ms, outcome, ..job.now() };
            let status = serde_json::to_value(job.status(&now)).unwrap_or_default();
            commit.emit(&log, "job", &status_path(&job), status)?;
            let shown = job.clone();
            commit.after(move || shown.update(|it| *it = now));
            Ok(Some(result))
        })
    }
}
