//! Removals and additions that are the same thing under another name: a directory that the kernel says was renamed, and files
//! with the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Layers;
use crate::change::{Change, ChangeKind, Content, EntryType, Side};
use crate::rel_path::RelPath;
use crate::root::hash_of;
use crate::walk::below;
use acheron_base::Result;

/// Files are hashed to find renames as long as there are not more of them, nor more bytes.
const HASHED_FILES: usize = 2000;
const HASHED_BYTES: u64 = 256 << 20;

pub(super) fn found(layers: &Layers<'_>, changes: Vec<Change>) -> Result<Vec<Change>> {
    by_directory(layers, changes).and_then(|changes| by_bytes(layers, changes))
}

/// What shows of the base under another name, because a directory above was renamed.
fn by_directory(layers: &Layers<'_>, mut changes: Vec<Change>) -> Result<Vec<Change>> {
    let gone: Vec<PathBuf> = removed(&changes).map(|change| change.path.0.clone()).collect();
    let mut sources = BTreeSet::new();
    for change in changes.iter_mut().filter(|change| change.kind == ChangeKind::Added) {
        let Content::Base(from) = &change.content else { continue };
        let moved = change.entry_type() != EntryType::Dir && gone.iter().any(|gone| from.starts_with(gone));
        if moved && let Some(facts) = layers.base.facts(from)? {
            sources.insert(from.clone());
            change.kind = ChangeKind::Renamed;
            change.before = Some(Side::from(&facts));
            change.bytes_differ = false;
            change.from = Some(RelPath(from.clone()));
        }
    }
    if sources.is_empty() {
        return Ok(changes);
    }
    // A removed directory whose files went elsewhere is told by the rest of its files.
    let mut told = Vec::new();
    for change in changes {
        if !change.whole || !sources.iter().any(|source| source.starts_with(&change.path.0)) {
            let is_source = change.kind == ChangeKind::Removed && sources.contains(&change.path.0);
            told.extend((!is_source).then_some(change));
            continue;
        }
        for (path, facts) in below(layers.base, &change.path.0)? {
            if !sources.contains(&path) {
                let before = Some(Side::from(&facts));
                told.push(Change { path: RelPath(path), before, whole: false, files: 0, ..change.clone() });
            }
        }
        told.push(Change { whole: false, files: 0, ..change });
    }
    Ok(told)
}

/// New files with the bytes of a removed one.
fn by_bytes(layers: &Layers<'_>, changes: Vec<Change>) -> Result<Vec<Change>> {
    let is_file = |change: &&Change| change.entry_type() == EntryType::File && change.size() > 0;
    let mut by_size: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for change in removed(&changes).filter(is_file) {
        by_size.entry(change.size()).or_default().push(change.path.0.clone());
    }
    let wanted: Vec<usize> = (0..changes.len())
        .filter(|at| {
            let change = &changes[*at];
            change.kind == ChangeKind::Added
                && is_file(&change)
                && change.content == Content::Upper
                && by_size.contains_key(&change.size())
        })
        .collect();
    let bytes: u64 = wanted.iter().map(|at| changes[*at].size()).sum();
    if wanted.is_empty() || wanted.len() > HASHED_FILES || bytes > HASHED_BYTES {
        return Ok(changes);
    }
    let mut hashes: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let sizes: BTreeSet<u64> = wanted.iter().map(|at| changes[*at].size()).collect();
    for path in sizes.iter().filter_map(|size| by_size.get(size)).flatten().take(HASHED_FILES) {
        hashes.entry(hash_of(layers.base.open_file(path)?)?).or_default().push(path.clone());
    }
    let (mut changes, mut sources) = (changes, BTreeSet::new());
    for at in wanted {
        let hash = hash_of(layers.upper.open_file(&changes[at].path.0)?)?;
        let Some(from) = hashes.get_mut(&hash).and_then(|from| (!from.is_empty()).then(|| from.remove(0))) else {
            continue;
        };
        let Some(facts) = layers.base.facts(&from)? else { continue };
        sources.insert(from.clone());
        let change = &mut changes[at];
        (change.kind, change.before, change.from) =
            (ChangeKind::Renamed, Some(Side::from(&facts)), Some(RelPath(from)));
        change.bytes_differ = false;
    }
    changes.retain(|change| !(change.kind == ChangeKind::Removed && sources.contains(&change.path.0)));
    Ok(changes)
}

fn removed(changes: &[Change]) -> impl Iterator<Item = &Change> {
    changes.iter().filter(|change| change.kind == ChangeKind::Removed)
}
