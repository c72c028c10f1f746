//! From chosen changes to steps: what goes is taken out first (a renamed thing waits in the stage), then directories are made,
//! then everything takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::step::PromoteStep;
use crate::change::{Change, ChangeKind, Content, EntryType};
use crate::rel_path::RelPath;
use crate::root::{EntryFacts, Root};
use crate::walk::{Layers, ViewChanges};
use acheron_base::{Error, Result};

/// Something that has to be copied into the stage before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageOrder {
    pub staged: String,
    /// Where it lies in the view.
    pub path: PathBuf,
    pub content: Content,
    pub kind: EntryType,
    pub mode: u32,
    pub owner: (u32, u32),
}

/// The steps, in which the inodes of what has to be copied are not known yet, and what has to be copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromotePlan {
    pub steps: Vec<PromoteStep>,
    pub orders: Vec<StageOrder>,
    /// Files of the base of which a copy is kept, because they are written in place.
    pub copies: Vec<(String, PathBuf)>,
}

/// Plans the changes with these numbers. Nothing is changed.
pub fn plan(layers: &Layers<'_>, view: &ViewChanges, chosen: &[usize]) -> Result<PromotePlan> {
    let changes: Vec<&Change> = chosen.iter().map(|at| &view.changes[*at]).collect();
    // What goes on under another name makes room as well.
    let goes = |change: &&&Change| change.kind == ChangeKind::Removed;
    let removed = changes.iter().filter(goes).map(|change| change.path.0.as_path());
    let gone: BTreeSet<&Path> =
        removed.chain(changes.iter().filter_map(|change| change.from.as_ref()).map(|from| from.0.as_path())).collect();
    let mut plan =
        PlanInProgress { layers, gone, kept: 0, plan: PromotePlan::default(), puts: Vec::new(), chmods: Vec::new() };
    let mut dirs = BTreeMap::new();
    let mut empty = Vec::new();
    for change in &changes {
        match change.kind {
            ChangeKind::Removed if change.entry_type() == EntryType::Dir && !change.whole => empty.push(*change),
            ChangeKind::Removed => _ = plan.remove(&change.path.0)?,
            ChangeKind::Renamed => plan.rename(change)?,
            ChangeKind::Changed | ChangeKind::Added => plan.put(change)?,
        }
        if change.after.is_some() {
            let own = (change.entry_type() == EntryType::Dir).then_some(change.path.0.as_path());
            for dir in own.into_iter().chain(change.path.0.ancestors().skip(1)) {
                plan.need_dir(dir, view, &mut dirs)?;
            }
        }
    }
    // What is deepest has become empty first.
    empty.sort_by_key(|change| std::cmp::Reverse(change.path.0.components().count()));
    for change in empty {
        let mode = change.before.map_or(0o755, |before| before.mode);
        plan.plan.steps.push(PromoteStep::RemoveDir { path: change.path.clone(), mode });
    }
    let PlanInProgress { plan: mut done, puts, chmods, .. } = plan;
    done.steps.extend(dirs.into_iter().map(|(path, mode)| PromoteStep::MakeDir { path: RelPath(path), mode }));
    done.steps.extend(puts);
    done.steps.extend(chmods);
    Ok(done)
}

struct PlanInProgress<'a> {
    layers: &'a Layers<'a>,
    gone: BTreeSet<&'a Path>,
    kept: usize,
    plan: PromotePlan,
    puts: Vec<PromoteStep>,
    chmods: Vec<PromoteStep>,
}

