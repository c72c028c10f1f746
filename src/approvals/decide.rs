//! How a request ends: by an answer, by time, or because what asked has ended. The first end counts; it is in the database
//! together with its line of the audit and its exception before anybody sees it.

use std::sync::Arc;

use serde_json::json;

use super::{Approval, Approvals};
use crate::events::{Commit, commit};
use crate::state::approvals::{self as rows, ApprovalRow, DecisionRow};
use crate::state::audit::{self, Record};
use acheron_approvals::{Answer, Exception, GivenAnswer, Span, State};
use acheron_base::{Error, Result};
use acheron_store::Written;

impl Approvals {
    /// Decides a request; durable when the answer resolves.
    pub fn decide(self: &Arc<Self>, id: &str, given: GivenAnswer, by: &str) -> Result<Written<()>> {
        let approval = self.get(id).ok_or_else(|| Error::not_found(format!("there is no request {id}")))?;
        let hash = approval.hash().to_owned();
        if given.sha256.as_ref().is_some_and(|shown| *shown != hash) {
            return Err(Error::new(
                acheron_base::Code::Conflict,
                format!("{id} asks about something else: its subject_sha256 is {hash}; read request.json again"),
            ));
        }
        let (approvals, at_ms, by) = (self.clone(), self.clock().now_ms(), by.to_owned());
        let exception = self.exception(&approval, &given.answer, &by, at_ms)?;
        Ok(commit(&self.store, move |commit| {
            let row = rows::get(commit.tx(), &approval.id)?.ok_or_else(|| Error::not_found("the request is gone"))?;
            if row.state.settled() {
                return Err(decided_already(&row));
            }
            if at_ms >= row.expires_at_ms {
                return Err(Error::approval_expired(format!("{} has expired: it was not done", row.id)));
            }
            let state = match given.answer {
                Answer::Allow(_) => State::Allowed,
                Answer::Deny(_) => State::Denied,
            };
            let decision = DecisionRow { at_ms, by, answer: given.answer.text() };
            if let Some(exception) = &exception {
                rows::insert_exception(commit.tx(), exception)?;
            }
            approvals.end_in(commit, &approval, state, decision)?;
            commit.after(move || {
                let mut table = approvals.table.lock();
                match &given.answer {
                    Answer::Deny(reason) => table.denied(hash, reason),
                    Answer::Allow(_) => table.allowed(&hash),
                }
                drop(table);
                if let Some(exception) = exception {
                    let agent = exception.agent.clone();
                    approvals.exceptions.write().push(exception);
                    approvals.always.changed(&agent);
                }
            });
            Ok(())
        }))
    }

    /// The exception that an answer makes.
    fn exception(&self, approval: &Approval, answer: &Answer, by: &str, at_ms: u64) -> Result<Option<Exception>> {
        let until_ms = match answer {
            Answer::Deny(_) | Answer::Allow(Span::Once) => return Ok(None),
            Answer::Allow(Span::For(ms)) => Some(at_ms.saturating_add(*ms)),
            Answer::Allow(Span::Always) if approval.request.rule.always => None,
            Answer::Allow(Span::Always) => {
                return Err(Error::invalid(
                    "the rule that asked says \"always\": false; write `allow`, or `allow for 10m`",
                ));
            }
        };
        let request = &approval.request;
        Ok(Some(Exception {
            id: self.ids.id("exc"),
            agent: request.agent.clone(),
            of_rule: request.rule.hash.clone(),
            scope: request.scope(),
            until_ms,
            by: by.to_owned(),
            at_ms,
            approval: approval.id.clone(),
        }))
    }

    /// A job that waited has ended. A request for which nothing waits any more is withdrawn.
    pub async fn leave(self: &Arc<Self>, approval: &Arc<Approval>, job: &str, why: &str) -> Result<()> {
        if !approval.remove_job(job) {
            return Ok(());
        }
        let decision = DecisionRow { at_ms: self.clock().now_ms(), by: "host".to_owned(), answer: why.to_owned() };
        self.end(approval, State::Withdrawn, decision).await
    }

