//! Whether something of a project may be changed: the one place where rules and binds meet.
//!
//! Every service that changes a project on behalf of an agent asks here, each time: rules, binds and projects change while
//! the host runs. The tree asks the same two at every operation (the gate and the mirror's bind), a sandbox is built from
//! them.

use super::{HostState, views};
use crate::policy::bounds::{SubtreeBound, bounds};
use crate::policy::{self, Action, Policy, Principal};
use crate::spec::{Bind, ProjectSpec, Spec};
use acheron_base::host_dir::Source;
use acheron_base::{Error, Result};

/// Refuses a change at `path` of the tree, in a project or beside its `fs`: the bind must be writable, and the rules must
/// let the principal write.
pub fn writable_by(spec: &Spec, policy: &Policy, principal: &Principal, path: &str) -> Result<()> {
    let (id, below) = parts(path).ok_or_else(|| Error::invalid(format!("`{path}` is not in a project")))?;
    let project = spec.projects.get(id).ok_or_else(|| Error::not_found(format!("there is no project `{id}`")))?;
    let read_only = match below {
        Some(below) => bind_at(project, below).is_none_or(|bind| bind.read_only),
        None => project.binds.values().all(|bind| bind.read_only),
    };
    if read_only {
        let said = match below {
            Some(_) => format!("`{path}` is bound read-only"),
            None => format!("`/projects/{id}` has no bind that can be written"),
        };
        return Err(Error::read_only(said));
    }
    let decision = policy::authorize(policy, principal, Action::Write, path);
    if decision.allowed { Ok(()) } else { Err(Error::forbidden(decision.reason)) }
}

impl HostState {
    /// The directory of a project that an agent may change as a whole, hidden names and all, but for the protected paths in
    /// it, which are returned too.
    pub fn writable_project(&self, agent: &str, id: &str) -> Result<(Source, Vec<String>)> {
        let (spec, policy, own) = (self.current.spec(), self.access.policy(), self.profiles.get(agent)?.spec.projects);
        let project = spec.projects.get(id).filter(|_| own.iter().any(|one| one == id));
        let project = project.ok_or_else(|| Error::not_found(format!("this agent works in no project `{id}`")))?;
        if project.binds.len() > 1 {
            // An agent may not change a part of the directory that another bind covers.
            return Err(Error::forbidden(format!("project `{id}` is not one directory: it has several binds")));
        }
        let source = self.projects.source(id, "/");
        let source =
            source.ok_or_else(|| Error::unavailable(format!("project `{id}` has no directory at its root")))?;
        let place = format!("/projects/{id}/fs");
        if let Some(view) = views::source(self, agent, id)? {
            let decision = policy::authorize(&policy, &Principal::Agent(agent.to_owned()), Action::Write, &place);
            let protected = self.protected_names.of(&source.path, &project.protected);
            return if decision.allowed { Ok((view, protected)) } else { Err(Error::forbidden(decision.reason)) };
        }
        writable_by(&spec, &policy, &Principal::Agent(agent.to_owned()), &place)?;
        let protected = self.protected_names.of(&source.path, &project.protected);
        let kept = |bound: &SubtreeBound| protected.iter().any(|path| bound.path == format!("{place}/{path}"));
        let whole = |bound: &SubtreeBound| bound.read && (bound.write || kept(bound));
        match bounds(&policy, agent, &place).is_ok_and(|all| all.iter().all(whole)) {
            true => Ok((source, protected)),
            false => Err(Error::forbidden(format!("rules keep the agent off a part of project `{id}`"))),
        }
    }
}

/// The project that a path of the tree is in, and what of the path lies below `fs`; `None` there for what is beside it.
fn parts(path: &str) -> Option<(&str, Option<&str>)> {
    let (id, rest) = path.strip_prefix("/projects/")?.split_once('/').unwrap_or((&path["/projects/".len()..], ""));
    let below = rest.strip_prefix("fs").filter(|below| below.is_empty() || below.starts_with('/'));
    (!id.is_empty()).then_some((id, below))
}

/// The bind that shows what is at `below` in `fs`: the deepest.
fn bind_at<'a>(project: &'a ProjectSpec, below: &str) -> Option<&'a Bind> {
    let holds = |at: &str| {
        let at = at.trim_end_matches('/');
        below.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    project.binds.iter().filter(|(at, _)| holds(at)).max_by_key(|(at, _)| at.len()).map(|(_, bind)| bind)
}

#[cfg(test)]
mod tests;
