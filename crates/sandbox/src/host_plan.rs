//! A plan on the paths of the host, for the second level. Refuses what Landlock alone cannot hold.
//! [`landlock_only`](super::landlock_only) uses it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::path_rules::Visibility;
use super::plan::{Bind, Plan};
use super::system;
use acheron_base::{Error, Result};

/// A plan on the paths of the host, and what its program may read.
pub(super) struct HostPlan {
    pub plan: Plan,
    pub readable: Vec<PathBuf>,
    pub scratch: Scratch,
}

/// A private directory in place of `/tmp` and `/home`. Dropping it removes it.
pub(super) struct Scratch {
    pub path: PathBuf,
    /// A fork must not remove it.
    maker: u32,
}

impl Scratch {
    fn make() -> Result<Scratch> {
        let maker = std::process::id();
        let path = std::env::temp_dir().join(format!("acheron-scratch-{maker}"));
        // One of the same name is left from a process that was killed, or is somebody else's.
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir() && meta.uid() == nix::unistd::getuid().as_raw()) {
            fs::remove_dir_all(&path)?;
        }
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Scratch { path, maker })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.maker == std::process::id() {
            _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The plan with the names of the host in place of those inside. Refuses what Landlock alone cannot hold.
pub(super) fn on_host(plan: &Plan) -> Result<HostPlan> {
    refuse_hidden(plan)?;
    plan.binds.iter().try_for_each(own)?;
    let scratch = Scratch::make()?;
    let mut host = plan.clone();
    let name = |path: &Path| outside(plan, path);
    for bind in &mut host.binds {
        bind.target = bind.source.clone();
    }
    for rule in &mut host.path_rules {
        let (path, bind) = (name(&rule.path), name(&rule.bind));
        (rule.path, rule.bind) = (path.unwrap_or(rule.path.clone()), bind.unwrap_or(rule.bind.clone()));
    }
    host.links.clear();
    let home = plan.cwd.starts_with("/home") || plan.cwd.starts_with("/tmp");
    host.cwd = match name(&plan.cwd) {
        Some(path) => path,
        None if home => scratch.path.clone(),
        None => {
            return Err(Error::not_found(format!(
                "the working directory `{}` is in none of the directories that the sandbox shows",
                plan.cwd.display()
            )));
        }
    };
    for name in ["HOME", "TMPDIR"] {
        host.env.insert(name.to_owned(), scratch.path.display().to_string());
    }
    if let Some(tree) = tree(plan) {
        host.env.insert("ACHERON_TREE".to_owned(), tree.display().to_string());
    }
    let named = system::DIRECTORIES.iter().map(|name| Path::new("/").join(name));
    let readable = named.chain(system::etc(plan.network)).chain(plan.system.iter().cloned());
    let readable = readable.filter(|path| path.exists()).chain(plan.binds.iter().map(|bind| bind.source.clone()));
    Ok(HostPlan { readable: readable.collect(), plan: host, scratch })
}

/// Landlock knows only what is allowed: nothing can be hidden in a directory that may be read.
fn refuse_hidden(plan: &Plan) -> Result<()> {
    let rules = plan.path_rules.iter().filter(|rule| rule.show == Visibility::Hidden).map(|rule| &rule.path);
    match rules.chain(&plan.hidden).next() {
        None => Ok(()),
        Some(path) => Err(Error::unavailable(format!(
            "Landlock alone cannot hide `{}` in a directory that programs may read: move it elsewhere, or run on a \
             machine with namespaces",
            path.display()
        ))),
    }
}

/// Refuses a directory that is not the one that was bound, or that only its owner could write.
fn own(bind: &Bind) -> Result<()> {
    if let Some(id) = bind.id {
        acheron_base::host_dir::same(&bind.source, id)?;
    }
    let owner = fs::metadata(&bind.source)?.uid();
    if !bind.read_only && nix::unistd::getuid().is_root() && owner != 0 {
        return Err(Error::unavailable(format!(
            "`{}` belongs to user {owner}, and without namespaces it cannot be written for that user; run acheron as that \
             user, or bind the directory read-only",
            bind.source.display()
        )));
    }
    Ok(())
}

/// The path of the host behind one inside.
fn outside(plan: &Plan, path: &Path) -> Option<PathBuf> {
    let binds = plan.binds.iter().filter(|bind| path.starts_with(&bind.target));
    let bind = binds.max_by_key(|bind| bind.target.components().count())?;
    let below = path.strip_prefix(&bind.target).ok()?;
    Some(if below.as_os_str().is_empty() { bind.source.clone() } else { bind.source.join(below) })
}

/// Where the tree is mounted.
fn tree(plan: &Plan) -> Option<PathBuf> {
    let own = plan.binds.iter().find(|bind| bind.target == Path::new("/agents").join(&plan.agent))?;
    own.source.parent()?.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_rules::PathRule;

    #[test]
    fn names_inside_become_names_of_the_host() {
        let dir = tempfile::tempdir().unwrap();
        let mut plan = Plan::new("charon", ["true"]).bind(dir.path(), "/projects/p/fs", false);
        plan.cwd = "/projects/p/fs/sub".into();
        let rule = |show| PathRule { path: "/projects/p/fs/.git".into(), bind: "/projects/p/fs".into(), show };
        plan.path_rules = vec![rule(Visibility::ReadOnly)];
        let host = on_host(&plan).unwrap();
        assert_eq!(host.plan.cwd, dir.path().join("sub"));
        assert_eq!(host.plan.path_rules[0].path, dir.path().join(".git"));
        let scratch = host.scratch.path.clone();
        assert!(scratch.is_dir());
        drop(host);
        assert!(!scratch.exists());
        plan.cwd = "/elsewhere".into();
        assert!(on_host(&plan).is_err());
        plan.path_rules = vec![rule(Visibility::Hidden)];
        let refused = on_host(&plan).err().unwrap();
        assert!(refused.message.starts_with("Landlock alone cannot hide `/projects/p/fs/.git`"), "{refused}");
    }
}
