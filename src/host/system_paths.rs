//! The files of the host in directories of the system: every sandbox shows these directories, but must hide the files.
//!
//! Rules hold under `/projects`; `/usr/src/x` is another name for the same files. So everything that is the host's own, and
//! every directory of a project, the agent's too, is covered where it shows as a part of the system.

use std::path::PathBuf;

use parking_lot::RwLock;

use super::{HostState, protected_paths};
use acheron_base::{Error, Result, mountinfo};
use acheron_sandbox::SystemView;

/// Paths without links, as they were when the mountspec was read: to ask for them later could ask our own mount.
#[derive(Default)]
pub struct SystemPaths(RwLock<KnownPaths>);

#[derive(Clone, Default)]
struct KnownPaths {
    own: Vec<PathBuf>,
    projects: Vec<PathBuf>,
}

/// Notes the paths as the mountspec reads now.
pub fn note(host: &HostState) {
    let spec = host.current.spec();
    let mut own: Vec<PathBuf> = protected_paths::own(host).into_iter().map(|own| own.path).collect();
    let kept = [&host.current.mounted_with.recall.store, &host.current.mounted_with.dm.root];
    own.extend(kept.into_iter().flatten().filter_map(|kept| host.paths.here.join(kept).canonicalize().ok()));
    let mut projects = Vec::new();
    for (id, project) in &spec.projects {
        for (at, bind) in &project.binds {
            projects.extend(host.projects.source(id, at).map(|source| source.path));
            // One that could not be opened may be there all the same.
            projects.extend(host.paths.here.join(&bind.path).canonicalize());
        }
    }
    projects.sort();
    projects.dedup();
    *host.system_paths.0.write() = KnownPaths { own, projects };
}

/// The host's own paths, without links.
pub fn own(host: &HostState) -> Vec<PathBuf> {
    host.system_paths.0.read().own.clone()
}

/// The part of the system that sandboxes show, with the current mounts.
pub fn shown(host: &HostState) -> Result<SystemView> {
    let named: Vec<PathBuf> = host.current.spec().sandbox.system.iter().map(PathBuf::from).collect();
    let KnownPaths { own, projects } = host.system_paths.0.read().clone();
    for path in &named {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if own.iter().any(|own| real.starts_with(own)) {
            let named = path.display();
            let said =
                format!("sandbox.system of the mountspec names {named}, which is a part of the host's own state");
            return Err(Error::invalid(format!("{said} or settings; name another directory, or none")));
        }
    }
    let hidden = acheron_sandbox::hidden_paths(&[own, projects].concat(), &named, &mountinfo::current()?);
    Ok(SystemView { named, hidden })
}
