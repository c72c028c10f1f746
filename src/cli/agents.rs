//! `acheron agents`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::host_view::{HostView, HostViewArgs};
use super::table::{money, render, short_count, terminal_width};
use super::{CommandResult, say};
use crate::host::overview::AgentOverview;

/// List the agents of a running host: what they do, with which model, and what that has cost.
#[derive(Args)]
pub struct AgentsArgs {
    /// Print one JSON object per agent
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    view: HostViewArgs,
}

impl AgentsArgs {
    pub fn run(self) -> CommandResult {
        let agents = HostView::of(&self.view.state()?)?.look()?.agents;
        match self.json {
            true => agents.iter().for_each(|agent| say(&format!("{}\n", json!(agent)))),
            false => say(&shown(&agents, terminal_width())),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(agents: &[AgentOverview], width: Option<usize>) -> String {
    let rows = agents.iter().map(|agent| {
        let jobs = match (agent.running, agent.queued) {
            (running, 0) => running.to_string(),
            (running, queued) => format!("{running}+{queued}"),
        };
        let usage = agent.spent.usage;
        vec![
            agent.agent_id.clone(),
            agent.state.clone(),
            agent.model.clone(),
            format!("{}/{}", short_count(usage.input), short_count(usage.output)),
            money(agent.spent.money),
            jobs,
            agent.about.lines().next().unwrap_or_default().to_owned(),
        ]
    });
    render(&["AGENT", "STATE", "MODEL", "TOKENS", "MONEY", "JOBS", "ABOUT"], &rows.collect::<Vec<_>>(), width)
}
