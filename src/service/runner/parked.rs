//! Calls that the operator must approve first. They are journaled, whatever their effect, and nothing of them is done before the
//! decision. What was allowed is compared with what would be done, at the deed: if it has changed, it is asked anew.
//!
//! One approval is one deed. Equal calls that wait together share it: one of them is done, and the others end as it does.

use std::sync::Arc;

use serde_json::{Value, json};

use super::write::{done, progress_path};
use super::{CallQueue, JobRunner, Work, WriteWork};
use crate::approvals::{Approval, AskTicket};
use crate::events::{EventLog, commit};
use crate::jobs::{Job, JobEntry};
use crate::state::approvals as rows;
use crate::state::jobs as journal;
use acheron_approvals::{Request, State, Subject, SubjectFacts};
use acheron_base::{Error, Result, blocking, failpoint};

/// Finds out what a call would do, and prepares it. May look at files: it blocks.
pub type DeedFn = Arc<dyn Fn() -> Result<Deed> + Send + Sync>;

/// What a call does, as it is now.
pub struct Deed {
    pub subject: Subject,
    pub facts: SubjectFacts,
    pub work: Work,
}

/// A call that must be approved.
pub struct PlannedAsk {
    pub ticket: AskTicket,
    pub again: DeedFn,
}

/// A call that waits.
pub struct ParkedCall {
    pub approval: Arc<Approval>,
    pub again: DeedFn,
}

/// What comes of a call that was decided.
enum AfterDecision {
    Do(Work),
    /// An equal call was done in its place.
    Done(Value),
}

impl JobRunner {
    pub(super) fn park(
        self: &Arc<Self>,
        queue: &Arc<CallQueue>,
        job: Arc<Job>,
        log: Arc<EventLog>,
        parked: ParkedCall,
    ) {
        let (runner, queue) = (self.clone(), queue.clone());
        self.runtime.spawn(async move {
            match runner.decided(&job, parked).await {
                Ok(AfterDecision::Do(Work::Run(run))) => return runner.run_to_end(queue, job, log, run).await,
                Ok(AfterDecision::Do(Work::Write(work))) => runner.write_allowed(&job, &log, work).await,
                Ok(AfterDecision::Do(_)) => {
                    let error = Error::internal("what was allowed cannot be done");
                    runner.settle(&job, &log, Err(error)).await;
                }
                Ok(AfterDecision::Done(result)) => runner.settle(&job, &log, Ok(result)).await,
                Err(error) => runner.settle(&job, &log, Err(error)).await,
            }
            queue.release(1);
        });
    }

    /// Parks a job that an earlier run of the host accepted and that was not decided, or not done, then.
    pub fn resume_parked(self: &Arc<Self>, queue: &Arc<CallQueue>, job: Arc<Job>, parked: ParkedCall) {
        match self.event_logs.of(&job.call.agent) {
            Ok(log) => {
                queue.readmit();
                self.park(queue, job, log, parked);
            }
            Err(error) => tracing::error!(job = job.id, %error, "a job could not be parked again"),
        }
    }

    /// Waits for the decision.
    async fn decided(&self, job: &Arc<Job>, parked: ParkedCall) -> Result<AfterDecision> {
        let ParkedCall { mut approval, again } = parked;
        loop {
            self.show_parked(job, &approval);
            let status = tokio::select! {
                biased;
                () = job.cancel.cancelled() => {
                    if !job.is_deferred() {
                        self.approvals.leave(&approval, &job.id, "the call was cancelled").await?;
                    }
                    return Err(job.stopped("the call was cancelled while it waited for approval"));
                }
                status = approval.settled() => status,
            };
            let answer = status.decision.map(|decision| decision.answer).unwrap_or_default();
            match status.state {
                State::Denied => return Err(denied(&answer)),
                State::Expired => return Err(expired(&approval)),
                State::Waiting | State::Allowed | State::Withdrawn | State::Void => (),
            }
            failpoint::step("parked.decided");
            let look = again.clone();
            let deed = blocking(move || look()).await?;
            let allowed = status.state == State::Allowed;
            if allowed && deed.subject.hash(&approval.request.agent) == approval.hash() {
                let (id, own) = (approval.id.clone(), job.id.clone());
                let used = self.store.write(move |tx| rows::take(tx, &id, &own)).await?;
                job.update(|now| now.progress = None);
                return match used == job.id {
                    true => Ok(AfterDecision::Do(deed.work)),
                    false => self.follow(job, &used).await.map(AfterDecision::Done),
                };
            }
            if allowed {
                job.log.line("what would be done has changed since it was allowed: it is asked anew");
                self.approvals.void(&approval).await?;
            }
            approval = self.ask_anew(job, &approval, deed).await?;
        }
    }

