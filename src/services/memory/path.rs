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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use acheron_base::Code;

    #[test]
    fn paths_are_read() {
        let table = [
            ("/agents/self/memory/items/plan", Ok(("plan", None))),
            ("agents/charon/memory/items/plan/", Ok(("plan", None))),
            ("/agents/self/memory/items/plan/content", Ok(("plan", None))),
            ("/agents/self/memory/items/plan/versions/12", Ok(("plan", Some(12)))),
            ("items/a.b_c-9", Ok(("a.b_c-9", None))),
            ("plan", Ok(("plan", None))),
            (" plan\n", Ok(("plan", None))),
            ("/agents/styx/memory/items/plan", Err(Code::Forbidden)),
            ("/agents/self/memory/items/plan/versions/0", Err(Code::InvalidPayload)),
            ("/agents/self/memory/items/plan/versions/-1", Err(Code::InvalidPayload)),
            ("/agents/self/memory/items/plan/versions/99999999999999999999", Err(Code::InvalidPayload)),
            ("/agents/self/memory/items/plan/meta.json", Err(Code::InvalidPayload)),
            ("/agents/self/memory/items", Err(Code::InvalidPayload)),
            ("/agents/self/memory/items/../plan", Err(Code::InvalidPayload)),
            ("", Err(Code::InvalidPayload)),
        ];
        for (path, expected) in table {
            let read = Target::read(path, "charon").map_err(|error| error.code);
            let expected = expected.map(|(name, version)| Target { name: name.into(), version });
            assert_eq!(read, expected, "{path:?}");
        }
    }

    #[test]
    fn names_are_checked() {
        let long = "a".repeat(128);
        for name in ["a", "0", "a.b", "a-_.", long.as_str()] {
            assert!(check(name).is_ok(), "{name}");
        }
        let longer = "a".repeat(129);
        for name in ["", ".", "..", "-a", "_", "A", "a/b", "a b", "ä", "a\0", longer.as_str()] {
            assert!(check(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn names_are_made_from_kinds() {
        for (kind, name) in [("note", "note-7"), ("Decision Log!", "decision-log-7"), ("決定", "memory-7")] {
            assert_eq!(generated(kind, 7), name);
            check(name).unwrap();
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(name in "[a-z0-9][a-z0-9._-]{0,20}", version in proptest::option::of(1u64..1000)) {
            let target = Target { name, version };
            prop_assert_eq!(Target::read(&target.to_string(), "charon").unwrap(), target);
        }

        #[test]
        fn nothing_panics_and_what_passes_is_a_name(path in ".{0,60}") {
            if let Ok(target) = Target::read(&path, "charon") {
                prop_assert!(check(&target.name).is_ok());
            }
        }

        #[test]
        fn a_generated_name_is_a_name(kind in ".{0,80}", n: u64) {
            prop_assert!(check(&generated(&kind, n)).is_ok());
        }
    }
}
