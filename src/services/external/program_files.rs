//! The files of this machine that the program of an `external` service runs, and every name on the way to them.
//!
//! An agent that can replace one of these files decides what runs. Used by `host::programs`, which compares them with
//! what agents may write. Knows no projects and no rules; reads the disk.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use crate::spec::ServiceSpec;
use acheron_sandbox::PATH;

/// Variables that say where programs and interpreters load code from.
const LOADING: [&str; 17] = [
    "BASH_ENV",
    "CLASSPATH",
    "ENV",
    "GEM_PATH",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
];
/// As many links are followed, as the kernel does.
const LINKS: usize = 40;
/// As many interpreters of interpreters are followed, as the kernel does.
const INTERPRETERS: usize = 4;

/// One file that a command runs, or may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// Where the service names it: `command[1]`, `mcp.command[1]`, `env.PATH`.
    pub named_at: String,
    /// Names whose replacement would lead elsewhere: links, directories that `..` leaves again, and last the file itself.
    /// No name has a link above it.
    pub names: Vec<PathBuf>,
    /// Where the program finds the other files that it loads.
    pub directories: Vec<PathBuf>,
    pub exists: bool,
    pub role: FileRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// The program, a file that it is given by path, or an interpreter named by path.
    Runs,
    /// A file only if it is looked for in the right directory: `x.py` in `python3 x.py`.
    MayRun,
    /// Mentioned within a word or a variable.
    Mentioned,
}

/// Every file that the command of a service names, relative ones below `here`.
pub fn program_files(service: &ServiceSpec, here: &Path) -> Vec<ProgramFile> {
    let mut all = Vec::new();
    let (command, key) = service.program();
    for (index, word) in command.iter().enumerate() {
        let named_at = format!("{key}[{index}]");
        let path = here.join(word);
        match (index, word.contains('/')) {
            (0, true) => add(&mut all, &named_at, &path, FileRole::Runs, INTERPRETERS),
            (0, false) => searched(&mut all, &named_at, word, service.env.get("PATH").map_or(PATH, String::as_str)),
            (_, true) if path.is_file() => add(&mut all, &named_at, &path, FileRole::Runs, INTERPRETERS),
            (_, false) if path.is_file() => add(&mut all, &named_at, &path, FileRole::MayRun, INTERPRETERS),
            _ => mentioned(&mut all, &named_at, word, here),
        }
    }
    for (name, value) in service.env.iter().filter(|(name, _)| LOADING.contains(&name.as_str())) {
        // A directory that code is loaded from counts as what could be put into it.
        for part in value.split([':', ' ', ',', '=']).filter(|part| !part.is_empty()) {
            let mut file = found(&format!("env.{name}"), &here.join(part), FileRole::Mentioned);
            if file.names.last().is_some_and(|last| last.is_dir()) {
                file.names.extend(file.names.last().map(|last| last.join("*")));
            }
            all.push(file);
        }
    }
    all
}

fn add(all: &mut Vec<ProgramFile>, named_at: &str, path: &Path, role: FileRole, depth: usize) {
    let file = found(named_at, path, role);
    let interpreter = file.names.last().filter(|_| depth > 0).map(|file| interpreter(file)).unwrap_or_default();
    all.push(file);
    for (index, word) in interpreter.iter().enumerate().filter(|(_, word)| word.contains('/')) {
        let path = Path::new("/").join(word);
        if index == 0 || path.is_file() {
            add(all, named_at, &path, role, depth - 1);
        }
    }
}

/// A program that is looked for in the directories of `path`, up to the first that has it.
fn searched(all: &mut Vec<ProgramFile>, named_at: &str, word: &str, path: &str) {
    for directory in path.split(':').filter(|directory| directory.starts_with('/')) {
        let file = Path::new(directory).join(word);
        let there = file.is_file();
        add(all, named_at, &file, if there { FileRole::Runs } else { FileRole::MayRun }, INTERPRETERS);
        if there {
            return;
        }
    }
}

/// The files that parts of a word name, as in a script for `sh -c`: existing files, and paths that resolve.
fn mentioned(all: &mut Vec<ProgramFile>, named_at: &str, word: &str, here: &Path) {
    let parting = |c: char| c.is_whitespace() || "'\"`=:;,|&()<>{}$".contains(c);
    let pieces = word.split(parting).filter(|piece| !piece.trim_matches('/').is_empty());
    for piece in pieces {
        let path = here.join(piece);
        let first = Path::new(piece).components().find(|part| *part != Component::CurDir);
        let leads = piece.contains('/') && first.is_some_and(|first| here.join(first.as_os_str()).exists());
        // A directory is what a program works on, not the program.
        if path.is_file() || (leads && !path.is_dir()) {
            all.push(found(named_at, &path, FileRole::Mentioned));
        }
    }
}

fn found(named_at: &str, path: &Path, role: FileRole) -> ProgramFile {
    let (named_at, names, directories) = (named_at.to_owned(), Vec::new(), Vec::new());
    let mut file = ProgramFile { named_at, names, directories, exists: false, role };
    let mut left: VecDeque<PathBuf> = parts(path).collect();
    let (mut at, mut links, mut lost) = (PathBuf::from("/"), 0, false);
    while let Some(part) = left.pop_front() {
        if part == Path::new("..") {
            file.names.push(at.clone());
            at.pop();
            continue;
        }
        if part.has_root() {
            at = part;
            continue;
        }
        at.push(part);
        let link = std::fs::read_link(&at).ok().filter(|_| !lost && links < LINKS);
        let Some(target) = link else {
            lost |= !at.exists();
            continue;
        };
        links += 1;
        file.names.push(at.clone());
        if left.is_empty() {
            file.directories.extend(at.parent().map(prefix));
        }
        at.pop();
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            left.push_front(part);
        }
    }
    file.exists = at.exists();
    file.directories.extend(at.parent().map(prefix));
    file.names.push(at);
    file
}

fn parts(path: &Path) -> impl Iterator<Item = PathBuf> {
    path.components().filter(|part| *part != Component::CurDir).map(|part| PathBuf::from(part.as_os_str()))
}

/// The directory itself, or the whole environment of an interpreter whose `bin` it is.
fn prefix(directory: &Path) -> PathBuf {
    let whole = directory.parent().filter(|_| directory.ends_with("bin"));
    let whole = whole.filter(|whole| whole.join("pyvenv.cfg").exists() || whole.join("conda-meta").exists());
    whole.unwrap_or(directory).to_owned()
}

/// The words after `#!` in the first line of a file.
pub fn interpreter(file: &Path) -> Vec<String> {
    let mut first = Vec::new();
    let read =
        std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file).and_then(|_| std::fs::File::open(file).ok());
    if let Some(file) = read {
        _ = file.take(512).read_to_end(&mut first); // what cannot be read names no interpreter
    }
    let line = first.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"#!")).unwrap_or_default();
    String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
