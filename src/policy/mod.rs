//! Access control: one list of rules per agent, and one function that decides.
//!
//! Pure data. Rules are tried in order and the last match wins; without a match, access is denied. Every module may use
//! it. It uses no tree and no processes: the caller's identity is determined before.

pub mod bounds;
mod caller;
pub mod pattern;

use std::collections::HashMap;
use std::fmt;

use acheron_vfs::Access;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use caller::{PrincipalCaller, identity};
use pattern::Pattern;

/// The identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    Operator,
    Agent(String),
    /// A process that has exited or is unknown.
    Nobody,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::Operator => f.write_str("operator"),
            Principal::Agent(id) => write!(f, "agent {id}"),
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
    /// The paths, such as `/agents/self/**`. `*` matches part of one name, `**` any number of names, `self` the agent.
    pub path: String,
}

impl Rule {
    pub fn allow(actions: &[Action], path: impl Into<String>) -> Rule {
        Rule { allow: actions.to_vec(), deny: vec![], path: path.into() }
    }

    pub fn deny(actions: &[Action], path: impl Into<String>) -> Rule {
        Rule { allow: vec![], deny: actions.to_vec(), path: path.into() }
    }
}

/// The rules of every agent. An agent without an entry may do nothing.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    agents: HashMap<String, Vec<(Rule, Pattern)>>,
}

/// The result of a check, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyDecision {
    pub allowed: bool,
    pub reason: String,
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
}

