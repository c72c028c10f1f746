//! The directory of one conversation. Its names can be removed one by one, as `rm -r` does, until the directory itself can be:
//! those that are no messages are only hidden, and return with the next message. `talk_files` makes one.

use std::collections::BTreeSet;
use std::sync::Arc;

use dashmap::DashMap;

use super::state::RecallState;
use acheron_base::{Code, Error, Result, blocking};
use acheron_vfs::{Answer, Caller, Dir, NameQuery, Node};

/// The hidden names of each conversation, as paths below it.
#[derive(Default)]
pub struct RemovedNames(DashMap<String, BTreeSet<String>>);

impl RemovedNames {
    fn has(&self, id: &str, path: &str) -> bool {
        self.0.get(id).is_some_and(|names| names.contains(path))
    }

    fn add(&self, id: &str, path: String) {
        self.0.entry(id.to_owned()).or_default().insert(path);
    }

    /// Shows the names of a conversation again.
    pub fn forget(&self, id: &str) {
        self.0.remove(id);
    }
}

/// A directory of a conversation whose names are always the same.
pub struct TalkDir {
    pub recall: Arc<RecallState>,
    pub id: String,
    /// `control/`, or nothing for the directory of the conversation itself.
    pub below: &'static str,
    pub names: Vec<(&'static str, Node)>,
}

impl TalkDir {
    fn shown(&self) -> impl Iterator<Item = &(&'static str, Node)> {
        self.names.iter().filter(|(name, _)| !self.recall.removed.has(&self.id, &self.path(name)))
    }

    fn path(&self, name: &str) -> String {
        format!("{}{name}", self.below)
    }

    fn hide(&self, name: &str, is_dir: bool) -> Answer<()> {
        let Some((_, node)) = self.shown().find(|(other, _)| *other == name) else {
            return Answer::refuse(Error::not_found(format!("there is no {name} here")));
        };
        if matches!(node, Node::Dir(_)) != is_dir {
            let code = if is_dir { libc::ENOTDIR } else { libc::EISDIR };
            return Answer::refuse(Error::new(Code::Os(code), format!("{name} is not of that kind")));
        }
        let (node, recall, id, path) = (node.clone(), self.recall.clone(), self.id.clone(), self.path(name));
        Answer::soon(blocking(move || {
            idle(&recall, &id)?;
            match node {
                Node::Dir(dir) if !dir.list().is_empty() => {
                    Err(Error::new(Code::Os(libc::ENOTEMPTY), format!("{path} is not empty")))
                }
                _ => {
                    recall.removed.add(&id, path);
                    Ok(())
                }
            }
        }))
    }
}

/// Refuses to take something from a conversation whose turn is under way: the turn would go on without it.
pub fn idle(recall: &RecallState, id: &str) -> Result<()> {
    match recall.is_busy(id) {
        true => {
            Err(Error::busy(format!("a turn of the conversation {id} is under way: wait for it, or cancel its job")))
        }
        false => Ok(()),
    }
}

impl Dir for TalkDir {
    fn is_quick(&self, query: NameQuery) -> bool {
        query == NameQuery::One
    }

    fn lookup(&self, name: &str) -> Option<Node> {
        self.shown().find(|(other, _)| *other == name).map(|(_, node)| node.clone())
    }

    fn list(&self) -> Vec<(String, Node)> {
        self.shown().map(|(name, node)| ((*name).to_owned(), node.clone())).collect()
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        self.hide(name, false)
    }

    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        self.hide(name, true)
    }
}
