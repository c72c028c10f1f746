//! The files of the host that lie in its projects, and the rules that protect them from agents.
//!
//! The state and the key of the fabric are not to be seen, and what says what the host does is not to be written: the mountspec, prompts, the library,
//! programs of services.
//! As rules, they hold wherever rules hold: in the tree, in searches, in sandboxes.

use std::path::{Path, PathBuf};

use super::projects::plain;
use super::trusted_defaults::TrustedDefaults;
use super::{HostState, programs, protected_names, system_paths};
use crate::policy::{Action, Rule};
use crate::services::views::staged_in;
use acheron_base::{ConfinedDir, Error, Result};

/// Something of the host's own, without links in its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedPath {
    pub path: PathBuf,
    pub hidden: bool,
}

/// Makes the rules for what is bound now count.
pub fn keep(host: &HostState) -> Result<()> {
    let spec = host.current.spec();
    let mut rules = Vec::new();
    let own = own(host);
    for (id, project) in &spec.projects {
        for (at, bind) in &project.binds {
            // One that is not shown yet counts as it would be.
            let source = host.projects.source(id, at).map(|source| source.path);
            let source = source.or_else(|| host.paths.here.join(&bind.path).canonicalize().ok());
            let Some(source) = source else { continue };
            let place = place(id, at);
            rules.extend(own.iter().filter_map(|own| rule(own, &source, &place)));
        }
    }
    system_paths::note(host);
    rules.extend(programs::rules(&spec, &host.paths.here));
    rules.extend(protected_names::rules(&host.protected_names, &spec, &host.paths.here)?);
    let sources = written_sources(host);
    TrustedDefaults::note(&host.paths.state, &host.paths.here, |path| {
        sources.iter().any(|source| path.starts_with(source))
    })?;
    host.profiles.bind_all(rules);
    host.access.follow(|| host.profiles.policy())?;
    Ok(())
}

/// Looks again for what other programs run by themselves, if that was long ago. Blocks.
pub fn look_again(host: &HostState) -> Result<()> {
    match protected_names::look_again(&host.protected_names, &host.current.spec(), &host.paths.here)? {
        true => keep(host),
        false => Ok(()),
    }
}

/// Where a bind of a project shows in the tree.
pub fn place(id: &str, at: &str) -> String {
    format!("/projects/{id}/fs{}", at.trim_end_matches('/'))
}

/// Whether what is at `path` lies in a project that agents may write, as the mountspec reads now.
pub fn written(host: &HostState, path: &Path) -> bool {
    let named = named(path);
    written_sources(host).iter().any(|source| named.iter().any(|path| path.starts_with(source)))
}

/// A folder that the mountspec names, made if it is not there. From the first directory that agents may write downwards no
/// link is followed, for an agent may have put it there to have the host read and write elsewhere.
pub fn folder(host: &HostState, path: &Path) -> Result<ConfinedDir> {
    let path = plain(&host.paths.here.join(path));
    let mut written = written_sources(host);
    // One that lies in another is reached through what agents write.
    written.sort_by_key(|source| source.components().count());
    let above: Vec<&Path> = path.ancestors().collect();
    for above in above.into_iter().rev() {
        let Ok(real) = above.canonicalize() else { break };
        let Some(source) = written.iter().find(|source| real.starts_with(source)) else { continue };
        let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
        let below = real.strip_prefix(source).unwrap_or(Path::new("")).join(rest);
        let below = below.to_str().ok_or_else(|| Error::invalid(format!("{} is not text", path.display())))?;
        let place = ConfinedDir::open(source)?.without_links();
        let opened = place.make_dir(below).and_then(|()| place.within(below));
        return opened.map_err(|error| {
            let source = source.display();
            Error::new(
                error.code,
                format!("{}: {}, in {source}, which agents may write", path.display(), error.message),
            )
        });
    }
    ConfinedDir::create(path)
}

/// The directories that agents may write, as the mountspec reads now.
fn written_sources(host: &HostState) -> Vec<PathBuf> {
    programs::written(&host.current.spec(), &host.paths.here).into_iter().map(|(source, _)| source).collect()
}

