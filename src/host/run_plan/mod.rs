//! What a program of the operator's needs to run as an agent: where it is installed ([`find`]), what is known of it
//! ([`profile`]), and the plan of its sandbox with all of that ([`compose`]). Used by `acheron run`, `acheron exec` and agents whose
//! mind is a program; uses the sandbox and the library.

use std::path::PathBuf;

pub mod compose;
pub mod find;
pub mod profile;

/// The port of the sandbox's own loopback device at which the gateway to models answers.
pub const GATEWAY_PORT: u16 = 4141;
/// The directory of the operator's own profiles of programs, which win over those of the library.
pub fn own_profiles() -> Option<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")));
    config.map(|config| config.join("acheron/programs"))
}

/// What stands in place of a key inside: the gateway has the real one.
pub const PLACEHOLDER: &str = "acheron";
