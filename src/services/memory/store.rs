//! The memory of one agent: each call is one transaction, and the tree is notified of it.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::json;

use super::active::EvictedMemory;
use super::answers::{
    ActiveSet, ChangedMemory, DeletedMemory, Evicted, EvictedLine, LoadedMemory, MemoryHitLine, MemoryHits, Meta,
    Summarized, Versions, WrittenMemory, path, paths, versioned,
};
use super::content::ContentChange;
use super::live::LiveMemories;
use super::path::Target;
use super::questions::BackgroundCache;
use super::rows::{self, MemoryEntry, MemoryHead};
use super::search::MemorySearch;
use super::similar::SimilarMemory;
use super::tx::{MemoryReader, MemoryTx, NewMemory, StoredMemory};
use crate::events::{Commit, EventLog};
use crate::state::quota::QuotaKind;
use acheron_base::{Clock, Error, Result};
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
    pub live: LiveMemories,
    /// The bytes of all versions; counted before the first change.
    bytes: Mutex<Option<u64>>,
    background: Arc<BackgroundCache>,
}

/// The result of a change: the memory that changed, and those evicted because of it.
struct ChangeResult<T> {
    value: T,
    what: &'static str,
    /// The memory, if its bytes changed.
    entry: Option<MemoryEntry>,
    left: Vec<EvictedMemory>,
    news: FactNews,
}

/// What a change says about other memories.
#[derive(Default)]
struct FactNews {
    /// Those that it supersedes.
    superseded: Vec<MemoryHead>,
    similar: Vec<SimilarMemory>,
}

impl MemoryStore {
    pub fn open(store: Store, event_log: Arc<EventLog>, clock: Clock, budget: u64) -> Result<Arc<MemoryStore>> {
        let agent = event_log.agent.clone();
        if store.look(|conn| rows::has_old_words(conn, &agent))? {
            let agent = agent.clone();
            store.write_blocking(move |tx| rows::index_again(tx, &agent))?;
        }
        let entries = store.look(|conn| rows::entries(conn, rows::agent(conn, &agent)?))?;
        let live = LiveMemories::new(entries, clock.clone());
        Ok(Arc::new(MemoryStore {
            store,
            agent,
            clock,
            budget,
            event_log,
            live,
            bytes: Mutex::default(),
            background: Arc::default(),
        }))
    }

    /// Reads a `memory_path` as this agent means it.
    pub fn target(&self, path: &str) -> Result<Target> {
        Target::read(path, &self.agent)
    }

    /// Remembers something new, in place of `older`.
    pub fn create(self: &Arc<Self>, commit: &Commit<'_>, new: NewMemory, older: &[Target]) -> Result<ChangedMemory> {
        self.remember(commit, "created", older, |tx| tx.create(new))
    }

    pub fn mutate(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        target: &Target,
        if_version: Option<u64>,
        change: ContentChange,
        older: &[Target],
    ) -> Result<ChangedMemory> {
        self.remember(commit, "changed", older, |tx| tx.mutate(target, if_version, change))
    }

    /// A new version of what was written to the file.
    pub fn write(self: &Arc<Self>, commit: &Commit<'_>, name: &str, bytes: &Bytes) -> Result<()> {
        self.remember(commit, "changed", &[], |tx| tx.write(name, bytes)).map(drop)
    }

    pub fn delete(self: &Arc<Self>, commit: &Commit<'_>, target: &Target) -> Result<DeletedMemory> {
        let answer = |memory: StoredMemory, _: &[EvictedMemory]| DeletedMemory {
            memory_path: path(&memory.head.name),
            version: memory.head.version,
            deleted: true,
        };
        self.change(commit, "deleted", |tx| tx.delete(target, None), answer)
    }

    pub fn restore(self: &Arc<Self>, commit: &Commit<'_>, target: &Target, version: u64) -> Result<WrittenMemory> {
        let work = |tx: &MemoryTx<'_>| tx.restore(target, version);
        self.change(commit, "restored", work, |memory, left| WrittenMemory::of(&memory, left))
    }

    pub fn load(self: &Arc<Self>, commit: &Commit<'_>, target: &Target) -> Result<LoadedMemory> {
        self.turn(commit, |tx| tx.load(target), LoadedMemory::of)
    }

    pub fn pin(self: &Arc<Self>, commit: &Commit<'_>, target: &Target, pinned: bool) -> Result<WrittenMemory> {
        let work = |tx: &MemoryTx<'_>| if pinned { tx.pin(target) } else { tx.unpin(target) };
        self.turn(commit, work, |memory, left| WrittenMemory::of(&memory, left))
    }

