//! A limit of the bytes that are written below a directory. [`ConfinedDir`](crate::ConfinedDir) asks it before each write.
//! Any crate may use it.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::error::Result;

/// Decides whether there is room for `more` bytes beside those that are `used`.
type Decide = dyn Fn(u64, u64) -> Result<()> + Send + Sync;

/// The room below one directory. The bytes are counted once, then what is written is added; they are counted again before
/// anything is refused, because files may have been removed or replaced.
pub struct Room {
    below: PathBuf,
    /// A directory in it whose bytes do not count.
    without: Option<PathBuf>,
    decide: Box<Decide>,
    used: Mutex<Option<u64>>,
}

impl std::fmt::Debug for Room {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Room").field(&self.below).finish()
    }
}

impl Room {
    /// The room below `directory`; `decide` gets the bytes that are used and those that are wanted.
    pub fn new(directory: impl Into<PathBuf>, decide: impl Fn(u64, u64) -> Result<()> + Send + Sync + 'static) -> Self {
        Room { below: directory.into(), without: None, decide: Box::new(decide), used: Mutex::default() }
    }

    /// Leaves out a directory of what can be made again.
    pub fn without(self, name: &str) -> Self {
        Room { without: Some(self.below.join(name)), ..self }
    }

    fn counted(&self) -> u64 {
        bytes_below(&self.below).saturating_sub(self.without.as_deref().map_or(0, bytes_below))
    }

    /// Takes room for `more` bytes, or refuses.
    pub fn take(&self, more: u64) -> Result<()> {
        let mut used = self.used.lock();
        let known = *used.get_or_insert_with(|| self.counted());
        if (self.decide)(known, more).is_err() {
            let counted = self.counted();
            *used = Some(counted);
            (self.decide)(counted, more)?;
        }
        *used = used.map(|used| used.saturating_add(more));
        Ok(())
    }
}

/// The bytes of all files below a directory; links are not followed.
fn bytes_below(directory: &Path) -> u64 {
    let mut open = vec![directory.to_owned()];
    let mut bytes = 0_u64;
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    bytes = bytes.saturating_add(entry.metadata().map_or(0, |metadata| metadata.len()));
                }
                _ => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{ConfinedDir, Error};

    #[test]
    fn a_directory_has_room_for_so_many_bytes_by_every_way_of_writing() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("before"), [0; 40]).unwrap();
        let decide = |used, more| match used + more <= 100 {
            true => Ok(()),
            false => Err(Error::quota_exceeded("full")),
        };
        let room = Arc::new(Room::new(dir.path(), decide));
        let place = ConfinedDir::open(dir.path()).unwrap().with_room(room.clone());
        place.write("a", &[0; 50]).unwrap();
        assert!(place.write("b", &[0; 11]).is_err());
        assert!(place.append("a", &[0; 11]).is_err());
        assert!(place.within(".").unwrap().write("c", &[0; 11]).is_err());
        assert!(place.prepare(vec![crate::confined_dir::FileChange::write("d", [0; 11])]).is_err());
        place.append("a", &[0; 10]).unwrap();
        place.remove("before").unwrap();
        place.write("e", &[0; 40]).unwrap();
        assert!(!place.exists("b").unwrap() && !place.exists("c").unwrap() && !place.exists("d").unwrap());
    }
}
