//! One request in memory: what is asked, who waits for the answer, and how it stands.

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::state::approvals::{ApprovalRow, DecisionRow};
use acheron_approvals::{Request, State};

/// How a request stands.
#[derive(Clone, Debug)]
pub struct ApprovalStatus {
    pub state: State,
    pub decision: Option<DecisionRow>,
    /// It is in the database and in the tree.
    pub(super) shown: bool,
}

pub struct Approval {
    pub id: String,
    pub request: Request,
    pub created_at_ms: u64,
    pub expires_at_ms: u64,
    hash: String,
    /// The bytes that it takes in memory, about.
    bytes: usize,
    /// The jobs that wait for it, in the order in which they came.
    jobs: Mutex<Vec<String>>,
    now: watch::Sender<ApprovalStatus>,
}

impl Approval {
    pub(super) fn new(id: String, request: Request, created_at_ms: u64, expires_at_ms: u64) -> Approval {
        let status = ApprovalStatus { state: State::Waiting, decision: None, shown: false };
        let (jobs, now) = (Mutex::default(), watch::Sender::new(status));
        let (hash, bytes) = (request.hash(), serde_json::to_string(&request).map_or(0, |text| text.len()));
        Approval { id, request, created_at_ms, expires_at_ms, hash, bytes, jobs, now }
    }

    pub(super) fn of_row(row: ApprovalRow) -> Approval {
        let approval = Approval::new(row.id, row.request, row.created_at_ms, row.expires_at_ms);
        approval.now.send_modify(|now| (now.state, now.decision, now.shown) = (row.state, row.decision, true));
        approval
    }

    /// The hash that binds an answer to what is asked.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn status(&self) -> ApprovalStatus {
        self.now.borrow().clone()
    }

    /// The jobs that have asked.
    pub fn jobs(&self) -> Vec<String> {
        self.jobs.lock().clone()
    }

    pub fn add_job(&self, job: &str) {
        let mut jobs = self.jobs.lock();
        if !jobs.iter().any(|other| other == job) {
            jobs.push(job.to_owned());
        }
    }

    /// Takes a job away; whether it was the last.
    pub(super) fn remove_job(&self, job: &str) -> bool {
        let mut jobs = self.jobs.lock();
        jobs.retain(|other| other != job);
        jobs.is_empty()
    }

    pub(super) fn show(&self) {
        self.now.send_modify(|now| now.shown = true);
    }

    pub(super) fn end(&self, state: State, decision: Option<DecisionRow>) {
        self.now.send_modify(|now| {
            now.state = state;
            now.decision = decision.or_else(|| now.decision.take());
        });
    }

    /// Waits until it is decided, expired or withdrawn.
    pub async fn settled(&self) -> ApprovalStatus {
        let mut now = self.now.subscribe();
        // The sender lives as long as this request, so waiting cannot fail.
        let settled = now.wait_for(|now| now.state.settled()).await.map(|now| now.clone());
        settled.unwrap_or_else(|_| self.status())
    }

    /// `request.json`.
    pub fn request_page(&self, host: &str, listeners: usize) -> Value {
        let mut page = json!({
            "id": self.id,
            "host": host,
            "state": self.status().state,
            "jobs": self.jobs(),
            "created_at_ms": self.created_at_ms,
            "expires_at_ms": self.expires_at_ms,
            "listeners": listeners,
        });
        if let (Some(page), Value::Object(asked)) = (page.as_object_mut(), self.request.page()) {
            page.extend(asked);
        }
        page
    }

    /// `status.json`.
    pub fn status_page(&self) -> Value {
        let ApprovalStatus { state, decision, .. } = self.status();
        json!({
            "id": self.id,
            "state": state,
            "summary": self.request.subject.summary(&self.request.agent),
            "agent": self.request.agent,
            "decided_at_ms": decision.as_ref().map(|it| it.at_ms),
            "by": decision.as_ref().map(|it| it.by.as_str()),
            "answer": decision.as_ref().map(|it| it.answer.as_str()),
            "expires_at_ms": self.expires_at_ms,
        })
    }
}