    /// Withdraws the requests for which nothing waits after a restart.
    pub fn withdraw_abandoned(self: &Arc<Self>) {
        for approval in self.all().iter().filter(|it| !it.status().state.settled() && it.jobs().is_empty()) {
            let answer = "the host stopped, and what asked is gone".to_owned();
            let decision = DecisionRow { at_ms: self.clock().now_ms(), by: "host".to_owned(), answer };
            drop(self.end(approval, State::Withdrawn, decision));
        }
    }

    /// What was allowed has changed before it was done: the answer does not count.
    pub async fn void(self: &Arc<Self>, approval: &Arc<Approval>) -> Result<()> {
        let (approvals, approval) = (self.clone(), approval.clone());
        let done = commit(&self.store, move |commit| {
            if rows::void(commit.tx(), &approval.id)? {
                audit::note(commit.tx(), &record(&approval, State::Void, approvals.clock().now_ms()));
                commit.after(move || {
                    approval.end(State::Void, None);
                    approvals.tell(&approval.id);
                });
            }
            Ok(())
        });
        done.await
    }

    /// Ends a request if it still waits.
    pub(super) fn end(self: &Arc<Self>, approval: &Arc<Approval>, state: State, decision: DecisionRow) -> Written<()> {
        let (approvals, approval) = (self.clone(), approval.clone());
        commit(&self.store, move |commit| approvals.end_in(commit, &approval, state, decision).map(drop))
    }

    fn end_in(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        approval: &Arc<Approval>,
        state: State,
        decision: DecisionRow,
    ) -> Result<bool> {
        // An agent that asks and gives up again and again leaves lines of the audit, and nothing else.
        let ended = match state {
            State::Withdrawn => rows::remove_waiting(commit.tx(), &approval.id)?,
            state => rows::settle(commit.tx(), &approval.id, state, &decision)?,
        };
        if !ended {
            return Ok(false);
        }
        let line = record(approval, state, decision.at_ms);
        audit::note(commit.tx(), &line.with("by", decision.by.as_str()).with("answer", decision.answer.as_str()));
        if let Ok(log) = self.event_logs.of(&approval.request.agent) {
            let job = approval.jobs().into_iter().next();
            let path = match &job {
                Some(job) => format!("/agents/{}/jobs/{job}/progress.json", approval.request.agent),
                None => format!("/agents/{}/jobs", approval.request.agent),
            };
            let told = json!({"approval": state.name(), "job_id": job, "answer": decision.answer});
            commit.emit(&log, "approval", &path, told)?;
        }
        let (approvals, approval) = (self.clone(), approval.clone());
        commit.after(move || {
            approval.end(state, Some(decision));
            approvals.tell(&approval.id);
        });
        Ok(true)
    }

    /// Revokes exceptions of an agent.
    pub fn revoke(self: &Arc<Self>, agent: &str, ids: Vec<String>, by: &str) -> Written<()> {
        let (approvals, agent, by) = (self.clone(), agent.to_owned(), by.to_owned());
        commit(&self.store, move |commit| {
            for id in &ids {
                if rows::remove_exception(commit.tx(), id)? {
                    let record = Record::new(approvals.clock().now_ms(), "exception_revoked");
                    let record = record.with("exception", id.as_str()).with("agent", agent.as_str());
                    audit::note(commit.tx(), &record.with("by", by.as_str()));
                }
            }
            commit.after(move || {
                approvals.exceptions.write().retain(|it| it.agent != agent || !ids.contains(&it.id));
                approvals.always.changed(&agent);
            });
            Ok(())
        })
    }

    /// Keeps the reason why a decision was refused, for a writer that has only a number.
    pub(super) fn refused(&self, error: &Error) {
        *self.refused.lock() = Some(error.clone());
    }
}

/// The line of the audit about the end of a request.
fn record(approval: &Approval, state: State, at_ms: u64) -> Record {
    Record::new(at_ms, "approval")
        .with("approval", approval.id.as_str())
        .with("agent", approval.request.agent.as_str())
        .with("state", state.name())
        .with("subject", approval.hash())
}

fn decided_already(row: &ApprovalRow) -> Error {
    let how = match &row.decision {
        Some(decision) => format!("{} by {}: {}", row.state.name(), decision.by, decision.answer),
        None => row.state.name().to_owned(),
    };
    Error::already_exists(format!("{} was decided already: {how}", row.id))
}
