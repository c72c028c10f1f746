//! How far a program is confined. The first level has every wall. The second is for machines that refuse namespaces: Landlock
//! and the filter of system calls alone, which hold less, and only where the mountspec accepts it. The host chooses one level
//! for all programs, by trying, and never a weaker one because a start has failed.

use std::path::Path;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::confinement::Confinement;
use super::running::{probe, probe_landlock};
use acheron_base::{Error, Result};

/// The walls around a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "SandboxLevel")]
pub enum Level {
    /// Namespaces, a root of its own, Landlock and the filter of system calls.
    #[default]
    Namespaces,
    /// Landlock and the filter alone, on the paths of the host. Needs Linux 6.12.
    Landlock,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Namespaces => "namespaces",
            Level::Landlock => "landlock",
        }
    }

    /// What is not held at this level and would be at the first.
    pub fn not_held(self) -> &'static [&'static str] {
        match self {
            Level::Namespaces => &[],
            Level::Landlock => &[
                "names, sizes, owners and times of files anywhere can be asked for (stat) and watched (inotify)",
                "paths are those of the host",
                "modes, owners, times and attributes of files cannot be changed at all",
                "there is no /proc",
                "watches of files (inotify) are counted with those of the host's user alone",
                "a process whose supervisor was killed from outside goes on, and counts as nobody's",
            ],
        }
    }
}

/// The layers without which a program is not at the first level.
const FIRST: [&str; 9] = ["user", "pids", "mounts", "ipc", "uts", "network", "root", "landlock", "system_calls"];

static HERE: OnceLock<Level> = OnceLock::new();

/// The best level of this machine, found by trying. Blocks at the first call.
pub fn best_level(program: &Path) -> Result<Level> {
    if let Some(level) = HERE.get() {
        return Ok(*level);
    }
    let program = program.to_owned();
    // A thread of its own: the caller may be inside a runtime, which cannot wait.
    let tried = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(tried(&program)).map(|(level, _)| level)
    });
    let level = tried.join().map_err(|_| Error::internal("the sandbox could not be tried"))??;
    Ok(*HERE.get_or_init(|| level))
}

/// The level that [`best_level`] has found, if it was asked.
pub fn known_level() -> Option<Level> {
    HERE.get().copied()
}

/// Tries the first level, then the second; says which one holds, and with which layers.
pub async fn tried(program: &Path) -> Result<(Level, Confinement)> {
    let first = probe(program).await?;
    let Some(missing) = FIRST.iter().find(|name| !first.has(name)) else { return Ok((Level::Namespaces, first)) };
    let why = first.0.iter().find(|layer| layer.name == **missing).map_or("", |layer| &layer.detail);
    match probe_landlock(program).await {
        Ok(second) => Ok((Level::Landlock, second)),
        Err(error) => Err(Error::unavailable(format!(
            "neither namespaces ({missing}: {why}) nor Landlock alone can confine programs here: {}",
            error.message
        ))),
    }
}
