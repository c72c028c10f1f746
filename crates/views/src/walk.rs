//! From an upper directory to the list of changes. Only what is in the upper is walked, and what it shows of the base under
//! another name, so that the size of the base does not count. Reading an upper while it is mounted is harmless.
//!
//! Bytes are compared, never times: a program can set the time of a file, and hide a change behind it. What was compared
//! before is remembered by the change time of the inode, which a program cannot set.

mod renames;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::change::{Change, ChangeKind, Content, EntryType, Side};
use super::marks::MarkNames;
use super::rel_path::RelPath;
use super::root::{EntryFacts, Root, same_bytes};
use acheron_base::{Error, Result};

/// More changes than these are not listed.
pub const MOST_CHANGES: usize = 200_000;

/// A view from outside: its two directories.
#[derive(Clone, Copy)]
pub struct Layers<'a> {
    pub upper: &'a Root,
    pub base: &'a Root,
    pub marks: MarkNames,
}

/// What was compared before: the inode and the change time of both sides, and whether they were the same.
#[derive(Default)]
pub struct ComparedFiles(HashMap<[u64; 4], bool>);

/// So many results are remembered.
const REMEMBERED: usize = 100_000;

impl ComparedFiles {
    fn same(&mut self, layers: &Layers<'_>, change: (&Path, &Path, bool), sides: [&EntryFacts; 2]) -> Result<bool> {
        let [after, before] = sides;
        if after.size != before.size {
            return Ok(false);
        }
        let key = [after.inode, after.changed_ns as u64, before.inode, before.changed_ns as u64];
        if let Some(known) = self.0.get(&key) {
            return Ok(*known);
        }
        let (content, base, in_upper) = change;
        let of_view = if in_upper { layers.upper } else { layers.base };
        let same = match after.kind {
            EntryType::File => same_bytes(of_view.open_file(content)?, layers.base.open_file(base)?)?,
            EntryType::Link => of_view.read_link(content)? == layers.base.read_link(base)?,
            _ => true,
        };
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(key, same);
        Ok(same)
    }
}

/// The changes of a view.
#[derive(Debug, Default)]
pub struct ViewChanges {
    /// Removals first, each part in the order of the paths.
    pub changes: Vec<Change>,
    /// The permissions of new directories. Only an empty one is a change of its own.
    pub new_dirs: BTreeMap<PathBuf, u32>,
}

/// Every change of a view.
pub fn changes(layers: &Layers<'_>, compared: &mut ComparedFiles) -> Result<ViewChanges> {
    let mut walk = Walk { layers, compared, found: Vec::new(), open: Vec::new() };
    walk.open.push(WalkedDir { path: PathBuf::new(), lower: Some(PathBuf::new()), in_upper: true });
    while let Some(dir) = walk.open.pop() {
        walk.directory(dir)?;
    }
    let mut found = renames::found(layers, walk.found)?;
    // A new directory is told by what is in it.
    let filled: BTreeSet<PathBuf> =
        found.iter().filter_map(|change| change.path.0.parent().map(Path::to_owned)).collect();
    let mut new_dirs = BTreeMap::new();
    found.retain(|change| {
        let new_dir = change.kind == ChangeKind::Added && change.entry_type() == EntryType::Dir;
        if new_dir {
            new_dirs.insert(change.path.0.clone(), change.after.map_or(0o755, |after| after.mode));
        }
        !new_dir || !filled.contains(&change.path.0)
    });
    found.sort_by(|a, b| (a.kind != ChangeKind::Removed, &a.path).cmp(&(b.kind != ChangeKind::Removed, &b.path)));
    Ok(ViewChanges { changes: found, new_dirs })
}

/// A directory of the view.
struct WalkedDir {
    path: PathBuf,
    /// The directory of the base that shows here.
    lower: Option<PathBuf>,
    in_upper: bool,
}

struct Walk<'a> {
    layers: &'a Layers<'a>,
    compared: &'a mut ComparedFiles,
    found: Vec<Change>,
    open: Vec<WalkedDir>,
}

