//! The marks that overlayfs leaves in an upper directory: extended attributes of directories. A privileged mount keeps them
//! where no program can set them; one in a user namespace (`userxattr`) keeps them under `user.`, and hides them inside.

use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use super::root::Root;
use acheron_base::{Error, Result};

/// The family of names that the marks of a view have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkNames {
    /// A privileged mount.
    Trusted,
    /// A mount in a user namespace.
    User,
}

impl MarkNames {
    pub fn prefix(self) -> &'static str {
        match self {
            MarkNames::Trusted => "trusted.overlay.",
            MarkNames::User => "user.overlay.",
        }
    }

    /// Whether nothing of the base below this directory shows.
    pub fn is_opaque(self, upper: &Root, dir: &Path) -> Result<bool> {
        Ok(upper.attribute(dir, &format!("{}opaque", self.prefix()))?.is_some_and(|value| value == b"y"))
    }

    /// The directory of the base that shows here, if it is another than the one of this name.
    pub fn redirect(self, upper: &Root, dir: &Path) -> Result<Option<PathBuf>> {
        let Some(value) = upper.attribute(dir, &format!("{}redirect", self.prefix()))? else { return Ok(None) };
        redirected(dir, PathBuf::from(std::ffi::OsString::from_vec(value))).map(Some)
    }
}

/// A redirect is a path from the root, or a name beside the directory.
fn redirected(dir: &Path, value: PathBuf) -> Result<PathBuf> {
    let from = match value.strip_prefix("/") {
        Ok(from) => from.to_owned(),
        Err(_) => dir.parent().unwrap_or(Path::new("")).join(&value),
    };
    match from.components().all(|part| matches!(part, Component::Normal(_))) && !from.as_os_str().is_empty() {
        true => Ok(from),
        false => Err(Error::internal(format!("{} shows `{}`, which is no path", dir.display(), value.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_a_path_or_a_name_beside() {
        let said = |value: &str| redirected(Path::new("a/b"), value.into()).map(|path| path.display().to_string());
        assert_eq!(said("/x/y").unwrap(), "x/y");
        assert_eq!(said("old").unwrap(), "a/old");
        assert!(said("/../etc").is_err() && said("..").is_err() && said("/").is_err());
    }
}