impl PlanInProgress<'_> {
    fn name(&mut self) -> String {
        self.kept += 1;
        format!("{}", self.kept)
    }

    fn base(&self) -> &Root {
        self.layers.base
    }

    /// Takes something out; returns the name under which it is kept, and what it was.
    fn remove(&mut self, path: &Path) -> Result<(String, EntryFacts)> {
        let facts = self.base().facts(path)?.ok_or_else(|| changed(path))?;
        let kept = self.name();
        let step = PromoteStep::Remove { path: RelPath::new(path), kept: kept.clone(), inode: facts.inode };
        self.plan.steps.push(step);
        Ok((kept, facts))
    }

    fn rename(&mut self, change: &Change) -> Result<()> {
        let (Some(from), Some(after)) = (&change.from, change.after) else {
            return Err(Error::internal(format!("{} was renamed from nowhere", change.path)));
        };
        let (staged, facts) = self.remove(&from.0)?;
        self.free(&change.path.0)?;
        let (path, inode) = (change.path.clone(), facts.inode);
        self.puts.push(PromoteStep::Put { path: path.clone(), staged, inode, old: None });
        let mode = after.mode & 0o777;
        if facts.kind != EntryType::Link && mode != facts.mode & 0o777 {
            self.chmods.push(PromoteStep::Chmod { path, mode, old_mode: facts.mode, inode });
        }
        Ok(())
    }

    fn put(&mut self, change: &Change) -> Result<()> {
        let Some(after) = change.after else { return Ok(()) };
        let path = &change.path.0;
        let old = self.base().facts(path)?.filter(|_| !self.gone.contains(path.as_path()));
        if after.kind == EntryType::Dir || !change.bytes_differ {
            let Some(old) = old else { return Ok(()) }; // a new directory
            let (path, mode) = (change.path.clone(), after.mode & 0o777);
            self.chmods.push(PromoteStep::Chmod { path, mode, old_mode: old.mode, inode: old.inode });
            return Ok(());
        }
        if after.kind == EntryType::Special {
            return Err(Error::invalid(format!("{} is a pipe, a socket or a device and cannot go back", change.path)));
        }
        if old.is_some_and(|old| old.is_dir()) {
            return Err(in_the_way(path));
        }
        let mode = after.mode & 0o777;
        let owner = self.owner(path, old.as_ref())?;
        let staged = self.name();
        let order = StageOrder {
            staged: staged.clone(),
            path: path.clone(),
            content: change.content.clone(),
            kind: after.kind,
            mode,
            owner,
        };
        self.plan.orders.push(order);
        let linked = old.filter(|old| old.links > 1 && old.kind == EntryType::File && after.kind == EntryType::File);
        let step = match linked {
            Some(old) => {
                let kept = self.name();
                self.plan.copies.push((kept.clone(), path.clone()));
                let (inode, old_mode) = (old.inode, old.mode);
                PromoteStep::PutInPlace { path: change.path.clone(), staged, kept, inode, mode, old_mode }
            }
            None => PromoteStep::Put { path: change.path.clone(), staged, inode: 0, old: old.map(|old| old.inode) },
        };
        self.puts.push(step);
        Ok(())
    }

    /// What replaces something belongs to the same user; what is new, to that of the directory.
    fn owner(&self, path: &Path, old: Option<&EntryFacts>) -> Result<(u32, u32)> {
        if let Some(old) = old {
            return Ok((old.uid, old.gid));
        }
        for above in path.ancestors().skip(1) {
            if let Some(facts) = self.base().facts(above)?.filter(EntryFacts::is_dir) {
                return Ok((facts.uid, facts.gid));
            }
        }
        Ok((rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()))
    }

    fn free(&self, path: &Path) -> Result<()> {
        match self.base().facts(path)? {
            Some(_) if !self.gone.contains(path) => Err(in_the_way(path)),
            _ => Ok(()),
        }
    }

    fn need_dir(&self, dir: &Path, view: &ViewChanges, dirs: &mut BTreeMap<PathBuf, u32>) -> Result<()> {
        if dir.as_os_str().is_empty() || dirs.contains_key(dir) {
            return Ok(());
        }
        match self.base().facts(dir)? {
            Some(facts) if facts.is_dir() && !self.gone.contains(dir) => Ok(()),
            Some(facts) if !facts.is_dir() && !self.gone.contains(dir) => Err(in_the_way(dir)),
            _ => {
                let mode = view.new_dirs.get(dir).map_or(0o755, |mode| mode & 0o777);
                dirs.insert(dir.to_owned(), mode);
                Ok(())
            }
        }
    }
}

fn in_the_way(path: &Path) -> Error {
    Error::conflict(format!("{} is in the way in the project; name its removal too", path.display()))
}

fn changed(path: &Path) -> Error {
    Error::conflict(format!("{} is not in the project any more", path.display()))
}
