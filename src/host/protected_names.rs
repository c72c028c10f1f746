//! The files of a project that other programs run or obey by themselves, such as `.git/hooks` and `.mcp.json`.
//!
//! An agent that may write them has its programs run by whoever works in the project next. The mountspec names them
//! (`protected`); they become rules, like everything else that agents may not write. A name holds in every directory where
//! something has it, so the directories of a project are read; that takes time, so the result is kept for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::protected_paths::place;
use crate::policy::{Action, Rule};
use crate::spec::Spec;
use acheron_base::{Error, Result, mountinfo};

/// As many names of a project are looked at.
const NAMES: usize = 1_000_000;
/// A result is good for as many times the time that it took: looking costs at most this part of the time.
const PATIENCE: u32 = 20;
/// Where git keeps the settings and hooks of modules.
const MODULES: &str = ".git/modules";

/// A directory with this file may pass for a repository of git, whose settings run programs. Only at the top, where people
/// work: in a real repository git itself writes it.
const REPOSITORY: &str = "HEAD";
const HOOKS: &str = ".git/hooks";

/// The names that are protected at the top of a project, whether something has them or not.
fn at_top(names: &[String]) -> impl Iterator<Item = String> {
    let git = names.iter().any(|name| name == HOOKS);
    names.iter().cloned().chain(git.then(|| REPOSITORY.to_owned()))
}

/// What was found in each directory.
#[derive(Default)]
pub struct ProtectedNames(Mutex<BTreeMap<PathBuf, FoundNames>>);

#[derive(Clone)]
struct FoundNames {
    paths: BTreeSet<PathBuf>,
    good_until: Instant,
}

/// The rules for every bind that agents may write, with what was found last, or now if nothing was looked for yet.
pub fn rules(known: &ProtectedNames, spec: &Spec, here: &Path) -> Result<Vec<Rule>> {
    let mut rules = Vec::new();
    for (source, at, names) in written(spec, here) {
        let before = known.0.lock().get(&source).cloned();
        let found = match before {
            Some(found) => found.paths,
            None => known.look(&source, names)?,
        };
        let paths = found.into_iter().chain(at_top(names).map(PathBuf::from)).collect::<BTreeSet<PathBuf>>();
        let text = paths.iter().filter_map(|path| path.to_str());
        rules.extend(text.map(|path| Rule::deny(&[Action::Write], format!("{at}/{path}/**"))));
    }
    Ok(rules)
}

/// Looks again where the last result is too old. Returns whether something is different.
pub fn look_again(known: &ProtectedNames, spec: &Spec, here: &Path) -> Result<bool> {
    let mut changed = false;
    for (source, _, names) in written(spec, here) {
        let before = known.0.lock().get(&source).cloned();
        if before.as_ref().is_some_and(|found| Instant::now() < found.good_until) {
            continue;
        }
        let now = known.look(&source, names)?;
        changed |= before.is_none_or(|before| before.paths != now);
    }
    Ok(changed)
}

/// The directories that agents may write, where they show in the tree, and the names that are protected in them.
fn written<'a>(spec: &'a Spec, here: &Path) -> Vec<(PathBuf, String, &'a [String])> {
    let projects = spec.projects.iter().filter(|(_, project)| !project.protected.is_empty());
    let binds = projects.flat_map(|(id, project)| project.binds.iter().map(move |bind| (id, project, bind)));
    let written = binds.filter(|(_, _, (_, bind))| !bind.read_only);
    written
        .filter_map(|(id, project, (at, bind))| {
            Some((here.join(&bind.path).canonicalize().ok()?, place(id, at), project.protected.as_slice()))
        })
        .collect()
}

impl ProtectedNames {
    /// The protected paths of a directory: those that were found last, and the names themselves at its top.
    pub fn of(&self, source: &Path, names: &[String]) -> Vec<String> {
        let found = self.0.lock().get(source).map(|found| found.paths.clone()).unwrap_or_default();
        let text = found.into_iter().filter_map(|path| path.into_os_string().into_string().ok());
        text.chain(at_top(names)).collect::<BTreeSet<String>>().into_iter().collect()
    }

    fn look(&self, source: &Path, names: &[String]) -> Result<BTreeSet<PathBuf>> {
        let began = Instant::now();
        let paths = found(source, names)?;
        let good_until = Instant::now() + began.elapsed().min(Duration::from_secs(60)) * PATIENCE;
        self.0.lock().insert(source.to_owned(), FoundNames { paths: paths.clone(), good_until });
        Ok(paths)
    }
}

