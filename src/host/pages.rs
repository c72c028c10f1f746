//! The two pages at the root.

pub const README: &str = include_str!("root.md");
/// Read by programs that search trees: what they should not open, because it may wait.
pub const IGNORE: &str = include_str!("ignore.txt");
/// The `.ignore` of each agent's directory.
pub const IGNORE_IN_AGENT: &str = include_str!("ignore_agent.txt");
pub const AGENTS: &str = include_str!("agents.md");
