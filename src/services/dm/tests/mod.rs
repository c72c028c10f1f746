//! Whole-kernel tests: the cartridge of the house, played in memory.

mod campaign;
mod narrators;
mod playthrough;
mod rows;

use serde_json::{Value, json};

use super::act::{self, Act};
use super::init::Answers;
use super::shelf::{Files, Shelf};
use super::store::Hall;
use super::turn::Seat;
use super::world::Cartridge;
use acheron_base::ConfinedDir;
use acheron_base::Result;

/// A campaign in memory: every act goes through the same code as on disk.
pub(super) struct Game {
    pub files: Files,
    pub world: Cartridge,
    pub seed: u64,
    seq: u64,
}

pub(super) const AT: &str = "2026-11-16T10:00:00Z";

pub(super) fn brinewick() -> Cartridge {
    let dir = tempfile::tempdir().unwrap();
    let hall = Hall::open(ConfinedDir::open(dir.path()).unwrap());
    let world = hall.cartridge("brinewick").unwrap();
    assert_eq!(world.faults, [], "the cartridge that we ship is faultless");
    (*world).clone()
}

pub(super) fn answers() -> Answers {
    let text = |text: &str| text.to_owned();
    Answers {
        date: text("2026-11-16"),
        preset: text("Mystery Investigation"),
        pc_name: text("Ann"),
        pc_archetype: text("pilot"),
        pc_drive: text("to know what happened to the Merrow"),
        pc_strengths: text("clever, charming"),
        ..Answers::default()
    }
}

impl Game {
    pub fn blank(world: Cartridge) -> Game {
        let files = act::blank(&super::store::template(), "c1", &world.id, "1.0.x", 7, AT);
        Game { files, world, seed: 7, seq: 1 }
    }

    pub fn new() -> Game {
        let mut game = Game::blank(brinewick());
        game.act(&Act::Init { answers: Box::new(answers()) }).unwrap();
        game
    }

    pub fn act(&mut self, act: &Act) -> Result<String> {
        let seat = Seat { world: &self.world, shelf: &self.files, campaign: "c1", seed: self.seed, at: AT };
        let (done, changes) = act::whole(seat, act, self.seq)?;
        act::make(&mut self.files, &changes);
        self.seq += u64::from(!changes.is_empty());
        Ok(done.output)
    }

    pub fn play(&mut self, input: &str) -> Result<String> {
        self.act(&Act::Turn { input: input.to_owned(), proposal: None })
    }

    pub fn propose(&mut self, input: &str, proposal: Value) -> Result<String> {
        self.act(&Act::Turn { input: input.to_owned(), proposal: Some(proposal) })
    }

    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.files[path]).unwrap()
    }

    pub fn session(&self) -> String {
        super::boot::current(&self.files).unwrap()
    }

    pub fn shelf(&self) -> &dyn Shelf {
        &self.files
    }

    pub fn quests(&self) -> Vec<(String, String)> {
        let panel = self.json("STATE_PANEL.json");
        let quests = panel["quests"].as_object().cloned().unwrap_or_default();
        quests.into_iter().map(|(handle, quest)| (handle, quest["status"].as_str().unwrap_or("?").to_owned())).collect()
    }

    /// What the laws of files ask for, whatever was played.
    pub fn lawful(&self) {
        for path in
            ["STATE_PANEL.json", "HOT_PACK.json", "MAINLINE_PANEL.json", "OBJECT_INDEX.json", "clues/CLUE_LOG.json"]
        {
            super::delta::panels::check(path, &self.json(path)).unwrap();
        }
        let told = super::boot::told(self.shelf()).unwrap().unwrap();
        let mut folded = self.json("STATE_PANEL.json");
        for (key, value) in told.as_object().unwrap() {
            folded[key] = value.clone();
        }
        assert_eq!(folded, self.json("STATE_PANEL.json"), "the panel follows from the sessions");
        let report = super::continuity::check(self.shelf(), &self.world).unwrap();
        assert!(report.ok, "{}", json!(report));
        let session = &self.files[&self.session()];
        let path = super::session::snapshot_path(&self.session());
        assert_eq!(self.files[&path], super::session::snapshot(session));
        let path = super::session::compressed_path(&self.session());
        assert_eq!(self.files[&path], super::session::compressed(session));
    }
}
