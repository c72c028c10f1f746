//! A place among the requests that wait, from the moment a call is accepted until the request is in the database.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{Approval, Approvals, row};
use crate::events::Commit;
use crate::state::approvals::{self as rows, DecisionRow};
use crate::state::audit::{self, Record};
use acheron_approvals::{Request, State};
use acheron_base::Result;

/// The longest time between two looks at the clock: it can be set.
const LOOK: Duration = Duration::from_secs(30);

/// A request that is not stored yet. Dropping it takes the request back, unless it joined one that waits.
pub struct AskTicket {
    approvals: Arc<Approvals>,
    approval: Arc<Approval>,
    is_new: bool,
    /// What is asked must not be stored.
    private: bool,
}

impl Approvals {
    /// Asks, or joins a request that asks the same. Refused if too many wait, or if the same was denied again and again.
    pub fn ask(self: &Arc<Self>, request: Request, private: bool) -> Result<AskTicket> {
        let now_ms = self.clock().now_ms();
        let expires_at_ms = now_ms.saturating_add(*self.expires_ms.read());
        let id = self.ids.id("apr");
        let new = |request| Approval::new(id, request, now_ms, expires_at_ms);
        let (approval, is_new) = self.table.lock().join_or_add(request, new)?;
        Ok(AskTicket { approvals: self.clone(), approval, is_new, private })
    }

    /// Ends the request when nobody has answered in time.
    pub(super) fn expire_in_time(self: &Arc<Self>, approval: &Arc<Approval>) {
        if approval.status().state.settled() {
            return;
        }
        let (approvals, approval) = (Arc::downgrade(self), approval.clone());
        self.runtime.spawn(async move {
            loop {
                let Some(now_ms) = approvals.upgrade().map(|it| it.clock().now_ms()) else { return };
                let left = Duration::from_millis(approval.expires_at_ms.saturating_sub(now_ms));
                if left.is_zero() {
                    break;
                }
                tokio::select! {
                    _ = approval.settled() => return,
                    () = tokio::time::sleep(left.min(LOOK)) => {}
                }
            }
            let Some(approvals) = approvals.upgrade() else { return };
            let decision =
                DecisionRow { at_ms: approvals.clock().now_ms(), by: "host".into(), answer: "expired".into() };
            if let Err(error) = approvals.end(&approval, State::Expired, decision).await {
                tracing::warn!(approval = approval.id, %error, "a request could not expire");
            }
        });
    }
}

impl AskTicket {
    pub fn approval(&self) -> &Arc<Approval> {
        &self.approval
    }

    /// Stores the request for `job` as a part of a commit, and shows it after that.
    pub fn keep(self, commit: &Commit<'_>, job: &str, job_path: &str) -> Result<Arc<Approval>> {
        let (approval, approvals) = (self.approval.clone(), self.approvals.clone());
        approval.add_job(job);
        if self.is_new {
            rows::insert(commit.tx(), &row(&approval, self.private))?;
            let asked = &approval.request;
            let record = Record::new(approval.created_at_ms, "approval")
                .with("approval", approval.id.as_str())
                .with("agent", asked.agent.as_str())
                .with("state", State::Waiting.name())
                .with("asks", asked.subject.kind())
                .with("subject", approval.hash())
                .with("rule", asked.rule.hash.as_str())
                .with("job", job);
            audit::note(commit.tx(), &record);
        }
        let log = approvals.event_logs.of(&approval.request.agent)?;
        let told = json!({"approval": State::Waiting.name(), "job_id": job, "expires_at_ms": approval.expires_at_ms});
        commit.emit(&log, "approval", job_path, told)?;
        let (shown, is_new) = (approval.clone(), self.is_new);
        commit.after(move || {
            if is_new {
                shown.show();
                approvals.expire_in_time(&shown);
            }
            approvals.tell(&shown.id);
            drop(self.kept());
        });
        Ok(approval)
    }

    /// The request is stored: it stays.
    fn kept(mut self) -> Self {
        self.is_new = false;
        self
    }
}

impl Drop for AskTicket {
    fn drop(&mut self) {
        if self.is_new {
            self.approvals.table.lock().remove(&self.approval.id);
            self.approval.end(State::Withdrawn, None);
        }
    }
}
