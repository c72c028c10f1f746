//! Snapshots of all resources together, and the transaction in which a tool runs.
//!
//! Restoring is done in two steps: first every resource says whether it can, then all of them do. If one fails then
//! after all, those that went back already are taken forward again: it is all or nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::held::{fault, shut};
use super::{Resource, Resources};
use acheron_base::{Code, Error, Result};

const VERSION: &str = "1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub version: String,
    pub id: String,
    pub created_at_ms: u64,
    pub tag: Option<String>,
    pub tool: Option<String>,
    pub phase: SnapshotPhase,
    /// By name; what has no state is not there.
    pub resources: BTreeMap<String, Value>,
    /// The resources that existed at that time.
    pub made: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Phase")]
pub enum SnapshotPhase {
    PreTool,
    PostTool,
    Manual,
}

impl Snapshot {
    pub fn read(text: &str) -> Result<Snapshot> {
        let snapshot: Snapshot =
            serde_json::from_str(text).map_err(|error| Error::invalid(format!("not a snapshot: {error}")))?;
        match snapshot.version == VERSION && !snapshot.id.is_empty() {
            true => Ok(snapshot),
            false => Err(Error::invalid(format!("a snapshot of version `{}` is not understood", snapshot.version))),
        }
    }
}

impl Resources {
    /// The state of everything that has been made.
    pub fn snapshot(&self, id: &str, now_ms: u64, tag: Option<&str>, tool: Option<&str>) -> Result<Snapshot> {
        let held = self.held()?;
        let mut resources = BTreeMap::new();
        for (name, resource) in &held.singletons {
            let state = resource.snapshot();
            let state = state.map_err(|error| fault(&format!("`{name}` gave no snapshot: {error}"), error.code))?;
            if let Some(state) = state {
                resources.insert(name.clone(), state);
            }
        }
        Ok(Snapshot {
            version: VERSION.to_owned(),
            id: id.to_owned(),
            created_at_ms: now_ms,
            tag: tag.map(str::to_owned),
            tool: tool.map(str::to_owned),
            phase: if tool.is_some() { SnapshotPhase::PreTool } else { SnapshotPhase::Manual },
            resources,
            made: held.singletons.iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// Takes everything back. What has been made since is closed and forgotten.
    pub fn restore(&self, snapshot: &Snapshot) -> Result<()> {
        let mut held = self.held()?;
        let both =
            |name: &str| held.singletons.iter().find(|(held, _)| held == name).map(|(_, resource)| resource.clone());
        let back: Vec<_> =
            snapshot.resources.iter().filter_map(|(name, state)| Some((name, both(name)?, state))).collect();
        let failed =
            |name: &str, error: &Error| fault(&format!("restore failed at `{name}`: {error}"), Code::ExecutionFailed);
        let mut forward = Vec::new();
        for (name, resource, state) in &back {
            resource.prepare(state).map_err(|error| failed(name, &error))?;
            forward.push(resource.snapshot().map_err(|error| failed(name, &error))?);
        }
        for (index, (name, resource, state)) in back.iter().enumerate() {
            if let Err(error) = resource.restore(state) {
                let stuck: Vec<&str> = back[..=index]
                    .iter()
                    .zip(&forward)
                    .filter(|((_, resource, _), was)| was.as_ref().is_some_and(|was| resource.restore(was).is_err()))
                    .map(|((name, ..), _)| name.as_str())
                    .collect();
                let mut error = failed(name, &error);
                if !stuck.is_empty() {
                    error.message.push_str(&format!("; left half-way: {}", stuck.join(", ")));
                }
                return Err(error);
            }
        }
        for ((_, resource, _), was) in back.iter().zip(&forward) {
            was.iter().for_each(|was| resource.forget(was));
        }
        let (kept, new) =
            std::mem::take(&mut held.singletons).into_iter().partition(|(name, _)| snapshot.made.contains(name));
        held.singletons = kept;
        drop(held);
        for error in shut(new) {
            tracing::warn!(%error, "a resource that was rolled back could not be closed");
        }
        Ok(())
    }

    /// A snapshot that is of no more use.
    pub fn forget(&self, snapshot: &Snapshot) {
        let Ok(held) = self.held() else { return };
        for (name, resource) in &held.singletons {
            if let Some(state) = snapshot.resources.get(name) {
                resource.forget(state);
            }
        }
    }

    /// Begins a transaction. They nest: each goes back to where it began.
    pub fn begin(self: &Arc<Self>, id: &str, now_ms: u64, tag: Option<&str>, tool: &str) -> Result<Transaction> {
        let snapshot = self.snapshot(id, now_ms, tag, Some(tool))?;
        self.enter_call()?;
        let mut transaction = Transaction { resources: self.clone(), snapshot: Some(snapshot), own: Vec::new() };
        // What lives as long as this call is part of it. If it cannot be made, there is nothing to take back yet.
        for (name, resource) in self.hold_call()? {
            let state = resource.snapshot();
            let state = state.map_err(|error| fault(&format!("`{name}` gave no snapshot: {error}"), error.code))?;
            transaction.own.extend(state.map(|state| (name, resource, state)));
        }
        Ok(transaction)
    }
}

/// Rolls back when it is dropped, so that `?`, a panic and a cancelled call all leave things as they were.
pub struct Transaction {
    resources: Arc<Resources>,
    snapshot: Option<Snapshot>,
    /// The resources of this call alone, and the states in which it found them.
    own: Vec<(String, Arc<dyn Resource>, Value)>,
}

impl Transaction {
    /// Keeps the changes.
    pub fn commit(mut self) -> Result<()> {
        if let Some(snapshot) = self.snapshot.take() {
            self.own.drain(..).for_each(|(_, resource, state)| resource.forget(&state));
            self.resources.leave_call();
            self.resources.forget(&snapshot);
        }
        Ok(())
    }

    pub fn roll_back(mut self) -> Result<()> {
        self.undo()
    }

    fn undo(&mut self) -> Result<()> {
        let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
        let own = std::mem::take(&mut self.own);
        let back = own.iter().try_for_each(|(name, resource, state)| {
            let done = resource.prepare(state).and_then(|()| resource.restore(state));
            done.map_err(|error| fault(&format!("restore failed at `{name}`: {error}"), Code::ExecutionFailed))
        });
        own.iter().for_each(|(_, resource, state)| resource.forget(state));
        self.resources.leave_call();
        self.resources.restore(&snapshot)?;
        self.resources.forget(&snapshot);
        back
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Err(error) = self.undo() {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

/// Tools that begin and end in two separate calls.
#[derive(Default)]
pub struct PendingTransactions {
    begun: Mutex<BTreeMap<String, Snapshot>>,
}

impl PendingTransactions {
    pub fn begin(&self, resources: &Resources, id: &str, now_ms: u64, tool: &str) -> Result<()> {
        let snapshot = resources.snapshot(id, now_ms, None, Some(tool))?;
        self.begun.lock().insert(id.to_owned(), snapshot);
        Ok(())
    }

    /// Whether something was taken back: only what was begun, and only if it failed.
    pub fn end(&self, resources: &Resources, id: &str, success: bool) -> Result<bool> {
        let begun = self.begun.lock().remove(id);
        match begun {
            Some(snapshot) if !success => resources.restore(&snapshot).map(|()| true),
            Some(snapshot) => {
                resources.forget(&snapshot);
                Ok(false)
            }
            None => Ok(false),
        }
    }

    pub fn abort(&self, resources: &Resources, id: &str) -> Result<bool> {
        self.end(resources, id, false)
    }
}
