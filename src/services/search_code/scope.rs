//! Where to search: from a path that someone wrote to directories of this machine.

use crate::spec::{ProjectDir, Spec};
use acheron_base::host_dir::Source;
use acheron_base::{ConfinedDir, Error, Result};
use acheron_vfs::normalize;

/// Whether another bind of the same project covers a path of this one: what lies there is not in the tree.
pub fn covers(root: &ProjectDir, roots: &[ProjectDir], rel: &str) -> bool {
    let (top, path) = (root.path_of(""), root.path_of(rel));
    let others = roots.iter().map(|other| other.path_of(""));
    others
        .filter(|other| other.len() > top.len() && below(other, &top).is_some())
        .any(|other| below(&path, &other).is_some())
}

/// The rights of the caller, by paths of the tree.
pub struct Rights<'a> {
    pub may_read: &'a dyn Fn(&str) -> bool,
    /// Whether it is there at all; for a directory, whether something below it may be.
    pub sees: &'a dyn Fn(&str, bool) -> bool,
}

/// Where `rel` below a root really stands, links followed: the one place that decides whether a file of a project may be
/// read. Nothing if it is not there; refused if the path that it leads to may not be read, whether something is there or not.
///
/// The path must then be opened without following links, because it may have been replaced.
pub fn standing(
    roots: &[ProjectDir],
    root: &ProjectDir,
    place: &ConfinedDir,
    rel: &str,
    rights: &Rights,
) -> Result<Option<String>> {
    let seen = |rel: &str, dir| !covers(root, roots, rel) && (rights.sees)(&root.path_of(rel), dir);
    let found = place.resolve(rel, &seen)?;
    let path = root.path_of(&found.path);
    match (rights.may_read)(&path) {
        false => Err(Error::forbidden(format!("{path} may not be read"))),
        true => Ok(Some(found.path).filter(|_| found.there)),
    }
}

/// The directories that a spec binds for these projects, as far as `find` knows them.
pub fn bound(spec: &Spec, projects: &[String], find: &dyn Fn(&str, &str) -> Option<Source>) -> Vec<ProjectDir> {
    let binds = projects.iter().filter_map(|id| Some((id, spec.projects.get(id)?)));
    let roots = binds.flat_map(|(id, project)| project.binds.keys().map(move |at| (id, at)));
    roots
        .filter_map(|(id, at)| {
            let (source, bind) = (find(id, at)?, spec.projects.get(id)?.binds.get(at)?);
            Some(ProjectDir {
                project: id.clone(),
                at: at.clone(),
                source: source.path,
                id: Some(source.id),
                read_only: bind.read_only,
                served_by: None,
            })
        })
        .collect()
}

/// The roots that a path means, each with the path below it. None, or the root of all, means everything.
///
/// A path from the root of the tree is taken as it is; another one below each of the roots.
pub fn scopes<'a>(roots: &'a [ProjectDir], path: Option<&str>) -> Result<Vec<(&'a ProjectDir, String)>> {
    if roots.is_empty() {
        return Err(Error::not_found("there is nothing to search: this agent has no project with files"));
    }
    let path = path.unwrap_or_default();
    let whole = normalize(path)?;
    if whole == "/" {
        return Ok(roots.iter().map(|root| (root, String::new())).collect());
    }
    let named = whole == "/projects" || whole.starts_with("/projects/");
    if !named && path.starts_with('/') {
        return Err(outside(path, roots));
    }
    if !named {
        return Ok(roots.iter().map(|root| (root, whole[1..].to_owned())).collect());
    }
    // A bind inside another hides what lies there: the longest root is the one that is seen.
    let holding = roots.iter().filter_map(|root| Some((root, below(&whole, &root.path_of(""))?)));
    if let Some((root, rel)) = holding.max_by_key(|(root, _)| root.path_of("").len())
        && !rel.is_empty()
    {
        return Ok(vec![(root, rel.to_owned())]);
    }
    let inside: Vec<_> = roots.iter().filter(|root| below(&root.path_of(""), &whole).is_some()).collect();
    match inside.is_empty() {
        true => Err(outside(path, roots)),
        false => Ok(inside.into_iter().map(|root| (root, String::new())).collect()),
    }
}

/// The rest of `path` below `above`; empty if they are equal.
fn below<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    match path.strip_prefix(above)? {
        "" => Some(""),
        rest => rest.strip_prefix('/'),
    }
}

fn outside(path: &str, roots: &[ProjectDir]) -> Error {
    let places: Vec<String> = roots.iter().map(|root| root.path_of("")).collect();
    Error::forbidden(format!("{path} is not in this agent's projects; what can be searched is {}", places.join(", ")))
}

#[cfg(test)]
mod tests;
