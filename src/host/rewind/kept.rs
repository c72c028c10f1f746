//! What is written down of checkpoints and of the last rewind, in the state of the agent.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use acheron_base::{ConfinedDir, Error, Result};

/// So many turns can be rewound.
const MOST: usize = 20;
const TURNS: &str = "turns.json";
const JOURNAL: &str = "journal.json";

/// The checkpoint of one turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTurn {
    pub turn: u64,
    pub at_ms: u64,
    /// The newest version of a memory then.
    pub memory: i64,
    /// Why the files were not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_fault: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptTurns {
    pub turns: Vec<KeptTurn>,
}

impl KeptTurns {
    pub fn read(dir: &Path) -> Result<KeptTurns> {
        Ok(read(dir, TURNS)?.unwrap_or_default())
    }

    /// Not synced: after a crash of the machine the last checkpoint may be missing.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let bytes = serde_json::to_vec(self).map_err(|err| Error::internal(err.to_string()))?;
        let (file, beside) = (dir.join(TURNS), dir.join("turns.new"));
        std::fs::create_dir_all(dir)?;
        std::fs::write(&beside, bytes)?;
        Ok(std::fs::rename(beside, file)?)
    }

    /// Adds one; returns the turns whose checkpoints go.
    pub fn add(&mut self, kept: KeptTurn) -> Vec<u64> {
        self.turns.retain(|known| known.turn != kept.turn);
        self.turns.push(kept);
        let over = self.turns.len().saturating_sub(MOST);
        self.turns.drain(..over).map(|gone| gone.turn).collect()
    }
}

/// A view that a rewind brings back, and which of its uppers counted before: if another does, it has been brought back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewoundView {
    pub name: String,
    pub base: PathBuf,
    pub generation: u64,
}

/// A rewind that is decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindJournal {
    /// Its job.
    pub id: String,
    /// The last turn that counts.
    pub to: u64,
    /// The rewind that it undoes.
    pub undoes: Option<String>,
    pub snapshot: String,
    /// The newest version of a memory to go back to, and the one before the rewind.
    pub memory: i64,
    pub memory_before: i64,
    pub views: Vec<RewoundView>,
    pub files_fault: Option<String>,
    pub done: bool,
}

impl RewindJournal {
    pub fn read(dir: &Path) -> Result<Option<RewindJournal>> {
        read(dir, JOURNAL)
    }

    pub fn write(&self, dir: &Path) -> Result<()> {
        write(dir, JOURNAL, self)
    }

    pub fn result(&self) -> Value {
        let files: Value = match (&self.files_fault, self.views.len()) {
            (Some(why), _) => json!(format!("not brought back: {why}")),
            (None, 0) => json!("not brought back: the agent works in no view of its own"),
            (None, _) => json!("brought back"),
        };
        match &self.undoes {
            Some(_) => json!({"undone": true, "files": files}),
            None => json!({"to": self.to, "files": files}),
        }
    }
}

fn read<T: DeserializeOwned>(dir: &Path, name: &str) -> Result<Option<T>> {
    if !dir.is_dir() {
        return Ok(None);
    }
    let bytes = ConfinedDir::open(dir)?.read_if_exists(name)?;
    bytes
        .map(|bytes| serde_json::from_slice(&bytes).map_err(|err| Error::invalid(format!("{name}: {err}"))))
        .transpose()
}

fn write(dir: &Path, name: &str, value: &impl Serialize) -> Result<()> {
    let bytes = serde_json::to_vec(value).map_err(|err| Error::internal(err.to_string()))?;
    ConfinedDir::create(dir)?.write(name, &bytes)
}
