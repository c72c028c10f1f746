//! Where to search: from a path that someone wrote to directories of this machine.

use crate::spec::Spec;
use acheron_base::host_dir::Source;
use acheron_base::{ConfinedDir, Error, Result};
use acheron_vfs::normalize;

/// A directory of this machine and where it stands in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// `/projects/here/fs`
    pub at: String,
    pub dir: Source,
}

impl Root {
    /// The path of the tree of something in it.
    pub fn path(&self, rel: &str) -> String {
        if rel.is_empty() { self.at.clone() } else { format!("{}/{rel}", self.at) }
    }

    /// Whether another bind of the same project stands over a path of this one: what lies there is not in the tree.
    pub fn covers(&self, roots: &[Root], rel: &str) -> bool {
        let path = self.path(rel);
        let inner = |other: &&Root| other.at.len() > self.at.len() && below(&other.at, &self.at).is_some();
        roots.iter().filter(inner).any(|other| below(&path, &other.at).is_some())
    }
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
    roots: &[Root],
    root: &Root,
    place: &ConfinedDir,
    rel: &str,
    rights: &Rights,
) -> Result<Option<String>> {
    let seen = |rel: &str, dir| !root.covers(roots, rel) && (rights.sees)(&root.path(rel), dir);
    let found = place.resolve(rel, &seen)?;
    let path = root.path(&found.path);
    match (rights.may_read)(&path) {
        false => Err(Error::forbidden(format!("{path} may not be read"))),
        true => Ok(Some(found.path).filter(|_| found.there)),
    }
}

/// The directories that a spec binds for these projects, as far as `find` knows them.
pub fn bound(spec: &Spec, projects: &[String], find: &dyn Fn(&str, &str) -> Option<Source>) -> Vec<Root> {
    let binds = projects.iter().filter_map(|id| Some((id, spec.projects.get(id)?)));
    let roots = binds.flat_map(|(id, project)| project.binds.keys().map(move |place| (id, place)));
    roots
        .filter_map(|(id, place)| {
            Some(Root { at: format!("/projects/{id}/fs{}", place.trim_end_matches('/')), dir: find(id, place)? })
        })
        .collect()
}

/// The roots that a path means, each with the path below it. None, or the root of all, means everything.
///
/// A path from the root of the tree is taken as it is; another one below each of the roots.
pub fn scopes<'a>(roots: &'a [Root], path: Option<&str>) -> Result<Vec<(&'a Root, String)>> {
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
    let holding = roots.iter().filter_map(|root| Some((root, below(&whole, &root.at)?)));
    if let Some((root, rel)) = holding.max_by_key(|(root, _)| root.at.len())
        && !rel.is_empty()
    {
        return Ok(vec![(root, rel.to_owned())]);
    }
    let inside: Vec<_> = roots.iter().filter(|root| below(&root.at, &whole).is_some()).collect();
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

fn outside(path: &str, roots: &[Root]) -> Error {
    let places: Vec<&str> = roots.iter().map(|root| root.at.as_str()).collect();
    Error::forbidden(format!("{path} is not in this agent's projects; what can be searched is {}", places.join(", ")))
}

#[cfg(test)]
mod tests;
