//! Programs and directories that a mountspec names and this machine does not have.
//!
//! `check` and `doctor` report them; a mounted host shows them in `meta/health.json`. Reads the disk, runs nothing.

use std::path::Path;

use crate::contract::ValueFault;
use crate::contract::check::join;
use crate::services::external::interpreter;
use crate::spec::{ServiceSpec, Spec};
use acheron_sandbox::PATH;

/// Everything that is missing; relative paths start in `here`.
pub fn faults(spec: &Spec, here: &Path) -> Vec<ValueFault> {
    let mut faults = directories(spec, here);
    faults.extend(programs(spec, here));
    faults
}

/// The directories of projects that are missing.
pub fn directories(spec: &Spec, here: &Path) -> Vec<ValueFault> {
    let mut faults = Vec::new();
    for (id, project) in &spec.projects {
        for (at, bind) in &project.binds {
            let directory = super::projects::plain(&here.join(&bind.path));
            let message = match directory.metadata() {
                Ok(meta) if meta.is_dir() => continue,
                Ok(_) => format!("{} is not a directory", directory.display()),
                Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
                    match meant(&bind.path, std::env::var("HOME").ok().as_deref()) {
                        Some(whole) => {
                            format!("`{}` is taken as it stands: only a shell expands it; write {whole}", bind.path)
                        }
                        None => format!("there is no directory {}{}", directory.display(), started(&bind.path, here)),
                    }
                }
                Err(err) => format!("{}: {err}", directory.display()),
            };
            let path = join(&join(&join(&join("projects", id), "binds"), at), "path");
            faults.push(ValueFault { path, message });
        }
    }
    faults
}

/// The path that was meant by one that a shell would expand.
fn meant(path: &str, home: Option<&str>) -> Option<String> {
    let home = home.unwrap_or("the whole path");
    let below = |rest: &str| (rest.is_empty() || rest.starts_with('/')).then(|| format!("{home}{rest}"));
    let expanded = ["~", "$HOME", "${HOME}"].iter().find_map(|word| below(path.strip_prefix(word)?));
    expanded.or_else(|| path.starts_with(['~', '$']).then(|| "the whole path".to_owned()))
}

/// The programs of services that cannot be started.
pub fn programs(spec: &Spec, here: &Path) -> Vec<ValueFault> {
    let mut faults = Vec::new();
    for (name, service) in &spec.services {
        let search = service.env.get("PATH").map_or(PATH, String::as_str);
        let (command, key) = service.program();
        for (index, word) in command.iter().enumerate() {
            let message = match index {
                0 if word.is_empty() => None,
                0 => program(word, here, search),
                _ => argument(service, index, word, here),
            };
            let path = format!("{}.{key}[{index}]", join("services", name));
            faults.extend(message.map(|message| ValueFault { path, message }));
        }
    }
    faults
}

fn program(word: &str, here: &Path, search: &str) -> Option<String> {
    if !word.contains('/') {
        let found = in_path(word, search);
        return (!found).then(|| format!("there is no program {word} in {search}"));
    }
    let file = super::projects::plain(&here.join(word));
    let shown = file.display();
    match file.metadata() {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
            return Some(format!("there is no program {shown}{}", started(word, here)));
        }
        Err(err) => return Some(format!("{shown}: {err}")),
        Ok(meta) if !meta.is_file() => return Some(format!("{shown} is not a file")),
        Ok(_) if !executable(&file) => return Some(format!("{shown} is not executable: chmod +x {shown}")),
        Ok(_) => (),
    }
    let missing = |what: String| Some(format!("the interpreter of {shown} is missing: {what}"));
    let words = interpreter(&file);
    let first = words.first()?;
    if !Path::new("/").join(first).is_file() {
        return missing(first.clone());
    }
    // `#!/usr/bin/env NAME` looks for it in PATH.
    let named = words.get(1).filter(|_| first.ends_with("/env")).filter(|name| !name.contains(['/', '=']))?;
    let option = named.starts_with('-');
    if option || in_path(named, search) { None } else { missing(format!("{named} is not in {search}")) }
}

/// A file that an interpreter is given, as in `python3 ./weather.py`. Any other word may be something else.
fn argument(service: &ServiceSpec, index: usize, word: &str, here: &Path) -> Option<String> {
    let script = index == 1 && (word.starts_with("./") || word.starts_with("../"));
    let file = super::projects::plain(&here.join(word));
    let named = script && !service.program().0[0].contains('/') && !file.exists();
    named.then(|| format!("there is no file {}{}", file.display(), started(word, here)))
}

fn in_path(name: &str, search: &str) -> bool {
    let directories = search.split(':').filter(|directory| directory.starts_with('/'));
    directories.map(|directory| Path::new(directory).join(name)).any(|file| file.is_file() && executable(&file))
}

fn executable(file: &Path) -> bool {
    nix::unistd::access(file, nix::unistd::AccessFlags::X_OK).is_ok()
}

/// Where a relative path starts, for a message about what it leads to.
fn started(path: &str, here: &Path) -> String {
    let relative = Path::new(path).is_relative();
    if relative { format!(" (relative paths start in {})", here.display()) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_expand_is_recognised() {
        let meant = |path: &str| meant(path, Some("/home/ann"));
        assert_eq!(meant("~/work").as_deref(), Some("/home/ann/work"));
        assert_eq!(meant("$HOME").as_deref(), Some("/home/ann"));
        assert_eq!(meant("${HOME}/x").as_deref(), Some("/home/ann/x"));
        assert_eq!(meant("~bob/x").as_deref(), Some("the whole path"));
        assert_eq!(meant("$WORK/x").as_deref(), Some("the whole path"));
        assert_eq!((meant("work/~"), meant("/abs")), (None, None));
    }
}
