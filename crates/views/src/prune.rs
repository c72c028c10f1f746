//! Takes out of an upper what the base has too, after it was promoted: otherwise the view would go on showing its own copy when
//! the base changes later, and a directory that was renamed would look for its files under the old name.
//!
//! The upper is mounted meanwhile. Each file is moved aside, the mount is refreshed, and then it is looked whether a program
//! has written to it in between: such a file gets its place back.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags};

use super::change::{Change, ChangeKind, EntryType};
use super::promote::is_written;
use super::root::{EntryFacts, Root, facts_at, same_bytes};
use super::walk::{ComparedFiles, Layers, changes};
use acheron_base::{Error, Result};

/// Prunes an upper; `aside` is an empty directory on its file system. Returns the number of entries taken out.
pub fn prune(layers: &Layers<'_>, aside: &Path, refresh: &dyn Fn() -> Result<()>) -> Result<usize> {
    marks(layers)?;
    let mut moved = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for (name, facts) in layers.upper.list(&dir)? {
            let path = dir.join(&name);
            if facts.is_dir() {
                let plain = !layers.marks.is_opaque(layers.upper, &path)?
                    && layers.marks.redirect(layers.upper, &path)?.is_none()
                    && layers.base.facts(&path)?.is_some_and(|base| base.is_dir());
                if plain {
                    open.push(path);
                }
            } else if is_in_base(layers, &path, &facts)? {
                moved.extend(move_aside(layers.upper, path, facts, aside, moved.len())?);
            }
        }
    }
    refresh()?;
    let mut pruned = 0;
    for one in moved {
        pruned += usize::from(!one.put_back(layers.upper, aside)?);
    }
    Ok(pruned)
}

/// Takes changes out of an upper, so that the base shows at these paths again. A file that a program writes is refused, and so
/// is what the upper does not hold under its own name.
pub fn drop_changes(
    layers: &Layers<'_>,
    paths: &[PathBuf],
    aside: &Path,
    refresh: &dyn Fn() -> Result<()>,
) -> Result<()> {
    let mut wanted = Vec::new();
    for path in paths {
        let facts = layers.upper.facts(path)?.filter(|facts| !facts.is_dir()).ok_or_else(|| {
            Error::conflict(format!(
                "{} is part of a directory that was replaced or renamed; discard the whole view",
                path.display()
            ))
        })?;
        if facts.kind == EntryType::File && is_written(&layers.upper.open_file(path)?) {
            return Err(Error::busy(format!("a program has {} open for writing", path.display())));
        }
        wanted.push((path.clone(), facts));
    }
    for (number, (path, facts)) in wanted.into_iter().enumerate() {
        let said = format!("{} is being written", path.display());
        let moved = move_aside(layers.upper, path, facts, aside, number)?.ok_or_else(|| Error::busy(said))?;
        let at = aside.join(&moved.name);
        fs::remove_file(&at).map_err(|err| Error::from(err).about(at.display()))?;
    }
    refresh()
}

/// Removes the marks of directories that show in the base as they do in the view.
fn marks(layers: &Layers<'_>) -> Result<()> {
    let differs = changes(layers, &mut ComparedFiles::default())?;
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for (name, _) in layers.upper.list(&dir)?.into_iter().filter(|(_, facts)| facts.is_dir()) {
            let path = dir.join(name);
            open.push(path.clone());
            let in_base = layers.base.facts(&path)?.is_some_and(|base| base.is_dir());
            // Nothing of the base would show that does not show now.
            let hides = |change: &Change| {
                let from = change.from.as_ref().is_some_and(|from| from.is_below(&path));
                from || (change.kind == ChangeKind::Removed && change.path.is_below(&path))
            };
            let same = in_base && !differs.changes.iter().any(hides);
            let renamed = layers.marks.redirect(layers.upper, &path)?;
            if let Some(from) = renamed
                && in_base
                && layers.base.facts(&from)?.is_none()
            {
                unmark(layers, &path, "redirect")?;
            }
            if same && layers.marks.is_opaque(layers.upper, &path)? {
                unmark(layers, &path, "opaque")?;
            }
        }
    }
    Ok(())
}

fn unmark(layers: &Layers<'_>, path: &Path, mark: &str) -> Result<()> {
    let told = |errno| layers.upper.told(path, errno);
    let dir = layers.upper.at(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(told)?;
    rustix::fs::fremovexattr(&dir, format!("{}{mark}", layers.marks.prefix())).map_err(told)
}

fn is_in_base(layers: &Layers<'_>, path: &Path, facts: &EntryFacts) -> Result<bool> {
    let base = layers.base.facts(path)?;
    if facts.whiteout {
        return Ok(base.is_none());
    }
    let Some(base) = base.filter(|base| base.kind == facts.kind && base.size == facts.size && base.mode == facts.mode)
    else {
        return Ok(false);
    };
    match facts.kind {
        // A file with other names in the view stays: they belong together.
        EntryType::File if facts.links == 1 && base.links == 1 => {
            same_bytes(layers.upper.open_file(path)?, layers.base.open_file(path)?)
        }
        EntryType::Link => Ok(layers.upper.read_link(path)? == layers.base.read_link(path)?),
        _ => Ok(false),
    }
}

struct MovedAside {
    path: PathBuf,
    facts: EntryFacts,
    name: String,
}

fn move_aside(
    upper: &Root,
    path: PathBuf,
    facts: EntryFacts,
    aside: &Path,
    number: usize,
) -> Result<Option<MovedAside>> {
    let name = number.to_string();
    let told = |errno| upper.told(&path, errno);
    let (dir, last) = upper.parent(&path).map_err(told)?;
    let now = facts_at(dir.as_fd(), last).map_err(told)?;
    if now != facts {
        return Ok(None); // it was written since it was compared
    }
    rustix::fs::renameat_with(&dir, last, CWD, aside.join(&name), RenameFlags::NOREPLACE).map_err(told)?;
    Ok(Some(MovedAside { path, facts, name }))
}

impl MovedAside {
    /// Gives it its place back if a program has written to it, or could; returns whether it did.
    fn put_back(&self, upper: &Root, aside: &Path) -> Result<bool> {
        let at = aside.join(&self.name);
        let told = |errno| upper.told(&self.path, errno);
        let held = Root::open(aside)?;
        let now = held.facts(Path::new(&self.name))?;
        let same = now.is_some_and(|now| (now.size, now.modified_ns) == (self.facts.size, self.facts.modified_ns));
        let written = self.facts.kind == EntryType::File && is_written(&held.open_file(Path::new(&self.name))?);
        if same && !written {
            fs::remove_file(&at).map_err(|err| Error::from(err).about(at.display()))?;
            return Ok(false);
        }
        let (dir, last): (_, &OsStr) = upper.parent(&self.path).map_err(told)?;
        rustix::fs::renameat_with(CWD, &at, &dir, last, RenameFlags::NOREPLACE).map_err(told)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
