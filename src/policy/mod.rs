//! Access control: one list of rules per agent, and one function that decides.
//!
//! Pure data. Rules are tried in order and the last match wins; without a match, access is denied. Every module may use
//! it. It uses no tree and no processes: the caller's identity is determined before.

pub mod bounds;
mod caller;
mod examples;
pub mod pattern;

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use acheron_fabric::names::{FarAgent, FarPattern};
use acheron_vfs::Access;

use acheron_approvals::{AskingRule, sha256};
pub use caller::{PrincipalCaller, identity};
pub use examples::{RuleExamples, example_faults};
use pattern::Pattern;

/// The identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    Operator,
    Agent(String),
    /// An agent of another host, or its operator: `node/agent`.
    Far(String),
    /// A process that has exited or is unknown.
    Nobody,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::Operator => f.write_str("operator"),
            Principal::Agent(id) => write!(f, "agent {id}"),
            Principal::Far(far) => write!(f, "far {far}"),
            Principal::Nobody => f.write_str("nobody"),
        }
    }
}

impl Principal {
    /// Parses a principal as the journal writes it.
    pub fn named(name: &str) -> Principal {
        match name.split_once(' ') {
            None if name == "operator" => Principal::Operator,
            Some(("agent", id)) => Principal::Agent(id.to_owned()),
            Some(("far", id)) => Principal::Far(id.to_owned()),
            _ => Principal::Nobody,
        }
    }
}

/// An action on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Read, list or wait.
    Read,
    /// Change the content.
    Write,
    /// Write a command.
    Invoke,
}

impl From<Access> for Action {
    fn from(access: Access) -> Action {
        match access {
            Access::Read => Action::Read,
            Access::Write => Action::Write,
            Access::Invoke => Action::Invoke,
        }
    }
}

impl Action {
    pub fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::Invoke => "invoke",
        }
    }
}

/// One rule of an agent's permissions, as written in a mountspec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// The actions that the rule allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Action>,
    /// The actions that the rule denies; a denial overrides `allow` in the same rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Action>,
    /// The actions that wait until the operator has decided; `deny` in the same rule overrides it, and it overrides `allow`.
    /// `invoke` parks the call; `write` is refused outside of a view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Action>,
    /// The paths, such as `/agents/self/**`. `*` matches part of one name, `**` any number of names, `self` the agent.
    pub path: String,
    /// Whether an answer to `ask` may hold for good (`allow always`); it may, unless this is `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<bool>,
    /// Paths that the rule must match, and paths that it must not match; `acheron check` tries them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examples: Option<RuleExamples>,
}

impl Rule {
    pub fn allow(actions: &[Action], path: impl Into<String>) -> Rule {
        Rule { allow: actions.to_vec(), path: path.into(), ..Rule::default() }
    }

    pub fn deny(actions: &[Action], path: impl Into<String>) -> Rule {
        Rule { deny: actions.to_vec(), path: path.into(), ..Rule::default() }
    }

    pub fn ask(actions: &[Action], path: impl Into<String>) -> Rule {
        Rule { ask: actions.to_vec(), path: path.into(), ..Rule::default() }
    }

    /// What the rule says about an action, if anything.
    fn verdict(&self, action: Action) -> Option<RuleVerdict> {
        let says = |actions: &[Action]| actions.contains(&action);
        match () {
            () if says(&self.deny) => Some(RuleVerdict::Denies),
            () if says(&self.ask) => Some(RuleVerdict::Asks),
            () if says(&self.allow) => Some(RuleVerdict::Allows),
            () => None,
        }
    }

    /// The rule as the one that asks. Its hash is that of everything in it that decides.
    pub fn asking(&self) -> AskingRule {
        let rule = serde_json::to_value(Rule { examples: None, ..self.clone() }).unwrap_or_default();
        AskingRule { hash: sha256(&rule), rule, always: self.always != Some(false) }
    }
}

/// What one rule says about one action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleVerdict {
    Allows,
    Asks,
    Denies,
}

/// The rules of every agent. An agent without an entry may do nothing.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    agents: HashMap<String, Vec<(Rule, Pattern)>>,
    /// What is offered to agents of other hosts.
    far: Vec<FarOffer>,
}

/// Something that is offered to agents of other hosts.
#[derive(Clone, Debug)]
struct FarOffer {
    to: FarPattern,
    path: String,
    pattern: Pattern,
    /// The agent whose service it is: a call of it may read what that agent may read. No other way leads an agent of another
    /// host to a file.
    lender: Option<String>,
}

/// The result of a check, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    /// False if the rule asks: whoever cannot ask refuses.
    pub allowed: bool,
    pub reason: String,
    /// The rule that asks, if it is one.
    pub asks: Option<Rule>,
}

impl PolicyDecision {
    fn of(allowed: bool, reason: String) -> PolicyDecision {
        PolicyDecision { allowed, reason, asks: None }
    }
}

