//! Checkpoints of turns, and the way back to one: the files of the agent's views, its conversation and its memory together.
//!
//! A rewind is written down before it begins, and each of its parts can be made again: what a host that was killed has left is
//! finished at the next start. It can be undone until the next turn.

mod kept;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{HostState, upgrade, views};
use crate::agent::history::Rewound;
use crate::agent::rewind::{RewindRequest, TurnCheckpoints};
use crate::jobs::Job;
use crate::policy::PrincipalCaller;
use crate::services::memory;
use crate::services::views::View;
use crate::spec::ViewMode;
use acheron_base::{Error, Result, blocking, failpoint};
use acheron_vfs::Caller;
use kept::{KeptTurn, KeptTurns, RewindJournal, RewoundView};

/// The checkpoints of one agent.
struct HostCheckpoints {
    host: Weak<HostState>,
    /// The state before the first turn of an agent that has no checkpoint: it is written down with the first one.
    first: Mutex<Option<KeptTurn>>,
}

#[async_trait]
impl TurnCheckpoints for HostCheckpoints {
    async fn keep(&self, agent: &str, turn: u64) {
        let Ok(host) = upgrade(&self.host) else { return };
        let (own, first) = (agent.to_owned(), self.first.lock().take());
        let kept = blocking(move || keep(&host, &own, turn, first));
        if let Err(error) = kept.await {
            tracing::warn!(%error, agent, turn, "there is no checkpoint of a turn");
        }
    }

    async fn rewind(&self, agent: &str, job: &Job, request: RewindRequest) -> Result<Value> {
        let host = upgrade(&self.host)?;
        if request.preview {
            let (host, agent) = (host.clone(), agent.to_owned());
            return blocking(move || preview(&host, &agent, &request)).await;
        }
        let (inner, own, id) = (host.clone(), agent.to_owned(), job.id.clone());
        let journal = blocking(move || plan(&inner, &own, &id, &request)).await?;
        job.decide()?;
        let (inner, own, written) = (host.clone(), agent.to_owned(), journal.clone());
        blocking(move || written.write(&dir(&inner, &own))).await?;
        failpoint::step("rewind.decided");
        make(&host, agent, journal).await
    }
}

/// Keeps checkpoints of the turns of an agent from now on. One that has none begins with the state before its next turn.
fn begin(host: &Arc<HostState>, agent: &str) -> Result<()> {
    let runtime = host.shared.runtimes.chat(agent)?.agent_runtime().clone();
    let mut first = None;
    if KeptTurns::read(&dir(host, agent))?.turns.is_empty() {
        first = Some(now(host, agent, runtime.history.seq())?);
    }
    runtime.set_checkpoints(Arc::new(HostCheckpoints { host: Arc::downgrade(host), first: Mutex::new(first) }));
    Ok(())
}

/// The jobs of rewinds that were decided: they end as they were decided.
pub fn decided(state: &Path) -> Vec<(String, Value)> {
    let agents = std::fs::read_dir(state.join("agents")).into_iter().flatten().flatten();
    let journals = agents.filter_map(|agent| RewindJournal::read(&agent.path().join("rewind")).ok().flatten());
    journals.map(|journal| (journal.id.clone(), journal.result())).collect()
}

/// Finishes what a host that was killed has decided: files and conversation before anything runs, memory right after.
fn replay(host: &Arc<HostState>, agent: &str) -> Result<()> {
    let Some(journal) = RewindJournal::read(&dir(host, agent))?.filter(|journal| !journal.done) else { return Ok(()) };
    make_files(host, agent, &journal)?;
    let (weak, agent) = (Arc::downgrade(host), agent.to_owned());
    host.context.runtime.spawn(async move {
        let Ok(host) = upgrade(&weak) else { return };
        if let Err(error) = make_memory(&host, &agent, journal).await {
            tracing::error!(%error, agent, "a rewind that was decided could not be finished");
        }
    });
    Ok(())
}

