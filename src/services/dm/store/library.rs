//! What the game master reads from a library: cartridges, the template of a campaign, the pages of the engine. A library folder
//! stands over what is in the program, page by page for the engine and as a whole for a cartridge or the template. Only `store`
//! and the service use it.

use std::path::PathBuf;

use super::campaigns::folder_files;
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Error, Result};
use acheron_dm::engine::{Engine, SharedEngine};
use acheron_dm::files::Files;
use acheron_dm::shipped;

/// The library of the host, if it is a folder. Nothing is held between calls, so that an edit takes effect in the next turn.
#[derive(Clone, Debug, Default)]
pub struct GameLibrary {
    folder: Option<PathBuf>,
}

impl GameLibrary {
    pub fn new(folder: Option<PathBuf>) -> GameLibrary {
        GameLibrary { folder }
    }

    /// The files below a path of the folder; `None` where it has none.
    fn below(&self, path: &str) -> Result<Option<Files>> {
        let Some(folder) = self.folder.as_ref().filter(|folder| folder.join(path).is_dir()) else { return Ok(None) };
        Ok(Some(folder_files(&ConfinedDir::open(folder)?.within(path)?)?))
    }

    /// The names of all cartridges that can be played.
    pub fn cartridges(&self) -> Result<Vec<String>> {
        let mut all = shipped::cartridges();
        if let Some(folder) = self.folder.as_ref().filter(|folder| folder.join("cartridges").is_dir()) {
            let entries = ConfinedDir::open(folder)?.list("cartridges")?;
            let own =
                entries.into_iter().filter(|entry| entry.kind == Kind::Dir && !entry.name.starts_with(['.', '_']));
            all.extend(own.map(|entry| entry.name));
        }
        Ok(all)
    }

    pub fn cartridge(&self, id: &str) -> Result<Files> {
        let own = self.below(&format!("cartridges/{id}"))?.or_else(|| shipped::cartridge(id));
        own.ok_or_else(|| Error::not_found(format!("there is no cartridge {id}")))
    }

    /// The files that every new campaign starts with.
    pub fn template(&self) -> Result<Files> {
        Ok(self.below("campaigns/_template")?.unwrap_or_else(shipped::template))
    }

    pub fn engine(&self) -> Result<SharedEngine> {
        match self.below("dm/engine")? {
            None => Ok(SharedEngine::default()),
            Some(pages) => Engine::with(pages)
                .map(SharedEngine::new)
                .map_err(|fault| Error::invalid(format!("the library's dm/engine/{fault}"))),
        }
    }
}
