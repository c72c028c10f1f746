//! Any program as a service: JSON arguments on stdin, a JSON result on stdout, words on stderr.
//!
//! The host has checked the arguments before it is started; the result is checked before anyone sees it.

pub mod answer;
mod program_files;
mod stderr;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

pub use self::program_files::{FileRole, ProgramFile, interpreter, program_files};
use self::stderr::{StderrLine, StderrLines};
use super::terminal::{
    Look, ProgramRun, RunningProgram, RunningPrograms, StreamListener, Surroundings, remove_proxy, stopped,
};
use crate::contract::Contract;
use crate::jobs::Call;
use crate::service::{Cx, Serve};
use crate::spec;
use acheron_base::host_dir::Source;
use acheron_base::{Error, Result};
use acheron_sandbox::{Bind, PathRule, Plan, Visibility};

/// The longest answer that is read.
const LONGEST: usize = 16 << 20;
/// Calls at once, unless the mountspec says otherwise.
const AT_ONCE: u32 = 8;
/// Where the program's own directory is, inside.
const INSIDE: &str = "/service";

/// A private directory, empty at first.
const HOME: &str = "/home";
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
    spec: spec::ServiceSpec,
    parts: ProgramParts,
    /// The directories that its command names files of, by the name in the command and as they were when the mountspec was
    /// read.
    found: Vec<(PathBuf, Source)>,
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
        let mut contract = spec::contract_of(name, service)?;
        // What is withheld is not claimed.
        if service.network && !parts.withheld.contains(name) {
            contract = contract.flag("network");
        }
        if service.unconfined {
            contract = contract.flag("unconfined");
        }
        let slots = Semaphore::new(service.concurrency.unwrap_or(AT_ONCE) as usize);
        let (_, directories) = located(&service.command, &parts.here, service.unconfined, |path| path.is_file(), shows);
        let resolved = |directory: PathBuf| Some((directory.clone(), Source::resolve(&directory).ok()?));
        let found = directories.into_iter().filter_map(resolved).collect();
        Ok(Program { contract, spec: service.clone(), parts, found, slots })
    }

    /// Binds a directory that the command names a file of.
    fn bind(&self, plan: &mut Plan, around: &Surroundings, source: PathBuf, target: PathBuf) {
        // Another if the mountspec has changed since what a sandbox sees of the system.
        let found = self.found.iter().find(|(directory, _)| !plan.bare && *directory == source).cloned();
        let (source, id) = found.map_or((source, None), |(_, found)| (found.path, Some(found.id)));
        let hidden = around.own.iter().filter_map(|own| own.strip_prefix(&source).ok());
        plan.path_rules.extend(hidden.filter(|below| !below.as_os_str().is_empty()).map(|below| PathRule {
            path: target.join(below),
            bind: target.clone(),
            show: Visibility::Hidden,
        }));
        plan.binds.push(Bind { source, target, read_only: true, alone: true, id });
    }

    async fn plan(&self, cx: &Cx, operation: &str) -> Result<(Plan, RunningProgram)> {
        let (find, agent) = (self.parts.around.clone(), cx.agent.clone());
        let (around, running) = self.parts.programs.begin(&cx.agent, move || find(&agent, Look::Again)).await?;
        let shows = |path: &Path| around.system.shows(path);
        let (argv, directories) =
            located(&self.spec.command, &self.parts.here, self.spec.unconfined, |path| path.is_file(), shows);
        let trust = (self.parts.trusting)(&self.spec)?;
        let mut plan = around.plan(argv);
        plan.bare = self.spec.unconfined;
        if plan.bare {
            remove_proxy(&mut plan);
        }
        if let Some(first) = directories.first() {
            plan.cwd = if plan.bare { first.clone() } else { inside(0) };
            for (at, source) in directories.into_iter().enumerate() {
                self.bind(&mut plan, &around, source, inside(at));
            }
        } else if plan.bare {
            // A file that is looked up in the working directory must not be writable by an agent.
            plan.cwd = if trust.here_written { PathBuf::from("/") } else { self.parts.here.clone() };
        }
        match &trust.withheld {
            Some(why) => cx.log(&format!("{} {WITHHELD}: {why}", self.contract.name)),
            None => {
                let given = self.spec.network || !self.spec.env.is_empty();
                let writes = plan.binds.iter().any(|bind| bind.target == plan.cwd && !bind.read_only);
                if given && writes && !plan.bare {
                    // Interpreters load files of the working directory, as `python3 -c` does.
                    plan.cwd = PathBuf::from(HOME);
                }
                if self.spec.network {
                    plan.network = true;
                    remove_proxy(&mut plan);
                }
                plan.env.extend(self.spec.env.clone());
            }
        }
        plan.env.insert("ACHERON_OPERATION".to_owned(), operation.to_owned());
        plan.env.insert("ACHERON_JOB_ID".to_owned(), cx.job_id().to_owned());
        Ok((plan, running))
    }
}

