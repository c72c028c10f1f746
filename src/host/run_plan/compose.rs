//! The plan of a run: what the host gave, with the program, its home, its variables and its places added.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::find::FoundProgram;
use acheron_base::{Error, Result};
use acheron_sandbox::{Bind, PATH, Plan, Terminal};

/// A `--bind HOST[:PLACE][:ro]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraBind {
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
}

impl std::str::FromStr for ExtraBind {
    type Err = Error;

    fn from_str(text: &str) -> Result<ExtraBind> {
        let (text, read_only) = text.strip_suffix(":ro").map_or((text, false), |text| (text, true));
        let (source, target) = match text.split_once(':') {
            Some((source, target)) => (source, Some(target)),
            None => (text, None),
        };
        if source.is_empty() || target.is_some_and(str::is_empty) {
            return Err(Error::invalid("a bind is HOST, HOST:PLACE, HOST:ro or HOST:PLACE:ro"));
        }
        let source = std::path::absolute(source)?;
        let source = source.canonicalize().map_err(|err| Error::from(err).about(source.display().to_string()))?;
        let target = target.map_or_else(|| source.clone(), PathBuf::from);
        if !target.is_absolute() {
            return Err(Error::invalid(format!("the place `{}` is not absolute", target.display())));
        }
        Ok(ExtraBind { source, target, read_only })
    }
}

/// What is added to the plan of an agent.
#[derive(Clone, Debug, Default)]
pub struct Additions {
    pub env: BTreeMap<String, String>,
    pub binds: Vec<ExtraBind>,
    /// The lasting home: the directory of the host and its place inside.
    pub home: Option<(PathBuf, PathBuf)>,
    /// The working directory, inside.
    pub cwd: Option<PathBuf>,
    pub terminal: Option<Terminal>,
    /// Shows the skills of the library in the home, where programs look for them.
    pub skills: bool,
}

/// Where programs look for skills, in their home.
const SKILLS: [&str; 2] = [".agents/skills", ".claude/skills"];

/// Adds them. Mount points in the home are made there, because nothing is made in what is bound.
pub fn add(plan: &mut Plan, more: &Additions) -> Result<()> {
    if let Some((source, target)) = &more.home {
        plan.binds.push(bind(source, target, false));
        plan.env.insert("HOME".to_owned(), target.display().to_string());
    }
    for extra in &more.binds {
        plan.binds.retain(|bind| bind.target != extra.target);
        plan.binds.push(bind(&extra.source, &extra.target, extra.read_only));
    }
    let library = plan.binds.iter().find(|bind| bind.target == Path::new("/global")).map(|bind| bind.source.clone());
    let skills: Vec<PathBuf> = match (&more.home, library.filter(|_| more.skills)) {
        (Some((_, home)), Some(library)) => {
            let places = SKILLS.map(|place| home.join(place));
            let source = library.join("library/skills");
            // A part of the tree is on no disk.
            let shown = places.iter().map(|place| Bind { on_disk: false, ..bind(&source, place, true) });
            plan.binds.extend(shown);
            places.to_vec()
        }
        _ => Vec::new(),
    };
    plan.env.extend(more.env.clone());
    if let Some(cwd) = &more.cwd {
        plan.cwd.clone_from(cwd);
    }
    if let Some(terminal) = more.terminal {
        plan.terminal = terminal;
    }
    if let Some((source, target)) = &more.home {
        for bind in &plan.binds {
            if let Ok(below) = bind.target.strip_prefix(target).map(Path::to_owned)
                && below.components().next().is_some()
            {
                // The host itself must not look into its own mount.
                let directory = skills.contains(&bind.target) || bind.source.is_dir();
                make_place(source, &below, directory)?;
            }
        }
    }
    Ok(())
}

/// Puts a program into the plan: its file, what it needs, and the PATH on which it finds its interpreters.
pub fn add_program(plan: &mut Plan, program: &FoundProgram, arguments: Vec<String>) {
    let reads = program.binds.iter().filter(|path| !plan.binds.iter().any(|bind| path.starts_with(&bind.target)));
    let reads: Vec<Bind> = reads.map(|path| bind(path, path, true)).collect();
    plan.binds.extend(reads);
    plan.argv = vec![program.file.display().to_string()];
    plan.argv.extend(arguments);
    let own = program.path.iter().map(|directory| directory.display().to_string());
    let path: Vec<String> = own.chain([PATH.to_owned()]).collect();
    plan.env.insert("PATH".to_owned(), path.join(":"));
}

/// Shows a project under the name that its directory has on this machine, if that name means nothing else inside.
pub fn show_as_outside(plan: &mut Plan, project: &str, directory: &Path) -> PathBuf {
    let inside = Path::new("/projects").join(project).join("fs");
    let first = directory.components().nth(1);
    let taken = [
        "agents", "bin", "dev", "etc", "global", "lib", "lib64", "meta", "nodes", "proc", "projects", "sbin", "sys",
        "usr",
    ];
    let free = match first {
        Some(Component::Normal(first)) => !taken.iter().any(|name| first == *name),
        _ => false,
    };
    // A directory at the top that is only a name of the sandbox itself cannot be shown there either.
    let top = ["/home", "/tmp"].iter().any(|top| directory == Path::new(top));
    if !free || top {
        return inside;
    }
    plan.relocate(&inside, directory);
    directory.to_owned()
}

fn bind(source: &Path, target: &Path, read_only: bool) -> Bind {
    let (source, target) = (source.to_owned(), target.to_owned());
    Bind { source, target, read_only, alone: false, id: None, on_disk: true }
}

/// A mount point in the lasting home. What the program left there, a link for example, is not followed.
fn make_place(home: &Path, below: &Path, directory: bool) -> Result<()> {
    let below = below.to_str().ok_or_else(|| Error::invalid(format!("{} is not text", below.display())))?;
    let home = acheron_base::ConfinedDir::open(home)?.without_links();
    if directory {
        return home.make_dir(below);
    }
    if home.exists(below)? {
        return Ok(());
    }
    if let Some((above, _)) = below.rsplit_once('/') {
        home.make_dir(above)?;
    }
    home.write(below, b"")
}

#[cfg(test)]
mod tests;
