//! The files that the host reads by default, because they lie beside it: `./mountspec/default.json`, `./prompts`,
//! `./global-library`.
//!
//! An agent that may write in that directory could make one of them for the next start. So it is noted which of them were
//! not there while an agent could; from then on those are read only by who names them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acheron_base::{ConfinedDir, Error, Result};

/// Under the state directory.
const FILE: &str = "unasked.json";
/// The files that are looked for beside the host.
const NAMES: [&str; 3] = ["mountspec/default.json", "prompts", "global-library"];

/// The files that were missing while agents could have created them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrustedDefaults(BTreeSet<PathBuf>);

impl TrustedDefaults {
    /// As the state directory has it; nothing if that is new.
    pub fn open(state: &Path) -> Result<TrustedDefaults> {
        match std::fs::read(state.join(FILE)) {
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(TrustedDefaults::default()),
            read => {
                let noted = serde_json::from_slice(&read?);
                let told = |err| Error::internal(format!("{} cannot be read: {err}", state.join(FILE).display()));
                Ok(TrustedDefaults(noted.map_err(told)?))
            }
        }
    }

    /// The file `name` beside the host, unless an agent could have created it.
    pub fn beside(&self, here: &Path, name: &str) -> Option<PathBuf> {
        let path = here.join(name);
        if !path.exists() {
            return None;
        }
        let trusted = !self.0.contains(&real(here).join(name));
        if !trusted {
            tracing::warn!("{} is not read: {}", path.display(), why());
        }
        trusted.then_some(path)
    }

    /// Refuses a mountspec that an agent could have made, if it was not named explicitly.
    pub fn mountspec(&self, here: &Path) -> Result<()> {
        match self.0.contains(&real(here).join(NAMES[0])) && here.join(NAMES[0]).exists() {
            true => Err(Error::forbidden(format!("{} is not read: {}", here.join(NAMES[0]).display(), why()))),
            false => Ok(()),
        }
    }

    /// Notes what is not there now, where `written` says that agents may write. Safe when this returns.
    pub fn note(state: &Path, here: &Path, written: impl Fn(&Path) -> bool) -> Result<()> {
        let mut noted = TrustedDefaults::open(state)?;
        let here = real(here);
        let absent = NAMES.map(|name| here.join(name)).into_iter().filter(|path| !path.exists() && written(path));
        let before = noted.0.len();
        noted.0.extend(absent);
        if noted.0.len() == before {
            return Ok(());
        }
        let text = serde_json::to_vec_pretty(&noted.0).map_err(|err| Error::internal(err.to_string()))?;
        ConfinedDir::create(state)?.write(FILE, &text)
    }
}

fn why() -> &'static str {
    "it came while agents could write in that directory; look at it, and name it if it is yours"
}

fn real(here: &Path) -> PathBuf {
    here.canonicalize().unwrap_or_else(|_| here.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_while_agents_could_write_is_not_read_unless_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (here, state) = (dir.path().join("here"), dir.path().join("state"));
        std::fs::create_dir_all(here.join("prompts")).unwrap();
        let said = || {
            let unasked = TrustedDefaults::open(&state).unwrap();
            let beside = |name: &str| unasked.beside(&here, name).is_some();
            (beside("prompts"), beside("global-library"), unasked.mountspec(&here).is_ok())
        };
        assert_eq!(said(), (true, false, true));
        TrustedDefaults::note(&state, &here, |_| false).unwrap();
        std::fs::create_dir_all(here.join("global-library")).unwrap();
        assert_eq!(said(), (true, true, true), "nobody but the operator could have made it");
        TrustedDefaults::note(&state, &here, |_| true).unwrap();
        std::fs::create_dir_all(here.join("mountspec")).unwrap();
        std::fs::write(here.join("mountspec/default.json"), "{}").unwrap();
        assert_eq!(said(), (true, true, false));
        std::fs::remove_dir_all(here.join("prompts")).unwrap();
        TrustedDefaults::note(&state, &here, |_| true).unwrap();
        std::fs::create_dir_all(here.join("prompts")).unwrap();
        assert_eq!(said(), (false, true, false));
    }
}
