//! The rules for an agent's projects as parts of its sandbox, where no access check happens per file. Pure.

use std::path::{Path, PathBuf};

use crate::policy::Policy;
use crate::policy::bounds::{SubtreeBound, bounds};
use crate::spec::{ProjectDir, ServedBy};
use acheron_base::{Error, Result};
use acheron_sandbox::{PathRule, Visibility};

/// The projects as the rules leave them, and the parts of them that are shown otherwise. What no wall can keep is refused.
pub fn kept(policy: &Policy, agent: &str, projects: Vec<ProjectDir>) -> Result<(Vec<ProjectDir>, Vec<PathRule>)> {
    let (mut shown, mut guards) = (Vec::new(), Vec::new());
    let mut rest = projects.into_iter().peekable();
    while let Some(id) = rest.peek().map(|project| project.project.clone()) {
        let mut binds = Vec::new();
        while let Some(bind) = rest.next_if(|project| project.project == id) {
            binds.push(bind);
        }
        // Through the mount the rules are asked.
        if binds.iter().any(|bind| bind.served_by == Some(ServedBy::Mount)) {
            shown.extend(binds);
            continue;
        }
        let bounds = bounds(policy, agent, &format!("/projects/{id}/fs")).map_err(|rule| unkept(&rule))?;
        let told = |path: &Path| at(&bounds, path).map_or((false, false), |bound| (bound.read, bound.write));
        binds.retain(|bind| told(&bind.path()).0);
        guards.extend(parts(&binds, &bounds)?);
        for bind in &mut binds {
            bind.read_only |= !told(&bind.path()).1;
        }
        shown.extend(binds);
    }
    Ok((shown, guards))
}

/// The rule for a path: that of the deepest bound above it, or its own.
fn at<'a>(bounds: &'a [SubtreeBound], path: &Path) -> Option<&'a SubtreeBound> {
    bounds.iter().rev().find(|bound| path.starts_with(&bound.path))
}

fn parts(binds: &[ProjectDir], bounds: &[SubtreeBound]) -> Result<Vec<PathRule>> {
    let mut guards = Vec::new();
    for bound in bounds.iter().skip(1) {
        let path = PathBuf::from(&bound.path);
        let above = path.parent().and_then(|above| at(bounds, above));
        let above = above.ok_or_else(|| Error::internal("a bound below nothing"))?;
        if bound.read && !above.read {
            return Err(unkept(&bound.path));
        }
        let holding = binds.iter().filter(|bind| path.starts_with(bind.path()));
        let Some(bind) = holding.max_by_key(|bind| bind.path().components().count()) else { continue };
        let show = |it: &SubtreeBound| match (it.read, it.write && !bind.read_only) {
            (false, _) => Visibility::Hidden,
            (true, false) => Visibility::ReadOnly,
            (true, true) => Visibility::Open,
        };
        // A bind says for itself what holds at its top.
        if bind.path() != path && show(bound) != show(above) {
            guards.push(PathRule { path, bind: bind.path(), show: show(bound) });
        }
    }
    Ok(guards)
}

fn unkept(rule: &str) -> Error {
    Error::forbidden(format!(
        "programs cannot be run: the rule on {rule} cannot be kept in a sandbox; a rule for files of a project names one \
         directory or file, and nothing may be allowed in what may not be read"
    ))
}

#[cfg(test)]
mod tests;
