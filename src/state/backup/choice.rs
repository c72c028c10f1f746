//! What of a state directory goes into a backup. Pure: a path in, an answer out.

use std::path::{Component, Path};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct BackupChoice {
    /// Keys, and what programs have logged in with.
    pub keys: bool,
    /// Caches in the homes of agents.
    pub caches: bool,
}

/// Why a file is left out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omitted {
    Key,
    Cache,
}

/// Directories of a home that programs fill again by themselves, from the home.
const CACHES: [&str; 9] = [
    ".cache",
    ".npm/_cacache",
    ".npm/_logs",
    ".cargo/registry",
    ".rustup/downloads",
    ".gradle/caches",
    ".m2/repository",
    "go/pkg/mod",
    ".local/share/pnpm/store",
];

/// What programs keep of a log-in, from the home: directories and files.
const LOG_INS: [&str; 11] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".netrc",
    ".config/gh",
    ".config/gcloud",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".local/share/opencode/auth.json",
];

impl BackupChoice {
    /// Why a file or directory of the state is left out, if it is.
    pub fn omits(&self, path: &Path) -> Option<Omitted> {
        match in_home(path) {
            Some(inside) if !self.caches && CACHES.iter().any(|cache| inside == Path::new(cache)) => {
                Some(Omitted::Cache)
            }
            Some(inside) if !self.keys && LOG_INS.iter().any(|kept| inside == Path::new(kept)) => Some(Omitted::Key),
            None if !self.keys && path.extension().is_some_and(|end| end == "key") => Some(Omitted::Key),
            _ => None,
        }
    }
}

/// The path from the home of an agent, if it lies in one.
fn in_home(path: &Path) -> Option<&Path> {
    let mut parts = path.components();
    let first: Vec<Component<'_>> = parts.by_ref().take(3).collect();
    let names: Vec<_> = first.iter().map(|part| part.as_os_str()).collect();
    match names[..] {
        [agents, _, home] if agents == "agents" && home == "home" => Some(parts.as_path()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_and_keys_are_known_by_their_places() {
        let (all, least) = (BackupChoice { keys: true, caches: true }, BackupChoice { keys: false, caches: false });
        let paths = [
            ("audit.key", Some(Omitted::Key)),
            ("agents/eve/phases/history.key", Some(Omitted::Key)),
            ("agents/eve/home/.cache", Some(Omitted::Cache)),
            ("agents/eve/home/.cargo/registry", Some(Omitted::Cache)),
            ("agents/eve/home/.codex/auth.json", Some(Omitted::Key)),
            ("agents/eve/home/work/notes.key", None),
            ("agents/eve/home/work/.cache", None),
            ("agents/eve/home/.cargo", None),
            ("agents/eve/.cache", None),
            ("agents/eve/home", None),
            ("acheron.db", None),
        ];
        for (path, omitted) in paths {
            assert_eq!((least.omits(Path::new(path)), all.omits(Path::new(path))), (omitted, None), "{path}");
        }
    }
}
