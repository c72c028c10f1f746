//! Mail between hosts: messages, and receipts that go back.

use serde::{Deserialize, Serialize};

/// One letter. The host that sent it is a token of its subject; the agent that it is for, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Letter {
    Message {
        /// The id of the message on every host.
        id: String,
        /// The agent that sent it, or `operator`.
        from: String,
        subject: String,
        body: String,
        thread: String,
        #[serde(default)]
        reply_to: Option<String>,
        at_ms: u64,
    },
    /// What became of a message that the agent sent.
    Receipt {
        /// The message.
        id: String,
        /// Its recipient.
        from: String,
        /// `stored`, `seen`, `answered` or `dead`.
        what: String,
        /// Why, if it is dead.
        #[serde(default)]
        reason: Option<String>,
        at_ms: u64,
    },
}

impl Letter {
    /// The id by which the server knows a letter that comes twice.
    pub fn key(&self, from_node: &str) -> String {
        match self {
            Letter::Message { id, .. } => format!("{from_node}.{id}"),
            Letter::Receipt { id, from, what, .. } => format!("{from_node}.{id}.{from}.{what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_and_its_receipts_have_different_keys() {
        let receipt = |what: &str| Letter::Receipt {
            id: "m1".to_owned(),
            from: "charon".to_owned(),
            what: what.to_owned(),
            reason: None,
            at_ms: 1,
        };
        assert_eq!(receipt("seen").key("styx"), "styx.m1.charon.seen");
        assert_ne!(receipt("seen").key("styx"), receipt("stored").key("styx"));
        let text = serde_json::to_string(&receipt("dead")).unwrap();
        assert_eq!(serde_json::from_str::<Letter>(&text).unwrap(), receipt("dead"));
    }
}
