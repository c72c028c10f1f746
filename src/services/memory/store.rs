//! One agent's memory at work: each call is one transaction, and whoever looks at the tree hears of it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;

use super::active::Left;
use super::answers::{
    Active, Deleted, Evicted, Found, FoundLine, LeftLine, Loaded, Meta, Summarized, Versions, Written, path, paths,
    versioned,
};
use super::content::Change;
use super::path::Target;
use super::rows::{self, Entry};
use super::search::Search;
use super::shelf::Shelf;
use super::tx::{Book, Memory, MemoryTx, New};
use crate::events::EventLog;
use acheron_base::Clock;
use acheron_base::{Error, Result};
use acheron_store::Store;

/// How many of those that left `active.json` tells of.
const LEFT: usize = 32;
/// How many memories one summary may sum up.
pub const SOURCES: usize = 64;

/// Puts several memories into few words: the agent's model, when there is one.
#[async_trait]
pub trait Summarize: Send + Sync {
    /// `memories` are pairs of a path and its text.
    async fn summarize(&self, agent: &str, memories: &[(String, String)]) -> Result<String>;
}

pub struct MemoryStore {
    store: Store,
    agent: String,
    clock: Clock,
    /// How many tokens the active set may cost.
    budget: u64,
    event_log: Arc<EventLog>,
    pub shelf: Shelf,
}

/// What a change did: the memory it was about, and those that left because of it.
struct Done<T> {
    value: T,
    what: &'static str,
    /// The memory, if its bytes changed.
    entry: Option<Entry>,
    left: Vec<Left>,
}

impl MemoryStore {
    pub fn open(store: Store, event_log: Arc<EventLog>, clock: Clock, budget: u64) -> Result<Arc<MemoryStore>> {
        let agent = event_log.agent.clone();
        let entries = store.look(|conn| rows::entries(conn, rows::agent(conn, &agent)?))?;
        let shelf = Shelf::new(entries, clock.clone());
        Ok(Arc::new(MemoryStore { store, agent, clock, budget, event_log, shelf }))
    }

    /// Reads a `memory_path` as this agent means it.
    pub fn target(&self, path: &str) -> Result<Target> {
        Target::read(path, &self.agent)
    }

    pub fn create(self: &Arc<Self>, new: New) -> acheron_store::Written<Written> {
        self.change("created", move |pen| pen.create(new), |memory, left| Written::of(&memory, left))
    }

    pub fn mutate(
        self: &Arc<Self>,
        target: Target,
        if_version: Option<u64>,
        change: Change,
    ) -> acheron_store::Written<Written> {
        let work = move |pen: &MemoryTx<'_>| pen.mutate(&target, if_version, change);
        self.change("changed", work, |memory, left| Written::of(&memory, left))
    }

    /// A new version of what was written to the file.
    pub fn write(self: &Arc<Self>, name: String, bytes: Bytes) -> acheron_store::Written<()> {
        self.change("changed", move |pen| pen.write(&name, &bytes), |_, _| ())
    }

    pub fn delete(self: &Arc<Self>, target: Target) -> acheron_store::Written<Deleted> {
        let answer = |memory: Memory, _: &[Left]| Deleted {
            memory_path: path(&memory.head.name),
            version: memory.head.version,
            deleted: true,
        };
        self.change("deleted", move |pen| pen.delete(&target, None), answer)
    }

    pub fn restore(self: &Arc<Self>, target: Target, version: u64) -> acheron_store::Written<Written> {
        self.change("restored", move |pen| pen.restore(&target, version), |memory, left| Written::of(&memory, left))
    }

    pub fn load(self: &Arc<Self>, target: Target) -> acheron_store::Written<Loaded> {
        self.turn(move |pen| pen.load(&target), Loaded::of)
    }

    pub fn pin(self: &Arc<Self>, target: Target, pinned: bool) -> acheron_store::Written<Written> {
        let work = move |pen: &MemoryTx<'_>| if pinned { pen.pin(&target) } else { pen.unpin(&target) };
        self.turn(work, |memory, left| Written::of(&memory, left))
    }

