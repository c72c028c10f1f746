//! The environment of an agent's programs. Inside, the names of the namespace are real paths: `/agents/self`,
//! `/projects/<id>/fs`, `/global`.

use std::path::{Path, PathBuf};

use crate::spec::{ProjectDir, ServedBy};
use acheron_sandbox::{Bind, Level, Limits, Link, PathRule, Plan, SharedLimits, SystemView};

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

/// A part of the mounted namespace, under its own name.
fn tree(mount: &Path, name: &Path, read_only: bool) -> Bind {
    let (source, target) = (mount.join(name), Path::new("/").join(name));
    Bind { source, target, read_only, alone: false, id: None, on_disk: false }
}

#[cfg(test)]
mod tests;
