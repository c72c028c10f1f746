//! The names of messages: `<ns-timestamp>-<role>.md`, as `hnt-chat` writes them.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    System,
    User,
    /// What a model thought before it answered; kept, not sent again.
    AssistantReasoning,
    Assistant,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::AssistantReasoning => "assistant-reasoning",
            Role::Assistant => "assistant",
        }
    }

    fn named(name: &str) -> Option<Role> {
        let all = [Role::System, Role::User, Role::AssistantReasoning, Role::Assistant];
        all.into_iter().find(|role| role.name() == name)
    }
}

/// The name of one message. Those of one instant are ordered by role, then as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub ns: u128,
    pub role: Role,
    pub file: String,
}

impl Name {
    pub fn new(ns: u128, role: Role) -> Name {
        Name { ns, role, file: format!("{ns}-{}.md", role.name()) }
    }

    /// Nothing if the file is no message: a title, a model, something archived.
    pub fn parse(file: &str) -> Option<Name> {
        let (ns, role) = file.strip_suffix(".md")?.split_once('-')?;
        let digits = !ns.is_empty() && ns.bytes().all(|byte| byte.is_ascii_digit());
        Some(Name { ns: ns.parse().ok().filter(|_| digits)?, role: Role::named(role)?, file: file.to_owned() })
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.ns, self.role, &self.file).cmp(&(other.ns, other.role, &other.file))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// When the next message is written: never before one that is there.
pub fn next(now_ns: u64, there: &[Name]) -> u128 {
    there.iter().map(|name| name.ns.saturating_add(1)).max().unwrap_or(0).max(now_ns.into())
}

/// When a system message has to be written to be the first; at the same instant it is.
pub fn first(now_ns: u64, there: &[Name]) -> u128 {
    there.iter().map(|name| name.ns.saturating_sub(1)).min().unwrap_or(now_ns.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_time_and_a_role() {
        for (file, wanted) in [
            ("100-user.md", Some((100, Role::User))),
            ("1752300000000000000-assistant-reasoning.md", Some((1_752_300_000_000_000_000, Role::AssistantReasoning))),
            ("100-archived-system.md", None),
            ("100-reasoning.md", None),
            ("-user.md", None),
            ("+1-user.md", None),
            ("1-user.txt", None),
            ("title.txt", None),
            ("99999999999999999999999999999999999999999999-user.md", None),
        ] {
            assert_eq!(Name::parse(file).map(|name| (name.ns, name.role)), wanted, "{file}");
        }
    }

    #[test]
    fn the_order_is_stable_for_equal_instants() {
        let files = ["10-user.md", "9-assistant.md", "10-system.md", "010-user.md", "10-assistant.md"];
        let mut names: Vec<Name> = files.iter().filter_map(|file| Name::parse(file)).collect();
        names.sort();
        let sorted: Vec<_> = names.iter().map(|name| name.file.as_str()).collect();
        assert_eq!(sorted, ["9-assistant.md", "10-system.md", "010-user.md", "10-user.md", "10-assistant.md"]);
        assert_eq!((next(5, &names), next(50, &names), first(5, &names), first(5, &[])), (11, 50, 8, 5));
        assert_eq!(first(5, &[Name::new(0, Role::User)]), 0);
    }
}
