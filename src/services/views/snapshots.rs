//! Snapshots of a view, and the way back to one. Coming back makes a new upper from the copy; the one that counted until then
//! becomes a snapshot itself, so that coming back can be undone.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::journal::write_whole;
use super::view::{View, ViewWork, remove_all};
use acheron_base::{Error, Result, failpoint};
use acheron_views::checkpoint::{self, CheckpointLimits, CopiedFiles};
use acheron_views::ignored::IgnoreRules;
use acheron_views::walk::Layers;
use acheron_views::{EntryFacts, EntryType, MarkNames, Root};

/// A view has at most this many; the oldest goes.
pub const MOST: usize = 40;
pub const LIMITS: CheckpointLimits = CheckpointLimits { files: 50_000, bytes: 512 << 20 };
/// The snapshot of what was there before the last way back.
pub const BEFORE: &str = "before";

impl View {
    /// Keeps a copy of what is changed now, under a name. What the project's ignore rules name is left out.
    pub fn snapshot(&self, name: &str) -> Result<Value> {
        let mut work = self.begin()?;
        self.copy_to(&mut work, name)
    }

    pub(super) fn copy_to(&self, _work: &mut ViewWork, name: &str) -> Result<Value> {
        let open = self.open()?;
        let (all, at) = (self.snapshots()?, self.places.snapshots().join(name));
        let aside = self.places.snapshots().join(format!(".new-{name}"));
        _ = fs::remove_dir_all(&aside);
        fs::create_dir_all(&aside).map_err(|err| Error::from(err).about(aside.display()))?;
        let last = all.last().map(|last| self.places.snapshots().join(last));
        let known = last.as_deref().and_then(|last| Some((last.join("upper"), copied(last)?)));
        let before = known.as_ref().map(|(dir, copied)| (dir.as_path(), copied));
        let rules = IgnoreRules::new(open.layers());
        let skip = |path: &Path| is_ignored(&rules, &open.upper, path);
        let made = checkpoint::copy(&open.upper, &aside.join("upper"), before, LIMITS, &skip);
        let made = made.and_then(|made| {
            let bytes = serde_json::to_vec(&made).map_err(|err| Error::internal(err.to_string()))?;
            write_whole(&aside.join("copied.json"), &bytes)?;
            Ok(made)
        });
        let made = made.inspect_err(|_| _ = fs::remove_dir_all(&aside))?;
        failpoint::step("snapshot.copied");
        remove_all(&at)?;
        fs::rename(&aside, &at).map_err(|err| Error::from(err).about(at.display()))?;
        for old in all.iter().take((all.len() + 1).saturating_sub(MOST)) {
            remove_all(&self.places.snapshots().join(old))?;
        }
        Ok(json!({"snapshot": name, "files": made.files.len(), "bytes": made.bytes}))
    }

