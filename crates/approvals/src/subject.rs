//! What is asked about: the thing that will be done, completely, so that its hash binds an answer to it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::canonical::{canonical, sha256};
use super::exception::Scope;

/// The longest summary in characters; the whole stands beside it.
const SUMMARY: usize = 400;

/// The thing that will be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// A call of a service.
    Invoke {
        /// The control file of the operation.
        path: String,
        /// The service.
        service: String,
        /// The operation.
        operation: String,
        /// `read`, `write` or `execute`.
        effect: String,
        /// All arguments.
        arguments: Value,
        /// The identity of what the call runs, such as the file of a program.
        runs: Value,
    },
}

/// What is known of a subject besides what it is. It is shown, and it is not part of the hash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubjectFacts {
    /// An answer for longer holds for exactly this: it runs whatever it is given, as a shell does.
    pub exact_only: bool,
    /// Facts of risk, each one sentence.
    pub risk: Vec<String>,
}

impl Subject {
    /// The kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Subject::Invoke { .. } => "invoke",
        }
    }

    /// The hash that binds an answer to this subject of this agent.
    pub fn hash(&self, agent: &str) -> String {
        sha256(&json!({"agent": agent, "subject": self}))
    }

    /// One line from the arguments, never in the words of the model.
    pub fn summary(&self, agent: &str) -> String {
        match self {
            Subject::Invoke { service, operation, arguments, .. } => {
                cut(format!("{agent} calls {service}.{operation} with {}", canonical(arguments)))
            }
        }
    }

    /// What an answer for longer would allow.
    pub fn scope(&self, agent: &str, facts: &SubjectFacts) -> Scope {
        match self {
            Subject::Invoke { path, .. } if !facts.exact_only => Scope::Operation { path: path.clone() },
            Subject::Invoke { .. } => Scope::Exactly { sha256: self.hash(agent), summary: self.summary(agent) },
        }
    }
}

/// A text of one line that is not too long to be read.
fn cut(text: String) -> String {
    let text = text.replace(char::is_control, " ");
    match text.char_indices().nth(SUMMARY) {
        Some((at, _)) => format!("{}… ({} characters in all)", &text[..at], text.chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: Value) -> Subject {
        Subject::Invoke {
            path: "/agents/ada/terminal/control/exec.json".to_owned(),
            service: "terminal".to_owned(),
            operation: "exec".to_owned(),
            effect: "execute".to_owned(),
            arguments,
            runs: Value::Null,
        }
    }

    #[test]
    fn a_hash_is_that_of_the_agent_and_of_everything_that_will_be_done() {
        let one = call(json!({"command": "make deploy"}));
        assert_eq!(one.hash("ada"), call(json!({"command": "make deploy"})).hash("ada"));
        assert_ne!(one.hash("ada"), one.hash("bob"));
        assert_ne!(one.hash("ada"), call(json!({"command": "make deploy "})).hash("ada"));
        let Subject::Invoke { path, service, operation, effect, arguments, .. } = one.clone();
        let runs = json!({"mtime": 1});
        assert_ne!(one.hash("ada"), Subject::Invoke { path, service, operation, effect, arguments, runs }.hash("ada"));
    }

    #[test]
    fn a_summary_is_one_line_and_says_how_much_it_leaves_out() {
        assert_eq!(
            call(json!({"command": "echo\u{1b}[2J\nrm"})).summary("ada"),
            r#"ada calls terminal.exec with {"command":"echo\u001b[2J\nrm"}"#
        );
        let long = call(json!({"command": "x".repeat(1000)})).summary("ada");
        assert!(long.ends_with("… (1043 characters in all)"), "{long}");
        assert!(!call(json!({"a": "\u{85}\u{2028}"})).summary("ada").contains('\u{85}'));
    }
}
