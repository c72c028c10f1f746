//! The service: commands in, answers out. Everything else is at the memory.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::answers::{
    ChangedMemory, DeletedMemory, Evicted, LoadedMemory, MemoryHits, Summarized, Versions, WrittenMemory,
};
use super::content::{Content, ContentChange};
use super::files::files;
use super::path::Target;
use super::search::{self, MemorySearch};
use super::store::{self, MemoryStore, Summarize};
use super::tx::{self, NewMemory};
use crate::contract::Operation;
use crate::service::{Cx, Service, WriteCx};
use acheron_base::{Error, Result};
use acheron_vfs::{Caller, Node};

/// The highest and the default number of answers in a list.
const MOST: usize = 200;
const SOME: usize = 25;

/// The memory of one agent.
pub struct Memory {
    memory: Arc<MemoryStore>,
    model: Option<Arc<dyn Summarize>>,
}

impl Memory {
    /// `model` sums up when the caller does not.
    pub fn new(memory: Arc<MemoryStore>, model: Option<Arc<dyn Summarize>>) -> Memory {
        Memory { memory, model }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Remembers something new and makes it active.
    Create {
        /// Its kind: `note`, `decision`, `plan`, …
        kind: String,
        /// Text, or any JSON; at most 1 MiB.
        content: Value,
        /// `[a-z0-9][a-z0-9._-]{0,127}`; made up when absent.
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        /// It cannot be changed or deleted.
        #[serde(default)]
        write_protected: bool,
        /// It never leaves the active set.
        #[serde(default)]
        unevictable: bool,
        /// The memories that say an older state of the same fact: they are kept, marked `was`, and search puts this one
        /// before them.
        #[serde(default)]
        supersedes: Vec<String>,
    },
    /// Answers the content and makes it active. A path to an old version is only looked at.
    Load {
        /// `/agents/self/memory/items/<name>`, or `…/versions/<n>`.
        memory_path: String,
    },
    /// Makes a new version: by whole content, by a JSON merge patch, by something appended, or by `supersedes` alone.
    Mutate {
        /// With `…/versions/<n>` only if that is the latest.
        memory_path: String,
        /// The whole new content.
        #[serde(default, deserialize_with = "given")]
        content: Option<Value>,
        /// A JSON merge patch (RFC 7396): null removes a key.
        #[serde(default, deserialize_with = "given")]
        patch: Option<Value>,
        /// Text for a text, an element for a JSON array.
        #[serde(default, deserialize_with = "given")]
        append: Option<Value>,
        /// Refuse with `conflict` unless this is the latest version.
        #[serde(default)]
        if_version: Option<u64>,
        /// As in `create`: other memories that this one takes the place of.
        #[serde(default)]
        supersedes: Vec<String>,
    },
    /// Takes it out of the active set, not out of memory, and leaves a line in its place.
    Evict {
        memory_path: String,
        /// The line; else the first one of the content.
        #[serde(default)]
        summary: Option<String>,
    },
    /// Makes it active and keeps it so, whatever the budget.
    Pin { memory_path: String },
    /// Lets it leave the active set again when its time comes.
    Unpin { memory_path: String },
    /// Lists versions, newest first.
    Versions {
        memory_path: String,
        /// At most 200.
        #[serde(default = "some")]
        limit: usize,
    },
    /// Deletes it, as one more version: `restore` undoes it.
    Delete { memory_path: String },
    /// Brings an old version back, as a new one.
    Restore { memory_path: String, version: u64 },
    /// Finds memories by their words, the best first.
    Search {
        /// Words; `"words together"`; `begin*`. Finds what has all of them; if nothing has, what has any of the rarer
        /// ones. More than three plain words are a question: the best answers, also in other words. Empty: everything,
        /// newest first.
        query: String,
        #[serde(default)]
        kind: Option<String>,
        /// Only those that have all of these.
        #[serde(default)]
        tags: Vec<String>,
        /// Only what was written since then.
        #[serde(default)]
        since_ms: Option<u64>,
        /// Old versions and what was deleted, too.
        #[serde(default)]
        history: bool,
        /// At most 200.
        #[serde(default = "some")]
        limit: usize,
        /// From the answer before, for the next page.
        #[serde(default)]
        cursor: Option<String>,
    },
    /// Writes one summary of several memories, linked to them, and takes them out of the active set.
    Summarize {
        memory_paths: Vec<String>,
        /// The name of the summary; made up when absent. If it is there, it gets a new version.
        #[serde(default)]
        into: Option<String>,
        /// The summary; the agent's model writes it when absent.
        #[serde(default)]
        text: Option<String>,
    },
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Changed(ChangedMemory),
    Written(WrittenMemory),
    Loaded(Box<LoadedMemory>),
    Evicted(Evicted),
    Versions(Versions),
    Deleted(DeletedMemory),
    Found(MemoryHits),
    Summarized(Summarized),
}

#[async_trait]
impl Service for Memory {
    const NAME: &'static str = "memory";
    const ABOUT: &'static str = "The memory of this agent.\n\n\
        Every memory is a file with versions: `items/<name>/content` is the latest, `items/<name>/versions/<n>` an old \
        one; writing makes a new one, `mkdir` an empty note, `rmdir` deletes. `active.json` shows what is active now, \
        within a budget of tokens, and what has left. Nothing is ever lost by a change, a deletion or an eviction. A fact that \
        has changed is written with `supersedes`: the older memory stays readable and is marked `was`.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        let plan = json!({"memory_path": "/agents/self/memory/items/plan"});
        vec![
            Operation::write("create")
                .gives::<ChangedMemory>()
                .example(json!({"kind": "plan", "name": "plan", "content": "cross the river", "tags": ["trip"]})),
            Operation::write("load").gives::<LoadedMemory>().idempotent().example(plan.clone()),
            Operation::write("mutate")
                .gives::<ChangedMemory>()
                .example(json!({"memory_path": "/agents/self/memory/items/plan", "append": ", then come back"})),
            Operation::write("evict").gives::<Evicted>().idempotent().example(plan.clone()),
            Operation::write("pin").gives::<WrittenMemory>().idempotent().example(plan.clone()),
            Operation::write("unpin").gives::<WrittenMemory>().idempotent().example(plan.clone()),
            Operation::read("versions").gives::<Versions>().example(plan.clone()),
            Operation::write("delete").gives::<DeletedMemory>().example(plan),
            Operation::write("restore")
                .gives::<WrittenMemory>()
                .example(json!({"memory_path": "/agents/self/memory/items/plan", "version": 1})),
            Operation::read("search").gives::<MemoryHits>().example(json!({"query": "river", "limit": 5})),
            Operation::execute("summarize").gives::<Summarized>().example(json!({
                "memory_paths": ["/agents/self/memory/items/plan"], "into": "trip", "text": "we crossed and came back"
            })),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        files(&self.memory)
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        let target = |path: &str| self.memory.target(path);
        let targets = |paths: &[String]| paths.iter().map(|path| target(path)).collect::<Result<Vec<Target>>>();
        match command {
            Command::Create { kind, name, tags, supersedes, .. } => {
                tx::check_new(&kind, &tags, name.as_deref())?;
                targets(&supersedes).map(drop)
            }
            Command::Mutate { memory_path, content, patch, append, supersedes, .. } => {
                target(&memory_path)?;
                one_of(content, patch, append, !targets(&supersedes)?.is_empty()).map(drop)
            }
            Command::Versions { memory_path, limit } => {
                target(&memory_path)?;
                bounded(limit).map(drop)
            }
            Command::Search { query, limit, cursor, .. } => {
                bounded(limit)?;
                search::check(&query, cursor.as_deref()).map(drop)
            }
            Command::Summarize { memory_paths, into, .. } => {
                let into = into.as_deref().map(target).transpose()?;
                store::check_summary(&targets(&memory_paths)?, into.as_ref())
            }
            Command::Load { memory_path }
            | Command::Evict { memory_path, .. }
            | Command::Pin { memory_path }
            | Command::Unpin { memory_path }
            | Command::Delete { memory_path }
            | Command::Restore { memory_path, .. } => target(&memory_path).map(drop),
        }
    }

