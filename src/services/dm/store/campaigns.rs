//! All campaigns and cartridges under one root directory: they are created, switched and replayed here. `ACTIVE.md`
//! changes together with the campaign that it names, or not at all. The service uses it; it uses the rules of `acheron-dm` and a confined directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::{ChangedBy, GameLibrary, Save};
use acheron_base::confined_dir::{ConfinedDir, FileChange, Kind};
use acheron_base::{Error, Result, if_exists};
use acheron_dm::act::{self, Act, ActResult, JournalEntry};
use acheron_dm::adopt::PlayedBy;
use acheron_dm::answer::ANSWER;
use acheron_dm::campaign::{begun, fits, layout, lock_for, name, replay};
use acheron_dm::files::{Files, ReadFiles};
use acheron_dm::inspect::{Inspection, inspect_folder};
use acheron_dm::tools::control::Plan;
use acheron_dm::turn::ActContext;
use acheron_dm::world::{Cartridge, Fault};
use acheron_dm::{load, md};

/// A page larger than this is not looked into.
const LARGEST_PAGE: u64 = 32 << 20;

/// The campaigns and cartridges under one root directory. Holds nothing between calls: every answer is read from the disk.
pub struct Campaigns {
    place: Arc<ConfinedDir>,
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
        Campaigns { place: Arc::new(place), library }
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

    /// Checks a cartridge, with the pages of its folder that are no text.
    pub fn inspect(&self, id: &str) -> Result<Inspection> {
        let mut report = inspect_folder(id, &self.cartridge_files(id)?);
        let path = format!("cartridges/{}", name(id)?);
        if self.place.exists(&path)? {
            report.add(unreadable_pages(&self.place.within(&path)?)?);
        }
        Ok(report)
    }

    /// The cartridge as it is now. It is not cached, so that the next turn sees an edit.
    pub fn cartridge(&self, id: &str) -> Result<Arc<Cartridge>> {
        let mut world = load::cartridge(&self.cartridge_files(id)?)?;
        world.engine = self.library.engine()?;
        Ok(Arc::new(world))
    }

    /// Writes files of cartridges under the root, all of them or none; a cartridge of the library is copied there with them.
    pub fn write_cartridges(&self, by: &ChangedBy, written: BTreeMap<String, Files>, done: &ActResult) -> Result<()> {
        let mut changes = Vec::new();
        for (id, files) in written {
            let folder = format!("cartridges/{}", name(&id)?);
            match self.place.exists(&folder)? {
                true => changes
                    .extend(files.into_iter().map(|(path, text)| FileChange::write(format!("{folder}/{path}"), text))),
                false => {
                    let mut whole = self.cartridge_files(&id)?;
                    whole.extend(files);
                    changes.push(self.stage("cartridges", &id, &whole)?);
                }
            }
        }
        by.change(&self.place, changes, done)
    }

    pub fn campaign(&self, id: &str) -> Result<Save> {
        let id = name(id)?;
        let path = format!("campaigns/{id}");
        if !self.place.exists(&path)? {
            return Err(Error::not_found(format!("campaign not found: {path}")));
        }
        Save::open(&self.place, id)
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

    /// Creates a campaign: its folder, and the pointer to it.
    pub fn new_campaign(
        &self,
        by: &ChangedBy,
        id: &str,
        cartridge: &str,
        seed: u64,
        at: &str,
        done: &ActResult,
    ) -> Result<()> {
        let bound = Some((cartridge.to_owned(), None));
        let plan = Plan { id: id.to_owned(), made: true, bound, answers: None, active: true };
        self.carry_out(by, &plan, seed, at, done)
    }

    /// Carries out a batch of control tools: everything is prepared and checked before the first file takes its name.
    pub fn carry_out(&self, by: &ChangedBy, plan: &Plan, seed: u64, at: &str, done: &ActResult) -> Result<()> {
        let id = name(&plan.id)?;
        let path = format!("campaigns/{id}");
        if plan.made && self.place.exists(&path)? {
            return Err(Error::already_exists(format!("destination already exists: {path}")));
        }
        let mut others: Vec<FileChange> = plan.active.then(|| pointer(id)).into_iter().collect();
        if plan.made {
            let files = self.begin(id, plan, seed, at)?;
            layout(&files.keys().cloned().collect::<Vec<_>>())?;
            others.insert(0, self.stage("campaigns", id, &files)?);
            by.change(&self.place, others, done)
        } else if plan.bound.is_some() {
            let save = self.campaign(id)?;
            let files = self.begin(id, plan, unbegun(&save)?, at)?;
            layout(&save.paths()?.into_iter().chain(files.keys().cloned()).collect::<Vec<_>>())?;
            save.replace(by, files, others, done)
        } else if let Some(answers) = &plan.answers {
            let (save, world) = self.play(id)?;
            layout(&save.paths()?)?;
            save.act_and(by, &world, &Act::Init { answers: answers.clone() }, at, others).map(drop)
        } else if plan.active {
            self.switch(by, id, done)
        } else {
            Ok(())
        }
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

    /// Prepares a new folder; the change lets it appear in one step.
    fn stage(&self, under: &str, id: &str, files: &Files) -> Result<FileChange> {
        let staging = format!("{under}/.{id}.new");
        if self.place.exists(&staging)? {
            self.place.remove_dir_all(&staging)?;
        }
        for (path, text) in files {
            self.place.write(&format!("{staging}/{path}"), text.as_bytes())?;
        }
        Ok(FileChange::rename(staging, format!("{under}/{id}")))
    }

    /// Makes a campaign the active one, after the whole campaign has been checked.
    pub fn switch(&self, by: &ChangedBy, id: &str, done: &ActResult) -> Result<()> {
        let (save, _) = self.play(id)?;
        layout(&save.paths()?)?;
        by.change(&self.place, vec![pointer(&save.id)], done)
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

/// `ACTIVE.md` names a campaign.
fn pointer(id: &str) -> FileChange {
    FileChange::write("ACTIVE.md", format!("active_campaign: {id}\npath: campaigns/{id}\n"))
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

/// The pages of a folder that are no text, each with the line where it ends to be one. [`folder_files`] passes them over.
pub fn unreadable_pages(place: &ConfinedDir) -> Result<Vec<Fault>> {
    let mut faults = Vec::new();
    for entry in place.walk("")?.into_iter().filter(|entry| entry.kind == Kind::File) {
        let is_page = entry.name.ends_with(".md") || entry.name.ends_with(".json");
        if !is_page || place.read_text(&entry.name).is_ok() {
            continue;
        }
        let (line, message) = match place.read_up_to(&entry.name, LARGEST_PAGE) {
            Ok(bytes) => match std::str::from_utf8(&bytes) {
                Err(fault) => {
                    let line = bytes[..fault.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
                    (line, "the page is not UTF-8 text".to_owned())
                }
                Ok(_) => (1, "the page cannot be read as text".to_owned()),
            },
            Err(fault) => (1, format!("the page cannot be read: {}", fault.message)),
        };
        faults.push(Fault { path: entry.name, line, message });
    }
    Ok(faults)
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
