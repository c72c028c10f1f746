//! The runs of consolidation on the disk: `sleep/<run>/{report.json,diff.patch,proposal.json,before.json}` in the wiki.
//! `consolidating`, `sleep_changes` and `sleep_files` use it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::wiki::Wiki;
use acheron_base::confined_dir::{FileChange, Kind};
use acheron_base::{Code, Error, Result, quoted};
use acheron_recall::sleep::{AddedBlock, RemovedLine, SleepChange};
use acheron_vfs::pretty;

/// The files of a run.
pub const REPORT: &str = "report.json";
pub const PATCH: &str = "diff.patch";
pub const PROPOSAL: &str = "proposal.json";
/// What the pages were before they were changed.
pub const BEFORE: &str = "before.json";
/// The largest file of a run.
const LARGEST: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SleepState {
    /// Nothing was asked and nothing written: `dry_run`.
    Planned,
    /// The pages are as before; `apply` changes them.
    Proposed,
    /// There was nothing to change.
    Empty,
    Applied,
    Undone,
}

/// A run of consolidation, as `sleep/<run>/report.json` shows it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SleepReport {
    /// Its name; none if nothing was written.
    pub run: Option<String>,
    pub state: SleepState,
    /// `model`, or `extract` where there is none.
    pub by: String,
    /// The transcripts that were read, each up to a message.
    pub transcripts: Vec<TranscriptRead>,
    /// How many parts the transcripts were read in, and how many are left for the next run.
    pub requests: usize,
    pub left: usize,
    pub pages: Vec<SleptPage>,
    /// What was proposed for a part of a transcript and not taken. It is read again by the next run.
    pub refused: Vec<RefusedPart>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptRead {
    /// `episodic-raw/<date>/<conversation>`
    pub path: String,
    pub messages: usize,
    /// The last message that was read.
    pub last: String,
}

/// A proposed change of one page.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SleptPage {
    pub path: String,
    /// The SHA-256 of the page that was changed; none for a new page.
    pub before: Option<String>,
    pub after: String,
    pub added: Vec<AddedBlock>,
    pub removed: Vec<RemovedLine>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RefusedPart {
    pub transcript: String,
    pub faults: Vec<String>,
}

/// The texts that `undo` brings back, by path; none for a page that was new.
pub type BeforeTexts = BTreeMap<String, Option<String>>;

impl SleptPage {
    pub fn of(change: &SleepChange) -> SleptPage {
        SleptPage {
            path: change.path.clone(),
            before: change.before.as_deref().map(digest),
            after: digest(&change.after),
            added: change.added.clone(),
            removed: change.removed.clone(),
        }
    }
}

pub fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file of a run with a value.
pub fn written<T: Serialize>(run: &str, file: &str, value: &T) -> Result<FileChange> {
    let value = serde_json::to_value(value).map_err(|error| Error::internal(error.to_string()))?;
    Ok(FileChange::write(format!("sleep/{run}/{file}"), pretty(&value).to_vec()))
}

impl Wiki {
    /// The runs in their order.
    pub fn sleep_runs(&self) -> Result<Vec<String>> {
        let names = match self.place().names("sleep") {
            Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        let mut runs: Vec<String> = names
            .into_iter()
            .filter(|(name, kind)| *kind == Kind::Dir && check_run(name).is_ok())
            .map(|it| it.0)
            .collect();
        runs.retain(|run| self.place().exists(&format!("sleep/{run}/{REPORT}")).unwrap_or(false));
        runs.sort();
        Ok(runs)
    }

    /// A name for a run of this day that none has.
    pub fn unused_run(&self, date: &str) -> Result<String> {
        for number in 1..1000 {
            let run = format!("{date}-{number:03}");
            if !self.place().exists(&format!("sleep/{run}"))? {
                return Ok(run);
            }
        }
        Err(Error::new(Code::QuotaExceeded, format!("there are 999 runs of {date} already: remove some of sleep/")))
    }

    /// The bytes of a file of a run.
    pub fn sleep_bytes(&self, run: &str, file: &str) -> Result<Vec<u8>> {
        check_run(run)?;
        self.place().read_up_to(&format!("sleep/{run}/{file}"), LARGEST).map_err(|error| match error.code {
            Code::NotFound => {
                Error::not_found(format!("there is no run {run} with a {file}: `ls sleep` lists the runs"))
            }
            _ => error,
        })
    }

    pub fn sleep_value<T: DeserializeOwned>(&self, run: &str, file: &str) -> Result<T> {
        let bytes = self.sleep_bytes(run, file)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::invalid(format!("sleep/{run}/{file} was changed and cannot be read ({error}): remove sleep/{run}"))
        })
    }

    /// The last message of each transcript that was consolidated.
    pub fn consolidated(&self) -> Result<BTreeMap<String, String>> {
        let mut last = BTreeMap::new();
        for run in self.sleep_runs()? {
            let report: SleepReport = self.sleep_value(&run, REPORT)?;
            if matches!(report.state, SleepState::Applied | SleepState::Empty) {
                last.extend(report.transcripts.into_iter().map(|read| (read.path, read.last)));
            }
        }
        Ok(last)
    }
}

pub fn check_run(run: &str) -> Result<()> {
    let plain = run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match plain && (1..=40).contains(&run.len()) {
        true => Ok(()),
        false => Err(Error::invalid(format!("{} is not the name of a run: `ls sleep` lists them", quoted(run)))),
    }
}
