//! Tests of the whole core: the shipped cartridge, played in memory.

mod answers;
mod attacks;
mod campaign;
mod consequences;
mod conversation;
mod endings;
mod fresh_eyes;
mod kernel_pages;
mod mechanics;
mod narrator_context;
mod narrators;
mod natural_words;
mod player_orders;
mod player_secrets;
mod player_words;
mod playthrough;
mod preferences;
mod prose_truth;
mod reading;
mod score;
mod tool_rules;
mod transcripts;
mod walks;
mod world_truth;

use serde_json::{Value, json};

use crate::act::{self, Act};
use crate::files::{Files, ReadFiles};
use crate::init::Answers;
use crate::turn::ActContext;
use crate::world::Cartridge;
use acheron_base::Result;

/// A campaign in memory: every act goes through the same code as on disk.
pub(crate) struct Game {
    pub files: Files,
    pub world: Cartridge,
    pub seed: u64,
    seq: u64,
}

pub(crate) const AT: &str = "2026-11-16T10:00:00Z";

pub(crate) fn brinewick() -> Cartridge {
    let world = crate::load::cartridge(&crate::shipped::cartridge("brinewick").unwrap()).unwrap();
    assert_eq!(world.faults, [], "the cartridge that we ship is faultless");
    world
}

pub(crate) fn answers() -> Answers {
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
        Game::seeded(world, 7)
    }

    /// A campaign as it is made, with the first line of its journal.
    fn seeded(world: Cartridge, seed: u64) -> Game {
        let played_by = crate::adopt::PlayedBy::now(&world);
        let new = Act::New { cartridge: world.id.clone(), version_lock: "1.0.x".into(), seed, played_by };
        let files = crate::campaign::begun("c1", &new, AT, &crate::shipped::template());
        Game { files, world, seed, seq: 1 }
    }

    pub fn new() -> Game {
        Game::of("brinewick")
    }

    /// A begun campaign in a shipped cartridge.
    pub fn of(id: &str) -> Game {
        Game::with_seed(id, 7)
    }

    pub fn with_seed(id: &str, seed: u64) -> Game {
        let world = crate::load::cartridge(&crate::shipped::cartridge(id).unwrap()).unwrap();
        assert_eq!(world.faults, [], "the cartridge that we ship is faultless");
        let mut game = Game::seeded(world, seed);
        game.act(&Act::Init { answers: Box::new(answers()) }).unwrap();
        game
    }

    pub fn act(&mut self, act: &Act) -> Result<String> {
        let context = ActContext { world: &self.world, files: &self.files, campaign: "c1", seed: self.seed, at: AT };
        let (done, changes) = act::whole(context, act, self.seq)?;
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

    /// Plays several inputs; the answer to the last one.
    pub fn plays(&mut self, inputs: &[&str]) -> String {
        let mut last = String::new();
        for input in inputs {
            last = self.play(input).unwrap_or_else(|fault| panic!("{input}: {fault}"));
        }
        last
    }

    /// Changes the panel and the sessions alike, so that play goes on from there.
    pub fn set(&mut self, patch: Value) {
        let mut panel = self.json("STATE_PANEL.json");
        crate::json::merge(&mut panel, &patch);
        self.files.insert("STATE_PANEL.json".into(), crate::json::render(&panel));
        let sum = crate::delta::apply::sum(&crate::json::render(&panel));
        let session = self.session();
        let text = format!("\n## Decision: a test\n\n- State: {patch}\n- Panel: {sum}\n");
        self.files.get_mut(&session).unwrap().push_str(&text);
        let whole = self.files[&session].clone();
        act::make(&mut self.files, &act::windows(&session, &whole));
    }

    pub fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.files[path]).unwrap()
    }

    pub fn session(&self) -> String {
        crate::boot::current(&self.files).unwrap()
    }

    pub fn files(&self) -> &dyn ReadFiles {
        &self.files
    }

    pub fn quests(&self) -> Vec<(String, String)> {
        let panel = self.json("STATE_PANEL.json");
        let quests = panel["quests"].as_object().cloned().unwrap_or_default();
        quests.into_iter().map(|(handle, quest)| (handle, quest["status"].as_str().unwrap_or("?").to_owned())).collect()
    }

    /// The journal, played from its first line, leads to these files and to no others.
    pub fn replayed(&self) {
        let lines = self.files[act::JOURNAL].lines();
        let journal: Vec<act::JournalEntry> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let again = crate::campaign::replay("c1", &self.world, &journal).unwrap();
        let differs = |path: &&String| again.get(*path) != self.files.get(*path);
        let paths: Vec<&String> = self.files.keys().chain(again.keys()).filter(differs).collect();
        assert!(paths.is_empty(), "a replay gives other files: {paths:?}");
    }

    /// What the laws of files ask for, whatever was played.
    pub fn lawful(&self) {
        for path in
            ["STATE_PANEL.json", "HOT_PACK.json", "MAINLINE_PANEL.json", "OBJECT_INDEX.json", "clues/CLUE_LOG.json"]
        {
            crate::delta::panels::check(path, &self.json(path)).unwrap();
        }
        let told = crate::boot::told(self.files()).unwrap().unwrap();
        let mut folded = self.json("STATE_PANEL.json");
        for (key, value) in told.as_object().unwrap() {
            folded[key] = value.clone();
        }
        assert_eq!(folded, self.json("STATE_PANEL.json"), "the panel follows from the sessions");
        let report = crate::continuity::check(self.files(), &self.world).unwrap();
        assert!(report.ok, "{}", json!(report));
        let session = &self.files[&self.session()];
        let path = crate::session::snapshot_path(&self.session());
        assert_eq!(self.files[&path], crate::session::snapshot(session));
        let path = crate::session::compressed_path(&self.session());
        assert_eq!(self.files[&path], crate::session::compressed(session));
    }
}
