//! Where the parts of a view lie in the state directory.

use std::path::{Path, PathBuf};

use acheron_base::{Error, Result};
use acheron_views::overlay::OverlayDirs;

/// The directory of all views, in the state directory.
pub const VIEWS: &str = "views";
/// Where a promote is staged in the project itself, if the state lies on another mount.
pub const IN_PROJECT: &str = ".acheron";

/// The directory of one view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewPlaces {
    pub dir: PathBuf,
}

impl ViewPlaces {
    /// The place of the view `name` of `base`. Two directories have different places for views of the same name.
    pub fn of(state: &Path, base: &Path, name: &str) -> ViewPlaces {
        use std::os::unix::ffi::OsStrExt;
        let digest = sha2::Digest::finalize(sha2::Digest::chain_update(
            <sha2::Sha256 as sha2::Digest>::new(),
            base.as_os_str().as_bytes(),
        ));
        let short: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        ViewPlaces { dir: state.join(VIEWS).join(format!("{name}-{short}")) }
    }

    pub fn record(&self) -> PathBuf {
        self.dir.join("view.json")
    }

    pub fn manifest(&self) -> PathBuf {
        self.dir.join("manifest")
    }

    pub fn journal(&self) -> PathBuf {
        self.dir.join("promote.json")
    }

    /// Where the view is mounted.
    pub fn mounted(&self) -> PathBuf {
        self.dir.join("fs")
    }

    pub fn generation(&self, number: u64) -> PathBuf {
        self.dir.join(format!("gen-{number}"))
    }

    pub fn upper(&self, generation: u64) -> PathBuf {
        self.generation(generation).join("upper")
    }

    pub fn snapshots(&self) -> PathBuf {
        self.dir.join("snapshots")
    }

    pub fn overlay(&self, base: &Path, generation: u64) -> OverlayDirs {
        let at = self.generation(generation);
        OverlayDirs { base: base.to_owned(), upper: at.join("upper"), work: at.join("work"), at: self.mounted() }
    }

    /// Where a promote is staged: beside the view, or in the project where a rename from here would cross mounts.
    pub fn stages(&self, base: &Path) -> Result<PathBuf> {
        match mount_of(&self.dir)? == mount_of(base)? {
            true => Ok(self.dir.join("stage")),
            false => Ok(base.join(IN_PROJECT).join(self.dir.file_name().unwrap_or_default())),
        }
    }
}

/// The directory in a project where promotes are staged, if they are staged there.
pub fn staged_in(state: &Path, base: &Path) -> Option<PathBuf> {
    let same = mount_of(state).ok()? == mount_of(base).ok()?;
    (!same).then(|| base.join(IN_PROJECT))
}

/// The number of the mount that a path lies on.
fn mount_of(path: &Path) -> Result<u64> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let said = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID);
    said.map(|said| said.stx_mnt_id).map_err(|err| Error::from(std::io::Error::from(err)).about(path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_directories_have_different_places() {
        let place = |base: &str| ViewPlaces::of(Path::new("/s"), Path::new(base), "try").dir;
        assert_ne!(place("/a"), place("/b"));
        assert!(place("/a").starts_with("/s/views") && place("/a") == place("/a"));
    }
}
