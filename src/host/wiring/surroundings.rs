//! The surroundings of an agent's programs: what its sandbox shows of the host.

use std::path::Path;
use std::sync::Arc;

use super::{AgentEnv, sandbox_rules};
use crate::host::{HostState, binds, network, protected_paths, sandbox_level, system_paths, upgrade, views};
use crate::policy::{self, Principal};
use crate::services::terminal::{self, FindSurroundings, Look, Surroundings};
use crate::spec::{ProjectDir, ServedBy};
use acheron_base::{Error, Result};
use acheron_sandbox::{Level, Link, SharedLimits};

/// The surroundings of an agent's programs, asked anew at every start.
pub fn of(env: &AgentEnv) -> FindSurroundings {
    let (host, agent) = (Arc::downgrade(&env.host), env.agent.clone());
    Arc::new(move |look| surroundings(&*upgrade(&host)?, &agent, look))
}

/// Ends the programs that could still do what their agents may no longer do: the one place that decides it for sessions,
/// calls, services and `acheron exec`. Programs that are started from now on have the new plan anyway.
pub fn end_outdated_programs(host: &HostState) {
    // Hosts are looked up at each connection, so programs go on, and only their tunnels end.
    host.network.rules_changed();
    let spec = host.current.spec();
    let names: Vec<&String> = spec.projects.values().flat_map(|project| &project.protected).collect();
    // What an agent makes itself below the top of a project, it keeps until its program ends.
    let spared = |path: &Path| {
        let deeper = path.components().count() > PROJECT_DEPTH;
        deeper
            && names.iter().any(|name| path.ends_with(name) && path.components().count() > PROJECT_DEPTH + depth(name))
    };
    let programs = &host.shared.programs;
    for agent in programs.rights_changed() {
        match surroundings(host, &agent, Look::Known) {
            Ok(now) => {
                let now = now.plan(Vec::new());
                programs.end_where(&agent, |plan| terminal::lost(plan, &now, spared));
            }
            Err(error) => programs.end_where(&agent, |_| Some(error.message.clone())),
        }
    }
}

/// Serves the sandboxes of all programs that the host itself starts from now on.
pub fn serve_networks(host: &Arc<HostState>) {
    let weak = Arc::downgrade(host);
    host.shared.programs.serve_networks(Box::new(move |agent, listener| {
        let host = upgrade(&weak)?;
        let _inside = host.context.runtime.enter();
        Ok(Box::new(network::serve(&host, agent, listener)?))
    }));
}

/// `/projects/<id>/fs`, with the root.
const PROJECT_DEPTH: usize = 4;

fn depth(name: &str) -> usize {
    Path::new(name).components().count()
}

/// The surroundings of the programs of `agent` that hold now.
pub fn surroundings(host: &HostState, agent: &str, look: Look) -> Result<Surroundings> {
    if look == Look::Again {
        protected_paths::look_again(host)?;
    }
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
        let view = views::source(host, agent, id)?;
        if view.is_some() && binds::hides(project, &host.paths.here) {
            return Err(Error::unavailable(format!(
                "there is no view of project {id}: a bind of it stands over a directory that is not there"
            )));
        }
        // A view that cannot be composed of mounts is served by our own mount.
        if let Some(mount) = host.mount.get().filter(|_| binds::hides(project, &host.paths.here)) {
            let source = mount.mountpoint().join("projects").join(id).join("fs");
            let (project, at, served_by) = (id.clone(), "/".into(), Some(ServedBy::Mount));
            projects.push(ProjectDir { project, at, source, id: None, read_only: false, served_by });
            continue;
        }
        for (at, bind) in &project.binds {
            // One that could not be opened when it was bound is not there.
            let Some(source) = host.projects.source(id, at) else { continue };
            // With a view, what is written goes there, and nothing else of the project is written.
            let (source, read_only) = match (&view, at.trim_matches('/').is_empty()) {
                (Some(view), true) => (view.clone(), false),
                (Some(_), false) => (source, true),
                (None, _) => (source, bind.read_only),
            };
            projects.push(ProjectDir {
                project: id.clone(),
                at: at.clone(),
                source: source.path,
                id: Some(source.id),
                read_only,
                served_by: Some(ServedBy::Kernel),
            });
        }
    }
    let (level, hosts) = (sandbox_level::chosen(&current)?, network::rules(host, agent));
    if level == Level::Landlock && !hosts.is_empty() {
        return Err(Error::unavailable(format!(
            "sandbox.network names hosts for {agent}, and a machine without namespaces cannot hold its programs to them; \
             take the agent out of it"
        )));
    }
    let (projects, guards) = sandbox_rules::kept(&policy, agent, projects)?;
    Ok(Surroundings {
        agent: agent.to_owned(),
        mount: host.mount.get().map(|mount| mount.mountpoint().to_owned()),
        shared: ["global", "meta", "nodes", "AGENTS.md", "README.md"]
            .iter()
            .filter(|name| seen(name))
            .map(|name| (*name).to_owned())
            .collect(),
        projects,
        guards,
        links,
        system: system_paths::shown(host)?,
        own: system_paths::own(host),
        network: current.sandbox.network.shares_machine(agent),
        hosts: hosts.iter().map(ToString::to_string).collect(),
        proxy: false,
        level,
        unconfined: current.sandbox.allow_unconfined,
        limits: current.sandbox.limits.clone(),
        together: Some(SharedLimits {
            host: host.identity.name.clone(),
            owner: host.profiles.founder(agent),
            limits: current.sandbox.agent_limits.clone(),
        }),
    })
}
