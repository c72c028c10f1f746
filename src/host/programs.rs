//! Programs of services that agents could change: refused, protected, or less trusted.
//!
//! A program that lies in a directory that agents may write is theirs to replace. An unconfined one is refused there by
//! `check`, at mount, at reload and once more when it is called. A confined one is protected by rules, with the directory
//! that it loads its other files from; where rules cannot protect it, it has neither its variables nor the network.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::HostState;
use super::protected_paths::place;
use crate::contract::ValueFault;
use crate::policy::{Action, Policy, Rule, any_agent_reaches};
use crate::services::external::{FileRole, ProgramFile, Trust, WITHHELD, program_files};
use crate::spec::{ServiceSpec, Spec};
use acheron_base::{Error, Result};

/// As many names of a directory are looked at for another name of a program.
const NAMES: usize = 200_000;

/// The directories that agents may write, without links, and where they show in the tree.
pub fn written(spec: &Spec, here: &Path) -> Vec<(PathBuf, String)> {
    let binds = spec.projects.iter().flat_map(|(id, project)| project.binds.iter().map(move |bind| (id, bind)));
    let written = binds.filter(|(_, (_, bind))| !bind.read_only);
    written.filter_map(|(id, (at, bind))| Some((here.join(&bind.path).canonicalize().ok()?, place(id, at)))).collect()
}

/// Refuses a mountspec with a program that agents could replace. `more` are directories that services write for agents.
pub fn check<'a>(spec: &Spec, here: &Path, more: impl IntoIterator<Item = Option<&'a Path>>) -> Result<()> {
    let faults = faults(spec, here, more.into_iter().flatten());
    if faults.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = faults.iter().map(|fault| format!("\n  {fault}")).collect();
    Err(Error::invalid(format!("the mountspec cannot be mounted:{}", lines.concat())))
}

/// Every program of a mountspec that agents could replace, with the reason.
pub fn faults<'a>(spec: &Spec, here: &Path, more: impl IntoIterator<Item = &'a Path>) -> Vec<ValueFault> {
    let sources = sources(spec, here, more);
    let mut faults = Vec::new();
    for (name, service) in spec.services.iter().filter(|(_, service)| !service.program().0.is_empty()) {
        let files = program_files(service, here);
        let again = files.iter().filter(|_| service.unconfined).filter_map(|file| other_name(file, &sources));
        // One reason for each word is enough.
        let mut told = BTreeSet::new();
        for (at, message) in files.iter().filter_map(|file| refused(service, file, &sources)).chain(again) {
            if told.insert(at.to_owned()) {
                faults.push(ValueFault { path: format!("services.{name}.{at}"), message });
            }
        }
    }
    faults
}

/// How far a program is trusted, as rules and binds are now.
pub fn trust(host: &HostState, service: &ServiceSpec) -> Result<Trust> {
    let (spec, here) = (host.current.spec(), &host.paths.here);
    let more = [Some(host.paths.state.as_path()), host.paths.mountpoint.as_deref()];
    let sources = sources(&spec, here, more.into_iter().flatten());
    let files = program_files(service, here);
    if let Some((_, why)) = files.iter().find_map(|file| refused(service, file, &sources)) {
        return Err(Error::forbidden(why));
    }
    let here_written = here.canonicalize().is_ok_and(|here| sources.iter().any(|source| here.starts_with(source)));
    let withheld = match service.unconfined {
        true => None,
        false => exposed(&files, &written(&spec, here), &host.access.policy()),
    };
    Ok(Trust { withheld, here_written })
}

/// Warnings about programs that are less trusted than their mountspec says.
pub fn notes(spec: &Spec, here: &Path) -> Vec<String> {
    withheld(spec, here).into_iter().map(|(name, why)| format!("services.{name} {WITHHELD}: {why}")).collect()
}

/// The programs whose variables and network are withheld, with the reason.
pub fn withheld(spec: &Spec, here: &Path) -> Vec<(String, String)> {
    let (written, rules) = (written(spec, here), rules(spec, here));
    let policy = spec.agents.iter().try_fold(Policy::default(), |policy, (id, agent)| {
        let own: Vec<Rule> = agent.permissions.iter().chain(&rules).cloned().collect();
        policy.agent(id, &agent.projects, &own)
    });
    let Ok(policy) = policy else { return Vec::new() };
    let confined = spec.services.iter().filter(|(_, service)| !service.program().0.is_empty() && !service.unconfined);
    let note = |(name, service): (&String, &ServiceSpec)| {
        let why = exposed(&program_files(service, here), &written, &policy)?;
        Some((name.clone(), why))
    };
    confined.filter_map(note).collect()
}

