//! The environment of an agent's programs. Inside, the names of the namespace are real paths: `/agents/self`,
//! `/projects/<id>/fs`, `/global`.

use std::path::{Path, PathBuf};

use crate::spec::{ProjectDir, ServedBy};
use acheron_sandbox::{Bind, Level, Limits, Link, PathRule, Plan, SharedLimits, SystemView};

/// The port of the sandbox's own loopback device at which the proxy answers.
pub const PROXY_PORT: u16 = 4142;

/// An agent's share of the host, from which every plan is made.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub agent: String,
    /// Where the namespace is mounted; nowhere in tests without FUSE.
    pub mount: Option<PathBuf>,
    /// Other entries at the top of the tree that it may see.
    pub shared: Vec<String>,
    pub projects: Vec<ProjectDir>,
    /// Parts of its projects that are shown otherwise.
    pub guards: Vec<PathRule>,
    /// Names in its projects that lead elsewhere.
    pub links: Vec<Link>,
    /// The parts of the system that it sees.
    pub system: SystemView,
    /// The host's own paths, which no directory shows that is bound for another reason.
    pub own: Vec<PathBuf>,
    pub network: bool,
    /// The rules for the hosts that its programs reach by name, through a proxy.
    pub hosts: Vec<String>,
    /// Whether there is a proxy even if it lets nothing through, so that it is known what was asked for.
    pub proxy: bool,
    /// The walls around its programs.
    pub level: Level,
    /// The mountspec allows programs to run where isolation mechanisms are missing.
    pub unconfined: bool,
    pub limits: Limits,
    /// The limits that it shares with the agent's other programs.
    pub together: Option<SharedLimits>,
}

impl Surroundings {
    /// A plan for a program of this agent, without its command.
    pub fn plan(&self, argv: Vec<String>) -> Plan {
        let mut plan = Plan::new(self.agent.clone(), argv);
        (plan.network, plan.unconfined, plan.level) = (self.network, self.unconfined, self.level);
        (plan.limits, plan.together) = (self.limits.clone(), self.together.clone());
        if !self.network && (self.proxy || !self.hosts.is_empty()) {
            add_proxy(&mut plan, !self.hosts.is_empty());
        }
        if let Some(mount) = &self.mount {
            plan.binds.push(tree(mount, &Path::new("agents").join(&self.agent), false));
            for name in &self.shared {
                plan.binds.push(tree(mount, Path::new(name), false));
            }
            plan.links.push(Link { path: "/agents/self".into(), to: PathBuf::from(&self.agent) });
        }
        for project in &self.projects {
            plan.binds.push(Bind {
                source: project.source.clone(),
                target: project.path(),
                read_only: project.read_only,
                alone: project.served_by != Some(ServedBy::Mount),
                id: project.id,
                on_disk: true,
            });
        }
        plan.path_rules = self.guards.clone();
        (plan.system, plan.hidden) = (self.system.named.clone(), self.system.hidden.clone());
        plan.links.extend(self.links.iter().cloned());
        plan.cwd = self.projects.first().map_or_else(|| PathBuf::from("/home"), ProjectDir::path);
        plan
    }
}

/// Lets a program find the proxy. Programs read the variables in one case or the other; what is on their own loopback device
/// is not asked of the proxy.
fn add_proxy(plan: &mut Plan, leads_somewhere: bool) {
    plan.listen.push(PROXY_PORT);
    let address = format!("http://127.0.0.1:{PROXY_PORT}");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        plan.env.insert(name.to_owned(), address.clone());
        plan.env.insert(name.to_ascii_lowercase(), address.clone());
    }
    for name in ["NO_PROXY", "no_proxy"] {
        plan.env.insert(name.to_owned(), "127.0.0.1,localhost,::1".to_owned());
    }
    if leads_somewhere {
        // Node obeys the others only with this one, and prints a warning.
        plan.env.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    }
}

/// Takes the proxy away again, for a program that shares the network of the machine.
pub fn remove_proxy(plan: &mut Plan) {
    if plan.listen.contains(&PROXY_PORT) {
        plan.listen.retain(|port| *port != PROXY_PORT);
        let ours = |name: &str| name == "NODE_USE_ENV_PROXY" || name.to_ascii_uppercase().ends_with("_PROXY");
        plan.env.retain(|name, _| !ours(name));
    }
}

/// A part of the mounted namespace, under its own name.
fn tree(mount: &Path, name: &Path, read_only: bool) -> Bind {
    let (source, target) = (mount.join(name), Path::new("/").join(name));
    Bind { source, target, read_only, alone: false, id: None, on_disk: false }
}

#[cfg(test)]
mod tests;
