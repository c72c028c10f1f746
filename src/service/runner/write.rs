//! What the journal records when calls are accepted: the intent of those that run, and all of those of effect `write`.

use std::sync::Arc;

use super::parked::{ParkedCall, PlannedAsk};
use super::{Accepted, Work, WriteWork};
use crate::events::{Commit, EventLog};
use crate::jobs::{Job, JobRow, JobSnapshot, JobState, Jobs, accepted_row, final_state, row};
use crate::state::audit::{self, Record};
use crate::state::jobs as journal;
use acheron_base::{Error, Result, failpoint};

/// Journals one accepted call, and does it if its effect is `write`. Returns it if it has to run.
pub(super) fn journal(jobs: &Arc<Jobs>, commit: &Commit<'_>, one: Accepted) -> Result<Option<Accepted>> {
    let Accepted { job, log, work, accepted } = one;
    match work {
        Work::Write(work) => {
            done(jobs, commit, &job, &log, work, |row| journal::insert(commit.tx(), row))?;
            Ok(None)
        }
        Work::Ask(ask) => {
            let PlannedAsk { ticket, again } = ask;
            job.set_approval(Some(ticket.approval().id.clone()));
            journal::insert(commit.tx(), &row(&job, &job.now()))?;
            audit::note(commit.tx(), &call_record(&job, job.now().state.name(), jobs.clock().now_ms()));
            let approval = ticket.keep(commit, &job.id, &progress_path(&job))?;
            let work = Work::Parked(ParkedCall { approval, again });
            Ok(Some(Accepted { job, log, work, accepted: None }))
        }
        Work::Parked(_) => Err(Error::internal("a call that waits already cannot be accepted")),
        Work::Run(_) => {
            if job.call.is_journaled() {
                journal::insert(commit.tx(), &accepted_row(&job))?;
                audit::note(commit.tx(), &call_record(&job, "accepted", jobs.clock().now_ms()));
            }
            if let Some(accepted) = accepted {
                accepted(commit, &job)?;
            }
            Ok(Some(Accepted { job, log, work, accepted: None }))
        }
    }
}

/// Does a call of effect `write`: its change, its row by `store`, its event and its line of the audit are one commit.
pub(super) fn done(
    jobs: &Arc<Jobs>,
    commit: &Commit<'_>,
    job: &Arc<Job>,
    log: &Arc<EventLog>,
    work: WriteWork,
    store: impl FnOnce(&JobRow) -> Result<()>,
) -> Result<()> {
    let outcome = commit.attempt(|| work(commit, job));
    failpoint::step("write.changed");
    let at_ms = jobs.clock().now_ms();
    let now = JobSnapshot {
        state: final_state(&outcome),
        started_at_ms: Some(at_ms),
        updated_at_ms: at_ms,
        attempt: 1,
        progress: None,
        outcome: Some(Arc::new(outcome)),
    };
    store(&row(job, &now))?;
    audit::note(commit.tx(), &call_record(job, now.state.name(), at_ms));
    let status = serde_json::to_value(job.status(&now)).unwrap_or_default();
    commit.emit(log, "job", &status_path(job), status)?;
    let (jobs, job) = (jobs.clone(), job.clone());
    commit.after(move || {
        job.update(|it| *it = now);
        jobs.ended(&job);
    });
    Ok(())
}

/// The line of the audit about a call: who did what, and how it went. What was given is told by its hash: it may be a secret.
pub(super) fn call_record(job: &Job, outcome: &str, at_ms: u64) -> Record {
    let call = &job.call;
    Record::new(at_ms, "call")
        .with("principal", call.principal.to_string())
        .with("agent", call.agent.as_str())
        .with("service", call.service.as_str())
        .with("operation", call.operation.as_str())
        .with("effect", call.effect.name())
        .with("job", job.id.as_str())
        .with("arguments", audit::digest(call.arguments.to_string().as_bytes()))
        .with("outcome", outcome)
}

/// The line of the audit about the end of a job that ran.
pub(super) fn ended_record(job: &Job, state: JobState, at_ms: u64) -> Record {
    let call = &job.call;
    let ended = Record::new(at_ms, "ended").with("agent", call.agent.as_str()).with("service", call.service.as_str());
    ended.with("operation", call.operation.as_str()).with("job", job.id.as_str()).with("outcome", state.name())
}

/// The file that shows a job that waits for approval.
pub(super) fn progress_path(job: &Job) -> String {
    format!("/agents/{}/jobs/{}/progress.json", job.call.agent, job.id)
}

/// The file that an event about the end of a job names.
pub(super) fn status_path(job: &Job) -> String {
    format!("/agents/{}/jobs/{}/status.json", job.call.agent, job.id)
}
