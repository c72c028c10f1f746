//! The changes of a view with what holds each back.

use std::path::{Path, PathBuf};

use super::places::IN_PROJECT;
use super::view::{OpenLayers, View, ViewWork};
use acheron_base::Result;
use acheron_views::conflict::{self, ViewConflict};
use acheron_views::select::Judged;
use acheron_views::walk::{ViewChanges, changes};
use acheron_views::{Change, Manifest, held, ignored};

/// The changes of a view, and of each in their order why it is held, where it is ignored, and what it collides with.
pub struct JudgedView {
    pub view: ViewChanges,
    pub names: Vec<String>,
    pub held: Vec<Option<String>>,
    pub ignored: Vec<Option<PathBuf>>,
    pub conflicts: Vec<Option<ViewConflict>>,
}

impl JudgedView {
    pub fn judged(&self) -> Judged<'_> {
        let JudgedView { view, names, held, ignored, .. } = self;
        Judged { changes: &view.changes, held, ignored, names }
    }

    /// The changes that a reader is shown one by one: neither ignored nor inside of git.
    pub fn shown(&self) -> impl Iterator<Item = (usize, &Change)> {
        let plain = |at: &usize| self.ignored[*at].is_none() && held::git_dir(&self.view.changes[*at].path.0).is_none();
        (0..self.view.changes.len()).filter(plain).map(|at| (at, &self.view.changes[at]))
    }
}

impl View {
    pub(super) fn judge(&self, work: &mut ViewWork, open: &OpenLayers) -> Result<JudgedView> {
        let layers = open.layers();
        let mut view = changes(&layers, &mut work.compared)?;
        // Where promotes are staged is the host's own.
        view.changes.retain(|change| !change.path.is_below(Path::new(IN_PROJECT)));
        let names = self.users.protected(&self.record().base);
        let held = held::reasons(&layers, &view.changes, &names)?;
        let ignored = ignored::tops(&layers, &view.changes);
        let mut manifest = Manifest::load(&self.places.manifest())?;
        let mut conflicts = Vec::with_capacity(view.changes.len());
        let mut seen = false;
        for change in &view.changes {
            let found = conflict::of(&layers, &manifest, change)?;
            if found.is_none() {
                seen |= manifest.remember_bytes(layers.base, &change.path.0)?;
            }
            conflicts.push(found);
        }
        if seen {
            manifest.save(&self.places.manifest())?;
        }
        let mut status = self.status.write();
        status.changes = view.changes.len();
        status.held = held.iter().flatten().count();
        status.conflicts = conflicts.iter().flatten().map(|one| one.path.to_string()).take(100).collect();
        drop(status);
        Ok(JudgedView { view, names, held, ignored, conflicts })
    }
}
