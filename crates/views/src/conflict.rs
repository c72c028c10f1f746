//! Changes that cannot go back because the base has changed under them.

use std::path::Path;

use serde::Serialize;

use super::change::{Change, Content, EntryType};
use super::manifest::Manifest;
use super::rel_path::RelPath;
use super::root::{Root, hash_of};
use super::walk::{Layers, below};
use acheron_base::Result;

/// A path that both sides have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ViewConflict {
    pub path: RelPath,
    pub why: String,
    /// The SHA-256 of the file in the base, and in the view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
}

/// The conflict of one change, if it has one.
pub fn of(layers: &Layers<'_>, manifest: &Manifest, change: &Change) -> Result<Option<ViewConflict>> {
    let base = layers.base;
    for path in [Some(&change.path), change.from.as_ref()].into_iter().flatten() {
        if !manifest.holds(base, &path.0)? {
            return conflict(layers, manifest, change, &path.0).map(Some);
        }
    }
    if change.whole {
        let there = below(base, &change.path.0)?;
        for (path, _) in &there {
            if !manifest.holds(base, path)? {
                return conflict(layers, manifest, change, path).map(Some);
            }
        }
    }
    Ok(None)
}

fn conflict(layers: &Layers<'_>, manifest: &Manifest, change: &Change, path: &Path) -> Result<ViewConflict> {
    let (known, now) = (manifest.get(path), layers.base.facts(path)?);
    let what = match (known, now) {
        (None, _) => "made in the project since the view took it over",
        (Some(_), None) => "removed from the project since the view took it over",
        _ => "changed in the project since the view took it over",
    };
    let view = match (&change.content, change.after.map(|after| after.kind)) {
        (Content::Upper, Some(EntryType::File)) => hash(layers.upper, &change.path.0),
        _ => None,
    };
    Ok(ViewConflict { path: RelPath::new(path), why: what.to_owned(), base: hash(layers.base, path), view })
}

fn hash(root: &Root, path: &Path) -> Option<String> {
    root.open_file(path).and_then(hash_of).ok()
}

#[cfg(test)]
mod tests;
