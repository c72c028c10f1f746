//! The working directory of a command, which may be gone: deleted, or in a mount whose host has ended. Used by the other
//! commands.

use std::path::PathBuf;

use super::Failure;
use acheron_base::Error;

/// The working directory; a refusal names it.
pub fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        let known = std::env::var("PWD").ok().filter(|name| !name.is_empty());
        let named =
            known.map_or_else(|| "the working directory".to_owned(), |name| format!("the working directory {name}"));
        Failure::hint(
            Error::unavailable(format!("{named} cannot be used any more: {error}")),
            "cd to a directory that exists",
        )
    })
}

/// A path from the working directory.
pub fn absolute(path: &std::path::Path) -> Result<PathBuf, Failure> {
    match path.is_absolute() {
        true => Ok(std::path::absolute(path)?),
        false => Ok(std::path::absolute(here()?.join(path))?),
    }
}
