//! All campaigns and cartridges of one root: making, switching, replaying. `ACTIVE.md` is written last, or not at all.

use std::sync::Arc;

use include_dir::{Dir, include_dir};
use serde::Serialize;

use super::super::act::{self, Act, Entry, JOURNAL};
use super::super::shelf::{Files, Shelf};
use super::super::tools::control::Plan;
use super::super::turn::Seat;
use super::super::world::Cartridge;
use super::super::{load, md};
use super::Save;
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Error, Result, if_exists};

static CARTRIDGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/global-library/cartridges");
static TEMPLATE: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/global-library/campaigns/_template");

pub struct Hall {
    place: ConfinedDir,
}

/// Which campaign is played.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Active {
    pub campaign: Option<String>,
    pub cartridge: Option<String>,
    pub version_lock: Option<String>,
    pub initialised: bool,
}

/// The files of an embedded folder, by path inside it.
fn embedded(dir: &'static Dir<'static>) -> Files {
    fn walk(dir: &'static Dir<'static>, root: &std::path::Path, out: &mut Files) {
        for file in dir.files() {
            if let (Ok(path), Some(text)) = (file.path().strip_prefix(root), file.contents_utf8()) {
                out.insert(path.to_string_lossy().into_owned(), text.to_owned());
            }
        }
        dir.dirs().for_each(|inner| walk(inner, root, out));
    }
    let mut out = Files::new();
    walk(dir, dir.path(), &mut out);
    out
}

pub fn template() -> Files {
    embedded(&TEMPLATE)
}

/// A name for a campaign or a cartridge: no path, nothing hidden, no template.
fn name(id: &str) -> Result<&str> {
    let lawful = !id.is_empty() && id.len() <= 64 && id.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    match lawful {
        true if id == "_template" => Err(Error::read_only("the template is never written")),
        true => Ok(id),
        false => Err(Error::forbidden(format!(
            "`{}` is not a name for a campaign: letters, digits, _ and -",
            md::clip(id, 40)
        ))),
    }
}

/// Whether a version fits a lock: the same, or the same but for what stands at `x`.
pub fn fits(lock: &str, version: &str) -> bool {
    let (lock, version): (Vec<&str>, Vec<&str>) = (lock.split('.').collect(), version.split('.').collect());
    lock.len() == version.len() && lock.iter().zip(&version).all(|(lock, own)| *lock == "x" || lock == own)
}

