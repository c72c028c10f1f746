//! Finds a program on this machine, and the directories that it needs to run: its package, its interpreter, and theirs.
//!
//! Programs of `~/.local/bin`, nvm, pipx, uv and cargo lie outside of what a sandbox shows. Each place is found from the
//! file itself: the links that lead to it, the interpreter in its first line, the package in which it lies.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acheron_base::{Error, Result, quoted};

/// A program and what must be bound, read-only, for it to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundProgram {
    /// Without links.
    pub file: PathBuf,
    /// Files and directories outside of the system, by their own names; none lies in another.
    pub binds: Vec<PathBuf>,
    /// The directories of its interpreters, for its PATH.
    pub path: Vec<PathBuf>,
}

/// How many interpreters of interpreters are followed.
const DEPTH: usize = 4;

/// Finds a program by its name in `path`, or at its path.
pub fn find(name: &str, path: &OsStr) -> Result<FoundProgram> {
    let link = look_up(name, path).map(|link| behind_shim(&link, path).unwrap_or(link)).ok_or_else(|| {
        Error::not_found(format!("there is no program {} on the PATH: install it, or name its file", quoted(name)))
    })?;
    let mut found = FoundProgram { file: real(&link)?, ..FoundProgram::default() };
    let mut binds = BTreeSet::new();
    let mut next = Some(link);
    for _ in 0..DEPTH {
        let Some(link) = next.take() else { break };
        let file = real(&link)?;
        // The name by which it is called may lie in another place than the file: a virtual environment's Python is a link.
        for path in [&link, &file] {
            if !in_system(path) {
                binds.extend(package(path));
            }
        }
        if let Some(parent) = link.parent().filter(|_| link != found.file) {
            found.path.push(parent.to_owned());
        }
        next = interpreter(&file, path);
    }
    found.path.retain(|directory| !in_system(directory));
    found.path.dedup();
    // What lies in another directory of the list comes with it.
    let all: Vec<PathBuf> = binds.into_iter().collect();
    let within = |path: &PathBuf| all.iter().any(|other| other != path && path.starts_with(other));
    found.binds = all.iter().filter(|path| !within(path)).cloned().collect();
    Ok(found)
}

fn look_up(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        // The directory without `..`, since a sandbox binds plain paths only; the file keeps the name by which it is called.
        let (directory, file) = (Path::new(name).parent()?, Path::new(name).file_name()?);
        return directory.canonicalize().ok().map(|directory| directory.join(file)).filter(|file| runs(file));
    }
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| runs(file))
}

/// Whether a file is a program.
fn runs(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn real(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|err| Error::from(err).about(path.display().to_string()))
}

/// What a sandbox shows anyway.
fn in_system(path: &Path) -> bool {
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"].iter().any(|system| path.starts_with(system))
}

/// The interpreter in the first line of a script; `env` looks it up.
fn interpreter(file: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut start = [0; 512];
    let count = File::open(file).ok()?.read(&mut start).ok()?;
    let line = start[..count].strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().collect();
    let (first, rest) = words.split_first()?;
    if Path::new(first).file_name()? != "env" {
        // What is bound is read by the program: a script must not name any file that its writer would like to see.
        return Some(PathBuf::from(first)).filter(|file| file.is_absolute() && runs(file));
    }
    // `env -S node --flag`, `env NAME=value python3`
    let name = rest.iter().find(|word| !word.starts_with('-') && !word.contains('='))?;
    look_up(name, path).map(|link| behind_shim(&link, path).unwrap_or(link))
}

/// The program behind a shim of pyenv, asdf, rbenv or nodenv: a small script that has its manager find the version of this
/// directory, which could not be found inside. The manager is asked here.
fn behind_shim(link: &Path, path: &OsStr) -> Option<PathBuf> {
    if link.parent()?.file_name()? != "shims" {
        return None;
    }
    let mut text = String::new();
    File::open(link).ok()?.take(1 << 14).read_to_string(&mut text).ok()?;
    let call = text.lines().rev().find_map(|line| line.trim().strip_prefix("exec "))?;
    let mut words = call.split_ascii_whitespace().map(|word| word.trim_matches('"'));
    let (manager, subcommand) = (words.next()?, words.next()?);
    let manager = look_up(manager, path).filter(|_| subcommand == "exec")?;
    let output = Command::new(manager).arg("which").arg(link.file_name()?).stdin(Stdio::null()).output().ok()?;
    let found = PathBuf::from(std::str::from_utf8(&output.stdout).ok()?.trim());
    (output.status.success() && found.is_absolute() && found.is_file()).then_some(found)
}

/// The directory that must be shown for a file to work; the file itself where it stands alone.
fn package(file: &Path) -> Option<PathBuf> {
    let above = || file.ancestors().skip(1);
    // A virtual environment of Python, and a Python that was unpacked somewhere, are whole.
    if let Some(environment) = above().find(|directory| directory.join("pyvenv.cfg").is_file()) {
        return Some(environment.to_owned());
    }
    // Packages of npm need each other: the outermost `node_modules`, and what is beside it in a Node of its own.
    let modules = above().filter(|directory| directory.file_name() == Some(OsStr::new("node_modules"))).last();
    if let Some(modules) = modules {
        return Some(modules.to_owned());
    }
    let directory = file.parent()?;
    let prefix = directory.parent().filter(|_| directory.file_name() == Some(OsStr::new("bin")));
    match prefix {
        // An installation of its own, as nvm and uv make it; `~/.local` is none.
        Some(prefix) if is_installation(prefix, file) => Some(prefix.to_owned()),
        _ => Some(file.to_owned()),
    }
}

/// Whether a directory holds one interpreter with its library, and is not a place where everything is installed.
fn is_installation(prefix: &Path, file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let node = name == "node" && prefix.join("lib/node_modules").is_dir();
    let python = name.starts_with("python") && {
        let library = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let mut library = library.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        library.any(|entry| entry.path().join("os.py").is_file())
    };
    node || python
}

#[cfg(test)]
mod tests;