/// Rules that keep agents from writing programs and what these load, in every bind that they may write.
pub fn rules(spec: &Spec, here: &Path) -> Vec<Rule> {
    let mut rules = BTreeSet::new();
    let written = written(spec, here);
    let sources: Vec<PathBuf> = written.iter().map(|(source, _)| source.clone()).collect();
    for service in spec.services.values().filter(|service| !service.program().0.is_empty()) {
        for file in program_files(service, here).iter().filter(|file| file.role == FileRole::Runs && file.exists) {
            let again = other_names(file, &sources);
            for (source, place) in &written {
                let directories: Vec<&PathBuf> =
                    file.directories.iter().filter(|directory| inside(directory, source)).collect();
                let alone = file.names.last().into_iter().chain(&again).filter(|name| inside(name, source));
                let alone = alone.filter(|name| !directories.iter().any(|directory| name.starts_with(directory)));
                for path in directories.iter().copied().chain(alone) {
                    rules.extend(shown(path, source, place));
                }
            }
        }
    }
    rules.into_iter().map(|place| Rule::deny(&[Action::Write], format!("{place}/**"))).collect()
}

fn sources<'a>(spec: &Spec, here: &Path, more: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    // Services write these for agents, whatever is bound.
    let named = [&spec.recall.store, &spec.dm.root, &spec.state].into_iter().flatten().map(|folder| here.join(folder));
    // By the directory above: asking the mount itself, from within the host, could wait for the host.
    let real = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let more = more.into_iter().filter_map(real).chain(named.filter_map(|path| path.canonicalize().ok()));
    written(spec, here).into_iter().map(|(source, _)| source).chain(more).collect()
}

/// Strictly below: what a directory itself is called is not for those to say who write in it.
fn inside(path: &Path, source: &Path) -> bool {
    path.starts_with(source) && path != source
}

fn shown(path: &Path, source: &Path, place: &str) -> Option<String> {
    let below = path.strip_prefix(source).ok()?;
    Some(Path::new(place).join(below).components().collect::<PathBuf>().display().to_string())
}

/// Why a service is refused because of this file; the place in the service first.
fn refused<'a>(service: &ServiceSpec, file: &'a ProgramFile, sources: &[PathBuf]) -> Option<(&'a str, String)> {
    let found = sources.iter().find_map(|source| Some((file.names.iter().find(|name| inside(name, source))?, source)));
    let (name, source) = found?;
    let (name, source) = (name.display(), source.display());
    let missing = !file.exists && file.role == FileRole::Runs;
    let message = match (service.unconfined, missing) {
        (_, true) => format!("{name} is not there, and agents may write {source}: they could make it; make it first"),
        (true, false) => format!(
            "{name} lies in {source}, which agents may write: they could make it a program that runs as the operator; move \
             it, or bind that directory read_only"
        ),
        (false, false) => return None,
    };
    Some((&file.named_at, message))
}

/// Why an unconfined service is refused because its file has another name where agents may write.
fn other_name<'a>(file: &'a ProgramFile, sources: &[PathBuf]) -> Option<(&'a str, String)> {
    let name = other_names(file, sources).into_iter().next()?;
    let (file_name, name) = (file.names.last()?.display(), name.display());
    let message = format!("{file_name} is also {name}, which agents may write: a copy of it would have one name only");
    Some((&file.named_at, message))
}

/// Other names of the same file in these directories.
fn other_names(file: &ProgramFile, sources: &[PathBuf]) -> Vec<PathBuf> {
    let Some(own) = file.names.last() else { return Vec::new() };
    let Some(meta) = own.metadata().ok().filter(|meta| meta.is_file() && meta.nlink() > 1) else { return Vec::new() };
    let same = |path: &Path| {
        path != own && path.symlink_metadata().is_ok_and(|it| (it.dev(), it.ino()) == (meta.dev(), meta.ino()))
    };
    let mut all = Vec::new();
    for source in sources.iter().filter(|source| source.metadata().is_ok_and(|it| it.dev() == meta.dev())) {
        let walk = ignore::WalkBuilder::new(source).standard_filters(false).same_file_system(true).build();
        let files = walk.filter_map(std::result::Result::ok).take(NAMES);
        all.extend(files.map(ignore::DirEntry::into_path).filter(|path| same(path)));
    }
    all
}

/// Why a confined program counts as one that agents could change, if one of them may.
fn exposed(files: &[ProgramFile], written: &[(PathBuf, String)], policy: &Policy) -> Option<String> {
    for file in files.iter().filter(|file| file.role != FileRole::Mentioned) {
        for (source, place) in written {
            let names = file.names.iter().filter(|name| inside(name, source));
            let directories = file.directories.iter().filter(|directory| directory.starts_with(source));
            let places = names.chain(directories).filter_map(|path| shown(path, source, place));
            if places.into_iter().any(|place| any_agent_reaches(policy, Action::Write, &place)) {
                let source = source.display();
                return Some(format!(
                    "agents may write {source}, where its program lies; give it a directory of its own"
                ));
            }
        }
    }
    None
}
