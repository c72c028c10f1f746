//! The two pages at the root.

pub const README: &str = include_str!("root.md");
pub const AGENTS: &str = include_str!("agents.md");
