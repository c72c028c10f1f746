//! A base that changes under a view: the kernel goes on showing what it remembers, so the mount is refreshed; what the view has
//! not changed follows the base, and the rest is a conflict.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::view::{OpenLayers, View, skipped};
use acheron_base::{Error, Result};
use acheron_views::{Manifest, MarkNames, overlay, pinned};

impl View {
    /// The base was changed: shows it as it is now.
    pub fn base_changed(&self) -> Result<()> {
        let _work = self.begin()?;
        let open = self.open()?;
        self.follow_base(&open)?;
        self.status.write().base_changed_at_ms = Some(self.clock.now_ms());
        Ok(())
    }

    /// What changes in `.git` of the base is not watched: it is looked at before a program starts.
    pub fn look_at_git(&self) {
        let Ok(base) = acheron_views::Root::open(&self.record().base) else { return };
        let files = [".git", ".git/HEAD", ".git/index", ".git/logs/HEAD", ".git/refs/heads", ".git/packed-refs"];
        let last =
            files.iter().filter_map(|file| base.facts(Path::new(file)).ok()?).map(|facts| facts.changed_ns).max();
        let before = std::mem::replace(&mut *self.git_changed.lock(), last);
        if before.is_some()
            && before != last
            && let Err(error) = self.base_changed()
        {
            tracing::warn!(%error, view = self.name(), "a view could not follow its repository");
        }
    }

    fn follow_base(&self, open: &OpenLayers) -> Result<()> {
        let mut manifest = Manifest::load(&self.places.manifest())?;
        let own = own_paths(open)?;
        let changed = manifest.follow(Manifest::scan(&open.base, &skipped())?, |path| own.has(path));
        manifest.save(&self.places.manifest())?;
        let Ok(at) = self.mounted() else { return Ok(()) };
        let refresh = || overlay::refresh(&at);
        refresh()?;
        if !changed.is_empty() {
            pinned::let_go(&open.layers(), &at, &changed, &self.aside()?, &refresh)?;
        }
        Ok(())
    }

    /// Takes over the base as it is. A path in `keep` is decided for the view: its next promote replaces what the base has.
    pub fn rebase(&self, keep: &[String]) -> Result<Value> {
        let mut work = self.begin()?;
        let open = self.open()?;
        self.follow_base(&open)?;
        let judged = self.judge(&mut work, &open)?;
        let mut manifest = Manifest::load(&self.places.manifest())?;
        for path in keep {
            let found = judged.conflicts.iter().flatten().any(|conflict| conflict.path.to_string() == *path);
            if !found {
                return Err(Error::invalid(format!("{} is no conflict of this view", acheron_base::quoted(path))));
            }
            manifest.take(&open.base, Path::new(path))?;
        }
        manifest.save(&self.places.manifest())?;
        let judged = self.judge(&mut work, &open)?;
        let conflicts: Vec<&_> = judged.conflicts.iter().flatten().collect();
        Ok(json!({"kept": keep, "conflicts": conflicts, "changes": judged.view.changes.len()}))
    }
}

/// The paths that the view has changed.
struct OwnPaths {
    files: HashSet<PathBuf>,
    /// Directories of the base that show nothing, or elsewhere.
    trees: HashSet<PathBuf>,
}

impl OwnPaths {
    fn has(&self, path: &Path) -> bool {
        self.files.contains(path) || path.ancestors().any(|above| self.trees.contains(above))
    }
}

fn own_paths(open: &OpenLayers) -> Result<OwnPaths> {
    let mut own = OwnPaths { files: HashSet::new(), trees: HashSet::new() };
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for (name, facts) in open.upper.list(&dir)? {
            let path = dir.join(name);
            if facts.whiteout {
                own.trees.insert(path);
            } else if facts.is_dir() {
                let marks = MarkNames::Trusted;
                if marks.is_opaque(&open.upper, &path)? {
                    own.trees.insert(path.clone());
                }
                own.trees.extend(marks.redirect(&open.upper, &path)?);
                dirs.push(path);
            } else {
                own.files.insert(path);
            }
        }
    }
    Ok(own)
}