    pub fn evict(self: &Arc<Self>, commit: &Commit<'_>, target: &Target, summary: Option<&str>) -> Result<Evicted> {
        self.apply(commit, |tx| {
            let (memory, was) = tx.evict(target, summary)?;
            let left = if was { vec![laid_down(&memory)] } else { Vec::new() };
            Ok(ChangeResult {
                value: Evicted::of(memory, was),
                what: "evicted",
                entry: None,
                left,
                news: FactNews::default(),
            })
        })
    }

    /// Sums memories up, in `text` or in the words of `model`, and takes them out of the active set.
    pub async fn summarize(
        self: &Arc<Self>,
        targets: Vec<Target>,
        into: Option<Target>,
        text: Option<String>,
        model: Option<Arc<dyn Summarize>>,
    ) -> Result<Summarized> {
        check_summary(&targets, into.as_ref())?;
        let wanted = targets.clone();
        let found =
            self.read(move |reader| wanted.iter().map(|target| reader.find(target)).collect::<Result<Vec<_>>>());
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
        let into = into.map(|into| into.name);
        self.commit(move |memory, commit| memory.sum_up(commit, &targets, into, text, sources)).await
    }

    fn sum_up(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        targets: &[Target],
        into: Option<String>,
        text: String,
        sources: Vec<String>,
    ) -> Result<Summarized> {
        let budget = self.budget;
        self.apply(commit, |tx| {
            let memory = tx.sum_up(into, text, sources.clone())?;
            let line = format!("see {}", path(&memory.head.name));
            let (mut left, mut kept) = (Vec::new(), Vec::new());
            for target in targets {
                let it = tx.reader().find(&Target::latest(target.name.as_str()))?;
                match it.head.pinned || it.head.unevictable {
                    true => kept.push(path(&target.name)),
                    false => {
                        let (memory, was) = tx.evict(target, Some(&line))?;
                        left.extend(was.then(|| laid_down(&memory)));
                    }
                }
            }
            left.extend(tx.keep_within(budget)?);
            let WrittenMemory { memory_path, version, tokens, .. } = WrittenMemory::of(&memory, &left);
            let value = Summarized { memory_path, version, tokens, sources, evicted: paths(&left), kept };
            Ok(ChangeResult {
                value,
                what: "changed",
                entry: Some(MemoryEntry::of(&memory.head, &memory.version)),
                left,
                news: FactNews::default(),
            })
        })
    }

    pub async fn versions(&self, target: Target, limit: usize) -> Result<Versions> {
        self.read(move |reader| {
            let (head, versions) = reader.versions(&target, limit)?;
            Ok(Versions::of(&head, versions))
        })
        .await
    }

    pub async fn search(&self, search: MemorySearch) -> Result<MemoryHits> {
        self.read(move |reader| {
            let (hits, cursor) = reader.search(&search)?;
            Ok(MemoryHits { results: hits.into_iter().map(MemoryHitLine::of).collect(), cursor })
        })
        .await
    }

    /// The bytes of one version; none if it is a deletion.
    pub async fn content(&self, name: String, version: u64) -> Result<Bytes> {
        let target = Target { name, version: Some(version) };
        self.read(move |reader| Ok(reader.find(&target)?.version.content.text().into())).await
    }

    pub async fn meta(&self, name: String) -> Result<Meta> {
        self.read(move |reader| {
            let memory = reader.find(&Target::latest(name))?;
            let older = reader.older(&memory.head)?;
            Ok(Meta::of(memory, &older))
        })
        .await
    }

