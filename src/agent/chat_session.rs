//! Conversations of an agent beside its main one: an editor has several. Each remembers its own turns; memory, files and budget
//! are the agent's. Used by the chat and by doors; uses nothing but errors.

use serde::{Deserialize, Serialize};

use acheron_base::{Error, Result};

/// The longest id and the longest path.
const ID: usize = 64;
const PATH: usize = 4096;

/// Which conversation a turn belongs to, and where its client works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChatSession {
    pub id: String,
    /// The directory of the client on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The same directory in the tree, if a project shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

impl ChatSession {
    pub fn check(&self) -> Result<()> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self.id.is_empty() || self.id.len() > ID || !self.id.chars().all(plain) {
            return Err(Error::invalid(format!(
                "session.id has 1 to {ID} of the characters a-z, A-Z, 0-9, `.`, `_`, `-`"
            )));
        }
        let wrong = |path: &&String| !path.starts_with('/') || path.len() > PATH || path.chars().any(char::is_control);
        match self.directory.iter().chain(&self.place).find(wrong) {
            Some(_) => Err(Error::invalid("session.directory and session.place are absolute paths")),
            None => Ok(()),
        }
    }

    /// The input as the model reads it: with the directory in which its writer works.
    pub fn introduce(&self, input: &str) -> String {
        match (&self.place, &self.directory) {
            (Some(place), _) => format!("{input}\n\n(sent from an editor whose directory is {place})"),
            (None, Some(directory)) => format!(
                "{input}\n\n(sent from an editor in {directory}, which no project of this tree shows: its files cannot be read)"
            ),
            (None, None) => input.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_plain_name_and_absolute_paths() {
        let session = |id: &str, directory: &str| {
            ChatSession { id: id.to_owned(), directory: Some(directory.to_owned()), place: None }.check().is_ok()
        };
        assert!(session("sess-1.a_B", "/home/u"));
        for (id, directory) in
            [("", "/"), ("a/b", "/"), ("ü", "/"), ("a", "home"), ("a", "/x\n"), (&"a".repeat(65), "/")]
        {
            assert!(!session(id, directory), "{id} {directory}");
        }
    }
}
