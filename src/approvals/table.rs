//! The requests in memory, and what was denied again and again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::{Approval, MOST_WAITING};
use acheron_approvals::{Request, State};
use acheron_base::{Error, Result};

/// After so many denials of the same the next is answered without asking.
const DENIALS: u32 = 3;
/// Denials that are remembered, until the host stops.
const REMEMBERED: usize = 1000;

/// Decided requests that stay in memory, and their bytes.
const MOST_SETTLED: usize = 500;
const MOST_BYTES: usize = 16 << 20;
/// Requests that were given up and are still shown: an agent can make as many as it likes.
const MOST_WITHDRAWN: usize = 16;

#[derive(Default)]
pub(super) struct ApprovalTable {
    /// By id; ids sort by time.
    all: BTreeMap<String, Arc<Approval>>,
    /// By the hash of what was denied: how often, and the last reason.
    denials: HashMap<String, (u32, String)>,
}

impl ApprovalTable {
    pub fn get(&self, id: &str) -> Option<Arc<Approval>> {
        self.all.get(id).filter(|approval| approval.status().shown).cloned()
    }

    pub fn shown(&self) -> Vec<Arc<Approval>> {
        self.all.values().filter(|approval| approval.status().shown).cloned().collect()
    }

    pub fn restore(&mut self, approval: Arc<Approval>) {
        self.all.insert(approval.id.clone(), approval);
    }

    pub fn remove(&mut self, id: &str) {
        self.all.remove(id);
    }

    /// The request of this agent that waits and asks the same; `new` makes one if there is room.
    pub fn join_or_add(
        &mut self,
        request: Request,
        new: impl FnOnce(Request) -> Approval,
    ) -> Result<(Arc<Approval>, bool)> {
        let hash = request.hash();
        if let Some((_, reason)) = self.denials.get(&hash).filter(|(count, _)| *count >= DENIALS) {
            let reason = if reason.is_empty() { "no reason was given" } else { reason };
            return Err(Error::forbidden(format!("the operator has denied this {DENIALS} times already: {reason}")));
        }
        let waiting = self.all.values().filter(|it| it.request.agent == request.agent && !it.status().state.settled());
        let (mut count, mut same) = (0, None);
        for approval in waiting {
            count += 1;
            if approval.hash() == hash {
                same = Some(approval.clone());
            }
        }
        let full = |what: String| {
            Error::busy(format!(
                "{what} wait for a decision of the operator already; wait for one to be decided, or cancel it"
            ))
        };
        match same {
            Some(same) if same.jobs().len() >= MOST_WAITING => Err(full(format!("{MOST_WAITING} calls like this one"))),
            Some(same) => Ok((same, false)),
            None if count >= MOST_WAITING => Err(full(format!("{MOST_WAITING} requests of agent {}", request.agent))),
            None => {
                let approval = Arc::new(new(request));
                self.all.insert(approval.id.clone(), approval.clone());
                Ok((approval, true))
            }
        }
    }

    /// Remembers a denial.
    pub fn denied(&mut self, hash: String, reason: &str) {
        if self.denials.len() >= REMEMBERED && !self.denials.contains_key(&hash) {
            self.denials.clear(); // an agent that makes so many is asked about anew
        }
        let (count, last) = self.denials.entry(hash).or_default();
        (*count, *last) = (*count + 1, reason.to_owned());
    }

    /// Forgets what was denied, because it was allowed.
    pub fn allowed(&mut self, hash: &str) {
        self.denials.remove(hash);
    }

    /// Forgets the oldest that were decided, beyond what memory is for; returns their ids. What waits stays.
    pub fn trim(&mut self) -> Vec<String> {
        let settled: Vec<&Arc<Approval>> = self.all.values().filter(|it| it.status().state.settled()).collect();
        let (mut count, mut bytes) = (settled.len(), settled.iter().map(|it| it.bytes()).sum::<usize>());
        let withdrawn = settled.iter().filter(|it| it.status().state == State::Withdrawn).count();
        let mut withdrawn = withdrawn.saturating_sub(MOST_WITHDRAWN);
        let mut gone = Vec::new();
        for approval in settled {
            let given_up = withdrawn > 0 && approval.status().state == State::Withdrawn;
            if !given_up && count <= MOST_SETTLED && bytes <= MOST_BYTES {
                continue;
            }
            withdrawn -= usize::from(given_up);
            (count, bytes) = (count - 1, bytes - approval.bytes());
            gone.push(approval.id.clone());
        }
        self.forget(&gone);
        gone
    }

    pub fn forget(&mut self, ids: &[String]) {
        self.all.retain(|id, _| !ids.contains(id));
    }

    pub fn forget_agent(&mut self, agent: &str) -> Vec<String> {
        let gone: Vec<String> =
            self.all.values().filter(|it| it.request.agent == agent).map(|it| it.id.clone()).collect();
        self.forget(&gone);
        gone
    }
}
