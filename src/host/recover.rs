//! What the last run of the host left: files that were decided and not made, jobs that had not ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::HostState;
use crate::jobs::Job;
use crate::policy::Principal;
use crate::state::audit::{self, Record};
use crate::state::{file_plans, jobs as journal};
use acheron_base::{Error, Result};
use acheron_store::Store;

/// Makes the files that were decided, before anybody reads them; returns the outcome of each job that decided.
pub fn make_files(store: &Store) -> Result<BTreeMap<String, Result<Value>>> {
    let left = store.look(file_plans::all)?.into_iter();
    Ok(left.map(|files| (files.job, files.plan.make_again().map(|()| files.result))).collect())
}

/// Restores the jobs of an earlier run of the host; returns those that are to run.
pub fn jobs(host: &HostState, decided: BTreeMap<String, Result<Value>>) -> Result<Vec<Arc<Job>>> {
    let now = host.context.clock.now_ms();
    let logs = host.context.event_logs.clone();
    let recovered = crate::events::commit(&host.store, move |commit| {
        let found = journal::recover(commit.tx(), &decided, now)?;
        for row in &found.ended {
            let path = format!("/agents/{}/jobs/{}/status.json", row.agent, row.id);
            let ended =
                Record::new(now, "ended").with("agent", row.agent.as_str()).with("service", row.service.as_str());
            let ended = ended.with("operation", row.operation.as_str()).with("job", row.id.as_str());
            audit::note(commit.tx(), &ended.with("outcome", row.state.name()));
            commit.emit(&logs.of(&row.agent)?, "job", &path, crate::jobs::status_json(row))?;
        }
        Ok(found)
    });
    let found = recovered.wait()?;
    let names = host.store.look(journal::names)?;
    for (agent, id, correlation_id) in names {
        host.context.jobs.restore_name(&agent, &id, correlation_id.as_deref());
    }
    for row in &found.ended {
        let (state, id) = (row.state.name(), &row.id);
        tracing::warn!(job = id, service = row.service, state, "a job was running when the last host ended");
    }
    Ok(found.queued.iter().map(|row| host.context.jobs.restore(Job::from_row(row, &host.context.clock))).collect())
}

/// Runs a job that was found, or ends it if its service is gone.
pub fn resume(host: &HostState, job: Arc<Job>) {
    if job.call.service == crate::agent::chat::SERVICE {
        return match host.shared.runtimes.chat(&job.call.agent) {
            Ok(chat) => chat.resume(job),
            Err(error) => host.context.runner.abandon(job, error),
        };
    }
    if job.call.service.contains('/') {
        return resume_far(host, job);
    }
    let agent = match &job.call.principal {
        Principal::Agent(id) => id.clone(),
        _ => job.call.agent.clone(),
    };
    // A service of an agent, or one that all share.
    let find = |owner: &str| host.context.instance(owner, &job.call.service);
    match find(&job.call.agent).or_else(|_| find(&agent)).or_else(|_| find(super::nodes::NODE)) {
        Ok(instance) => instance.resume(job),
        Err(error) => host.context.runner.abandon(job, error),
    }
}

/// How long a host may take to be known again.
const FAR: Duration = Duration::from_secs(60);

/// Asks another host again for a call that an earlier run of this host made; over there it is the same call.
fn resume_far(host: &HostState, job: Arc<Job>) {
    let (context, runtime) = (Arc::downgrade(&host.context), host.context.runtime.clone());
    runtime.spawn(async move {
        let until = tokio::time::Instant::now() + FAR;
        let (node, _) = job.call.service.split_once('/').unwrap_or_default();
        loop {
            let Some(context) = context.upgrade() else { return };
            match context.instance(&format!("nodes/{node}"), &job.call.service) {
                Ok(instance) => return instance.resume(job.clone()),
                Err(_) if tokio::time::Instant::now() < until && !job.cancel.is_cancelled() => (),
                Err(_) => {
                    let gone =
                        Error::unavailable(format!("host {node} is not known; what it was asked may have happened"));
                    return context.runner.abandon(job.clone(), gone);
                }
            }
            drop(context);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
}
