//! Changes that must not go back to the base unless each is named: what other programs run or obey by themselves, what can be
//! run since this change, and what leads out of the directory. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::change::{Change, Content, EntryType};
use super::walk::{Layers, below};
use acheron_base::Result;

/// A repository of git: it is kept apart from the other changes.
pub const GIT: &str = ".git";

/// Why a change is held back; `None` if nothing holds it. `names` are the protected names of the project; `target` is where a
/// link leads.
pub fn reason(change: &Change, names: &[String], target: Option<&Path>) -> Option<String> {
    let paths = [Some(&change.path), change.from.as_ref()];
    for path in paths.into_iter().flatten() {
        if let Some(why) = protected(&path.0, names) {
            return Some(why);
        }
    }
    let after = change.after?;
    match after.kind {
        EntryType::Special => return Some("it is a pipe, a socket or a device".to_owned()),
        EntryType::Link => {
            let out = target.is_none_or(|target| leads_out(&change.path.0, target));
            return out.then(|| match target {
                Some(target) => format!("it is a link that leads out of the project, to `{}`", target.display()),
                None => "it is a link, and where it leads cannot be read".to_owned(),
            });
        }
        EntryType::Dir => return None,
        EntryType::File => (),
    }
    let was = change.before.filter(|before| before.kind == EntryType::File).map_or(0, |before| before.mode);
    if after.mode & !was & 0o6000 != 0 {
        return Some("it would run with the rights of its owner".to_owned());
    }
    (after.mode & !was & 0o111 != 0).then(|| "it can be run now, and could not before".to_owned())
}

/// Why a path is protected, whatever happens to it.
fn protected(path: &Path, names: &[String]) -> Option<String> {
    if let Some(why) = protected_name(path, names) {
        return Some(why);
    }
    if git_dir(path).is_some() {
        return Some("it belongs to git, whose settings and hooks run programs".to_owned());
    }
    let head = !names.is_empty() && path.file_name().is_some_and(|last| same_name(last, OsStr::new("HEAD")));
    head.then(|| {
        "a directory with a file HEAD may pass for a repository of git, whose settings run programs".to_owned()
    })
}

/// Letter case does not count: some file systems do not tell it apart.
fn same_name(one: &OsStr, other: &OsStr) -> bool {
    one.as_bytes().eq_ignore_ascii_case(other.as_bytes())
}

/// The repository that a path belongs to, with the name `.git`.
pub fn git_dir(path: &Path) -> Option<&Path> {
    path.ancestors().filter(|above| above.file_name().is_some_and(|name| same_name(name, OsStr::new(GIT)))).last()
}

/// Whether a path has a protected name at some depth.
pub fn protected_name(path: &Path, names: &[String]) -> Option<String> {
    let parts: Vec<&OsStr> = path.iter().collect();
    for name in names {
        let wanted: Vec<&OsStr> = Path::new(name).iter().collect();
        let fits = |at: &[&OsStr]| at.iter().zip(&wanted).all(|(part, wanted)| same_name(part, wanted));
        if !wanted.is_empty() && parts.windows(wanted.len()).any(fits) {
            return Some(format!("other programs run or obey `{name}` by themselves"));
        }
        // Something that stands where a part of the name would be, such as a file `.github`, could become it.
        let ends = wanted.len() > 1 && parts.last().zip(wanted.first()).is_some_and(|(a, b)| same_name(a, b));
        if ends {
            return Some(format!("it has the place of `{name}`, which other programs run or obey by themselves"));
        }
    }
    None
}

/// Whether a link at `path` leads out of the directory, as its words say.
fn leads_out(path: &Path, target: &Path) -> bool {
    if target.is_absolute() {
        return true;
    }
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::CurDir => (),
            _ => depth += 1,
        }
    }
    false
}

/// Why each change is held back, in their order.
pub fn reasons(layers: &Layers<'_>, changes: &[Change], names: &[String]) -> Result<Vec<Option<String>>> {
    let links: Vec<(&Path, std::path::PathBuf)> = changes
        .iter()
        .filter(|change| change.after.is_some_and(|after| after.kind == EntryType::Link))
        .filter_map(|change| Some((change.path.0.as_path(), target_of(layers, change)?)))
        .collect();
    changes.iter().map(|change| one(layers, change, names, &links)).collect()
}

fn one(
    layers: &Layers<'_>,
    change: &Change,
    names: &[String],
    links: &[(&Path, std::path::PathBuf)],
) -> Result<Option<String>> {
    let target = links.iter().find(|(path, _)| *path == change.path.0).map(|(_, target)| target.as_path());
    if let Some(why) = reason(change, names, target) {
        return Ok(Some(why));
    }
    if let Some(target) = target
        && through_link(layers, &change.path.0, target, links)?
    {
        return Ok(Some(format!("it is a link that leads through another link, to `{}`", target.display())));
    }
    if change.whole {
        let inside = below(layers.base, &change.path.0)?;
        return Ok(inside.iter().find_map(|(path, _)| protected(path, names)));
    }
    Ok(None)
}

/// A target that goes through another link is not followed by its words: that one may lead anywhere.
fn through_link(
    layers: &Layers<'_>,
    path: &Path,
    target: &Path,
    links: &[(&Path, std::path::PathBuf)],
) -> Result<bool> {
    let mut at = path.parent().unwrap_or(Path::new("")).to_owned();
    for part in target.components() {
        match part {
            Component::ParentDir => _ = at.pop(),
            Component::Normal(name) => at.push(name),
            _ => continue,
        }
        let new = links.iter().any(|(link, _)| *link == at);
        if new || layers.base.facts(&at)?.is_some_and(|facts| facts.kind == EntryType::Link) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn target_of(layers: &Layers<'_>, change: &Change) -> Option<std::path::PathBuf> {
    match &change.content {
        Content::Upper => layers.upper.read_link(&change.path.0).ok(),
        Content::Base(from) => layers.base.read_link(from).ok(),
    }
}

#[cfg(test)]
mod tests;
