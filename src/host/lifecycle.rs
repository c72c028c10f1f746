//! The life of agents: one is let in, gets another profile, is taken away.
//!
//! Used by the services that manage agents, through [`AgentLifecycle`], and by edits of the mountspec.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;

use super::timelines::REMOVED;
use super::{HostState, rewind, upgrade, views, wiring};
use crate::agent::lifecycle::AgentLifecycle;
use crate::agent::profiles::Profile;
use crate::agent::runtime::Settings;
use crate::agent::runtimes::check_wake_rules;
use crate::policy::Principal;
use crate::spec::agent_faults;
use crate::state::audit::{self, Record};
use acheron_base::{Error, Result, blocking};

/// How long an agent that is taken away may need to come to its end.
const ENDING: Duration = Duration::from_secs(30);

/// The life of agents, for services. They stand in the tree, so that they must not keep the host.
pub struct Lifecycle(pub Weak<HostState>);

#[async_trait]
impl AgentLifecycle for Lifecycle {
    fn admit(&self, id: &str, profile: Profile) -> Result<()> {
        admit(&upgrade(&self.0)?, id, profile)
    }

    fn settle(&self, id: &str, profile: Profile) -> Result<()> {
        settle(&upgrade(&self.0)?, id, profile)
    }

    async fn remove(&self, id: &str, purge: bool) -> Result<()> {
        remove(&upgrade(&self.0)?, id, purge).await
    }
}

fn admit(host: &Arc<HostState>, id: &str, profile: Profile) -> Result<()> {
    sound(host, id, &profile)?;
    host.profiles.put(id, profile)?;
    host.access.follow(|| host.profiles.policy())?;
    views::follow(host);
    host.dirs.agents()?.move_in(host, id)?;
    rewind::opened(host, id);
    Ok(())
}

/// Applies a profile to an agent at once, without ending its work. Starts an agent that did not exist.
pub fn settle(host: &Arc<HostState>, id: &str, profile: Profile) -> Result<()> {
    let Ok(before) = host.profiles.get(id) else { return admit(host, id, profile) };
    let mut settings = sound(host, id, &profile)?;
    let model = |profile: &Profile| host.current.mounted_with.model_of(&profile.spec);
    let runtimes = &host.shared.runtimes;
    if model(&before) == model(&profile) {
        // The same model goes on: a script is not begun anew.
        settings.model = runtimes.chat(id)?.agent_runtime().settings().model;
    }
    host.profiles.put(id, profile.clone())?;
    host.access.follow(|| host.profiles.policy())?;
    if before.spec.view != profile.spec.view || before.spec.projects != profile.spec.projects {
        views::follow(host);
    }
    wiring::end_outdated_programs(host);
    runtimes.change(id, settings)?;
    if before.spec.wake != profile.spec.wake || before.spec.budget != profile.spec.budget {
        runtimes.set_wake_rules(id, &profile.spec.wake)?;
    }
    Ok(())
}

/// The settings that follow from a profile, if it could stand in the mountspec.
fn sound(host: &HostState, id: &str, profile: &Profile) -> Result<Settings> {
    let faults = agent_faults(&host.current.spec(), id, &profile.spec);
    if !faults.is_empty() {
        return Err(Error::invalid(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
    }
    check_wake_rules(&host.context.jobs, id, &profile.spec.wake)?;
    Ok(Settings { paused: profile.paused, ..wiring::chat::settings(host, id, &profile.spec)? })
}

/// Takes an agent away: ends its work, waits for that, and forgets it. With `purge` nothing is left of it.
pub async fn remove(host: &Arc<HostState>, id: &str, purge: bool) -> Result<()> {
    let agent_dirs = host.dirs.agents()?;
    let (chat, jobs) = (host.shared.runtimes.chat(id).ok(), host.context.jobs.of(id).unfinished());
    agent_dirs.move_out(host, id);
    jobs.iter().for_each(|job| job.cancel.cancel());
    let over = async {
        for job in &jobs {
            job.end().await;
        }
        if let Some(chat) = chat {
            chat.wait_idle().await;
        }
    };
    // Its last writes must not come after the removal here.
    if tokio::time::timeout(ENDING, over).await.is_err() {
        return Err(Error::busy(format!("{id} has not stopped yet: try again")));
    }
    host.tokens.revoke_all(&Principal::Agent(id.to_owned())).await?;
    let (host, id) = (host.clone(), id.to_owned());
    blocking(move || {
        host.profiles.remove(&id, purge)?;
        host.access.follow(|| host.profiles.policy())?;
        host.context.event_logs.forget(&id);
        host.context.jobs.forget(&id);
        host.context.approvals.forget(&id);
        host.shared.runtimes.forget_spending(&id);
        host.shared.requests.forget(&id);
        if !purge {
            return Ok(());
        }
        wiring::before_purge(&host, &id)?;
        // The audit itself is kept; an agent that gets the name later has a timeline of its own.
        let removed = Record::new(host.context.clock.now_ms(), REMOVED).with("agent", id.as_str());
        let agent = id.clone();
        crate::state::purge(&host.store, &id, move |tx| {
            audit::note(tx, &removed);
            wiring::purge(tx, &agent)
        })?;
        host.context.event_logs.reread()
    })
    .await
}
