//! The newest jobs as one list, of one agent or of all: those in memory, and those of the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::archive::status_json;
use super::{Job, Jobs};
use acheron_vfs::{Answer, Caller, ComputedFile, rows};

/// The most jobs in a list.
const MOST: usize = 1000;

/// `recent.json` of an agent, or with `None` of all agents: an array of what `status.json` of each job shows, newest first. It never
/// waits for a job.
pub fn file(jobs: &Arc<Jobs>, agent: Option<&str>) -> ComputedFile {
    let (jobs, agent) = (jobs.clone(), agent.map(str::to_owned));
    ComputedFile::fetched(move |_: &Caller| recent(&jobs, agent.as_deref()))
}

fn recent(jobs: &Arc<Jobs>, agent: Option<&str>) -> Answer<Bytes> {
    let (jobs, agent) = (jobs.clone(), agent.map(str::to_owned));
    Answer::soon(async move {
        // By id, and ids sort by time. What is in memory is newer than the journal's row of it.
        let mut found: BTreeMap<String, Value> = BTreeMap::new();
        for row in jobs.store().newest(agent.as_deref(), MOST).wait().await? {
            found.insert(row.id.clone(), status_json(&row));
        }
        let agents = agent.map_or_else(|| jobs.agents(), |agent| vec![agent]);
        let mut loaded: Vec<Arc<Job>> = agents.iter().flat_map(|agent| jobs.of(agent).loaded()).collect();
        loaded.sort_unstable_by(|one, other| other.id.cmp(&one.id));
        found.extend(loaded.iter().take(MOST).map(|job| (job.id.clone(), status(job))));
        Ok(rows(&found.into_values().rev().take(MOST).collect::<Vec<_>>()))
    })
}

fn status(job: &Job) -> Value {
    serde_json::to_value(job.status(&job.now())).unwrap_or_default()
}