impl Policy {
    /// Adds an agent: first the default rules, then its own, which may revoke what the defaults allow.
    pub fn agent(mut self, id: &str, projects: &[String], own: &[Rule]) -> Result<Policy, String> {
        let mut rules = Vec::new();
        for rule in default_rules(projects).iter().chain(own) {
            let pattern = Pattern::parse(&rule.path).map_err(|fault| format!("{}: {fault}", rule.path))?;
            rules.push((rule.clone(), pattern.owned_by(id)));
        }
        self.agents.insert(id.to_owned(), rules);
        Ok(self)
    }

    /// Allows agents of other hosts to invoke what lies at a path; such a call reads what `lender` may read.
    pub fn offer(mut self, to: FarPattern, path: String, lender: Option<String>) -> Result<Policy, String> {
        let pattern = Pattern::parse(&path).map_err(|fault| format!("{path}: {fault}"))?;
        self.far.push(FarOffer { to, path, pattern, lender });
        Ok(self)
    }

    /// The agents that offer something to an agent of another host.
    fn lenders(&self, far: &str) -> Vec<Principal> {
        let Ok(who) = FarAgent::parse(far) else { return Vec::new() };
        let to_it = self.far.iter().filter(|offer| offer.to.matches(&who));
        to_it.filter_map(|offer| offer.lender.clone().map(Principal::Agent)).collect()
    }
}

/// The default rules of every agent: its own subtree, the library, the pages of the root, its projects; not the secrets of a game.
pub fn default_rules(projects: &[String]) -> Vec<Rule> {
    use Action::{Invoke, Read, Write};
    let mut rules = vec![
        Rule::allow(&[Read], "/"),
        Rule::allow(&[Read], "/README.md"),
        Rule::allow(&[Read], "/.ignore"),
        Rule::allow(&[Read], "/AGENTS.md"),
        Rule::allow(&[Read], "/meta/protocol.json"),
        Rule::allow(&[Read], "/global/**"),
        Rule::allow(&[Read, Write, Invoke], "/agents/self/**"),
        // An agent may write to its operator, and see nothing of the operator's mail.
        Rule::allow(&[Invoke], "/mail/inbox"),
        // An agent is a player of the game. The worlds tell its secrets, and the tools of game masters and authors change it;
        // an agent that writes worlds gets a rule of its own.
        Rule::deny(&[Read], "/global/library/cartridges/**"),
        Rule::allow(&[Read], "/global/library/cartridges/_template/**"),
        Rule::deny(&[Read], "/agents/self/dm/cartridges/**"),
        Rule::deny(&[Invoke], "/agents/self/dm/control/tools.json"),
        Rule::deny(&[Invoke], "/agents/self/dm/control/change_map.json"),
    ];
    // Whether a project is writable at all depends on its binds.
    rules.extend(projects.iter().map(|project| Rule::allow(&[Read, Write], format!("/projects/{project}/**"))));
    rules
}

/// Decides whether a principal may act on a path. All access checks end here.
///
/// A path that may not be read may not be changed either, even if a rule allows writing: it is hidden, and writing
/// would reveal it.
pub fn authorize(policy: &Policy, principal: &Principal, action: Action, path: &str) -> PolicyDecision {
    let decision = decide(policy, principal, action, path);
    match action {
        Action::Write if decision.allowed => decide(policy, principal, Action::Read, path),
        _ => decision,
    }
}

/// The decision of the rules about one action alone.
fn decide(policy: &Policy, principal: &Principal, action: Action, path: &str) -> PolicyDecision {
    let no = |reason: String| PolicyDecision::of(false, reason);
    let id = match principal {
        Principal::Operator => return PolicyDecision::of(true, "the operator may do everything".to_owned()),
        Principal::Nobody => return no("the calling process has exited or is unknown".to_owned()),
        Principal::Far(far) => return decide_far(policy, far, action, path),
        Principal::Agent(id) => id,
    };
    let Some(rules) = policy.agents.get(id) else {
        return no(format!("there is no agent {id} in the mountspec"));
    };
    let Some(names) = names(path, id) else {
        return no("a path must not contain NUL".to_owned());
    };
    if is_for_the_operator(&names) {
        return no(format!("/{} is for the operator alone", names.join("/")));
    }
    let said = |(rule, pattern): &'_ (Rule, Pattern)| rule.verdict(action).filter(|_| pattern.matches(&names));
    let last = rules.iter().rev().find_map(|it| said(it).map(|verdict| (verdict, &it.0)));
    match last {
        Some((RuleVerdict::Denies, rule)) => no(format!("a rule denies {} on {}", action.name(), rule.path)),
        Some((RuleVerdict::Asks, rule)) => {
            let reason = format!("a rule asks the operator before {} on {}", action.name(), rule.path);
            PolicyDecision { asks: Some(rule.clone()), ..no(reason) }
        }
        Some((RuleVerdict::Allows, rule)) => {
            PolicyDecision::of(true, format!("a rule allows {} on {}", action.name(), rule.path))
        }
        None => no(format!("no rule allows agent {id} to {} /{}", action.name(), names.join("/"))),
    }
}