    pub async fn active(&self) -> Result<ActiveSet> {
        let budget_tokens = self.budget;
        self.read(move |reader| {
            let items: Vec<_> = reader.active()?.into_iter().map(|memory| LoadedMemory::of(memory, &[])).collect();
            let tokens = items.iter().map(|item| item.written.tokens).sum();
            let left = reader.left(LEFT)?.into_iter().map(EvictedLine::of).collect();
            Ok(ActiveSet { budget_tokens, tokens, items, left })
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&MemoryReader<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (agent, background) = (self.agent.clone(), Some(self.background.clone()));
        self.store.read(move |conn| work(&MemoryReader { background, ..MemoryReader::read(conn, &agent)? })).await
    }

    /// A change of content, which may supersede other memories. Those that say nearly the same are only reported.
    fn remember(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        what: &'static str,
        older: &[Target],
        work: impl FnOnce(&MemoryTx<'_>) -> Result<StoredMemory>,
    ) -> Result<ChangedMemory> {
        self.apply(commit, |tx| {
            let mut memory = work(tx)?;
            let superseded = tx.supersede(&mut memory.head, older)?;
            let similar = tx.similar(&memory)?;
            let left = tx.keep_within(self.budget)?;
            let value = ChangedMemory {
                written: WrittenMemory::of(&memory, &left),
                supersedes: superseded.iter().map(|old| path(&old.name)).collect(),
                similar: similar.clone(),
            };
            let entry = Some(MemoryEntry::of(&memory.head, &memory.version));
            Ok(ChangeResult { value, what, entry, left, news: FactNews { superseded, similar } })
        })
    }

    /// Another change of what is remembered.
    fn change<T>(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        what: &'static str,
        work: impl FnOnce(&MemoryTx<'_>) -> Result<StoredMemory>,
        answer: impl FnOnce(StoredMemory, &[EvictedMemory]) -> T,
    ) -> Result<T> {
        self.apply(commit, |tx| {
            let memory = work(tx)?;
            let left = tx.keep_within(self.budget)?;
            let entry = Some(MemoryEntry::of(&memory.head, &memory.version));
            Ok(ChangeResult { value: answer(memory, &left), what, entry, left, news: FactNews::default() })
        })
    }

    /// A change of the active set alone.
    fn turn<T>(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        work: impl FnOnce(&MemoryTx<'_>) -> Result<StoredMemory>,
        answer: impl FnOnce(StoredMemory, &[EvictedMemory]) -> T,
    ) -> Result<T> {
        self.apply(commit, |tx| {
            let memory = work(tx)?;
            let left = tx.keep_within(self.budget)?;
            let news = FactNews::default();
            Ok(ChangeResult { value: answer(memory, &left), what: "loaded", entry: None, left, news })
        })
    }

    /// Makes a change as part of a commit, with its events. The tree shows it when it is durable.
    fn apply<T>(
        self: &Arc<Self>,
        commit: &Commit<'_>,
        work: impl FnOnce(&MemoryTx<'_>) -> Result<ChangeResult<T>>,
    ) -> Result<T> {
        let ChangeResult { value, what, entry, left, news } =
            work(&MemoryTx::take(commit.tx(), &self.agent, self.clock.now_ms())?)?;
        let path = |name: &str| format!("/agents/{}/memory/items/{name}", self.agent);
        if let Some(entry) = entry {
            let (memory, mut payload) = (self.clone(), json!({ "memory": what, "version": entry.version }));
            if !news.similar.is_empty() {
                payload["similar"] = json!(news.similar);
            }
            let name = path(&entry.name);
            for old in news.superseded {
                let what = json!({ "memory": "superseded", "version": old.version, "by": name });
                commit.emit(&self.event_log, "change", &path(&old.name), what)?;
            }
            self.take_room(commit, entry.bytes)?;
            commit.after(move || memory.live.note(entry));
            commit.emit(&self.event_log, "change", &name, payload)?;
        }
        for left in left {
            let what = json!({ "memory": "evicted", "version": left.version, "tombstone": left.tombstone });
            commit.emit(&self.event_log, "change", &path(&left.name), what)?;
        }
        Ok(value)
    }

    /// Counts `more` bytes, or refuses them. The new version itself is in the table already.
    fn take_room(&self, commit: &Commit<'_>, more: u64) -> Result<()> {
        let mut used = self.bytes.lock();
        let before = match *used {
            Some(bytes) => bytes,
            None => rows::bytes(commit.tx(), rows::agent(commit.tx(), &self.agent)?)?.saturating_sub(more),
        };
        *used = Some(before);
        self.event_log.quotas.check(QuotaKind::Memories, before, more)?;
        *used = Some(before.saturating_add(more));
        Ok(())
    }

    /// Makes a change in a commit of its own, as writes of files do.
    pub fn commit<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<MemoryStore>, &Commit<'_>) -> Result<T> + Send + 'static,
    ) -> acheron_store::Written<T> {
        let memory = self.clone();
        self.event_log.commit(move |commit| work(&memory, commit))
    }
}

fn laid_down(memory: &StoredMemory) -> EvictedMemory {
    let head = &memory.head;
    EvictedMemory {
        name: head.name.clone(),
        version: head.version,
        tombstone: head.tombstone.clone().unwrap_or_default(),
        at_ms: head.left_at_ms.unwrap_or_default(),
    }
}

/// Whether these memories may be summed up into that one.
pub(super) fn check_summary(targets: &[Target], into: Option<&Target>) -> Result<()> {
    match into.filter(|into| targets.iter().any(|target| target.name == into.name)) {
        _ if targets.is_empty() || targets.len() > SOURCES => {
            Err(Error::invalid(format!("name 1 to {SOURCES} memories to sum up")))
        }
        Some(into) => Err(Error::invalid(format!("{} cannot be summed up into itself", into.name))),
        None => Ok(()),
    }
}
