//! Which walls stand around a sandbox, and the sentence for one that does not.

use serde::{Deserialize, Serialize};

use acheron_base::{Code, Error, Result};

/// One thing that keeps a program in, and how it was built or why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wall {
    pub name: String,
    pub stands: bool,
    pub how: String,
}

/// The walls in the order in which they were built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Walls(pub Vec<Wall>);

/// How the sandboxes of an agent are bounded together where no control group can be made.
pub(super) const COUNTED: &str = "number of sandboxes at once";

impl Walls {
    /// Whether the kernel holds the sandboxes of an agent together; else somebody must count them.
    pub(super) fn hold_together(&self) -> bool {
        self.0.iter().any(|wall| wall.name == "together" && wall.how != COUNTED)
    }

    pub fn stands(&self, name: &str) -> bool {
        self.0.iter().any(|wall| wall.name == name && wall.stands)
    }

    /// What could not be built.
    pub fn missing(&self) -> impl Iterator<Item = &Wall> {
        self.0.iter().filter(|wall| !wall.stands)
    }
}

/// Walls while they are being built.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub walls: Walls,
    /// Whether a missing wall is borne.
    lenient: bool,
}

impl Builder {
    pub fn new(lenient: bool) -> Self {
        Builder { walls: Walls::default(), lenient }
    }

    /// Notes how a wall came out. One that this machine cannot build ends the building, unless that was allowed; a fault
    /// of the plan's always does.
    pub fn add(&mut self, name: &str, built: Result<String>) -> Result<bool> {
        let (stands, how) = match built {
            Ok(how) => (true, how),
            Err(err) if err.code != Code::Unavailable => return Err(err),
            Err(err) if self.lenient => (false, err.message),
            Err(err) => return Err(refusal(name, &err.message)),
        };
        self.walls.0.push(Wall { name: name.to_owned(), stands, how });
        Ok(stands)
    }
}

fn refusal(name: &str, why: &str) -> Error {
    Error::unavailable(format!(
        "the sandbox cannot be built on this machine: {name}: {why} (see 'acheron doctor'; the mountspec can allow \
         programs to run unconfined)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_that_cannot_be_built_ends_the_attempt_unless_that_was_allowed() {
        let lacking = || Err(Error::unavailable("this kernel has no Landlock"));
        let mut strict = Builder::new(false);
        assert!(strict.add("mounts", Ok("private".into())).unwrap());
        let refused = strict.add("landlock", lacking()).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        assert!(refused.message.contains("landlock: this kernel has no Landlock"), "{refused}");

        let mut lenient = Builder::new(true);
        assert!(!lenient.add("landlock", lacking()).unwrap());
        assert!(!lenient.walls.stands("landlock"));
        assert_eq!(lenient.walls.missing().count(), 1);

        let faulty = lenient.add("root", Err(Error::not_found("no '/srv/x'"))).unwrap_err();
        assert_eq!(faulty.message, "no '/srv/x'");
    }
}