    /// Asks about what would be done now.
    async fn ask_anew(&self, job: &Arc<Job>, old: &Approval, deed: Deed) -> Result<Arc<Approval>> {
        let Deed { subject, facts, .. } = deed;
        let ticket = self.approvals.ask(Request { subject, facts, ..old.request.clone() }, job.call.private)?;
        let own = job.clone();
        let kept = commit(&self.store, move |commit| {
            let approval = ticket.keep(commit, &own.id, &progress_path(&own))?;
            own.set_approval(Some(approval.id.clone()));
            journal::set_approval(commit.tx(), &own.id, &approval.id)?;
            Ok(approval)
        });
        kept.await
    }

    /// Shows in `progress.json` until when the call waits, and whether anybody would see the request.
    fn show_parked(&self, job: &Job, approval: &Approval) {
        let waits = json!({"expires_at_ms": approval.expires_at_ms, "listeners": self.approvals.listeners()});
        job.update(|now| now.progress = Some(json!({ "waiting_for_approval": waits })));
    }

    /// Ends as the job that was done in its place.
    async fn follow(&self, job: &Arc<Job>, other: &str) -> Result<Value> {
        job.log.line(&format!("an equal call waited for the same decision; {other} was done for both"));
        if let Some(JobEntry::Loaded(other)) = self.jobs.of(&job.call.agent).get(other) {
            let now = tokio::select! {
                () = job.cancel.cancelled() => return Err(job.stopped("the call was cancelled")),
                now = other.end() => now,
            };
            return now.outcome.map_or(Ok(Value::Null), |outcome| outcome.as_ref().clone());
        }
        let id = other.to_owned();
        let row = self.store.read(move |conn| journal::get(conn, &id)).await?;
        match row.map(|row| (row.result, row.error)) {
            Some((_, Some(error))) => Err(error),
            Some((result, None)) => Ok(result.unwrap_or_default()),
            None => Err(Error::interrupted(format!("{other}, which was done in its place, is no longer kept"))),
        }
    }

    /// Does a call of effect `write` that was allowed, in one commit with its end.
    async fn write_allowed(&self, job: &Arc<Job>, log: &Arc<EventLog>, work: WriteWork) {
        let (own, to, jobs) = (job.clone(), log.clone(), self.jobs.clone());
        let written = commit(&self.store, move |commit| {
            done(&jobs, commit, &own, &to, work, |row| {
                let at_ms = row.updated_at_ms;
                match journal::settle(commit.tx(), &row.id, row.state, row.result.as_ref(), row.error.as_ref(), at_ms)?
                {
                    true => Ok(()),
                    false => Err(Error::internal(format!("the journal has no waiting job {}", row.id))),
                }
            })
        });
        if let Err(fault) = written.await {
            self.show_unstored(job, &fault);
        }
    }
}

fn denied(answer: &str) -> Error {
    match answer.strip_prefix("deny: ") {
        Some(reason) => Error::forbidden(format!("the operator denied this: {reason}")),
        None => Error::forbidden("the operator denied this"),
    }
}

fn expired(approval: &Approval) -> Error {
    let seconds = approval.expires_at_ms.saturating_sub(approval.created_at_ms) / 1000;
    Error::approval_expired(format!(
        "nobody decided within {seconds} s whether this may be done, so it was not done; that is not a denial: go on with \
         other work, and call again if it is still needed"
    ))
}