/// Every path below `source` that has one of the names, or stands in the way of one.
fn found(source: &Path, names: &[String]) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    let mut count = 0;
    // What is mounted in a project is not a part of it, and may be our own mount, which would wait for us.
    let mounts: BTreeSet<PathBuf> = mountinfo::current()?.iter().map(|mount| mount.point.clone()).collect();
    while let Some(directory) = open.pop() {
        // One that cannot be read, or is gone, holds nothing that could be found.
        let Ok(entries) = std::fs::read_dir(source.join(&directory)) else { continue };
        for entry in entries.flatten() {
            count += 1;
            if count > NAMES {
                let said =
                    format!("{} has more than {NAMES} names, too many to find what is protected", source.display());
                return Err(Error::too_large(format!("{said}; bind a smaller directory, or set `protected` to []")));
            }
            let name = entry.file_name();
            let path = directory.join(&name);
            let mine = names.iter().filter(|wanted| Path::new(wanted).iter().next() == Some(&name));
            found.extend(mine.filter_map(|wanted| at(source, &directory, Path::new(wanted))));
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if mounts.contains(&source.join(&path)) {
                continue;
            }
            match name == ".git" {
                true => modules(source, &path, names, &mut found),
                false => open.push(path),
            }
        }
    }
    let led: Vec<PathBuf> = found.iter().filter_map(|path| leads_to(source, path)).collect();
    found.extend(led);
    Ok(found)
}

/// Where a name stands in a directory: the whole, or the first part of it that is no directory. Git takes a file `.git`
/// for the name of another directory.
fn at(source: &Path, directory: &Path, wanted: &Path) -> Option<PathBuf> {
    let mut path = directory.to_owned();
    for part in wanted {
        path.push(part);
        let meta = source.join(&path).symlink_metadata().ok()?;
        if !meta.is_dir() {
            return Some(path);
        }
    }
    Some(path)
}

/// The directories of git for the modules of a repository have hooks and settings too.
fn modules(source: &Path, git: &Path, names: &[String], found: &mut BTreeSet<PathBuf>) {
    let inner: Vec<&Path> = names.iter().filter_map(|name| Path::new(name).strip_prefix(".git").ok()).collect();
    let mut open = vec![git.with_file_name(MODULES)];
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(source.join(&directory)).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let below: Vec<PathBuf> = below.map(|entry| directory.join(entry.file_name())).collect();
        match source.join(&directory).join("HEAD").exists() {
            true => {
                found.extend(inner.iter().filter_map(|wanted| at(source, &directory, wanted)));
                open.push(directory.join("modules"));
            }
            false => open.extend(below),
        }
    }
}

/// Where a link leads, if that is in the same directory tree.
fn leads_to(source: &Path, path: &Path) -> Option<PathBuf> {
    let whole = source.join(path);
    let real = whole.symlink_metadata().ok().filter(std::fs::Metadata::is_symlink).and(whole.canonicalize().ok())?;
    real.strip_prefix(source).ok().filter(|below| !below.as_os_str().is_empty()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_at_any_depth_and_with_what_they_lead_to() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for directory in
            ["a/b/.git/hooks", ".git/hooks", ".git/modules/deep/sub/hooks", "a/.claude", "shared", "x/.github"]
        {
            std::fs::create_dir_all(top.join(directory)).unwrap();
        }
        for file in
            ["a/b/.git/config", ".git/modules/deep/sub/HEAD", ".git/modules/deep/sub/config", "deep.git", "a/mcp"]
        {
            std::fs::write(top.join(file), "").unwrap();
        }
        std::fs::create_dir(top.join("tree")).unwrap();
        std::fs::write(top.join("tree/.git"), "gitdir: ../.git/worktrees/tree").unwrap();
        std::os::unix::fs::symlink("../shared", top.join("a/.cursor")).unwrap();
        let names = [".git/hooks", ".git/config", ".claude", ".cursor", ".github/workflows"].map(str::to_owned);
        let all = found(&top, &names).unwrap();
        let all: Vec<&str> = all.iter().filter_map(|path| path.to_str()).collect();
        let expected = [
            ".git/hooks",
            ".git/modules/deep/sub/config",
            ".git/modules/deep/sub/hooks",
            "a/.claude",
            "a/.cursor",
            "a/b/.git/config",
            "a/b/.git/hooks",
            "shared",
            "tree/.git",
        ];
        assert_eq!(all, expected);
    }
}
