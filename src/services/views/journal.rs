//! The journal of the last promote: a file that says what was decided. Once it is there, the promote happens: now, or at the
//! next start. It stays until the next promote, so that the last one can be undone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::places::VIEWS;
use super::record::ViewRecord;
use acheron_base::{Error, Result};
use acheron_views::Root;
use acheron_views::promote::{self, PromoteStep, SkippedStep, Stage};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    Decided,
    Done,
    /// An undo was decided.
    Undoing,
    Undone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromoteJournal {
    /// The job that promotes, or undoes; its result if the host dies before the job has ended.
    pub job: String,
    pub result: Value,
    pub state: JournalState,
    pub at_ms: u64,
    pub stage: PathBuf,
    pub steps: Vec<PromoteStep>,
    /// When the last file was changed by it.
    pub promoted_ns: i64,
}

impl PromoteJournal {
    pub fn read(file: &Path) -> Result<Option<PromoteJournal>> {
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(err) => return Err(Error::from(err).about(file.display())),
        };
        let read = serde_json::from_slice(&bytes);
        read.map(Some).map_err(|err| Error::invalid(format!("{} is damaged: {err}", file.display())))
    }

    /// It is on the disk when this returns.
    pub fn write(&self, file: &Path) -> Result<()> {
        write_whole(file, &serde_json::to_vec(self).map_err(|err| Error::internal(err.to_string()))?)
    }

    /// Makes what was decided, from the beginning.
    pub fn make(&self, base: &Root) -> Result<Vec<SkippedStep>> {
        let stage = Stage::open(&self.stage)?;
        match self.state {
            JournalState::Decided | JournalState::Done => promote::apply(base, &stage, &self.steps),
            JournalState::Undoing | JournalState::Undone => promote::undo(base, &stage, &self.steps),
        }
    }

    /// The same, after it was made.
    pub fn made(self, base: &Root) -> Result<PromoteJournal> {
        let state = match self.state {
            JournalState::Decided | JournalState::Done => JournalState::Done,
            JournalState::Undoing | JournalState::Undone => JournalState::Undone,
        };
        let promoted_ns = promote::last_change(base, &self.steps)?;
        Ok(PromoteJournal { state, promoted_ns, ..self })
    }
}

/// Replaces a file: whole, on the disk, or not at all.
pub fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    let beside = file.with_extension("new");
    let write = || {
        let mut out = fs::File::create(&beside)?;
        out.write_all(bytes)?;
        out.sync_all()?;
        fs::rename(&beside, file)?;
        fs::File::open(file.parent().unwrap_or(Path::new("/")))?.sync_all()
    };
    write().map_err(|err: std::io::Error| Error::from(err).about(file.display()))
}

/// Finishes what was decided when the last host died, before anything is shown. Returns the outcome of each job that decided.
pub fn replay(state: &Path) -> Result<BTreeMap<String, Result<Value>>> {
    let mut decided = BTreeMap::new();
    let Ok(found) = fs::read_dir(state.join(VIEWS)) else { return Ok(decided) };
    for dir in found.flatten().map(|entry| entry.path()) {
        let file = dir.join("promote.json");
        let read = PromoteJournal::read(&file).and_then(|journal| {
            let record = fs::read(dir.join("view.json")).map_err(Error::from)?;
            let record: ViewRecord = serde_json::from_slice(&record).map_err(|err| Error::invalid(err.to_string()))?;
            Ok(journal.map(|journal| (journal, record)))
        });
        let (journal, record) = match read {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, dir = %dir.display(), "the journal of a promote cannot be read");
                continue;
            }
        };
        if matches!(journal.state, JournalState::Done | JournalState::Undone) {
            // Its job may not have ended: then it ends as it was decided.
            decided.insert(journal.job.clone(), Ok(journal.result.clone()));
            continue;
        }
        let job = journal.job.clone();
        let outcome = Root::open(&record.base).and_then(|base| {
            let skipped = journal.make(&base)?;
            let mut made = journal.made(&base)?;
            if !skipped.is_empty() {
                made.result["not_made"] = serde_json::to_value(&skipped).unwrap_or_default();
            }
            made.write(&file)?;
            Ok(made.result)
        });
        if let Err(error) = &outcome {
            tracing::error!(%error, base = %record.base.display(), "a promote that was decided could not be finished");
        }
        decided.insert(job, outcome);
    }
    Ok(decided)
}
