//! `acheron agents`, `jobs` and `top` on the host's side: what it does at this moment. Each further message of the command gets
//! a new answer, so that a screen asks as often as it is drawn.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HostState;
use super::commands::{CommandSession, HostCommand};
use crate::agent::budget::Spent;
use crate::jobs::{Job, JobState};

pub const COMMAND: HostCommand = HostCommand { word: "overview", serve: |session| Box::pin(serve(session)) };

/// The jobs that are listed; there may be thousands.
const LISTED: usize = 1000;

/// What a host does now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostOverview {
    pub pid: u32,
    pub mountpoint: Option<PathBuf>,
    pub started_at_ms: u64,
    pub now_ms: u64,
    /// The calls that were accepted since it started.
    pub calls: u64,
    pub agents: Vec<AgentOverview>,
    /// The jobs that have not ended, oldest first.
    pub jobs: Vec<JobOverview>,
    /// The jobs that are not listed because there are so many.
    pub more_jobs: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentOverview {
    pub agent_id: String,
    pub about: String,
    pub parent: Option<String>,
    /// `idle`, `running` or `paused`.
    pub state: String,
    pub model: String,
    /// The use of models by all its turns and programs.
    pub spent: Spent,
    pub running: usize,
    pub queued: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobOverview {
    pub job_id: String,
    pub agent: String,
    pub service: String,
    pub operation: String,
    pub state: JobState,
    pub principal: String,
    pub created_at_ms: u64,
    pub started_at_ms: Option<u64>,
    /// When it ended, if it has.
    pub ended_at_ms: Option<u64>,
    /// Why it did not end well.
    pub error: Option<String>,
}

async fn serve(session: CommandSession) {
    // Not held between two answers: the host must be able to go down.
    let (host, down, mut lines) = (Arc::downgrade(&session.host), session.down, session.lines);
    drop(session.host);
    loop {
        let Some(overview) = host.upgrade().map(|host| overview(&host)) else { return };
        if lines.send(&overview).await.is_err() {
            return;
        }
        tokio::select! {
            () = down.cancelled() => return,
            asked = lines.next::<Value>() => if !matches!(asked, Ok(Some(_))) { return },
        }
    }
}

fn overview(host: &HostState) -> HostOverview {
    let mut jobs: Vec<Arc<Job>> = Vec::new();
    for agent in host.context.jobs.agents() {
        jobs.extend(host.context.jobs.of(&agent).unfinished());
    }
    jobs.sort_by(|a, b| a.id.cmp(&b.id));
    let agents = host.profiles.all().into_iter().map(|(id, profile)| {
        let own = |state: JobState| jobs.iter().filter(|job| job.call.agent == id && job.now().state == state).count();
        let chat = host.shared.runtimes.chat(&id).ok();
        let settings = chat.as_ref().map(|chat| chat.agent_runtime().settings());
        let state = match &chat {
            Some(chat) if chat.current().is_some() => "running",
            _ if settings.as_ref().is_some_and(|settings| settings.paused) => "paused",
            _ => "idle",
        };
        let model = settings.and_then(|settings| settings.model).map_or("external".to_owned(), |model| model.name());
        AgentOverview {
            about: profile.spec.about,
            parent: profile.parent,
            state: state.to_owned(),
            model,
            spent: host.shared.runtimes.spent(&id),
            running: own(JobState::Running),
            queued: own(JobState::Queued) + own(JobState::WaitingForApproval),
            agent_id: id,
        }
    });
    HostOverview {
        pid: std::process::id(),
        mountpoint: host.mount.get().map(|mount| mount.mountpoint().to_owned()),
        started_at_ms: host.identity.started_at_ms,
        now_ms: host.context.clock.now_ms(),
        calls: host.context.jobs.accepted(),
        agents: agents.collect(),
        more_jobs: jobs.len().saturating_sub(LISTED),
        jobs: jobs.iter().take(LISTED).map(|job| line(job)).collect(),
    }
}

fn line(job: &Job) -> JobOverview {
    let now = job.now();
    JobOverview {
        job_id: job.id.clone(),
        agent: job.call.agent.clone(),
        service: job.call.service.clone(),
        operation: job.call.operation.clone(),
        state: now.state,
        principal: job.call.principal.to_string(),
        created_at_ms: job.created_at_ms,
        started_at_ms: now.started_at_ms,
        ended_at_ms: None,
        error: None,
    }
}