/// The decision about an agent of another host: only what `offer` in the mountspec names.
fn decide_far(policy: &Policy, far: &str, action: Action, path: &str) -> PolicyDecision {
    let no = |reason: String| PolicyDecision::of(false, reason);
    let (Ok(who), Some(names)) = (FarAgent::parse(far), names(path, "")) else {
        return no(format!("{far} is not an agent of another host"));
    };
    if action == Action::Read {
        let lent =
            policy.lenders(far).iter().map(|agent| decide(policy, agent, action, path)).find(|lent| lent.allowed);
        return lent.unwrap_or_else(|| no(format!("nothing that is offered to {far} reads /{}", names.join("/"))));
    }
    let offers =
        |offer: &&FarOffer| action == Action::Invoke && offer.to.matches(&who) && offer.pattern.matches(&names);
    match policy.far.iter().find(offers) {
        Some(offer) => PolicyDecision::of(true, format!("{} is offered to {far}", offer.path)),
        None => no(format!("/{} is not offered to {far}", names.join("/"))),
    }
}

/// Parts of the tree that no rule gives to an agent, with all that is below them: what watches agents, and what the operator
/// has decided about them, is not theirs to see. `*` is any agent.
const OPERATORS_OWN: &[&[&str]] = &[
    &["meta", "audit.ndjson"],
    &["meta", "agents.json"],
    &["meta", "events.ndjson"],
    &["meta", "events.ndjson.1"],
    &["meta", "jobs.json"],
    &["approvals"],
    &["agents", "*", "permissions"],
];

fn is_for_the_operator(names: &[&str]) -> bool {
    let is =
        |own: &&[&str]| own.len() <= names.len() && own.iter().zip(names).all(|(own, name)| *own == "*" || own == name);
    OPERATORS_OWN.iter().any(is)
}

/// Whether a path is visible to a principal: the path itself, or something below it, may be read.
pub fn sees(policy: &Policy, principal: &Principal, path: &str) -> bool {
    reaches(policy, principal, Action::Read, path)
}

/// Whether any agent may perform an action at a path or below it.
pub fn any_agent_reaches(policy: &Policy, action: Action, path: &str) -> bool {
    policy.agents.keys().any(|id| reaches(policy, &Principal::Agent(id.clone()), action, path))
}

/// Whether a principal may perform an action at a path or below it.
fn reaches(policy: &Policy, principal: &Principal, action: Action, path: &str) -> bool {
    let decision = decide(policy, principal, action, path);
    if decision.allowed || decision.asks.is_some() {
        return true;
    }
    if let (Principal::Far(far), Action::Read) = (principal, action) {
        return policy.lenders(far).iter().any(|agent| reaches(policy, agent, action, path));
    }
    let Principal::Agent(id) = principal else { return false };
    let (Some(rules), Some(names)) = (policy.agents.get(id), names(path, id)) else { return false };
    if is_for_the_operator(&names) {
        return false;
    }
    for (rule, pattern) in rules.iter().rev() {
        match rule.verdict(action) {
            Some(RuleVerdict::Denies) if pattern.covers(&names) => return false, // everything below is taken back
            // What the operator may allow may happen.
            Some(RuleVerdict::Allows | RuleVerdict::Asks) if pattern.leads_through(&names) => return true,
            _ => (),
        }
    }
    false
}

/// Whether a file or link is visible to a principal: it may read the file or write commands to it. Directories lead to
/// other paths and use [`sees`].
pub fn sees_file(policy: &Policy, principal: &Principal, path: &str) -> bool {
    let invoke = || decide(policy, principal, Action::Invoke, path);
    decide(policy, principal, Action::Read, path).allowed || {
        let decision = invoke();
        decision.allowed || decision.asks.is_some()
    }
}

/// PERMISSIONS.json of the service at `path`, for the principal that reads it.
pub fn permissions<'a>(
    policy: &Policy,
    principal: &Principal,
    path: &str,
    operations: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Value {
    let shown = |decision: PolicyDecision| match decision.asks {
        // It may be called, and then it waits.
        Some(_) => json!({"allowed": true, "asks": true, "reason": decision.reason}),
        None => json!({"allowed": decision.allowed, "reason": decision.reason}),
    };
    let mut all = serde_json::Map::new();
    for (operation, effect) in operations {
        let file = format!("{path}/control/{operation}.json");
        let mut decision = shown(authorize(policy, principal, Action::Invoke, &file));
        decision["effect"] = effect.into();
        all.insert(operation.to_owned(), decision);
    }
    json!({
        "principal": principal.to_string(),
        "default": "deny",
        "read": shown(authorize(policy, principal, Action::Read, path)),
        "operations": all,
    })
}

/// The names of a path from the root, without `.`, `..` and doubled slashes; `agents/self` becomes the agent `id`.
fn names<'a>(path: &'a str, id: &'a str) -> Option<Vec<&'a str>> {
    if path.contains('\0') {
        return None;
    }
    let mut kept: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        match name {
            ".." => _ = kept.pop(),
            "self" if kept == ["agents"] => kept.push(id),
            name => kept.push(name),
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests;