    /// The names of the snapshots, oldest first.
    pub fn snapshots(&self) -> Result<Vec<String>> {
        let Ok(found) = fs::read_dir(self.places.snapshots()) else { return Ok(Vec::new()) };
        let mut all: Vec<(std::time::SystemTime, String)> = Vec::new();
        for entry in found.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.')
                && let Ok(meta) = entry.path().join("copied.json").metadata()
            {
                all.push((meta.modified()?, name));
            }
        }
        all.sort();
        Ok(all.into_iter().map(|(_, name)| name).collect())
    }

    /// Brings the view back to a snapshot. Programs in it are ended first. What was there becomes the snapshot `before`.
    pub fn restore(&self, name: &str) -> Result<Value> {
        let mut work = self.begin()?;
        let from = self.places.snapshots().join(name).join("upper");
        if !from.is_dir() || name.starts_with('.') || name.contains('/') {
            return Err(Error::not_found(format!("the view has no snapshot {}", acheron_base::quoted(name))));
        }
        self.users.end_programs(self, "the view that it worked in goes back to a snapshot");
        let record = self.record();
        let next = record.generation + 1;
        let at = self.places.generation(next);
        _ = fs::remove_dir_all(&at);
        fs::create_dir_all(&at).map_err(|err| Error::from(err).about(at.display()))?;
        checkpoint::copy(&Root::open(&from)?, &at.join("upper"), None, LIMITS, &|_| false)?;
        self.unmount()?;
        failpoint::step("restore.copied");
        self.save(super::ViewRecord { generation: next, ..record })?;
        failpoint::step("restore.decided");
        self.finish_restore()?;
        work.compared = Default::default();
        self.mount()?;
        Ok(json!({"restored": name, "before": BEFORE}))
    }

    pub fn forget_snapshot(&self, name: &str) -> Result<()> {
        let _work = self.begin()?;
        remove_all(&self.places.snapshots().join(name))
    }

    /// The paths in which the view differs from a snapshot.
    pub fn differs_from(&self, name: &str) -> Result<Vec<String>> {
        let _work = self.begin()?;
        let at = self.places.snapshots().join(name).join("upper");
        let (now, then) = (self.open()?, Root::open(&at)?);
        let rules = IgnoreRules::new(now.layers());
        let mut paths = std::collections::BTreeSet::new();
        for (one, other) in [(&now.upper, &then), (&then, &now.upper)] {
            for (path, facts) in acheron_views::walk::below(one, Path::new(""))? {
                if !is_ignored(&rules, one, &path) && !same(one, other, &path, &facts)? {
                    paths.insert(path.display().to_string());
                }
            }
        }
        Ok(paths.into_iter().collect())
    }

    /// Ends a way back that was decided, also by a host that was killed then: the upper that counted before gives what is
    /// ignored, which is not in snapshots, and becomes a snapshot itself.
    pub(super) fn finish_restore(&self) -> Result<()> {
        let generation = self.record().generation;
        let Some(before) = generation.checked_sub(1) else { return Ok(()) };
        let old = self.places.generation(before);
        if !old.is_dir() {
            return Ok(());
        }
        self.carry_ignored(before, generation)?;
        let at = self.places.snapshots().join(BEFORE);
        fs::create_dir_all(self.places.snapshots()).map_err(|err| Error::from(err).about(at.display()))?;
        let bytes = serde_json::to_vec(&CopiedFiles::default()).map_err(|err| Error::internal(err.to_string()))?;
        write_whole(&old.join("copied.json"), &bytes)?;
        remove_all(&at)?;
        fs::rename(&old, &at).map_err(|err| Error::from(err).about(at.display()))?;
        remove_all(&at.join("work"))
    }

    fn carry_ignored(&self, from: u64, to: u64) -> Result<()> {
        let record = self.record();
        let (upper, base) = (Root::open(&self.places.upper(from))?, Root::open(&record.base)?);
        let rules = IgnoreRules::new(Layers { upper: &upper, base: &base, marks: MarkNames::Trusted });
        let mut open = vec![PathBuf::new()];
        while let Some(dir) = open.pop() {
            for (name, facts) in upper.list(&dir)? {
                let path = dir.join(name);
                let target = self.places.upper(to).join(&path);
                if !is_ignored(&rules, &upper, &path) {
                    if facts.is_dir() && target.is_dir() {
                        open.push(path);
                    }
                } else if target.symlink_metadata().is_err() {
                    let told = |err: std::io::Error| Error::from(err).about(target.display());
                    fs::rename(upper.path().join(&path), &target).map_err(told)?;
                }
            }
        }
        Ok(())
    }
}

fn is_ignored(rules: &IgnoreRules<'_>, upper: &Root, path: &Path) -> bool {
    let is_dir = upper.facts(path).is_ok_and(|facts| facts.is_some_and(|facts| facts.is_dir()));
    rules.top(path, is_dir).is_some()
}

/// Whether both have the same at a path. A directory is told by what is in it.
fn same(one: &Root, other: &Root, path: &Path, facts: &EntryFacts) -> Result<bool> {
    let Some(there) = other.facts(path)? else { return Ok(facts.is_dir()) };
    if facts.is_dir() || (facts.kind, facts.mode, facts.whiteout) != (there.kind, there.mode, there.whiteout) {
        return Ok(facts.is_dir() == there.is_dir());
    }
    match facts.kind {
        EntryType::File if facts.size == there.size => {
            acheron_views::root::same_bytes(one.open_file(path)?, other.open_file(path)?)
        }
        EntryType::File => Ok(false),
        EntryType::Link => Ok(one.read_link(path)? == other.read_link(path)?),
        _ => Ok(true),
    }
}

fn copied(snapshot: &Path) -> Option<CopiedFiles> {
    serde_json::from_slice(&fs::read(snapshot.join("copied.json")).ok()?).ok()
}
