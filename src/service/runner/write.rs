//! What the journal records when calls are accepted: the intent of those that run, and all of those of effect `write`.

use std::sync::Arc;

use super::{Accepted, Work};
use crate::contract::Effect;
use crate::events::Commit;
use crate::jobs::{Job, JobSnapshot, Jobs, accepted_row, final_state, row};
use crate::state::jobs as journal;
use acheron_base::{Result, failpoint};

/// Journals one accepted call, and does it if its effect is `write`. Returns it if it has to run.
pub(super) fn journal(jobs: &Arc<Jobs>, commit: &Commit<'_>, one: Accepted) -> Result<Option<Accepted>> {
    let Accepted { job, log, work, accepted } = one;
    match work {
        Work::Write(work) => {
            let outcome = commit.attempt(|| work(commit, &job));
            failpoint::step("write.changed");
            let at_ms = jobs.clock().now_ms();
            let now = JobSnapshot {
                state: final_state(&outcome),
                started_at_ms: Some(at_ms),
                updated_at_ms: at_ms,
                attempt: 1,
                outcome: Some(Arc::new(outcome)),
                ..job.now()
            };
            journal::insert(commit.tx(), &row(&job, &now))?;
            let status = serde_json::to_value(job.status(&now)).unwrap_or_default();
            let path = status_path(&job);
            let jobs = jobs.clone();
            commit.emit(&log, "job", &path, status)?;
            commit.after(move || {
                job.update(|it| *it = now);
                jobs.ended(&job);
            });
            Ok(None)
        }
        Work::Run(_) => {
            if job.call.effect != Effect::Read {
                journal::insert(commit.tx(), &accepted_row(&job))?;
            }
            if let Some(accepted) = accepted {
                accepted(commit, &job)?;
            }
            Ok(Some(Accepted { job, log, work, accepted: None }))
        }
    }
}

/// The file that an event about the end of a job names.
pub(super) fn status_path(job: &Job) -> String {
    format!("/agents/{}/jobs/{}/status.json", job.call.agent, job.id)
}
