//! All campaigns and cartridges under one root directory: they are created, switched and replayed here. `ACTIVE.md` is
//! written last, or not at all. The service uses it; it uses the rules of `acheron-dm` and a confined directory.

use std::sync::Arc;

use serde::Serialize;

use super::{GameLibrary, Save};
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Error, Result, if_exists};
use acheron_dm::act::{self, Act, JournalEntry};
use acheron_dm::adopt::PlayedBy;
use acheron_dm::answer::ANSWER;
use acheron_dm::campaign::{begun, fits, layout, lock_for, name, replay};
use acheron_dm::files::{Files, ReadFiles};
use acheron_dm::tools::control::Plan;
use acheron_dm::turn::ActContext;
use acheron_dm::world::Cartridge;
use acheron_dm::{load, md};

/// The campaigns and cartridges under one root directory. Holds nothing between calls: every answer is read from the disk.
pub struct Campaigns {
    place: ConfinedDir,
    library: GameLibrary,
}

/// The campaign that is active, as `ACTIVE.md` names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActiveCampaign {
    pub campaign: Option<String>,
    pub cartridge: Option<String>,
    pub version_lock: Option<String>,
    pub initialised: bool,
}

impl Campaigns {
    pub fn open(place: ConfinedDir, library: GameLibrary) -> Campaigns {
        Campaigns { place, library }
    }

    pub fn library(&self) -> &GameLibrary {
        &self.library
    }

    fn folders(&self, under: &str) -> Result<Vec<String>> {
        if !self.place.exists(under)? {
            return Ok(Vec::new());
        }
        let own = self
            .place
            .list(under)?
            .into_iter()
            .filter(|entry| entry.kind == Kind::Dir && !entry.name.starts_with(['.', '_']));
        Ok(own.map(|entry| entry.name).collect())
    }

    pub fn campaigns(&self) -> Result<Vec<String>> {
        self.folders("campaigns")
    }

