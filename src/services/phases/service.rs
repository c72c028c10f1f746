//! The service `phases`: runs as jobs, and what they leave as files.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::action;
use super::history::{HistoryRecord, RepairedHistory, check_session};
use super::library::{self, TRUST_BEACON};
use super::perform::Dispatch;
use super::record::Run;
use super::run::{Engine, RunReport, RunRequest, check_order};
use super::runs::{Runs, lines};
use super::set::{Phase, PhaseFault};
use super::step::Stop;
use crate::contract::Operation;
use crate::policy::PrincipalCaller;
use crate::service::{Cx, Service};
use crate::services::symbols::change::By;
use crate::services::symbols::service::ready;
use acheron_base::{Error, Result, blocking};
use acheron_vfs::{Answer, Caller, ComputedFile, Listing, Node, VirtualDir, live, pretty};

/// The recursive loop of one agent.
pub struct Phases {
    engine: Arc<Engine>,
    runs: Arc<Runs>,
}

impl Phases {
    pub fn new(engine: Engine) -> Result<Phases> {
        let runs = Runs::open(engine.histories.clone())?;
        Ok(Phases { engine: Arc::new(engine), runs })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Runs a query through the phases of a set. What was said goes into the session's sealed history.
    Run {
        query: String,
        /// Letters, digits, '.', '_' and '-'.
        session_id: String,
        /// The namespace of prompts whose files are the phases.
        #[serde(default = "recursive")]
        set: String,
        /// Whether a payload's `valid_routes` bind, and the last phase may change no symbol.
        #[serde(default)]
        strict: bool,
        /// Fewer than three times the number of phases.
        #[serde(default)]
        max_iterations: Option<usize>,
    },
    /// Lists the sets and their phases.
    List {},
    /// Shows one phase with its prompt, and the commands that a phase may give.
    Describe {
        /// By any of its names.
        phase: String,
        #[serde(default = "recursive")]
        set: String,
    },
    /// Makes a new key for what is sealed from now on.
    RotateKey {},
    /// Shows all records of a session, opened.
    ExportSession { session_id: String },
    /// Cuts a damaged session off at its first damage. The file as it was is kept beside the histories.
    RepairSession { session_id: String },
    /// Forgets a session and all that was said in it.
    ClearSession { session_id: String },
}

fn recursive() -> String {
    "recursive".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub struct Sets {
    sets: Vec<Set>,
}

#[derive(Serialize, JsonSchema)]
struct Set {
    set: String,
    phases: Vec<Phase>,
    /// The fault of the set, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// Files that are no phases because of a fault.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<PhaseFault>,
}

#[derive(Serialize, JsonSchema)]
pub struct Described {
    #[serde(flatten)]
    phase: Phase,
    prompt: String,
    /// Whether the prompt carries the trust beacon.
    beacon: bool,
    commands: Vec<ActionRow>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Row")]
struct ActionRow {
    action: &'static str,
    takes: &'static str,
    about: &'static str,
}

#[derive(Serialize, JsonSchema)]
pub struct Rotated {
    key_id: String,
}

#[derive(Serialize, JsonSchema)]
pub struct ExportedSession {
    session_id: String,
    records: Vec<HistoryRecord>,
}

#[derive(Serialize, JsonSchema)]
pub struct ClearedSession {
    /// Whether there was such a session.
    cleared: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Report(RunReport),
    Sets(Sets),
    Described(Described),
    Rotated(Rotated),
    Exported(ExportedSession),
    Repaired(RepairedHistory),
    Cleared(ClearedSession),
}

#[async_trait]
impl Service for Phases {
    const NAME: &'static str = "phases";
    const ABOUT: &'static str = "Runs a query through a set of phases, in each of which a model may ask for symbols and \
        says what follows.\n\n\
        Every prompt of a phase carries this fixed marker; `describe` reports whether one does (`beacon`).\n\
        Trust beacon: [ΣTR-⟐⇌🜔⇌⟐]";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::execute("run")
                .private()
                .example(json!({"query": "How do we mend trust after a broken promise?", "session_id": "first"}))
                .deadline(Duration::from_secs(900))
                .gives::<RunReport>(),
            Operation::read("list").example(json!({})).gives::<Sets>(),
            Operation::read("describe").example(json!({"phase": "recurse_thought"})).gives::<Described>(),
            Operation::execute("rotate_key").example(json!({})).gives::<Rotated>(),
            Operation::read("export_session")
                .private()
                .example(json!({"session_id": "first"}))
                .gives::<ExportedSession>(),
            Operation::execute("repair_session").example(json!({"session_id": "first"})).gives::<RepairedHistory>(),
            Operation::execute("clear_session").example(json!({"session_id": "first"})).gives::<ClearedSession>(),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        let engine = self.engine.clone();
        let phases = live(move |_| Ok(pretty(&sets(&engine))));
        vec![
            ("phases.json".to_owned(), Node::file(phases)),
            ("runs".to_owned(), Node::dir(self.runs.directory())),
            ("sessions".to_owned(), Node::dir(sessions(&self.engine))),
        ]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Run { query, session_id, .. } => check_order(&query, &session_id),
            Command::ExportSession { session_id }
            | Command::RepairSession { session_id }
            | Command::ClearSession { session_id } => check_session(&session_id),
            Command::List {} | Command::Describe { .. } | Command::RotateKey {} => Ok(()),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        match command {
            Command::Run { query, session_id, set, strict, max_iterations } => {
                let order = RunRequest { query, session_id, set, strict, max_iterations };
                Ok(Output::Report(self.run(cx, order).await?))
            }
            Command::List {} => Ok(Output::Sets(sets(&self.engine))),
            Command::Describe { phase, set } => Ok(Output::Described(describe(&self.engine, &set, &phase)?)),
            Command::RotateKey {} => {
                let histories = self.engine.histories.clone();
                Ok(Output::Rotated(Rotated { key_id: blocking(move || histories.rotate()).await? }))
            }
            Command::ExportSession { session_id } => {
                let histories = self.engine.histories.clone();
                if !histories.has_session(&session_id) {
                    return Err(Error::not_found(format!("there is no session `{session_id:.64}`")));
                }
                let records = {
                    let session_id = session_id.clone();
                    blocking(move || histories.read(&session_id)).await?
                };
                Ok(Output::Exported(ExportedSession { session_id, records }))
            }
            Command::RepairSession { session_id } => {
                let (histories, session, mark) =
                    (self.engine.histories.clone(), session_id.clone(), cx.job_id().to_owned());
                let repaired = blocking(move || histories.repair(&session, &mark)).await?;
                if repaired.damage.is_some() {
                    self.tell(
                        cx,
                        &session_id,
                        json!({"what": "repaired", "kept": repaired.kept, "lost": repaired.lost}),
                    )?;
                }
                Ok(Output::Repaired(repaired))
            }
            Command::ClearSession { session_id } => {
                let (histories, session) = (self.engine.histories.clone(), session_id.clone());
                let cleared = blocking(move || histories.clear(&session)).await?;
                if cleared {
                    self.tell(cx, &session_id, json!({"what": "cleared"}))?;
                }
                Ok(Output::Cleared(ClearedSession { cleared }))
            }
        }
    }
}

impl Phases {
    /// An event about a session.
    fn tell(&self, cx: &Cx, session: &str, about: Value) -> Result<()> {
        let path = format!("/agents/{}/phases/sessions/{session}/history.ndjson", cx.agent);
        cx.event_log()?.changed(&path, about);
        Ok(())
    }

    async fn run(&self, cx: &Cx, order: RunRequest) -> Result<RunReport> {
        ready(&self.engine.symbol_store).await?;
        // Checked before there is a record of it: a refused order leaves no run behind.
        self.engine.check(&order)?;
        let id = cx.job_id().replacen("job-", "run-", 1);
        let (event_log, job) = (cx.event_log()?, cx.job.clone());
        let path = format!("/agents/{}/phases/runs/{id}/status.json", cx.agent);
        let tell = move |what: &str, fields: Value| {
            job.log.line(&format!("{what} {fields}"));
            event_log.changed(&path, json!({"what": what, "about": fields}));
        };
        let run = Run::new(&id, &order.session_id, &order.set, self.engine.clock.clone(), Box::new(tell));
        self.runs.add(&run);
        let _end = RunGuard { run: run.clone(), runs: self.runs.clone() };
        let by = By::who(cx.caller.principal().to_string());
        let dispatch = JobDispatch { cx: cx.clone() };
        let report = self.engine.run(&order, &run, &by, Some(&dispatch)).await;
        if let Err(fault) = &report {
            run.ended(Stop::Terminated, &fault.message);
        }
        report
    }
}

/// Ends and saves a run even when its call is dropped half-way.
struct RunGuard {
    run: Arc<Run>,
    runs: Arc<Runs>,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.run.ended(Stop::Cancelled, "the call ended before the run did: it was cancelled or out of time");
        let (run, runs) = (self.run.clone(), self.runs.clone());
        let keep = move || {
            if let Err(fault) = runs.keep(&run) {
                tracing::warn!(event = "inference.run_not_kept", run = run.id, %fault);
            }
        };
        // Dropped on a worker of the runtime, where the disk may not be waited for.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(keep)),
            Err(_) => keep(),
        }
    }
}

