//! The repairs that were made to read an answer.

use serde::Serialize;

/// One repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Repair {
    /// `a.b[0]`, empty for the whole answer.
    pub path: String,
    /// What was wrong there, and what was read.
    pub what: String,
}

impl std::fmt::Display for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.what),
            path => write!(f, "{path}: {}", self.what),
        }
    }
}
