//! The layers that confine a sandbox, and the error for one that is missing. The init builds them; the host shows them.

use serde::{Deserialize, Serialize};

use acheron_base::{Code, Error, Result};

/// One mechanism that confines a program, and how it was set up or why not. The names in JSON are part of `CAPS.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name, such as `network`.
    pub name: String,
    /// Whether it is in effect.
    pub active: bool,
    /// How it was set up, or why it could not be.
    pub detail: String,
}

/// The layers in the order in which they were set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Confinement(pub Vec<Layer>);

impl Confinement {
    /// Whether the layer of this name is in effect.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|layer| layer.name == name && layer.active)
    }

    /// The layers that could not be set up.
    pub fn missing(&self) -> impl Iterator<Item = &Layer> {
        self.0.iter().filter(|layer| !layer.active)
    }
}

/// The layers while they are being set up.
#[derive(Clone, Debug)]
pub(super) struct ConfinementBuilder {
    pub confinement: Confinement,
    /// Whether a missing layer is accepted.
    lenient: bool,
}

impl ConfinementBuilder {
    pub fn new(lenient: bool) -> Self {
        ConfinementBuilder { confinement: Confinement::default(), lenient }
    }

    /// Records a layer; returns whether it is in effect. One that this machine cannot provide is an error unless that is
    /// accepted; a mistake in the plan always is.
    pub fn add(&mut self, name: &str, built: Result<String>) -> Result<bool> {
        let (active, detail) = match built {
            Ok(detail) => (true, detail),
            Err(err) if err.code != Code::Unavailable => return Err(err),
            Err(err) if self.lenient => (false, err.message),
            Err(err) => return Err(refusal(name, &err.message)),
        };
        self.confinement.0.push(Layer { name: name.to_owned(), active, detail });
        Ok(active)
    }
}

impl ConfinementBuilder {
    /// Records a layer that stands only in part. It is shown as missing, so that nobody relies on it, but ends nothing.
    pub fn partly(&mut self, name: &str, how: &str) {
        self.confinement.0.push(Layer { name: name.to_owned(), active: false, detail: how.to_owned() });
    }
}

fn refusal(name: &str, why: &str) -> Error {
    Error::unavailable(format!(
        "the sandbox cannot be built on this machine: {name}: {why} (see 'acheron doctor'; the mountspec can accept a \
         weaker level)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_layer_ends_the_attempt_unless_that_is_accepted() {
        let lacking = || Err(Error::unavailable("this kernel has no Landlock"));
        let mut strict = ConfinementBuilder::new(false);
        assert!(strict.add("mounts", Ok("private".into())).unwrap());
        let refused = strict.add("landlock", lacking()).unwrap_err();
        assert_eq!(refused.code, Code::Unavailable);
        assert!(refused.message.contains("landlock: this kernel has no Landlock"), "{refused}");

        let mut lenient = ConfinementBuilder::new(true);
        assert!(!lenient.add("landlock", lacking()).unwrap());
        assert!(!lenient.confinement.has("landlock"));
        assert_eq!(lenient.confinement.missing().count(), 1);

        let faulty = lenient.add("root", Err(Error::not_found("no '/srv/x'"))).unwrap_err();
        assert_eq!(faulty.message, "no '/srv/x'");
    }
}