/// Starts jobs with the rights of the agent, whichever caller started the run, because the model requests them.
struct JobDispatch {
    cx: Cx,
}

#[async_trait]
impl Dispatch for JobDispatch {
    async fn dispatch(&self, service: &str, operation: &str, arguments: &Value) -> Result<String> {
        let (caller, agent) = (Caller::agent(&self.cx.agent), &self.cx.agent);
        let job = self.cx.context.call(&caller, agent, service, operation, arguments.clone()).await?;
        Ok(job.id.clone())
    }
}

fn sets(engine: &Engine) -> Sets {
    let one = |name: String| match library::set(&engine.library, &name) {
        Ok(set) => Set { set: name, phases: set.phases, fault: None, faults: set.faults },
        Err(fault) => Set { set: name, phases: vec![], fault: Some(fault.message), faults: vec![] },
    };
    Sets { sets: library::names(&engine.library).into_iter().map(one).collect() }
}

fn describe(engine: &Engine, set: &str, phase: &str) -> Result<Described> {
    let phases = library::set(&engine.library, set)?;
    let found = phases.find(phase).map(|place| phases.phases[place].clone());
    let phase = found.ok_or_else(|| {
        let known: Vec<&str> = phases.phases.iter().map(|phase| phase.phase_id.as_str()).collect();
        Error::not_found(format!("there is no phase `{phase:.64}` in {set}; there are {}", known.join(", ")))
    })?;
    let prompt = library::own(&engine.library, set, &phase.file)?;
    let row = |row: &action::ActionSpec| ActionRow { action: row.name, takes: row.takes, about: row.about };
    let beacon = prompt.contains(TRUST_BEACON);
    Ok(Described { phase, prompt, beacon, commands: action::TABLE.iter().map(row).collect() })
}

/// `sessions/<id>/history.ndjson`, opened for callers that may read it.
fn sessions(engine: &Arc<Engine>) -> VirtualDir {
    let (names, found) = (engine.clone(), engine.clone());
    VirtualDir::new(
        move || names.histories.sessions(),
        move |id| {
            found
                .histories
                .has_session(id)
                .then(|| Node::dir(Listing::default().file("history.ndjson", history(&found, id))))
        },
    )
}

fn history(engine: &Arc<Engine>, session: &str) -> ComputedFile {
    let (engine, session) = (engine.clone(), session.to_owned());
    ComputedFile::fetched(move |_| {
        let (histories, session) = (engine.histories.clone(), session.clone());
        Answer::soon(blocking(move || Ok(lines(&histories.read(&session)?))))
    })
}

#[cfg(test)]
mod tests;