    pub fn evict(self: &Arc<Self>, target: Target, summary: Option<String>) -> acheron_store::Written<Evicted> {
        let work = move |pen: &MemoryTx<'_>| {
            let (memory, was) = pen.evict(&target, summary.as_deref())?;
            let left = if was { vec![laid_down(&memory)] } else { Vec::new() };
            Ok(Done { value: Evicted::of(memory, was), what: "evicted", entry: None, left })
        };
        self.commit(work)
    }

    /// Sums memories up, in `text` or in the words of `model`, and takes them out of the active set.
    pub async fn summarize(
        self: &Arc<Self>,
        targets: Vec<Target>,
        into: Option<Target>,
        text: Option<String>,
        model: Option<Arc<dyn Summarize>>,
    ) -> Result<Summarized> {
        if targets.is_empty() || targets.len() > SOURCES {
            return Err(Error::invalid(format!("name 1 to {SOURCES} memories to sum up")));
        }
        if let Some(into) = into.as_ref().filter(|into| targets.iter().any(|target| target.name == into.name)) {
            return Err(Error::invalid(format!("{} cannot be summed up into itself", into.name)));
        }
        let wanted = targets.clone();
        let found = self.read(move |book| wanted.iter().map(|target| book.find(target)).collect::<Result<Vec<_>>>());
        let found = found.await?;
        let sources: Vec<_> = found.iter().map(|it| versioned(&it.head.name, it.version.version)).collect();
        let text = match (text, model) {
            (Some(text), _) => text,
            (None, Some(model)) => {
                let texts = found.iter().map(|it| it.version.content.text());
                let memories: Vec<_> = sources.iter().cloned().zip(texts).collect();
                model.summarize(&self.agent, &memories).await?
            }
            (None, None) => return Err(Error::unavailable("no model is there to sum up: give `text`")),
        };
        self.sum_up(targets, into.map(|into| into.name), text, sources).await
    }

    fn sum_up(
        self: &Arc<Self>,
        targets: Vec<Target>,
        into: Option<String>,
        text: String,
        sources: Vec<String>,
    ) -> acheron_store::Written<Summarized> {
        let budget = self.budget;
        let work = move |pen: &MemoryTx<'_>| {
            let memory = pen.sum_up(into, text, sources.clone())?;
            let line = format!("see {}", path(&memory.head.name));
            let (mut left, mut kept) = (Vec::new(), Vec::new());
            for target in &targets {
                let it = pen.book().find(&Target::latest(target.name.as_str()))?;
                match it.head.pinned || it.head.unevictable {
                    true => kept.push(path(&target.name)),
                    false => {
                        let (memory, was) = pen.evict(target, Some(&line))?;
                        left.extend(was.then(|| laid_down(&memory)));
                    }
                }
            }
            left.extend(pen.keep_within(budget)?);
            let Written { memory_path, version, tokens, .. } = Written::of(&memory, &left);
            let value = Summarized { memory_path, version, tokens, sources, evicted: paths(&left), kept };
            Ok(Done { value, what: "changed", entry: Some(Entry::of(&memory.head, &memory.version)), left })
        };
        self.commit(work)
    }

    pub async fn versions(&self, target: Target, limit: usize) -> Result<Versions> {
        self.read(move |book| {
            let (head, versions) = book.versions(&target, limit)?;
            Ok(Versions::of(&head, versions))
        })
        .await
    }

    pub async fn search(&self, search: Search) -> Result<Found> {
        self.read(move |book| {
            let (hits, cursor) = book.search(&search)?;
            Ok(Found { results: hits.into_iter().map(FoundLine::of).collect(), cursor })
        })
        .await
    }

    /// The bytes of one version; none if it is a deletion.
    pub async fn content(&self, name: String, version: u64) -> Result<Bytes> {
        let target = Target { name, version: Some(version) };
        self.read(move |book| Ok(book.find(&target)?.version.content.text().into())).await
    }

    pub async fn meta(&self, name: String) -> Result<Meta> {
        self.read(move |book| Ok(Meta::of(book.find(&Target::latest(name))?))).await
    }

    pub async fn active(&self) -> Result<Active> {
        let budget_tokens = self.budget;
        self.read(move |book| {
            let items: Vec<_> = book.active()?.into_iter().map(|memory| Loaded::of(memory, &[])).collect();
            let tokens = items.iter().map(|item| item.written.tokens).sum();
            let left = book.left(LEFT)?.into_iter().map(LeftLine::of).collect();
            Ok(Active { budget_tokens, tokens, items, left })
        })
        .await
    }

    async fn read<T: Send + 'static>(&self, work: impl FnOnce(&Book<'_>) -> Result<T> + Send + 'static) -> Result<T> {
        let agent = self.agent.clone();
        self.store.read(move |conn| work(&Book::read(conn, &agent)?)).await
    }

    /// A change of what is remembered.
    fn change<T: Send + 'static>(
        self: &Arc<Self>,
        what: &'static str,
        work: impl FnOnce(&MemoryTx<'_>) -> Result<Memory> + Send + 'static,
        answer: impl FnOnce(Memory, &[Left]) -> T + Send + 'static,
    ) -> acheron_store::Written<T> {
        let budget = self.budget;
        self.commit(move |pen| {
            let memory = work(pen)?;
            let left = pen.keep_within(budget)?;
            let entry = Some(Entry::of(&memory.head, &memory.version));
            Ok(Done { value: answer(memory, &left), what, entry, left })
        })
    }

    /// A change of the active set alone.
    fn turn<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&MemoryTx<'_>) -> Result<Memory> + Send + 'static,
        answer: impl FnOnce(Memory, &[Left]) -> T + Send + 'static,
    ) -> acheron_store::Written<T> {
        let budget = self.budget;
        self.commit(move |pen| {
            let memory = work(pen)?;
            let left = pen.keep_within(budget)?;
            Ok(Done { value: answer(memory, &left), what: "loaded", entry: None, left })
        })
    }

    fn commit<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&MemoryTx<'_>) -> Result<Done<T>> + Send + 'static,
    ) -> acheron_store::Written<T> {
        let (agent, now) = (self.agent.clone(), self.clock.now_ms());
        let memory = self.clone();
        let done = self.store.write_then(
            move |tx| work(&MemoryTx::take(tx, &agent, now)?),
            move |done: &Done<T>| memory.tell(done.what, done.entry.as_ref(), &done.left),
        );
        done.map(|done| done.value)
    }

    /// After the commit: the tree shows it, and those who wait for a change hear it.
    fn tell(&self, what: &str, entry: Option<&Entry>, left: &[Left]) {
        let path = |name: &str| format!("/agents/{}/memory/items/{name}", self.agent);
        if let Some(entry) = entry {
            self.shelf.note(entry.clone());
            self.event_log.changed(&path(&entry.name), json!({ "memory": what, "version": entry.version }));
        }
        for left in left {
            let what = json!({ "memory": "evicted", "version": left.version, "tombstone": left.tombstone });
            self.event_log.changed(&path(&left.name), what);
        }
    }
}

fn laid_down(memory: &Memory) -> Left {
    let head = &memory.head;
    Left {
        name: head.name.clone(),
        version: head.version,
        tombstone: head.tombstone.clone().unwrap_or_default(),
        at_ms: head.left_at_ms.unwrap_or_default(),
    }
}