/// All that is the host's own.
pub(super) fn own(host: &HostState) -> Vec<ProtectedPath> {
    let mut all = Vec::new();
    let mut add = |path: &Path, hidden| all.extend(named(path).into_iter().map(|path| ProtectedPath { path, hidden }));
    add(&host.paths.state, true);
    [host.shared.prompts.folder(), host.paths.library.folder()]
        .into_iter()
        .flatten()
        .for_each(|folder| add(folder, false));
    // What is about to be promoted is not for agents that work in the project itself.
    for project in host.current.spec().projects.keys() {
        let staged = host.projects.source(project, "/").and_then(|base| staged_in(&host.paths.state, &base.path));
        staged.iter().for_each(|dir| add(dir, true));
    }
    // The key by which this host is known to others.
    let fabric = host.current.mounted_with.fabric.as_ref();
    let key = fabric.and_then(|fabric| fabric.credentials.as_ref()).map(|file| host.paths.here.join(file));
    key.iter().for_each(|file| add(file, true));
    host.paths.skills.iter().for_each(|folder| add(folder, false));
    host.paths.mountspec.get().into_iter().for_each(|file| add(file, false));
    // A process that moves the directory of the mount could put another tree in its place.
    host.paths.mountpoint.iter().for_each(|at| add(at, false));
    all
}

/// A path as it is named, as it really is, and wherever else the same is mounted; the last name may be a link.
fn named(path: &Path) -> Vec<PathBuf> {
    let above = path.parent().and_then(|above| above.canonicalize().ok());
    let beside = above.zip(path.file_name()).map(|(above, name)| above.join(name));
    let mounts = acheron_base::mountinfo::current().unwrap_or_default();
    let real = beside.into_iter().chain(path.canonicalize().ok());
    let mut all: Vec<PathBuf> = real.flat_map(|path| acheron_base::mountinfo::also_at(&mounts, &path)).collect();
    all.sort();
    all.dedup();
    all
}

/// The rule for something of the host's own in what is bound at a place of the tree.
fn rule(own: &ProtectedPath, source: &Path, place: &str) -> Option<Rule> {
    let below = match own.path.strip_prefix(source) {
        Ok(below) => Path::new(place).join(below),
        Err(_) if source.starts_with(&own.path) => PathBuf::from(place),
        Err(_) => return None,
    };
    let actions: &[Action] = if own.hidden { &[Action::Read, Action::Write] } else { &[Action::Write] };
    let below = below.components().collect::<PathBuf>();
    Some(Rule::deny(actions, format!("{}/**", below.display())))
}

/// Where a path leads if nothing below `written` is a link; `None` if it does not lead there.
pub fn led_by(path: &Path, written: &Path) -> Option<PathBuf> {
    let above: Vec<&Path> = path.ancestors().collect();
    above.into_iter().rev().find_map(|above| {
        let real = above.canonicalize().ok().filter(|real| real.starts_with(written))?;
        Some(real.join(path.strip_prefix(above).ok()?).components().collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_hosts_own_is_found_in_what_is_bound() {
        let said = |own: &str, hidden, source: &str| {
            let rule = rule(&ProtectedPath { path: own.into(), hidden }, Path::new(source), "/projects/p/fs");
            rule.map_or("-".to_owned(), |rule| format!("{} {}", rule.path, rule.deny.len()))
        };
        for (own, hidden, source, expected) in [
            ("/w/state", true, "/w", "/projects/p/fs/state/** 2"),
            ("/w/a/spec.json", false, "/w", "/projects/p/fs/a/spec.json/** 1"),
            ("/w", true, "/w", "/projects/p/fs/** 2"),
            ("/w", true, "/w/agents", "/projects/p/fs/** 2"),
            ("/w/state", true, "/w/st", "-"),
        ] {
            assert_eq!(said(own, hidden, source), expected, "{own} in {source}");
        }
    }

    #[test]
    fn a_link_that_an_agent_could_have_made_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("rw/docs")).unwrap();
        std::os::unix::fs::symlink("/etc", at("rw/out")).unwrap();
        assert_eq!(led_by(&at("rw/docs"), &at("rw")), Some(at("rw/docs")));
        assert_eq!(led_by(&at("rw/out"), &at("rw")), Some(at("rw/out")), "and that is not where it leads");
        assert_eq!(led_by(Path::new("/etc"), &at("rw")), None);
    }
}
