//! Access to whole subtrees, for sandbox rules that are built once and cannot ask at every file. Used by `host` and
//! `services`; uses only the rules of this module.

use std::collections::BTreeSet;

use super::{Action, Policy, Principal, Rule, authorize, names};

/// The access to a path and everything below it, up to the next bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubtreeBound {
    pub path: String,
    pub read: bool,
    pub write: bool,
}

/// The access of an agent at `top`, and each path below it where the rules differ; deeper paths come last. If nothing
/// is denied, the result is `top` alone. The error is the path of a rule that matches more than one place.
pub fn bounds(policy: &Policy, agent: &str, top: &str) -> Result<Vec<SubtreeBound>, String> {
    let (rules, above) = (policy.agents.get(agent).map(Vec::as_slice).unwrap_or_default(), names(top, agent));
    let above = above.unwrap_or_default();
    let mut paths = BTreeSet::new();
    let mut denied = false;
    for (rule, pattern) in rules {
        let mentions = |actions: &[Action]| actions.iter().any(|action| *action != Action::Invoke);
        let somewhere = pattern.leads_through(&above) && !pattern.covers(&above);
        // What must be asked cannot be done in a sandbox, where nobody can be asked at each file.
        let denies = mentions(&rule.deny) || mentions(&rule.ask);
        denied |= denies && (somewhere || pattern.covers(&above));
        // An allow rule has no effect before the first deny rule.
        if !somewhere || !denied || !(denies || mentions(&rule.allow)) {
            continue;
        }
        let below = pattern.place_below(&above).ok_or_else(|| rule.path.clone())?;
        paths.insert(format!("{}/{}", top.trim_end_matches('/'), below.join("/")));
    }
    let mut paths: Vec<String> = paths.into_iter().collect();
    paths.sort_by_key(|path| path.matches('/').count());
    paths.insert(0, top.to_owned());
    let agent = Principal::Agent(agent.to_owned());
    let may = |action, path: &str| authorize(policy, &agent, action, path).allowed;
    let bound = |path: String| SubtreeBound { read: may(Action::Read, &path), write: may(Action::Write, &path), path };
    Ok(paths.into_iter().map(bound).collect())
}

/// Whether a rule denies something below `path`: moving `path` would take that out of reach of the rule.
pub fn divided(policy: &Policy, principal: &Principal, path: &str) -> bool {
    let id = match principal {
        Principal::Agent(id) => id,
        Principal::Far(_) => return true, // several agents may lend to it: each file is asked for
        Principal::Operator | Principal::Nobody => return false,
    };
    let (Some(rules), Some(names)) = (policy.agents.get(id), names(path, id)) else { return true };
    let denies = |rule: &Rule| rule.deny.iter().chain(&rule.ask).any(|action| *action != Action::Invoke);
    rules.iter().any(|(rule, pattern)| denies(rule) && pattern.leads_through(&names) && !pattern.covers(&names))
}

#[cfg(test)]
mod tests;
