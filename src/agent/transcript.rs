//! The transcript of a turn, one JSON record per line: the program counter of the agent loop.
//!
//! A record is on disk before it is acted upon. A crash may leave an incomplete last line, which is dropped: it was
//! never acted upon.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::{BudgetLimits, Spent, SpentCounter};
use super::protocol::ModelCall;
use crate::model::{ModelAnswer, Prices};
use acheron_base::{ConfinedDir, Error, Result};

/// The largest transcript that is read; a turn of ten thousand calls has some megabytes.
const LARGEST: u64 = 1 << 30;

/// The trigger of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnSource {
    /// A message to the chat.
    Chat,
    /// A wake rule.
    Wake(String),
    /// A task from another agent.
    Task(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TranscriptRecord {
    Began {
        at_ms: u64,
        job_id: String,
        source: TurnSource,
        input: String,
        limits: BudgetLimits,
        prices: Prices,
    },
    /// The model answered after `ms` milliseconds; `seq` is the number of the thought.
    Said {
        at_ms: u64,
        ms: u64,
        seq: u64,
        said: ModelAnswer,
    },
    /// The call is about to be performed and must not be performed twice.
    Intent {
        at_ms: u64,
        call: ModelCall,
    },
    /// A call has ended; it spent `parked_ms` of its time waiting for an event.
    Outcome {
        at_ms: u64,
        ms: u64,
        parked_ms: u64,
        result: Value,
    },
    Ended {
        at_ms: u64,
        end: TurnEnd,
    },
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    Replied(String),
    /// `why` is one word: `protocol_fault`, `repeated_failure`, `budget_exceeded`, `provider_error`, `cancelled` …
    Failed {
        why: String,
        error: Error,
    },
}

impl TurnEnd {
    pub fn failed(why: &str, error: Error) -> TurnEnd {
        TurnEnd::Failed { why: why.to_owned(), error }
    }
}

/// A transcript and its file.
pub struct Transcript {
    dir: Arc<ConfinedDir>,
    name: String,
    records: Vec<TranscriptRecord>,
    counter: SpentCounter,
}

impl Transcript {
    /// A new, empty transcript without a file.
    pub fn new(dir: Arc<ConfinedDir>, name: String) -> Self {
        Transcript { dir, name, records: Vec::new(), counter: SpentCounter::default() }
    }

    /// Opens an existing transcript. An incomplete last line is removed from the file.
    pub fn open(dir: Arc<ConfinedDir>, name: String) -> Result<Self> {
        let bytes = dir.read_up_to(&name, LARGEST)?;
        let (records, whole) = read(&bytes).map_err(|why| Error::internal(format!("{name}: {why}")))?;
        if whole < bytes.len() {
            dir.write(&name, &bytes[..whole])?;
        }
        let mut counter = SpentCounter::default();
        records.iter().for_each(|record| counter.add(record));
        Ok(Transcript { dir, name, records, counter })
    }

    pub fn records(&self) -> &[TranscriptRecord] {
        &self.records
    }

    /// The usage of the turn so far.
    pub fn spent(&self) -> Spent {
        self.counter.spent
    }

    /// Appends records; they are on disk on return. Blocks.
    pub fn append(&mut self, records: impl IntoIterator<Item = TranscriptRecord>) -> Result<()> {
        let records: Vec<_> = records.into_iter().collect();
        let mut lines = Vec::new();
        for record in &records {
            serde_json::to_writer(&mut lines, record).map_err(|error| Error::internal(error.to_string()))?;
            lines.push(b'\n');
        }
        self.dir.append(&self.name, &lines)?;
        records.iter().for_each(|record| self.counter.add(record));
        self.records.extend(records);
        Ok(())
    }
}

/// The records of a file, and the length of its complete part. A malformed line before the last is an error: no crash
/// leaves one.
pub fn read(bytes: &[u8]) -> Result<(Vec<TranscriptRecord>, usize), String> {
    let mut records = Vec::new();
    let mut at = 0;
    while let Some(end) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[at..at + end];
        match serde_json::from_slice(line) {
            Ok(record) => records.push(record),
            // A crash may leave the last line with the right length and wrong bytes.
            Err(_) if at + end + 1 == bytes.len() => break,
            Err(error) => return Err(format!("line {}: {error}", records.len() + 1)),
        }
        at += end + 1;
    }
    Ok((records, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(at_ms: u64) -> TranscriptRecord {
        TranscriptRecord::Ended { at_ms, end: TurnEnd::Replied("ok".into()) }
    }

    #[test]
    fn a_torn_last_line_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Arc::new(ConfinedDir::open(dir.path()).unwrap());
        let mut transcript = Transcript::new(dir.clone(), "turns/a.ndjson".into());
        transcript.append([ended(1), ended(2)]).unwrap();
        dir.append("turns/a.ndjson", b"{\"kind\":\"end").unwrap();
        let mut again = Transcript::open(dir.clone(), "turns/a.ndjson".into()).unwrap();
        assert_eq!(again.records(), [ended(1), ended(2)]);
        again.append([ended(3)]).unwrap();
        let last = Transcript::open(dir, "turns/a.ndjson".into()).unwrap();
        assert_eq!(last.records(), [ended(1), ended(2), ended(3)]);
    }

    #[test]
    fn every_cut_of_a_file_gives_its_whole_lines() {
        let text: Vec<u8> =
            (0..3).flat_map(|at| serde_json::to_vec(&ended(at)).unwrap().into_iter().chain([b'\n'])).collect();
        for cut in 0..=text.len() {
            let (records, whole) = read(&text[..cut]).unwrap();
            assert_eq!(whole, text[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
            assert_eq!(records.len(), text[..cut].iter().filter(|byte| **byte == b'\n').count());
        }
    }

    #[test]
    fn damage_in_the_middle_is_an_error() {
        let line = serde_json::to_string(&ended(1)).unwrap();
        assert!(read(format!("{line}\nrubbish\n{line}\n").as_bytes()).unwrap_err().starts_with("line 2"));
        assert_eq!(read(format!("{line}\nrubbish\n").as_bytes()).unwrap().0.len(), 1);
    }
}