impl Walk<'_> {
    fn directory(&mut self, dir: WalkedDir) -> Result<()> {
        let Layers { upper, base, .. } = *self.layers;
        let own = if dir.in_upper { upper.list(&dir.path)? } else { Vec::new() };
        // What the upper does not name is as it is in the base, and need not be looked at.
        let plain = dir.lower.as_ref() == Some(&dir.path);
        let (shown, before) = match (&dir.lower, plain) {
            (_, true) => (Vec::new(), BTreeMap::new()),
            (None, _) => (Vec::new(), base.list(&dir.path)?.into_iter().collect()),
            (Some(lower), _) => (base.list(lower)?, base.list(&dir.path)?.into_iter().collect()),
        };
        let before: BTreeMap<OsString, EntryFacts> = before;
        let mut seen = BTreeSet::new();
        for (name, facts) in own {
            let path = dir.path.join(&name);
            let was = if plain { base.facts(&path)? } else { before.get(&name).copied() };
            if facts.whiteout {
                was.map_or(Ok(()), |was| self.removed(&path, &was))?;
            } else {
                let below = dir.lower.as_ref().map(|lower| lower.join(&name));
                self.entry(&path, was, &facts, Content::Upper, below)?;
            }
            seen.insert(name);
        }
        for (name, facts) in shown {
            if seen.insert(name.clone())
                && let Some(lower) = &dir.lower
            {
                let (path, from) = (dir.path.join(&name), lower.join(&name));
                self.entry(&path, before.get(&name).copied(), &facts, Content::Base(from.clone()), Some(from))?;
            }
        }
        for (name, was) in before.iter().filter(|(name, _)| !seen.contains(*name)) {
            self.removed(&dir.path.join(name), was)?;
        }
        Ok(())
    }

    /// Something that the view shows at `path`.
    fn entry(
        &mut self,
        path: &Path,
        was: Option<EntryFacts>,
        is: &EntryFacts,
        content: Content,
        below: Option<PathBuf>,
    ) -> Result<()> {
        let was = match was {
            Some(was) if was.is_dir() != is.is_dir() => {
                self.removed(path, &was)?;
                None
            }
            was => was,
        };
        if is.is_dir() {
            let in_upper = content == Content::Upper;
            let lower = if in_upper { self.lower_of(path, below)? } else { below };
            self.open.push(WalkedDir { path: path.to_owned(), lower, in_upper });
        }
        let bytes_differ = match &was {
            None => true,
            Some(was) if was.kind != is.kind => true,
            Some(_) if is.is_dir() => false,
            Some(was) => {
                let (file, in_upper) = match &content {
                    Content::Upper => (path, true),
                    Content::Base(from) => (from.as_path(), false),
                };
                !self.compared.same(self.layers, (file, path, in_upper), [is, was])?
            }
        };
        let modes_differ = was.is_some_and(|was| was.mode != is.mode && is.kind != EntryType::Link);
        if bytes_differ || modes_differ {
            let kind = if was.is_some() { ChangeKind::Changed } else { ChangeKind::Added };
            self.note(path, kind, was.as_ref(), Some(is), content, bytes_differ)?;
        }
        Ok(())
    }

    /// The directory of the base that shows in this one of the upper.
    fn lower_of(&self, path: &Path, below: Option<PathBuf>) -> Result<Option<PathBuf>> {
        let Layers { upper, base, marks } = *self.layers;
        if marks.is_opaque(upper, path)? {
            return Ok(None);
        }
        let lower = marks.redirect(upper, path)?.or(below);
        let Some(lower) = lower else { return Ok(None) };
        Ok(base.facts(&lower)?.is_some_and(|facts| facts.is_dir()).then_some(lower))
    }

    fn removed(&mut self, path: &Path, was: &EntryFacts) -> Result<()> {
        self.note(path, ChangeKind::Removed, Some(was), None, Content::Upper, true)?;
        if was.is_dir() {
            let files = below(self.layers.base, path)?.iter().filter(|(_, facts)| !facts.is_dir()).count();
            self.found.last_mut().into_iter().for_each(|change| (change.whole, change.files) = (true, files as u64));
        }
        Ok(())
    }

    fn note(
        &mut self,
        path: &Path,
        kind: ChangeKind,
        before: Option<&EntryFacts>,
        after: Option<&EntryFacts>,
        content: Content,
        bytes_differ: bool,
    ) -> Result<()> {
        if self.found.len() >= MOST_CHANGES {
            return Err(Error::too_large(format!(
                "the view has more than {MOST_CHANGES} changes; discard some by name"
            )));
        }
        let (before, after, path) = (before.map(Side::from), after.map(Side::from), RelPath::new(path));
        self.found.push(Change {
            path,
            kind,
            from: None,
            before,
            after,
            content,
            whole: false,
            files: 0,
            bytes_differ,
        });
        Ok(())
    }
}

/// Everything below a directory, each directory before what is in it. Bounded as changes are.
pub fn below(root: &Root, top: &Path) -> Result<Vec<(PathBuf, EntryFacts)>> {
    let mut found = Vec::new();
    let mut open = vec![top.to_owned()];
    while let Some(dir) = open.pop() {
        for (name, facts) in root.list(&dir)? {
            let path = dir.join(name);
            if facts.is_dir() {
                open.push(path.clone());
            }
            found.push((path, facts));
        }
        if found.len() > MOST_CHANGES {
            return Err(Error::too_large(format!("{} has more than {MOST_CHANGES} names", top.display())));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
