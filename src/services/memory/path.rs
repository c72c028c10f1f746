//! How a memory is named: `/agents/self/memory/items/<name>`, or one version of it below that.

use std::fmt;

use acheron_base::{Error, Result, quoted};

/// A memory, or one version of it. Whose memory it is, is settled when it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub name: String,
    pub version: Option<u64>,
}

impl Target {
    pub fn latest(name: impl Into<String>) -> Target {
        Target { name: name.into(), version: None }
    }

    /// Reads what `agent` wrote. A bare name is enough, a leading `/` may be left out.
    pub fn read(path: &str, agent: &str) -> Result<Target> {
        let parts: Vec<&str> = path.trim().trim_matches('/').split('/').collect();
        let rest = match parts.as_slice() {
            ["agents", owner, "memory", "items", rest @ ..] => {
                if *owner != "self" && *owner != agent {
                    return Err(Error::forbidden(format!("{path}: the memory of {owner} is not yours")));
                }
                rest
            }
            ["memory", "items", rest @ ..] | ["items", rest @ ..] => rest,
            rest => rest,
        };
        let (name, version) = match rest {
            [name] | [name, "content"] => (*name, None),
            [name, "versions", version] => (*name, Some(number(version, path)?)),
            _ => return Err(shape(path)),
        };
        check(name)?;
        Ok(Target { name: name.to_owned(), version })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/agents/self/memory/items/{}", self.name)?;
        match self.version {
            Some(version) => write!(f, "/versions/{version}"),
            None => Ok(()),
        }
    }
}

/// `[a-z0-9][a-z0-9._-]{0,127}`
pub fn check(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = name.len() <= 128 && name.starts_with(plain) && name.chars().all(|c| plain(c) || "._-".contains(c));
    match fits {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{} is not a name: begin with a-z or 0-9, go on with those or `.`, `_`, `-`, at most 128 in all",
            quoted(name)
        ))),
    }
}

/// A name for the `n`th memory, from its kind.
pub fn generated(kind: &str, n: u64) -> String {
    let mut stem = String::new();
    for c in kind.chars().take(40) {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => stem.push(c),
            _ if stem.is_empty() || stem.ends_with('-') => (),
            _ => stem.push('-'),
        }
    }
    let stem = stem.trim_end_matches('-');
    format!("{}-{n}", if stem.is_empty() { "memory" } else { stem })
}

fn number(text: &str, path: &str) -> Result<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|n| plain && *n <= i64::MAX as u64).ok_or_else(|| shape(path))
}

fn shape(path: &str) -> Error {
    Error::invalid(format!(
        "{} is not a memory_path: write /agents/self/memory/items/<name>, or …/<name>/versions/<n>",
        quoted(path)
    ))
}

#[cfg(test)]
mod tests;