impl Hall {
    pub fn open(place: ConfinedDir) -> Hall {
        Hall { place }
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

    /// Those of the root, and those that came with the program.
    pub fn cartridges(&self) -> Result<Vec<String>> {
        let mut all = self.folders("cartridges")?;
        let shipped = CARTRIDGES.dirs().filter_map(|dir| Some(dir.path().file_name()?.to_string_lossy().into_owned()));
        all.extend(shipped.filter(|own| !own.starts_with('_')));
        all.sort();
        all.dedup();
        Ok(all)
    }

    /// The files of a cartridge: the root's, else the program's own.
    pub fn cartridge_files(&self, id: &str) -> Result<Files> {
        let id = name(id)?;
        let path = format!("cartridges/{id}");
        if self.place.exists(&path)? {
            let place = self.place.within(&path)?;
            let mut files = Files::new();
            for entry in place.walk("")?.into_iter().filter(|entry| entry.kind == Kind::File) {
                if let Ok(text) = place.read_text(&entry.name) {
                    files.insert(entry.name, text);
                }
            }
            return Ok(files);
        }
        match CARTRIDGES.get_dir(id) {
            Some(dir) => Ok(embedded(dir)),
            None => Err(Error::not_found(format!("there is no cartridge {id}"))),
        }
    }

    /// The paths of a cartridge's files, without what is hidden: a game master's secrets are nobody's to read.
    pub fn cartridge_paths(&self, id: &str) -> Result<Vec<String>> {
        let seen = |path: &String| !path.split('/').any(|part| part.starts_with('.'));
        Ok(self.cartridge_files(id)?.into_keys().filter(seen).collect())
    }

    /// The cartridge as it is at this moment. Nothing is kept between turns, so that an edit is there in the next one.
    pub fn cartridge(&self, id: &str) -> Result<Arc<Cartridge>> {
        Ok(Arc::new(load::cartridge(&self.cartridge_files(id)?)?))
    }

    /// Writes a file of a cartridge that lives under the root; what came with the program is copied there first.
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

    /// The campaign with its cartridge, if the version that it is locked to is the one there is.
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

    /// What a campaign's folder must have.
    fn layout(save: &Save) -> Result<()> {
        let paths = save.paths()?;
        let missing: Vec<&str> =
            ["STATE_PANEL.json", "sessions/CURRENT_SESSION.md", "quests/", "characters/", "Writing/"]
                .into_iter()
                .filter(|need| {
                    !paths.iter().any(|path| path == need || (need.ends_with('/') && path.starts_with(need)))
                })
                .collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Error::invalid(format!("campaign layout invalid; missing: {}", missing.join(", "))))
        }
    }

    /// Makes a campaign: a folder that appears whole, then the pointer to it.
    pub fn new_campaign(&self, id: &str, cartridge: &str, seed: u64, at: &str) -> Result<()> {
        let bound = Some((cartridge.to_owned(), None));
        self.carry_out(&Plan { id: id.to_owned(), made: true, bound, answers: None, active: true }, seed, at)
    }

    /// Carries out a batch of control tools: everything is made in memory and looked at before the first byte is written,
    /// and `ACTIVE.md` comes last.
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
            Self::layout(&save)?;
            save.act(&world, &Act::Init { answers: answers.clone() }, at)?;
        }
        if plan.active { self.switch(id) } else { Ok(()) }
    }

    /// The files of a campaign that is made or bound anew, with what it is begun with.
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
        let lock = lock.unwrap_or_else(|| match world.version.rsplit_once('.') {
            Some((front, _)) => format!("{front}.x"),
            None => world.version.clone(),
        });
        if !fits(&lock, &world.version) {
            let said = format!("version_lock mismatch: {cartridge} is at {}, not {lock}", world.version);
            return Err(Error::conflict(said));
        }
        let mut files = begun(id, &Act::New { cartridge: world.id.clone(), version_lock: lock, seed }, at);
        if let Some(answers) = &plan.answers {
            let seat = Seat { world: &world, shelf: &files, campaign: id, seed, at };
            let (_, changes) = act::whole(seat, &Act::Init { answers: answers.clone() }, 1)?;
            act::make(&mut files, &changes);
        }
        Ok(files)
    }

    /// The folder of a new campaign, there whole or not at all.
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

    /// Looks at the whole campaign before the pointer is moved.
    pub fn switch(&self, id: &str) -> Result<()> {
        let (save, _) = self.play(id)?;
        Self::layout(&save)?;
        self.point(&save.id)
    }

    /// What `ACTIVE.md` says, in one line or in two.
    pub fn active(&self) -> Result<Active> {
        let Some(text) = if_exists(self.place.read_text("ACTIVE.md"))? else { return Ok(Active::default()) };
        let Some(id) = md::field(&text, "active_campaign").map(|own| own.trim_start_matches("campaigns/").to_owned())
        else {
            return Ok(Active::default());
        };
        let Ok(save) = self.campaign(&id) else { return Ok(Active { campaign: Some(id), ..Active::default() }) };
        let (cartridge, lock) = (save.field("cartridge_id").ok(), save.field("cartridge_version_lock").ok());
        Ok(Active { campaign: Some(id), cartridge, version_lock: lock, initialised: save.initialised() })
    }

    /// Plays a campaign's journal again, in memory, and names the first file that differs from the disk.
    pub fn replay(&self, id: &str) -> Result<(usize, Option<String>)> {
        let (save, world) = self.play(id)?;
        let journal = save.journal()?;
        let files = replayed(id, &world, &journal)?;
        let kept = |path: &str| !matches!(path, ".kernel/lock" | ".kernel/pending.json");
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

/// The seed of a campaign that has not begun: only such a one can be bound to another cartridge.
fn unbegun(save: &Save) -> Result<u64> {
    match save.journal()?.as_slice() {
        [Entry { act: Act::New { seed, .. }, .. }] => Ok(*seed),
        _ => Err(Error::conflict(format!("campaign {} has begun; it stays with its cartridge", save.id))),
    }
}

/// The files of a new campaign, with the first line of its journal.
fn begun(id: &str, act: &Act, at: &str) -> Files {
    let Act::New { cartridge, version_lock, seed } = act else { return Files::new() };
    let mut files = act::blank(&template(), id, cartridge, version_lock, *seed, at);
    let entry = Entry { seq: 0, at: at.to_owned(), act: act.clone(), sum: String::new() };
    files.insert(JOURNAL.into(), format!("{}\n", serde_json::json!(entry)));
    files
}

/// The journal, played from nothing.
pub fn replayed(id: &str, world: &Cartridge, journal: &[Entry]) -> Result<Files> {
    let Some((first, rest)) = journal.split_first() else {
        return Err(Error::not_found(format!("campaign {id} has no journal from its beginning")));
    };
    let Act::New { seed, .. } = first.act else {
        return Err(Error::invalid(format!("the journal of {id} does not begin with its making")));
    };
    let mut files = begun(id, &first.act, &first.at);
    for entry in rest {
        let seat = Seat { world, shelf: &files, campaign: id, seed, at: &entry.at };
        let (_, changes) = act::whole(seat, &entry.act, entry.seq)?;
        act::make(&mut files, &changes);
    }
    Ok(files)
}

#[cfg(test)]
#[path = "../tests/hall.rs"]
mod tests;
