//! The transcript of a turn, a list of records: the program counter of the agent loop.
//!
//! A call is on disk before it is performed, and its outcome before the next call. The outcomes and calls of many turns share
//! the commits of the store.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::budget::{BudgetLimits, Spent, SpentCounter};
use super::mail::TurnMail;
use super::protocol::ModelCall;
use crate::model::{ModelAnswer, ModelProtocol, Prices};
use crate::state::turns;
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Error, Result, if_exists};
use acheron_store::{Store, Tx, Written};

/// The directory of files in which earlier versions kept transcripts, and the largest that is read.
const FILES: &str = "turns";
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
        /// Answers are read strictly.
        #[serde(default)]
        strict: bool,
        #[serde(default)]
        protocol: ModelProtocol,
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
    /// Messages that came, and with which the model is asked next.
    Mail {
        at_ms: u64,
        mails: Vec<TurnMail>,
    },
    Ended {
        at_ms: u64,
        end: TurnEnd,
    },
}

impl TranscriptRecord {
    pub fn at_ms(&self) -> u64 {
        match self {
            TranscriptRecord::Began { at_ms, .. }
            | TranscriptRecord::Said { at_ms, .. }
            | TranscriptRecord::Intent { at_ms, .. }
            | TranscriptRecord::Outcome { at_ms, .. }
            | TranscriptRecord::Mail { at_ms, .. }
            | TranscriptRecord::Ended { at_ms, .. } => *at_ms,
        }
    }
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

/// The stored turns of one agent.
#[derive(Clone)]
pub struct TurnStore {
    store: Store,
    agent: String,
}

impl TurnStore {
    pub fn new(store: Store, agent: &str) -> TurnStore {
        TurnStore { store, agent: agent.to_owned() }
    }

    /// The transcript of a turn: what is stored of it, or a new one. Blocks.
    pub fn transcript(&self, job: &str) -> Result<Transcript> {
        let lines = self.store.look(|conn| turns::records(conn, &self.agent, job))?;
        let parse = |line: &String| {
            serde_json::from_str(line).map_err(|error| Error::internal(format!("the transcript of {job}: {error}")))
        };
        let records: Vec<TranscriptRecord> = lines.iter().map(parse).collect::<Result<_>>()?;
        let mut counter = SpentCounter::default();
        records.iter().for_each(|record| counter.add(record));
        let bytes = lines.iter().map(|line| line.len() as u64).sum();
        Ok(Transcript { turns: self.clone(), job: job.to_owned(), records, counter, bytes })
    }

    /// The jobs of the turns, oldest first. Blocks.
    pub fn jobs(&self) -> Result<Vec<String>> {
        self.store.look(|conn| turns::jobs(conn, &self.agent))
    }

    /// The jobs of the turns with the bytes of their transcripts, oldest first. Blocks.
    pub fn sizes(&self) -> Result<Vec<(String, u64)>> {
        self.store.look(|conn| turns::sizes(conn, &self.agent))
    }

    /// The time of the last record of a turn. Blocks.
    pub fn changed_ms(&self, job: &str) -> Result<u64> {
        let last = self.store.look(|conn| turns::last(conn, &self.agent, job))?;
        let last = last.and_then(|line| serde_json::from_str::<TranscriptRecord>(&line).ok());
        Ok(last.map_or(0, |record| record.at_ms()))
    }

    /// Blocks.
    pub fn delete(&self, job: &str) -> Result<()> {
        turns::delete(&self.store, &self.agent, job)
    }

    /// Takes over the transcripts that earlier versions kept as files. Blocks.
    pub fn take_files(&self, dir: &ConfinedDir) -> Result<()> {
        let files = if_exists(dir.list(FILES))?.unwrap_or_default();
        for file in files.iter().filter(|file| file.kind == Kind::File) {
            let path = format!("{FILES}/{}", file.name);
            let Some(job) = file.name.strip_suffix(".ndjson") else { continue };
            let (records, _) = read(&dir.read_up_to(&path, LARGEST)?)
                .map_err(|why| Error::internal(format!("{path} of {}: {why}", self.agent)))?;
            let mut transcript = self.transcript(job)?;
            if transcript.records().is_empty() && !records.is_empty() {
                transcript.append(records)?.wait()?;
            }
            dir.remove(&path)?;
        }
        Ok(())
    }
}

/// Writes records in a change of the store.
pub type WriteRecords = Box<dyn FnOnce(&Tx<'_>) -> Result<()> + Send>;

/// The records of one turn.
pub struct Transcript {
    turns: TurnStore,
    job: String,
    records: Vec<TranscriptRecord>,
    counter: SpentCounter,
    /// The bytes of the records.
    bytes: u64,
}

impl Transcript {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn records(&self) -> &[TranscriptRecord] {
        &self.records
    }

    /// The usage of the turn so far.
    pub fn spent(&self) -> Spent {
        self.counter.spent
    }

    /// Appends records; they are on disk when the answer comes, after all that were appended before.
    pub fn append(&mut self, records: Vec<TranscriptRecord>) -> Result<Written<()>> {
        let store = self.turns.store.clone();
        self.append_with(records, |write| store.write(write))
    }

    /// The same, in one commit with another change: `commit` gets the writing of the records.
    pub fn append_with(
        &mut self,
        records: Vec<TranscriptRecord>,
        commit: impl FnOnce(WriteRecords) -> Written<()>,
    ) -> Result<Written<()>> {
        let lines = records.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>();
        let lines = lines.map_err(|error| Error::internal(error.to_string()))?;
        let (agent, job, before) = (self.turns.agent.clone(), self.job.clone(), self.records.len());
        records.iter().for_each(|record| self.counter.add(record));
        self.bytes += lines.iter().map(|line| line.len() as u64).sum::<u64>();
        self.records.extend(records);
        Ok(commit(Box::new(move |tx| turns::append(tx, &agent, &job, before, &lines))))
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
mod tests;
