//! The wiki as it would be with what a run has proposed so far, and the proposal of the whole run.

use std::collections::BTreeMap;

use super::proposal::{ProposedPage, SleepProposal};
use super::validate::{SleepChange, new_lines};
use crate::index::{Index, Page};

pub struct StagedWiki {
    pub index: Index,
    /// The proposed texts by their paths.
    pages: BTreeMap<String, String>,
    /// The paths in the order in which they were last changed.
    recent: Vec<String>,
    proposal: SleepProposal,
}

impl StagedWiki {
    pub fn new(index: Index) -> StagedWiki {
        StagedWiki { index, pages: BTreeMap::new(), recent: Vec::new(), proposal: SleepProposal::default() }
    }

    /// The proposed text of a page.
    pub fn page(&self, path: &str) -> Option<&String> {
        self.pages.get(path)
    }

    /// The pages that were changed last, the last one first.
    pub fn recent(&self) -> impl Iterator<Item = &String> {
        self.recent.iter().rev()
    }

    pub fn is_empty(&self) -> bool {
        self.proposal.pages.is_empty()
    }

    /// Takes the changes of one request, which was checked against this wiki. `before` is the text of a page on the disk.
    pub fn add(&mut self, proposal: SleepProposal, changes: &[SleepChange], before: &dyn Fn(&str) -> Option<String>) {
        for change in changes {
            self.index.put(Page::of(&change.path, &change.after, change.after.len() as u64, 0));
            self.pages.insert(change.path.clone(), change.after.clone());
            self.recent.retain(|path| *path != change.path);
            self.recent.push(change.path.clone());
        }
        for page in proposal.pages.into_iter().filter(|page| changes.iter().any(|it| it.path == page.path)) {
            match self.proposal.pages.iter_mut().find(|it| it.path == page.path) {
                Some(known) => join(known, page, &before(&known.path).unwrap_or_default()),
                None => self.proposal.pages.push(page),
            }
        }
    }

    /// The proposal of the whole run.
    pub fn into_proposal(self) -> SleepProposal {
        self.proposal
    }
}

/// Two changes of a page, one after the other, as one. Lines that only the first one knew are nobody's loss.
fn join(known: &mut ProposedPage, next: ProposedPage, before: &str) {
    known.text = next.text;
    for citation in next.citations {
        if !known.citations.contains(&citation) {
            known.citations.push(citation);
        }
    }
    let mut listed = std::mem::take(&mut known.removed);
    listed.extend(next.removed);
    for line in new_lines(&known.text, before).values() {
        if let Some(place) = listed.iter().position(|it| it.line.trim() == line.trim()) {
            known.removed.push(listed.swap_remove(place));
        }
    }
}