    /// The cartridges of the root and of the library.
    pub fn cartridges(&self) -> Result<Vec<String>> {
        let mut all = self.folders("cartridges")?;
        all.extend(self.library.cartridges()?);
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// The files of a cartridge: the root's, else the library's.
    pub fn cartridge_files(&self, id: &str) -> Result<Files> {
        let id = name(id)?;
        let path = format!("cartridges/{id}");
        if self.place.exists(&path)? {
            return folder_files(&self.place.within(&path)?);
        }
        self.library.cartridge(id)
    }

    /// The paths of a cartridge's files without the hidden ones, which are the game master's secrets.
    pub fn cartridge_paths(&self, id: &str) -> Result<Vec<String>> {
        let seen = |path: &String| !path.split('/').any(|part| part.starts_with('.'));
        Ok(self.cartridge_files(id)?.into_keys().filter(seen).collect())
    }

    /// The cartridge as it is now. It is not cached, so that the next turn sees an edit.
    pub fn cartridge(&self, id: &str) -> Result<Arc<Cartridge>> {
        let mut world = load::cartridge(&self.cartridge_files(id)?)?;
        world.engine = self.library.engine()?;
        Ok(Arc::new(world))
    }

    /// Writes a file of a cartridge under the root; a cartridge of the library is copied there first.
    pub fn write_cartridge(&self, id: &str, path: &str, text: &str) -> Result<()> {
        let id = name(id)?;
        if !self.place.exists(&format!("cartridges/{id}"))? {
            let staging = format!("cartridges/.{id}.new");
            for (path, text) in self.cartridge_files(id)? {
                self.place.write(&format!("{staging}/{path}"), text.as_bytes())?;
            }
            self.place.rename(&staging, &format!("cartridges/{id}"))?;
        }
        self.place.write(&format!("cartridges/{id}/{path}"), text.as_bytes())
    }

    pub fn campaign(&self, id: &str) -> Result<Save> {
        let id = name(id)?;
        let path = format!("campaigns/{id}");
        if !self.place.exists(&path)? {
            return Err(Error::not_found(format!("campaign not found: {path}")));
        }
        Save::open(self.place.within(&path)?, id)
    }

    /// The campaign with its cartridge, if the version of the cartridge fits the campaign's lock.
    pub fn play(&self, id: &str) -> Result<(Save, Arc<Cartridge>)> {
        let save = self.campaign(id)?;
        let world = self.cartridge(&save.field("cartridge_id")?)?;
        let lock = save.field("cartridge_version_lock")?;
        if !fits(&lock, &world.version) {
            let (own, version) = (&world.id, &world.version);
            return Err(Error::conflict(format!(
                "version_lock mismatch: {id} is locked to {own} {lock}, and {own} is at {version}"
            )));
        }
        match world.faults.first() {
            Some(fault) => Err(Error::invalid(format!("cartridge {}: {fault}", world.id))),
            None => Ok((save, world)),
        }
    }

    /// Creates a campaign: first its folder, in one step, then the pointer to it.
    pub fn new_campaign(&self, id: &str, cartridge: &str, seed: u64, at: &str) -> Result<()> {
        let bound = Some((cartridge.to_owned(), None));
        self.carry_out(&Plan { id: id.to_owned(), made: true, bound, answers: None, active: true }, seed, at)
    }

    /// Carries out a batch of control tools: everything is prepared and checked in memory before the first byte is written,
    /// and `ACTIVE.md` is written last.
    pub fn carry_out(&self, plan: &Plan, seed: u64, at: &str) -> Result<()> {
        let id = name(&plan.id)?;
        let path = format!("campaigns/{id}");
        if plan.made && self.place.exists(&path)? {
            return Err(Error::already_exists(format!("destination already exists: {path}")));
        }
        if plan.made || plan.bound.is_some() {
            let (save, seed) = match plan.made {
                true => (None, seed),
                false => {
                    let save = self.campaign(id)?;
                    let seed = unbegun(&save)?;
                    (Some(save), seed)
                }
            };
            let files = self.begin(id, plan, seed, at)?;
            match save {
                Some(save) => save.replace(files)?,
                None => self.appear(id, &files)?,
            }
        } else if let Some(answers) = &plan.answers {
            let (save, world) = self.play(id)?;
            layout(&save.paths()?)?;
            save.act(&world, &Act::Init { answers: answers.clone() }, at)?;
        }
        if plan.active { self.switch(id) } else { Ok(()) }
    }

    /// The files of a campaign that is created or bound again, initialised if the plan has answers.
    fn begin(&self, id: &str, plan: &Plan, seed: u64, at: &str) -> Result<Files> {
        let (cartridge, lock) = match &plan.bound {
            Some((cartridge, lock)) => (cartridge.clone(), lock.clone()),
            None => {
                let all = self.cartridges()?;
                (all.first().cloned().ok_or_else(|| Error::not_found("there is no cartridge"))?, None)
            }
        };
        let world = self.cartridge(&cartridge)?;
        if let Some(fault) = world.faults.first() {
            return Err(Error::invalid(format!("cartridge {cartridge}: {fault}")));
        }
        let lock = lock.unwrap_or_else(|| lock_for(&world.version));
        if !fits(&lock, &world.version) {
            let said = format!("version_lock mismatch: {cartridge} is at {}, not {lock}", world.version);
            return Err(Error::conflict(said));
        }
        let mut files = begun(
            id,
            &Act::New { cartridge: world.id.clone(), version_lock: lock, seed, played_by: PlayedBy::now(&world) },
            at,
            &self.library.template()?,
        );
        if let Some(answers) = &plan.answers {
            let context = ActContext { world: &world, files: &files, campaign: id, seed, at };
            let (_, changes) = act::whole(context, &Act::Init { answers: answers.clone() }, 1)?;
            act::make(&mut files, &changes);
        }
        Ok(files)
    }

    /// Creates the folder of a new campaign in one step.
    fn appear(&self, id: &str, files: &Files) -> Result<()> {
        let staging = format!("campaigns/.{id}.new");
        if self.place.exists(&staging)? {
            self.place.remove_dir_all(&staging)?;
        }
        for (path, text) in files {
            self.place.write(&format!("{staging}/{path}"), text.as_bytes())?;
        }
        self.place.rename(&staging, &format!("campaigns/{id}"))
    }

    fn point(&self, id: &str) -> Result<()> {
        self.place.write("ACTIVE.md", format!("active_campaign: {id}\npath: campaigns/{id}\n").as_bytes())
    }

    /// Makes a campaign the active one, after the whole campaign has been checked.
    pub fn switch(&self, id: &str) -> Result<()> {
        let (save, _) = self.play(id)?;
        layout(&save.paths()?)?;
        self.point(&save.id)
    }

    /// Reads `ACTIVE.md`, which has one line or two.
    pub fn active(&self) -> Result<ActiveCampaign> {
        let Some(text) = if_exists(self.place.read_text("ACTIVE.md"))? else { return Ok(ActiveCampaign::default()) };
        let Some(id) = md::field(&text, "active_campaign").map(|own| own.trim_start_matches("campaigns/").to_owned())
        else {
            return Ok(ActiveCampaign::default());
        };
        let Ok(save) = self.campaign(&id) else {
            return Ok(ActiveCampaign { campaign: Some(id), ..ActiveCampaign::default() });
        };
        let (cartridge, lock) = (save.field("cartridge_id").ok(), save.field("cartridge_version_lock").ok());
        Ok(ActiveCampaign { campaign: Some(id), cartridge, version_lock: lock, initialised: save.initialised() })
    }

    /// Replays a campaign's journal in memory. Returns its length and the first file that differs from the disk.
    pub fn replay(&self, id: &str) -> Result<(usize, Option<String>)> {
        let (save, world) = self.play(id)?;
        let journal = save.journal()?;
        let files = replay(id, &world, &journal)?;
        let kept = |path: &str| !matches!(path, ".kernel/lock" | ".kernel/pending.json" | ANSWER);
        let mut paths: Vec<String> =
            save.paths()?.into_iter().chain(files.keys().cloned()).filter(|path| kept(path)).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            if save.read(&path)?.as_ref() != files.get(&path) {
                return Ok((journal.len(), Some(path)));
            }
        }
        Ok((journal.len(), None))
    }
}

/// The text files of the folder of a cartridge.
pub fn folder_files(place: &ConfinedDir) -> Result<Files> {
    let mut files = Files::new();
    for entry in place.walk("")?.into_iter().filter(|entry| entry.kind == Kind::File) {
        if let Ok(text) = place.read_text(&entry.name) {
            files.insert(entry.name, text);
        }
    }
    Ok(files)
}

/// The seed of a campaign that has not begun; only such a campaign can be bound to another cartridge.
fn unbegun(save: &Save) -> Result<u64> {
    match save.journal()?.as_slice() {
        [JournalEntry { act: Act::New { seed, .. }, .. }]
        | [JournalEntry { act: Act::New { seed, .. }, .. }, JournalEntry { act: Act::Adopt { .. }, .. }] => Ok(*seed),
        _ => Err(Error::conflict(format!("campaign {} has begun; it stays with its cartridge", save.id))),
    }
}

#[cfg(test)]
mod tests;
