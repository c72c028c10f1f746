//! The names that an agent has given to other places of the tree: rules without a tree.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::vfs::normal;

/// One name and what it leads to, both paths of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    pub bind_path: String,
    pub target_path: String,
}

/// The bindings of one agent: name in its directory → path of the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Table(pub BTreeMap<String, String>);

impl Table {
    pub fn bindings(&self, agent: &str) -> Vec<Binding> {
        let binding = |(name, target): (&String, &String)| Binding {
            bind_path: format!("/agents/{agent}/{name}"),
            target_path: target.clone(),
        };
        self.0.iter().map(binding).collect()
    }

    /// Where `path` (in full) leads when every binding on the way is followed, and whether one was.
    pub fn resolve(&self, agent: &str, path: &str) -> Result<(String, bool)> {
        let mut path = path.to_owned();
        for step in 0..=self.0.len() {
            let home = format!("/agents/{agent}/");
            let Some(below) = path.strip_prefix(&home) else { return Ok((path, step > 0)) };
            let (name, rest) = below.split_once('/').unwrap_or((below, ""));
            let Some(target) = self.0.get(name) else { return Ok((path, step > 0)) };
            path = if rest.is_empty() { target.clone() } else { format!("{target}/{rest}") };
        }
        Err(Error::invalid(format!("`{path}` leads in a circle")))
    }

    /// The table with one binding more, or with another target for it. Refuses a circle.
    pub fn with(&self, agent: &str, name: &str, target: &str) -> Result<Table> {
        let mut changed = self.clone();
        changed.0.insert(name.to_owned(), target.to_owned());
        let own = format!("/agents/{agent}/{name}");
        if target == own || target.starts_with(&format!("{own}/")) {
            return Err(Error::invalid("a name cannot lead to itself"));
        }
        let (end, _) = changed.resolve(agent, &own)?;
        // What contains the name contains it for ever.
        match own.starts_with(&format!("{}/", end.trim_end_matches('/'))) {
            true => Err(Error::invalid(format!("`{own}` lies in `{end}`: a walk there would never end"))),
            false => Ok(changed),
        }
    }
}

/// A path as a caller writes it, in full: `/agents/self/x` → `/agents/<agent>/x`.
pub fn full(agent: &str, path: &str) -> Result<String> {
    let path = normal(path)?;
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    Ok(match path.strip_prefix("/agents/self") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/agents/{agent}{rest}"),
        _ => path,
    })
}

/// The name in the agent's directory that a path (in full) asks for.
pub fn own_name<'a>(agent: &str, path: &'a str) -> Result<&'a str> {
    let name = path.strip_prefix(&format!("/agents/{agent}/")).filter(|name| !name.contains('/'));
    let ordinary = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.filter(|name| (1..=64).contains(&name.len()) && name.chars().all(ordinary) && !name.starts_with('.'))
        .ok_or_else(|| {
            Error::invalid(format!(
                "`{path}` cannot be bound: a bind_path is a new name in your own directory, /agents/self/<name>"
            ))
        })
}

/// How a link in the agent's directory spells a path of the tree.
pub fn relative(target: &str) -> String {
    format!("../..{target}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[(&str, &str)]) -> Table {
        Table(lines.iter().map(|(name, target)| ((*name).to_owned(), (*target).to_owned())).collect())
    }

    #[test]
    fn a_path_is_followed_through_every_binding() {
        let table = table(&[("work", "/projects/here/fs"), ("src", "/agents/a/work/src")]);
        for (path, expected) in [
            ("/agents/a/work", "/projects/here/fs true"),
            ("/agents/a/src/main.rs", "/projects/here/fs/src/main.rs true"),
            ("/agents/a/memory", "/agents/a/memory false"),
            ("/agents/b/work", "/agents/b/work false"),
            ("/agents/a/workshop", "/agents/a/workshop false"),
        ] {
            let (end, matched) = table.resolve("a", path).unwrap();
            assert_eq!(format!("{end} {matched}"), expected);
        }
    }

    #[test]
    fn circles_are_refused() {
        let table = table(&[("x", "/projects/p"), ("y", "/agents/a/x")]);
        let refused = |name: &str, target: &str| table.with("a", name, target).unwrap_err().message;
        assert_eq!(refused("x", "/agents/a/x"), "a name cannot lead to itself");
        assert_eq!(refused("x", "/agents/a/x/deep"), "a name cannot lead to itself");
        assert_eq!(refused("x", "/agents/a/y"), "`/agents/a/y` leads in a circle");
        assert_eq!(refused("z", "/agents/a"), "`/agents/a/z` lies in `/agents/a`: a walk there would never end");
        assert_eq!(refused("z", "/"), "`/agents/a/z` lies in `/`: a walk there would never end");
        assert_eq!(table.with("a", "z", "/agents/a/y").unwrap().0.len(), 3);
    }

    #[test]
    fn only_new_names_in_ones_own_directory_can_be_bound() {
        assert_eq!(full("a", "agents/self/x").unwrap(), "/agents/a/x");
        assert_eq!(own_name("a", "/agents/a/x").unwrap(), "x");
        for path in ["/agents/b/x", "/agents/a/x/y", "/agents/a/", "/global/x", "/agents/a/.x", "/agents/a/x y"] {
            assert!(own_name("a", path).is_err(), "{path}");
        }
    }
}