fn dir(host: &HostState, agent: &str) -> PathBuf {
    host.paths.state.join("agents").join(agent).join("rewind")
}

/// The views that belong to the agent alone.
fn own_views(host: &HostState, agent: &str) -> Result<Vec<Arc<View>>> {
    let spec = host.profiles.get(agent)?.spec;
    if spec.view != ViewMode::Own || host.profiles.founder(agent) != agent {
        return Ok(Vec::new());
    }
    let views = spec.projects.iter().map(|project| views::of_agent(host, agent, project));
    Ok(views.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn snapshot_name(turn: u64) -> String {
    format!("turn-{turn}")
}

/// The checkpoint of the state now: the files are copied.
fn now(host: &HostState, agent: &str, turn: u64) -> Result<KeptTurn> {
    let mut files = None;
    for view in own_views(host, agent)? {
        // Without its files, a turn can still be rewound in conversation and memory; the result says so.
        if let Err(error) = view.snapshot(&snapshot_name(turn)) {
            files = Some(error.message);
        }
    }
    let own = agent.to_owned();
    let memory = host.store.look(|conn| memory::marker(conn, &own))?;
    Ok(KeptTurn { turn, at_ms: host.context.clock.now_ms(), memory, files_fault: files })
}

fn keep(host: &HostState, agent: &str, turn: u64, first: Option<KeptTurn>) -> Result<()> {
    let mut kept = KeptTurns::read(&dir(host, agent))?;
    let mut gone: Vec<u64> = first.into_iter().flat_map(|first| kept.add(first)).collect();
    gone.extend(kept.add(now(host, agent, turn)?));
    kept.write(&dir(host, agent))?;
    for view in own_views(host, agent)? {
        gone.iter().try_for_each(|turn| view.forget_snapshot(&snapshot_name(*turn)))?;
    }
    Ok(())
}

fn checkpoint(host: &HostState, agent: &str, to: u64) -> Result<KeptTurn> {
    let kept = KeptTurns::read(&dir(host, agent))?;
    kept.turns.iter().find(|kept| kept.turn == to).cloned().ok_or_else(|| {
        let known: Vec<String> = kept.turns.iter().map(|kept| kept.turn.to_string()).collect();
        Error::not_found(format!("there is no checkpoint of turn {to}; there are those of {}", known.join(", ")))
    })
}

fn preview(host: &HostState, agent: &str, request: &RewindRequest) -> Result<Value> {
    let journal = plan(host, agent, "preview", request)?;
    let mut files = Vec::new();
    for view in own_views(host, agent)? {
        files.extend(view.differs_from(&journal.snapshot)?);
    }
    let (own, marker) = (agent.to_owned(), journal.memory);
    let memory = host.store.look(|conn| memory::changed_since(conn, &own, marker))?;
    let memory: Vec<String> = memory.into_iter().map(|change| change.name).collect();
    let runtime = host.shared.runtimes.chat(agent)?.agent_runtime().clone();
    let turns: Vec<Value> = match journal.undoes {
        Some(_) => Vec::new(),
        None => runtime
            .history
            .after(journal.to)
            .into_iter()
            .map(|(seq, input)| json!({"turn": seq, "input": input}))
            .collect(),
    };
    Ok(
        json!({"preview": true, "to": journal.to, "turns": turns, "files": files, "memory": memory, "files_fault": journal.files_fault}),
    )
}

/// What a rewind will do, as it is written down.
fn plan(host: &HostState, agent: &str, id: &str, request: &RewindRequest) -> Result<RewindJournal> {
    let views = own_views(host, agent)?;
    let own = agent.to_owned();
    let memory_before = host.store.look(|conn| memory::marker(conn, &own))?;
    let seen = views.iter().map(|view| RewoundView {
        name: view.name(),
        generation: view.record().generation,
        base: view.record().base,
    });
    let seen: Vec<RewoundView> = seen.collect();
    let runtime = host.shared.runtimes.chat(agent)?.agent_runtime().clone();
    let last = runtime.history.seq();
    match request.to {
        Some(to) => {
            let kept = checkpoint(host, agent, to)?;
            Ok(RewindJournal {
                id: id.to_owned(),
                to,
                undoes: None,
                snapshot: snapshot_name(to),
                memory: kept.memory,
                memory_before,
                views: if kept.files_fault.is_none() { seen } else { Vec::new() },
                files_fault: kept.files_fault,
                done: false,
            })
        }
        None => {
            let before =
                RewindJournal::read(&dir(host, agent))?.filter(|journal| journal.done && journal.undoes.is_none());
            let before = before.filter(|journal| runtime.history.can_restore(&journal.id));
            let before = before.ok_or_else(|| {
                Error::invalid("there is no rewind that could be undone: a turn has begun since, or there was none")
            })?;
            Ok(RewindJournal {
                id: id.to_owned(),
                to: last,
                undoes: Some(before.id),
                snapshot: "before".to_owned(),
                memory: before.memory_before,
                memory_before,
                views: if before.views.is_empty() { Vec::new() } else { seen },
                files_fault: before.files_fault,
                done: false,
            })
        }
    }
}

/// Makes what was decided, or what is left of it.
async fn make(host: &Arc<HostState>, agent: &str, journal: RewindJournal) -> Result<Value> {
    let (inner, own, copy) = (host.clone(), agent.to_owned(), journal.clone());
    blocking(move || make_files(&inner, &own, &copy)).await?;
    failpoint::step("rewind.told");
    make_memory(host, agent, journal).await
}

/// Brings files and conversation back.
fn make_files(host: &HostState, agent: &str, journal: &RewindJournal) -> Result<()> {
    for known in &journal.views {
        let Some(view) = host.views.views.get(&known.base, &known.name) else { continue };
        if view.record().generation == known.generation {
            view.restore(&journal.snapshot)?;
        }
    }
    failpoint::step("rewind.files");
    let runtime = host.shared.runtimes.chat(agent)?.agent_runtime().clone();
    let rewound = Rewound { id: journal.id.clone(), to: journal.to, undoes: journal.undoes.clone() };
    runtime.history.rewind(rewound, host.context.clock.now_ms(), runtime.spent())
}

async fn make_memory(host: &Arc<HostState>, agent: &str, journal: RewindJournal) -> Result<Value> {
    let (own, marker) = (agent.to_owned(), journal.memory);
    let changed = host.store.look(|conn| memory::changed_since(conn, &own, marker))?;
    let mut kept = Vec::new();
    for change in changed {
        let path = format!("/agents/{agent}/memory/items/{}", change.name);
        let (op, arguments) = match change.version {
            Some(version) => ("restore", json!({"memory_path": path, "version": version})),
            None => ("delete", json!({"memory_path": path})),
        };
        let done = host.context.call(&Caller::operator(), agent, "memory", op, arguments).await?.end().await;
        if let Some(Err(error)) = done.outcome.as_deref() {
            kept.push(json!({"memory": change.name, "why": error.message}));
        }
    }
    let done = RewindJournal { done: true, ..journal };
    let mut result = done.result();
    if !kept.is_empty() {
        result["memory_kept"] = Value::Array(kept);
    }
    let (inner, own) = (host.clone(), agent.to_owned());
    blocking(move || done.write(&dir(&inner, &own))).await?;
    Ok(result)
}

/// Every agent keeps checkpoints; what a host that was killed has left is finished.
pub fn open(host: &Arc<HostState>) {
    for agent in host.profiles.ids() {
        if let Err(error) = replay(host, &agent) {
            tracing::error!(%error, agent, "a rewind that was decided could not be finished");
        }
        opened(host, &agent);
    }
}

/// The same for an agent that has come.
pub fn opened(host: &Arc<HostState>, agent: &str) {
    if let Err(error) = begin(host, agent) {
        tracing::warn!(%error, agent, "turns cannot be rewound");
    }
}