/// The default rules of every agent: its own subtree, the library, the pages of the root, its projects.
pub fn default_rules(projects: &[String]) -> Vec<Rule> {
    use Action::{Invoke, Read, Write};
    let mut rules = vec![
        Rule::allow(&[Read], "/"),
        Rule::allow(&[Read], "/README.md"),
        Rule::allow(&[Read], "/AGENTS.md"),
        Rule::allow(&[Read], "/meta/protocol.json"),
        Rule::allow(&[Read], "/global/**"),
        Rule::allow(&[Read, Write, Invoke], "/agents/self/**"),
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
    let no = |reason: String| PolicyDecision { allowed: false, reason };
    let id = match principal {
        Principal::Operator => {
            return PolicyDecision { allowed: true, reason: "the operator may do everything".to_owned() };
        }
        Principal::Nobody => return no("the calling process has exited or is unknown".to_owned()),
        Principal::Agent(id) => id,
    };
    let Some(rules) = policy.agents.get(id) else {
        return no(format!("there is no agent {id} in the mountspec"));
    };
    let Some(names) = names(path, id) else {
        return no("a path must not contain NUL".to_owned());
    };
    let mentions = |rule: &Rule| rule.allow.contains(&action) || rule.deny.contains(&action);
    let last = rules.iter().rev().find(|(rule, pattern)| mentions(rule) && pattern.matches(&names));
    match last {
        Some((rule, _)) if rule.deny.contains(&action) => {
            no(format!("a rule denies {} on {}", action.name(), rule.path))
        }
        Some((rule, _)) => {
            PolicyDecision { allowed: true, reason: format!("a rule allows {} on {}", action.name(), rule.path) }
        }
        None => no(format!("no rule allows agent {id} to {} /{}", action.name(), names.join("/"))),
    }
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
    if decide(policy, principal, action, path).allowed {
        return true;
    }
    let Principal::Agent(id) = principal else { return false };
    let (Some(rules), Some(names)) = (policy.agents.get(id), names(path, id)) else { return false };
    for (rule, pattern) in rules.iter().rev() {
        if rule.deny.contains(&action) {
            if pattern.covers(&names) {
                return false; // everything below is taken back
            }
        } else if rule.allow.contains(&action) && pattern.leads_through(&names) {
            return true;
        }
    }
    false
}

/// Whether a file or link is visible to a principal: it may read the file or write commands to it. Directories lead to
/// other paths and use [`sees`].
pub fn sees_file(policy: &Policy, principal: &Principal, path: &str) -> bool {
    let may = |action| decide(policy, principal, action, path).allowed;
    may(Action::Read) || may(Action::Invoke)
}

/// PERMISSIONS.json of the service at `path`, for the principal that reads it.
pub fn permissions<'a>(
    policy: &Policy,
    principal: &Principal,
    path: &str,
    operations: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Value {
    let shown = |decision: PolicyDecision| json!({"allowed": decision.allowed, "reason": decision.reason});
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
mod tests {
    use proptest::prelude::*;

    use super::Action::{Invoke, Read, Write};
    use super::*;

    fn policy() -> Policy {
        let own = [
            Rule::deny(&[Invoke], "/agents/self/terminal/**"),
            Rule::allow(&[Invoke], "/agents/self/terminal/control/list.json"),
            Rule::allow(&[Read], "/agents/*/thoughts/latest.txt"),
            Rule::deny(&[Read, Write], "/projects/here/fs/secret/**"),
            Rule::deny(&[Read], "/global/library/private/**"),
            Rule::deny(&[Read], "/projects/here/fs/unread/**"),
            Rule::deny(&[Read], "/projects/here/fs/one"),
        ];
        let policy = Policy::default().agent("charon", &["here".to_owned()], &own).unwrap();
        policy.agent("ada", &[], &[]).unwrap()
    }

    fn charon() -> Principal {
        Principal::Agent("charon".to_owned())
    }

    #[test]
    fn an_agent_may_what_its_rules_say() {
        let table = [
            (Read, "/", true),
            (Read, "/README.md", true),
            (Write, "/README.md", false),
            (Read, "/meta/protocol.json", true),
            (Read, "/meta/metrics.json", false),
            (Read, "/global", true),
            (Read, "/global/library/Index.md", true),
            (Read, "/global/library/private/x", false),
            (Write, "/global/library/Index.md", false),
            (Invoke, "/agents/charon/chat/control/reply", true),
            (Invoke, "agents/charon/chat/control/reply", true),
            (Invoke, "/agents/self/chat/control/reply", true),
            (Read, "/agents/charon", true),
            (Read, "/agents/charonx", false),
            (Read, "/agents/charonx/chat", false),
            (Read, "/agents", false),
            (Read, "/agents/ada/chat/latest.txt", false),
            (Read, "/agents/ada/thoughts/latest.txt", true),
            (Read, "/agents/ada/thoughts/history.ndjson", false),
            (Read, "/agents/a/b/thoughts/latest.txt", false),
            (Invoke, "/agents/charon/terminal/control/exec.json", false),
            (Invoke, "/agents/charon/terminal/control/list.json", true),
            (Read, "/agents/charon/terminal/status.json", true),
            (Read, "/projects/here/fs/a", true),
            (Write, "/projects/here/fs/a", true),
            (Invoke, "/projects/here/fs/a", false),
            (Read, "/projects/here/fs/secret", false),
            (Write, "/projects/here/fs/secret/x", false),
            (Write, "/projects/here/fs/unread/x", false),
            (Write, "/projects/here/fs/one", false),
            (Write, "/projects/here/fs/one/x", true),
            (Read, "/projects/there/fs/a", false),
            (Read, "/nodes/local", false),
            // Odd ways to write a path change nothing.
            (Read, "/agents/charon/../ada/chat/latest.txt", false),
            (Read, "/agents//charon/./chat/", true),
            (Read, "/../../agents/charon", true),
            (Read, "//global//library//private//x", false),
            (Read, "/agents/charon\0", false),
            (Read, "/agents/self/../self/chat", true),
        ];
        for (action, path, allowed) in table {
            let decision = authorize(&policy(), &charon(), action, path);
            assert_eq!(decision.allowed, allowed, "{action:?} {path:?}: {}", decision.reason);
        }
    }

    #[test]
    fn strangers_may_nothing_and_the_operator_everything() {
        for action in [Read, Write, Invoke] {
            for path in ["/", "/README.md", "/agents/charon/chat/control/input", "/agents/self", ""] {
                let may = |principal: Principal| authorize(&policy(), &principal, action, path).allowed;
                assert!(may(Principal::Operator));
                assert!(!may(Principal::Nobody));
                assert!(!may(Principal::Agent("gone".to_owned())));
                assert!(!may(Principal::Agent(String::new())));
                assert!(!sees(&policy(), &Principal::Nobody, path));
            }
        }
    }

    #[test]
    fn what_may_not_be_seen_is_absent_but_the_way_to_the_rest_is_there() {
        let table = [
            ("/", true),
            ("/agents", true),
            ("/agents/charon", true),
            ("/agents/ada", true), // its latest thoughts may be read
            ("/agents/ada/thoughts", true),
            ("/agents/ada/thoughts/latest.txt", true),
            ("/agents/ada/chat", false),
            ("/projects", true),
            ("/projects/here/fs", true),
            ("/projects/here/fs/secret", false),
            ("/projects/here/fs/one", true), // as a directory
            ("/projects/there", false),
            ("/meta", true),
            ("/meta/protocol.json", true),
            ("/meta/health.json", false),
            ("/nodes", false),
            ("/global/library/private", false),
        ];
        for (path, seen) in table {
            assert_eq!(sees(&policy(), &charon(), path), seen, "{path}");
        }
        assert!(!sees(&policy(), &Principal::Agent("ada".to_owned()), "/agents/charon"));
        for (path, seen) in [
            ("/projects/here/fs/one", false),
            ("/projects/here/fs/a", true),
            ("/agents/charon/terminal/control/list.json", true),
            ("/agents/ada/thoughts/latest.txt", true),
            ("/agents/ada/thoughts", false),
        ] {
            assert_eq!(sees_file(&policy(), &charon(), path), seen, "{path}");
        }
    }

    #[test]
    fn what_no_agent_may_write_is_known() {
        let own = [Rule::deny(&[Write], "/projects/p/fs/kept/**"), Rule::deny(&[Write], "/projects/p/fs/open")];
        let policy = Policy::default().agent("a", &["p".to_owned()], &own).unwrap().agent("b", &[], &[]).unwrap();
        for (path, expected) in [
            ("/projects/p/fs", true),
            ("/projects/p/fs/kept", false),
            ("/projects/p/fs/kept/deep/x", false),
            ("/projects/p/fs/open", true), // what lies in it may be
            ("/projects/q/fs", false),
        ] {
            assert_eq!(any_agent_reaches(&policy, Write, path), expected, "{path}");
        }
    }

    #[test]
    fn a_reader_is_told_what_it_may_and_why() {
        let operations = [("exec", "execute"), ("list", "read")];
        let page = permissions(&policy(), &charon(), "/agents/charon/terminal", operations);
        expect_test::expect![[r#"
            {
              "principal": "agent charon",
              "default": "deny",
              "read": {
                "allowed": true,
                "reason": "a rule allows read on /agents/self/**"
              },
              "operations": {
                "exec": {
                  "allowed": false,
                  "reason": "a rule denies invoke on /agents/self/terminal/**",
                  "effect": "execute"
                },
                "list": {
                  "allowed": true,
                  "reason": "a rule allows invoke on /agents/self/terminal/control/list.json",
                  "effect": "read"
                }
              }
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&page).unwrap());
        let reason = authorize(&policy(), &charon(), Read, "/agents/ada/./chat").reason;
        assert_eq!(reason, "no rule allows agent charon to read /agents/ada/chat");
    }

    #[test]
    fn a_rule_that_cannot_be_understood_is_refused() {
        let fault = Policy::default().agent("a", &[], &[Rule::allow(&[Read], "agents")]).unwrap_err();
        assert_eq!(fault, "agents: must begin with /");
    }

    proptest! {
        /// However a path is written, an agent gets nowhere but where its rules lead.
        #[test]
        fn another_agents_chat_stays_closed(path in "(/|\\.|\\.\\.|agents|ada|self|charon|chat|\\*|global){0,12}") {
            let landed = names(&path, "charon").unwrap().join("/");
            let decision = authorize(&policy(), &charon(), Write, &path);
            prop_assert_eq!(decision.allowed, landed == "agents/charon" || landed.starts_with("agents/charon/"));
        }
    }
}