/// The command as it is inside, and the directory of the host that it lies in: `./weather.py` is a file beside the mountspec,
/// and so is the second word of `python3 ./weather.py`. An absolute path that a sandbox shows by itself stays what it is, and
/// so does every path outside a sandbox.
fn located(
    command: &[String],
    here: &Path,
    outside: bool,
    is_file: impl Fn(&Path) -> bool,
    shows: impl Fn(&Path) -> bool,
) -> (Vec<String>, Vec<PathBuf>) {
    let mut directories: Vec<PathBuf> = Vec::new();
    let words = command.iter().map(|word| {
        let path: PathBuf = here.join(word).components().collect();
        let (true, Some(parent), Some(name)) = (word.contains('/') && is_file(&path), path.parent(), path.file_name())
        else {
            return word.clone();
        };
        let shown = Path::new(word).is_absolute() && shows(&path);
        if shown {
            return word.clone();
        }
        let at = directories.iter().position(|known| known == parent).unwrap_or_else(|| {
            directories.push(parent.to_owned());
            directories.len() - 1
        });
        if outside { path.display().to_string() } else { inside(at).join(name).display().to_string() }
    });
    let words = words.collect();
    (words, directories)
}

/// The name inside of a directory that a command names files of: `/service`, then `/service-2`.
fn inside(at: usize) -> PathBuf {
    match at {
        0 => PathBuf::from(INSIDE),
        more => PathBuf::from(format!("{INSIDE}-{}", more + 1)),
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

    async fn invoke(&self, cx: &Cx, call: &Call) -> Result<Value> {
        let operation = self.contract.operation(&call.operation)?;
        let _place = self.slots.acquire().await.map_err(|_| Error::unavailable("the service was removed"))?;
        let (plan, running) = self.plan(cx, &call.operation).await?;
        let (deadline, clock) = (operation.deadline, &cx.clock);
        let stdin = call.arguments.to_string().into_bytes();
        let listener = StderrListener { cx, lines: Mutex::default() };
        // An unconfined program has the rights of the operator, and never had those of the agent.
        let running = Some(running).filter(|_| !plan.bare);
        let (program, running_program) = (&self.parts.init, running.as_ref());
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

#[cfg(test)]
mod tests {
    use super::*;
    use acheron_sandbox::SystemView;

    #[test]
    fn a_command_is_found_beside_the_mountspec() {
        let files =
            ["/here/weather.py", "/here/bin/x", "/usr/bin/env", "/else/y", "/opt/shown/n", "/opt/n", "/usr/src/p/n"];
        let check = |command: &[&str], outside: bool| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let known = |path: &Path| files.iter().any(|file| Path::new(file) == path);
            let system = SystemView { named: vec!["/opt/shown".into()], hidden: vec!["/usr/src/p".into()] };
            let (words, directory) = located(&command, Path::new("/here"), outside, known, |path| system.shows(path));
            format!(
                "{} in {}",
                words.join(" "),
                if directory.is_empty() {
                    "-".to_owned()
                } else {
                    directory.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
                }
            )
        };
        assert_eq!(check(&["./weather.py", "-v"], false), "/service/weather.py -v in /here");
        assert_eq!(check(&["python3", "./weather.py"], false), "python3 /service/weather.py in /here");
        assert_eq!(check(&["bin/x", "/else/y"], false), "/service/x /service-2/y in /here/bin, /else");
        assert_eq!(check(&["/usr/bin/env", "./weather.py"], false), "/usr/bin/env /service/weather.py in /here");
        assert_eq!(check(&["./weather.py"], true), "/here/weather.py in /here");
        assert_eq!(check(&["jq", "."], false), "jq . in -");
        assert_eq!(check(&["/opt/shown/n", "./weather.py"], false), "/opt/shown/n /service/weather.py in /here");
        assert_eq!(check(&["/opt/n"], false), "/service/n in /opt");
        assert_eq!(check(&["/usr/src/p/n"], false), "/service/n in /usr/src/p");
    }
}
