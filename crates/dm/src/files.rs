//! A campaign's files, read: a map in memory, or the storage of a caller, with a record of the files that were read.
//!
//! The rules read only through [`ReadFiles`], so a test can check which files it reads.

use std::cell::RefCell;
use std::collections::BTreeMap;

use acheron_base::{Error, Result};

pub trait ReadFiles {
    /// The text of a file, or `None` where there is none.
    fn read(&self, path: &str) -> Result<Option<String>>;
    /// Every path, sorted.
    fn paths(&self) -> Result<Vec<String>>;
}

/// Files in memory, by path.
pub type Files = BTreeMap<String, String>;

impl ReadFiles for Files {
    fn read(&self, path: &str) -> Result<Option<String>> {
        Ok(self.get(path).cloned())
    }

    fn paths(&self) -> Result<Vec<String>> {
        Ok(self.keys().cloned().collect())
    }
}

/// Files that record which of them were read.
pub struct RecordedReads<'a> {
    files: &'a dyn ReadFiles,
    opened: RefCell<Vec<String>>,
}

impl<'a> RecordedReads<'a> {
    pub fn new(files: &'a dyn ReadFiles) -> Self {
        RecordedReads { files, opened: RefCell::default() }
    }

    pub fn opened(self) -> Vec<String> {
        self.opened.into_inner()
    }
}

impl ReadFiles for RecordedReads<'_> {
    fn read(&self, path: &str) -> Result<Option<String>> {
        self.opened.borrow_mut().push(path.to_owned());
        self.files.read(path)
    }

    fn paths(&self) -> Result<Vec<String>> {
        self.files.paths()
    }
}

/// The files that the kernel never reads for a turn: hidden files and the written fiction.
pub fn hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part.eq_ignore_ascii_case("writing"))
}

/// Whether a file of a campaign is shown to its players: those that the rules tell one to read each turn or when something
/// triggers it. What begins with a dot is the game master's, and so are a narrator's notes and the seed of the dice.
pub fn shown(path: &str) -> bool {
    let page = [
        "HOT_PACK.json",
        "PLAYER_PROFILE.md",
        "OBJECT_INDEX.json",
        "STATE_PANEL.json",
        "MAINLINE_PANEL.json",
        "WORLD_STATE.md",
        "GOVERNANCE_PANEL.md",
        "index.md",
    ];
    let folder = ["sessions/", "characters/", "quests/", "clues/"].iter().any(|folder| path.starts_with(folder));
    !hidden(path) && (page.contains(&path) || folder)
}

/// The file's text, or a sentence that names what is missing.
pub fn need(files: &dyn ReadFiles, path: &str) -> Result<String> {
    files.read(path)?.ok_or_else(|| Error::not_found(format!("there is no {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_see_what_they_are_told_to_read_and_no_secret() {
        let seen =
            ["HOT_PACK.json", "sessions/CURRENT_SESSION.md", "characters/PCs/pc_current.md", "quests/QUEST_LOG.md"];
        assert!(seen.into_iter().all(shown));
        let kept = [".DM_BLUEPRINT.md", ".DM_PLANNER.md", ".kernel/journal.ndjson", "CAMPAIGN.md", "notes/plan.md"];
        let hidden = ["Writing/Fiction_index.md", "characters/.DM_SECRETS.md", "sessions/.x.md"];
        assert!(!kept.into_iter().chain(hidden).any(shown));
    }
}
