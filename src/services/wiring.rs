//! How terminals and programs are wired to the house: what an agent's sandbox shows of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::AgentEnv;
use super::external::{Program, Trusting};
use super::mounts::Mounts;
use super::sandbox_rules;
use super::terminal::{Project, Surroundings, Terminal};
use super::web_search::{self, Off, WebSearch};
use crate::host::writable::writable_by;
use crate::host::{HostState, binds, programs, system_paths};
use crate::policy::{self, Principal};
use crate::service::{Serve, Service, typed};
use crate::spec::Scope;
use acheron_base::{Error, Result};
use acheron_http::{Http, RetryPolicy};
use acheron_sandbox::{Link, SharedLimits};

/// What programs of `agent` find around them.
pub fn surroundings(host: &HostState, agent: &str) -> Result<Surroundings> {
    let (spec, current) = (host.profiles.get(agent)?.spec, host.current.spec());
    let (policy, principal) = (host.access.policy(), Principal::Agent(agent.to_owned()));
    let seen = |name: &&str| policy::sees(&policy, &principal, &format!("/{name}"));
    let mut projects = Vec::new();
    let mut links = Vec::new();
    for id in &spec.projects {
        for binding in host.shared.bindings.of(&format!("/projects/{id}")) {
            links.push(Link { path: binding.bind_path.into(), to: binding.target_path.into() });
        }
        let Some(project) = current.projects.get(id) else { continue };
        // What cannot be put together from mounts is put together by ours.
        if let Some(mount) = host.access.mount().filter(|_| binds::hides(project, &host.here)) {
            let source = mount.mountpoint().join("projects").join(id).join("fs");
            let (id, at) = (id.clone(), "/".into());
            projects.push(Project { id, at, source, read_only: false, through_mount: true, found: None });
            continue;
        }
        for (at, bind) in &project.binds {
            // One that could not be opened when it was bound is not there.
            let Some(source) = host.projects.source(id, at) else { continue };
            projects.push(Project {
                id: id.clone(),
                at: at.into(),
                source: source.path,
                read_only: bind.read_only,
                through_mount: false,
                found: Some(source.id),
            });
        }
    }
    let (projects, guards) = sandbox_rules::kept(&policy, agent, projects)?;
    Ok(Surroundings {
        agent: agent.to_owned(),
        mount: host.access.mount().map(|mount| mount.mountpoint().to_owned()),
        shared: ["global", "meta", "nodes"].iter().filter(|name| seen(name)).map(|name| (*name).to_owned()).collect(),
        projects,
        guards,
        links,
        system: system_paths::shown(host)?,
        own: system_paths::own(host),
        network: current.sandbox.network.iter().any(|name| name == agent),
        unconfined: current.sandbox.allow_unconfined,
        limits: current.sandbox.limits.clone(),
        together: Some(SharedLimits { host: host.name.clone(), limits: current.sandbox.agent_limits.clone() }),
    })
}

pub fn terminal(world: &AgentEnv) -> Result<Arc<dyn Serve>> {
    let (host, agent) = (world.host.clone(), world.agent.clone());
    let around = Arc::new(move || surroundings(&host, &agent));
    typed(Terminal::new(&world.agent, acheron_sandbox::program(), around, world.host.shared.shells.clone()))
}

pub fn mounts(world: &AgentEnv) -> Result<Arc<dyn Serve>> {
    let (host, principal) = (Arc::downgrade(&world.host), Principal::Agent(world.agent.clone()));
    let writable = move |path: &str| {
        let host = host.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
        writable_by(&host.current.spec(), &host.access.policy(), &principal, path)
    };
    typed(Mounts::new(&world.agent, world.host.shared.bindings.clone(), Arc::new(writable)))
}

pub fn web_search(world: &AgentEnv) -> Result<Arc<dyn Serve>> {
    let current = world.host.current.spec();
    let spec = current.services.get(<WebSearch as Service>::NAME);
    let patience = spec.and_then(|it| it.timeout_ms).map_or(web_search::PATIENCE, Duration::from_millis);
    match spec.and_then(|it| it.url.as_ref()) {
        Some(url) => typed(WebSearch::new(url, Http::new(RetryPolicy::default()), patience)),
        None => Ok(Arc::new(Off::new()?)),
    }
}

/// The programs of the mountspec that are services of this scope, by name.
pub fn programs(host: &Arc<HostState>, scope: Scope) -> Result<Vec<Arc<dyn Serve>>> {
    let current = host.current.spec();
    let named = current.services.iter().filter(|(_, service)| !service.command.is_empty() && service.scope == scope);
    let around = {
        let host = host.clone();
        Arc::new(move |agent: &str| surroundings(&host, agent))
    };
    let shown = system_paths::shown(host).unwrap_or_default();
    let trusting: Trusting = {
        let host = host.clone();
        Arc::new(move |service| programs::trust(&host, service))
    };
    let program = |(name, service): (&String, &crate::spec::Service)| {
        let (shows, init) = (|path: &Path| shown.shows(path), acheron_sandbox::program());
        let program = Program::new(name, service, &host.here, around.clone(), trusting.clone(), init, shows)?;
        Ok(Arc::new(program) as Arc<dyn Serve>)
    };
    named.map(program).collect()
}
