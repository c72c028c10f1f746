//! All runs of an agent: those in memory, and older ones sealed on the disk, as directories.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::history::Histories;
use super::record::{Run, RunPages};
use acheron_base::{Result, blocking};
use acheron_vfs::{Answer, ComputedFile, Listing, Node, VirtualDir, line, waiting};

/// How many runs that are over stay in memory.
const IN_MEMORY: usize = 32;
/// How many are kept on the disk.
const ON_DISK: usize = 1000;

pub struct Runs {
    histories: Arc<Histories>,
    /// By id, which sorts by time; none where only the disk has it.
    known: Mutex<BTreeMap<String, Option<Arc<Run>>>>,
}

impl Runs {
    pub fn open(histories: Arc<Histories>) -> Result<Arc<Runs>> {
        let known = histories.runs()?.into_iter().map(|id| (id, None)).collect();
        Ok(Arc::new(Runs { histories, known: Mutex::new(known) }))
    }

    pub fn add(&self, run: &Arc<Run>) {
        self.lock().insert(run.id.clone(), Some(run.clone()));
    }

    /// Seals a run that is over, and lets go of the oldest.
    pub fn keep(&self, run: &Run) -> Result<()> {
        let pages =
            serde_json::to_vec(&run.pages()).map_err(|fault| acheron_base::Error::internal(fault.to_string()))?;
        self.histories.keep_run(&run.id, &pages)?;
        let mut known = self.lock();
        let over: Vec<String> = known
            .iter()
            .filter(|(_, run)| run.as_ref().is_some_and(|run| run.is_over()))
            .map(|(id, _)| id.clone())
            .collect();
        for id in over.iter().take(over.len().saturating_sub(IN_MEMORY)) {
            known.insert(id.clone(), None);
        }
        let sealed: Vec<String> = known.iter().filter(|(_, run)| run.is_none()).map(|(id, _)| id.clone()).collect();
        for id in sealed.iter().take(sealed.len().saturating_sub(ON_DISK)) {
            known.remove(id);
            self.histories.forget_run(id)?;
        }
        Ok(())
    }

    /// `runs/`.
    pub fn directory(self: &Arc<Self>) -> VirtualDir {
        let (names, runs) = (self.clone(), self.clone());
        VirtualDir::new(
            move || names.lock().keys().cloned().collect(),
            move |id| runs.knows(id).then(|| Node::dir(runs.one(id))),
        )
    }

    /// `runs/<id>/`.
    fn one(self: &Arc<Self>, id: &str) -> Listing {
        let file = |show: fn(&RunPages) -> Bytes| {
            let (runs, id) = (self.clone(), id.to_owned());
            ComputedFile::fetched(move |_| runs.pages(&id).map(move |pages| show(&pages)))
        };
        // Both wait until the run is over.
        let said = |show: fn(RunPages) -> String| {
            let (runs, name) = (self.clone(), id.to_owned());
            waiting(move |_| match runs.in_memory(&name) {
                Some(run) if !run.is_over() => Answer::later(async move {
                    run.over().await;
                    Ok(Bytes::from(show(run.pages())))
                }),
                _ => runs.pages(&name).map(move |pages| Bytes::from(show(pages))),
            })
        };
        Listing::default()
            .file("reply.txt", said(|pages| pages.reply))
            .file("reply.raw.txt", said(|pages| if pages.reply_raw.is_empty() { pages.reply } else { pages.reply_raw }))
            .file("trace.ndjson", file(|pages| lines(&pages.trace)))
            .file("commands.ndjson", file(|pages| lines(&pages.commands)))
            .file("symbols.json", file(|pages| line(&pages.symbols)))
            .file("context.md", file(|pages| Bytes::from(pages.context.clone() + "\n")))
            .file("status.json", file(|pages| line(&pages.status)))
    }

    fn pages(self: &Arc<Self>, id: &str) -> Answer<RunPages> {
        if let Some(run) = self.in_memory(id) {
            return Answer::ok(run.pages());
        }
        let (histories, id) = (self.histories.clone(), id.to_owned());
        Answer::soon(blocking(move || {
            let bytes = histories.read_run(&id)?;
            serde_json::from_slice(&bytes).map_err(|_| acheron_base::Error::failed(format!("run {id} holds no record")))
        }))
    }

    fn in_memory(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().get(id).cloned().flatten()
    }

    fn knows(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<Arc<Run>>>> {
        self.known.lock()
    }
}

pub fn lines<T: serde::Serialize>(items: &[T]) -> Bytes {
    let mut text = Vec::new();
    for item in items {
        text.extend_from_slice(&line(&serde_json::to_value(item).unwrap_or(Value::Null)));
    }
    Bytes::from(text)
}
