//! Any program as a service: JSON arguments on stdin, a JSON result on stdout, words on stderr.
//!
//! The host has checked the arguments before it is started; the result is checked before anyone sees it.

pub mod answer;
mod file_identity;
pub mod launch;
mod program_files;
mod stderr;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use self::launch::ProgramLaunch;
pub use self::program_files::{FileRole, ProgramFile, interpreter, program_files};
pub use self::stderr::{StderrLine, StderrLines};
use super::terminal::{Look, ProgramRun, RunningProgram, RunningPrograms, StreamListener, Surroundings, stopped};
use crate::contract::Contract;
use crate::jobs::Call;
use crate::service::{Cx, Serve, known_facts};
use crate::spec;
use acheron_approvals::SubjectFacts;
use acheron_base::{Error, Result};
use acheron_sandbox::Plan;

/// The longest answer that is read.
const LONGEST: usize = 16 << 20;
/// Calls at once, unless the mountspec says otherwise.
pub const AT_ONCE: u32 = 8;
/// The message for a program that agents could change.
pub const WITHHELD: &str = "runs without its env and network";

/// Finds the environment of a program of the agent named.
pub type AgentSurroundings = Arc<dyn Fn(&str, Look) -> Result<Surroundings> + Send + Sync>;

/// How far a program is trusted when it is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Why it has neither its variables nor the network.
    pub withheld: Option<String>,
    /// Whether agents may write where relative paths begin.
    pub here_written: bool,
}

/// Says how far a program is trusted now; an error says why it does not run at all.
pub type CheckTrust = Arc<dyn Fn(&spec::ServiceSpec) -> Result<Trust> + Send + Sync>;

/// The parts from which the programs of a mountspec are built, the same for all of them.
#[derive(Clone)]
pub struct ProgramParts {
    /// Where relative paths in a command begin.
    pub here: PathBuf,
    pub around: AgentSurroundings,
    pub programs: Arc<RunningPrograms>,
    pub trusting: CheckTrust,
    /// The services whose variables and network are withheld, because agents could change their programs.
    pub withheld: BTreeSet<String>,
    /// The program that knows how to be a sandbox.
    pub init: PathBuf,
}

/// A program of the mountspec's.
pub struct Program {
    contract: Contract,
    launch: ProgramLaunch,
    slots: Semaphore,
}

impl Program {
    /// `shows` tells what a sandbox sees of the host as a part of the system.
    pub fn new(
        name: &str,
        service: &spec::ServiceSpec,
        parts: ProgramParts,
        shows: impl Fn(&Path) -> bool,
    ) -> Result<Program> {
        let contract = launch::flagged(spec::contract_of(name, service)?, service, &parts);
        let slots = Semaphore::new(service.concurrency.unwrap_or(AT_ONCE) as usize);
        Ok(Program { contract, launch: ProgramLaunch::new(service, parts, shows), slots })
    }

    async fn plan(&self, cx: &Cx, operation: &str) -> Result<(Plan, RunningProgram)> {
        let (mut plan, running, withheld) = self.launch.plan(&cx.agent).await?;
        if let Some(why) = withheld {
            cx.log(&format!("{} {WITHHELD}: {why}", self.contract.name));
        }
        plan.env.insert("ACHERON_OPERATION".to_owned(), operation.to_owned());
        plan.env.insert("ACHERON_JOB_ID".to_owned(), cx.job_id().to_owned());
        Ok((plan, running))
    }
}

/// Receives the standard error of a program line by line.
struct StderrListener<'a> {
    cx: &'a Cx,
    lines: Mutex<(StderrLines, String)>,
}

impl StderrListener<'_> {
    fn handle_line(&self, line: StderrLine, last: &mut String) {
        match line {
            StderrLine::Progress(progress) => self.cx.progress(progress),
            StderrLine::Log(text) => {
                self.cx.log(&text);
                if !text.trim().is_empty() {
                    *last = text.trim().to_owned();
                }
            }
        }
    }

    /// The last line that was not empty.
    fn complaint(&self) -> String {
        let mut held = self.lines.lock();
        let (lines, last) = &mut *held;
        if let Some(rest) = lines.rest() {
            self.handle_line(rest, last);
        }
        last.clone()
    }
}

impl StreamListener for StderrListener<'_> {
    fn err(&self, bytes: &[u8]) {
        let mut held = self.lines.lock();
        let (lines, last) = &mut *held;
        for line in lines.take(bytes) {
            self.handle_line(line, last);
        }
    }
}

#[async_trait]
impl Serve for Program {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn described(&self, call: &Call) -> (Value, SubjectFacts) {
        (self.launch.identity(), known_facts(&self.contract, &call.operation, SubjectFacts::default()))
    }

    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let operation = self.contract.operation(&call.operation)?;
        let _place = self.slots.acquire().await.map_err(|_| Error::unavailable("the service was removed"))?;
        let (plan, running) = self.plan(cx, &call.operation).await?;
        let (deadline, clock) = (operation.deadline, &cx.clock);
        let stdin = call.arguments.to_string().into_bytes();
        let listener = StderrListener { cx, lines: Mutex::default() };
        // An unconfined program has the rights of the operator, and never had those of the agent.
        let running = Some(running).filter(|_| !plan.bare);
        let (program, running_program) = (self.launch.init(), running.as_ref());
        let run = ProgramRun { program, plan: &plan, stdin, deadline, keep: LONGEST, clock, running: running_program };
        let ran = run.go(&listener, stopped(running.as_ref(), cx.cancelled())).await?;
        if ran.out.truncated {
            return Err(Error::too_large(format!(
                "the answer of {} is longer than {LONGEST} bytes",
                self.contract.name
            )));
        }
        let complaint = listener.complaint();
        let answered = answer::answer(&self.contract, operation, ran.ended, &ran.out.kept, &complaint);
        if answered.is_err() {
            answer::beginning(&ran.out.kept).iter().for_each(|line| cx.log(line));
        }
        answered
    }
}
