//! `acheron jobs`.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::host_view::{HostView, HostViewArgs};
use super::table::{render, span, terminal_width};
use super::{CommandResult, Failure, plain_text, say, since};
use crate::host::overview::JobOverview;
use crate::state::jobs::{self, JobRow, JobState};
use acheron_base::{Error, Result};

/// List jobs: those that have not ended; with --all also those that have, newest last.
#[derive(Args)]
pub struct JobsArgs {
    /// Jobs of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Jobs of this service or operation, such as memory or memory.create; a turn is chat
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Also jobs that have ended
    #[arg(long)]
    all: bool,
    /// The most jobs that have ended
    #[arg(long, value_name = "N", default_value_t = 50, requires = "all")]
    limit: usize,
    /// Print one JSON object per job
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: HostViewArgs,
}

impl JobsArgs {
    pub fn run(self) -> CommandResult {
        let state = self.view.state()?;
        let live = HostView::open(&state).map(|mut host| host.look()).transpose()?;
        let (mut listed, more) = match live {
            Some(host) => (host.jobs, host.more_jobs),
            None => (self.left(&state)?, 0),
        };
        listed.retain(|job| wanted(job, self.agent.as_deref(), self.operation.as_deref()));
        if self.all {
            let mut ended = acheron_store::look_unlocked(&state, |conn| {
                let mut found = Vec::new();
                jobs::newest_ended(conn, |row| {
                    found.extend(
                        Some(line(&row)).filter(|job| wanted(job, self.agent.as_deref(), self.operation.as_deref())),
                    );
                    found.len() < self.limit
                })?;
                Ok(found)
            })?;
            ended.reverse();
            // One that has ended meanwhile is in both.
            listed.retain(|job| !ended.iter().any(|other| other.job_id == job.job_id));
            ended.append(&mut listed);
            listed = ended;
        }
        match self.json {
            true => listed.iter().for_each(|job| say(&format!("{}\n", json!(job)))),
            false if listed.is_empty() => say(if self.all { "no jobs\n" } else { "no job is under way\n" }),
            false => say(&shown(&listed, since::now_ms(), terminal_width())),
        }
        if more > 0 {
            eprintln!("note: {more} more are not listed");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The jobs that a host left which does not run any more.
    fn left(&self, state: &Path) -> Result<Vec<JobOverview>, Failure> {
        let found = acheron_store::look_unlocked(state, jobs::unsettled).map_err(|error| {
            let none = Error::unavailable(format!("no host runs on {}: {}", state.display(), error.message));
            Failure::hint(none, "acheron mount DIR --daemon")
        })?;
        eprintln!("{}", plain_text::for_stderr(&format!("note: no host runs on {}", state.display())));
        Ok(found.iter().map(line).collect())
    }
}

fn wanted(job: &JobOverview, agent: Option<&str>, operation: Option<&str>) -> bool {
    let named = |name: &str| name == job.service || name.split_once('.') == Some((&job.service, &job.operation));
    agent.is_none_or(|agent| agent == job.agent) && operation.is_none_or(named)
}

fn line(row: &JobRow) -> JobOverview {
    JobOverview {
        job_id: row.id.clone(),
        agent: row.agent.clone(),
        service: row.service.clone(),
        operation: row.operation.clone(),
        state: row.state,
        principal: row.principal.clone(),
        created_at_ms: row.created_at_ms,
        started_at_ms: row.started_at_ms,
        ended_at_ms: row.state.settled().then_some(row.updated_at_ms),
        error: row.error.as_ref().map(|error| error.message.clone()),
    }
}

fn shown(jobs: &[JobOverview], now_ms: u64, width: Option<usize>) -> String {
    let rows = jobs.iter().map(|job| {
        let took = match (job.started_at_ms, job.ended_at_ms) {
            (Some(started), ended) => span(ended.unwrap_or(now_ms).saturating_sub(started)),
            (None, _) => String::new(),
        };
        let why = job.error.as_deref().filter(|_| job.state != JobState::Done).unwrap_or_default();
        vec![
            job.job_id.clone(),
            job.agent.clone(),
            format!("{}.{}", job.service, job.operation),
            job.state.name().to_owned(),
            span(now_ms.saturating_sub(job.created_at_ms)),
            took,
            why.chars().take(100).collect(),
        ]
    });
    render(&["JOB", "AGENT", "OPERATION", "STATE", "AGE", "TOOK", "WHY"], &rows.collect::<Vec<_>>(), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_chosen_by_agent_service_or_operation() {
        let job = JobOverview {
            job_id: "job-1".into(),
            agent: "eve".into(),
            service: "memory".into(),
            operation: "create".into(),
            state: JobState::Running,
            principal: "operator".into(),
            created_at_ms: 0,
            started_at_ms: Some(1000),
            ended_at_ms: None,
            error: None,
        };
        let chosen = [(None, None), (Some("eve"), Some("memory")), (None, Some("memory.create"))];
        assert!(chosen.iter().all(|(agent, operation)| wanted(&job, *agent, *operation)));
        let others = [(Some("bob"), None), (None, Some("memory.delete")), (None, Some("create")), (None, Some("mem"))];
        assert!(others.iter().all(|(agent, operation)| !wanted(&job, *agent, *operation)));
        let text = shown(&[job], 61_000, None);
        assert!(text.ends_with("job-1  eve    memory.create  running  61s  60s\n"), "{text}");
    }
}
