//! Answers that hold for longer than one deed: exceptions of the rule that asked.

use serde::{Deserialize, Serialize};

use super::subject::Subject;

/// What an exception covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "covers", rename_all = "snake_case")]
pub enum Scope {
    /// One operation of one service, with any arguments.
    Operation {
        /// The control file of the operation.
        path: String,
    },
    /// Exactly what was asked about, and nothing else.
    Exactly {
        /// The hash of the subject.
        sha256: String,
        /// What it was, for the reader.
        summary: String,
    },
}

impl Scope {
    /// Whether a subject of `agent` is covered.
    pub fn covers(&self, agent: &str, subject: &Subject) -> bool {
        match (self, subject) {
            (Scope::Operation { path }, Subject::Invoke { path: asked, .. }) => path == asked,
            (Scope::Exactly { sha256, .. }, subject) => *sha256 == subject.hash(agent),
        }
    }
}

/// An exception: for one agent on this host, of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// Its name, by which it is revoked.
    pub id: String,
    /// The agent that it was given to, and no other.
    pub agent: String,
    /// The hash of the rule that asked. A rule that is changed has another, and asks again.
    pub of_rule: String,
    /// What it covers.
    pub scope: Scope,
    /// When it ends; never, if it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Who gave it.
    pub by: String,
    /// When it was given.
    pub at_ms: u64,
    /// The approval that it came from.
    pub approval: String,
}

impl Exception {
    /// Whether it is over.
    pub fn is_over(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until_ms| until_ms <= now_ms)
    }

    /// Whether it lets `agent` do what the rule asks about.
    pub fn lets(&self, agent: &str, rule: &str, subject: &Subject, now_ms: u64) -> bool {
        self.agent == agent && self.of_rule == rule && !self.is_over(now_ms) && self.scope.covers(agent, subject)
    }
}

#[cfg(test)]
mod tests;
