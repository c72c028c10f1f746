//! The names that lead to other places of the tree: rules without a tree.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use acheron_base::{Error, Result};
use acheron_vfs::normalize;

/// One name and what it leads to, both paths of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    pub bind_path: String,
    pub target_path: String,
}

/// The bindings in one directory: name → path of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BindingTable(pub BTreeMap<String, String>);

impl BindingTable {
    /// As they are told, for the directory at `home`.
    pub fn bindings(&self, home: &str) -> Vec<Binding> {
        let binding = |(name, target): (&String, &String)| Binding {
            bind_path: format!("{home}/{name}"),
            target_path: target.clone(),
        };
        self.0.iter().map(binding).collect()
    }
}

/// All bindings there are: path of the name → path of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllBindings(BTreeMap<String, String>);

impl AllBindings {
    pub fn of(bindings: impl IntoIterator<Item = Binding>) -> AllBindings {
        AllBindings(bindings.into_iter().map(|it| (it.bind_path, it.target_path)).collect())
    }

    /// Where `path` (in full) leads when every binding on the way is followed, and whether one was.
    pub fn resolve(&self, path: &str) -> Result<(String, bool)> {
        let from = path;
        let mut path = path.to_owned();
        for step in 0..=self.0.len() {
            // A bound name is always the third: /agents/<agent>/<name>.
            let end = path.match_indices('/').nth(3).map_or(path.len(), |(at, _)| at);
            let (name, rest) = path.split_at(end);
            let Some(target) = self.0.get(name) else { return Ok((path, step > 0)) };
            path = format!("{target}{rest}");
        }
        Err(Error::invalid(format!("`{from}` leads in a circle")))
    }

    /// Refuses `path` as a name for `target` if a walk there would never end.
    pub fn check(&self, path: &str, target: &str) -> Result<()> {
        if target == path || lies_in(target, path) {
            return Err(Error::invalid("a name cannot lead to itself"));
        }
        let mut changed = self.clone();
        changed.0.insert(path.to_owned(), target.to_owned());
        let (end, _) = changed.resolve(path)?;
        if lies_in(path, &end) {
            return Err(Error::invalid(format!("`{path}` lies in `{end}`: a walk there would never end")));
        }
        // Going down where it leads, other names are found; none of those may lead back.
        let (mut open, mut seen) = (vec![end], Vec::new());
        while let Some(place) = open.pop() {
            for name in changed.0.keys().filter(|name| lies_in(name, &place)) {
                if name == path {
                    return Err(Error::invalid(format!(
                        "`{path}` can be reached through `{place}`: a walk there would never end"
                    )));
                }
                let (to, _) = changed.resolve(name)?;
                if !seen.contains(&to) {
                    seen.push(to.clone());
                    open.push(to);
                }
            }
        }
        Ok(())
    }
}

fn lies_in(path: &str, place: &str) -> bool {
    path.strip_prefix(place.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// A path as a caller writes it, in full: `/agents/self/x` → `/agents/<agent>/x`.
pub fn full(agent: &str, path: &str) -> Result<String> {
    let path = normalize(path)?;
    Ok(match path.strip_prefix("/agents/self") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/agents/{agent}{rest}"),
        _ => path,
    })
}

/// The directory and the name in it that a path (in full) asks for: the agent's own, or a project's.
pub fn place<'a>(agent: &str, path: &'a str) -> Result<(&'a str, &'a str)> {
    let ordinary = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = |home: &str| match home.strip_prefix("/projects/") {
        Some(project) => !project.is_empty() && !project.contains('/'),
        None => home == format!("/agents/{agent}"),
    };
    path.rsplit_once('/')
        .filter(|(home, name)| {
            fits(home) && (1..=64).contains(&name.len()) && name.chars().all(ordinary) && !name.starts_with('.')
        })
        .ok_or_else(|| {
            Error::invalid(format!(
                "`{path}` cannot be bound: a bind_path is a new name in your own directory, /agents/self/<name>, or in \
                 a project that you may write, /projects/<project>/<name>"
            ))
        })
}

/// How a link in one of those directories spells a path of the tree.
pub fn relative(target: &str) -> String {
    format!("../..{target}")
}

#[cfg(test)]
mod tests;