    async fn invoke(&self, _cx: &Cx, command: Command) -> Result<Output> {
        let memory = &self.memory;
        let target = |path: &str| memory.target(path);
        Ok(match command {
            Command::Versions { memory_path, limit } => {
                Output::Versions(memory.versions(target(&memory_path)?, bounded(limit)?).await?)
            }
            Command::Search { query, kind, tags, since_ms, history, limit, cursor } => {
                let limit = bounded(limit)?;
                let search = MemorySearch { query, kind, tags, since_ms, history, limit, cursor };
                Output::Found(memory.search(search).await?)
            }
            Command::Summarize { memory_paths, into, text } => {
                let targets = memory_paths.iter().map(|path| target(path)).collect::<Result<Vec<Target>>>()?;
                let into = into.as_deref().map(target).transpose()?;
                Output::Summarized(memory.summarize(targets, into, text, self.model.clone()).await?)
            }
            _ => return Err(Error::internal("memory: a change runs in a transaction")),
        })
    }

    fn write(&self, cx: &WriteCx<'_>, command: Command) -> Result<Output> {
        let (memory, commit) = (&self.memory, cx.commit);
        let target = |path: &str| memory.target(path);
        let targets = |paths: Vec<String>| paths.iter().map(|path| target(path)).collect::<Result<Vec<Target>>>();
        Ok(match command {
            Command::Create { kind, content, name, tags, write_protected, unevictable, supersedes } => {
                let content = Content::given(content)?;
                let new = NewMemory { name, kind, tags, sources: Vec::new(), content, write_protected, unevictable };
                Output::Changed(memory.create(commit, new, &targets(supersedes)?)?)
            }
            Command::Load { memory_path } => Output::Loaded(Box::new(memory.load(commit, &target(&memory_path)?)?)),
            Command::Mutate { memory_path, content, patch, append, if_version, supersedes } => {
                let older = targets(supersedes)?;
                let change = one_of(content, patch, append, !older.is_empty())?;
                Output::Changed(memory.mutate(commit, &target(&memory_path)?, if_version, change, &older)?)
            }
            Command::Evict { memory_path, summary } => {
                Output::Evicted(memory.evict(commit, &target(&memory_path)?, summary.as_deref())?)
            }
            Command::Pin { memory_path } => Output::Written(memory.pin(commit, &target(&memory_path)?, true)?),
            Command::Unpin { memory_path } => Output::Written(memory.pin(commit, &target(&memory_path)?, false)?),
            Command::Delete { memory_path } => Output::Deleted(memory.delete(commit, &target(&memory_path)?)?),
            Command::Restore { memory_path, version } => {
                Output::Written(memory.restore(commit, &target(&memory_path)?, version)?)
            }
            Command::Versions { .. } | Command::Search { .. } | Command::Summarize { .. } => {
                return Err(Error::internal("memory: this command is not a change"));
            }
        })
    }
}

/// What a new version says. One that only takes the place of others says what the last one did.
fn one_of(
    content: Option<Value>,
    patch: Option<Value>,
    append: Option<Value>,
    supersedes: bool,
) -> Result<ContentChange> {
    match (content, patch, append) {
        (Some(content), None, None) => Ok(ContentChange::Replace(content)),
        (None, Some(patch), None) => Ok(ContentChange::Patch(patch)),
        (None, None, Some(append)) => Ok(ContentChange::Append(append)),
        (None, None, None) if supersedes => Ok(ContentChange::Keep),
        _ => Err(Error::invalid("mutate: give one of content, patch and append")),
    }
}

fn bounded(limit: usize) -> Result<usize> {
    match limit {
        1..=MOST => Ok(limit),
        _ => Err(Error::invalid(format!("limit is 1 to {MOST}"))),
    }
}

fn some() -> usize {
    SOME
}

/// A null that was written is a value, not an absence.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
