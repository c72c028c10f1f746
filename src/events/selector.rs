//! What one may wait for, written as a path: `/agents/self/events/sources/time/after/1000.json`.
//!
//! Pure: whether the job exists and who may look is found out by whoever arms the wait.

use std::fmt;

use crate::contract::nearest::{hint, shown};

/// How long a timer may be, and the latest moment it may name: ten years, and the end of the year 9999.
const LONGEST: u64 = 10 * 365 * 24 * 3600 * 1000;
const LATEST: u64 = 253_402_300_799_999;

/// One thing to wait for. `agent` is as it was written: an id, or `self`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// A job has settled.
    Job { agent: String, job: Job, file: JobFile },
    /// Someone spoke to the agent.
    Chat { agent: String },
    /// A signal was sent; any of its kind if no parameter is named.
    Signal { agent: String, kind: SignalKind, parameter: Option<String> },
    /// So much time has passed since the wait was armed.
    After { agent: String, ms: u64 },
    /// A moment has come.
    At { agent: String, unix_ms: u64 },
    /// Something at or below a path has changed.
    Change { path: String },
}

/// Which job.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    Id(String),
    /// By the correlation id of who started it.
    By(String),
    Last,
}

/// Through which of its files; all settle together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobFile {
    Status,
    ResultText,
    ResultJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    User,
    Agent,
    Hook,
}

impl SignalKind {
    pub const ALL: [SignalKind; 3] = [SignalKind::User, SignalKind::Agent, SignalKind::Hook];

    pub fn name(self) -> &'static str {
        match self {
            SignalKind::User => "user",
            SignalKind::Agent => "agent",
            SignalKind::Hook => "hook",
        }
    }

    pub fn named(name: &str) -> Option<SignalKind> {
        SignalKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl JobFile {
    const ALL: [JobFile; 3] = [JobFile::Status, JobFile::ResultText, JobFile::ResultJson];

    fn name(self) -> &'static str {
        match self {
            JobFile::Status => "status.json",
            JobFile::ResultText => "result.txt",
            JobFile::ResultJson => "result.json",
        }
    }
}

impl Selector {
    /// Understands a path, or says why nothing can ever happen there.
    pub fn parse(path: &str) -> Result<Selector, String> {
        let names = names(path)?;
        let selector = match names[..] {
            ["agents", agent, "events", "sources", ref source @ ..] => source_of(agent, source),
            ["agents", agent, "jobs", ref job @ ..] => job_of(agent, job),
            ["agents", agent, "chat", "control", "input"] => Ok(Selector::Chat { agent: agent.to_owned() }),
            ["agents", ..]
            | ["nodes", ..]
            | ["projects", ..]
            | ["global", ..]
            | ["meta", ..]
            | ["README.md" | "AGENTS.md"] => Ok(Selector::Change { path: format!("/{}", names.join("/")) }),
            [] => Err("name a path below the root".to_owned()),
            [first, ..] => {
                let known = ["agents", "nodes", "projects", "global", "meta", "README.md", "AGENTS.md"];
                Err(format!("there is no /{first}{}", hint(first, known, "names at the root")))
            }
        };
        selector.map_err(|reason| format!("{}: {reason}", shown(path)))
    }

    /// The path that is understood as this.
    pub fn to_path(&self) -> String {
        match self {
            Selector::Job { agent, job: Job::Id(id), file } => format!("/agents/{agent}/jobs/{id}/{}", file.name()),
            Selector::Job { agent, job: Job::By(id), file } => format!("/agents/{agent}/jobs/by/{id}/{}", file.name()),
            Selector::Job { agent, job: Job::Last, file } => format!("/agents/{agent}/jobs/last/{}", file.name()),
            Selector::Chat { agent } => format!("/agents/{agent}/chat/control/input"),
            Selector::Signal { agent, kind, parameter: None } => {
                format!("/agents/{agent}/events/sources/{}.json", kind.name())
            }
            Selector::Signal { agent, kind, parameter: Some(parameter) } => {
                format!("/agents/{agent}/events/sources/{}/{parameter}.json", kind.name())
            }
            Selector::After { agent, ms } => format!("/agents/{agent}/events/sources/time/after/{ms}.json"),
            Selector::At { agent, unix_ms } => format!("/agents/{agent}/events/sources/time/at/{unix_ms}.json"),
            Selector::Change { path } => path.clone(),
        }
    }

    /// The same with `self` as the agent of that id.
    pub fn owned_by(mut self, id: &str) -> Selector {
        match &mut self {
            Selector::Job { agent, .. }
            | Selector::Chat { agent }
            | Selector::Signal { agent, .. }
            | Selector::After { agent, .. }
            | Selector::At { agent, .. } => {
                if agent == "self" {
                    *agent = id.to_owned();
                }
            }
            Selector::Change { path } => {
                if let Some(rest) =
                    path.strip_prefix("/agents/self").filter(|rest| rest.is_empty() || rest.starts_with('/'))
                {
                    *path = format!("/agents/{id}{rest}");
                }
            }
        }
        self
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_path())
    }
}

/// What may ride behind a signal's kind; it becomes a file name.
pub fn is_parameter(text: &str) -> Result<(), String> {
    match text {
        "" => Err("a parameter must not be empty".to_owned()),
        text if text.len() > 128 => Err("a parameter has at most 128 bytes".to_owned()),
        text if text.chars().any(|c| c == '/' || c.is_control()) => {
            Err("a parameter holds no slash and no control character".to_owned())
        }
        _ => Ok(()),
    }
}

fn names(path: &str) -> Result<Vec<&str>, String> {
    let whole = match path {
        path if path.len() > 4096 => Err("is longer than a path can be"),
        path if path.contains('\0') => Err("holds a NUL, which no path can"),
        _ => Ok(()),
    };
    whole.map_err(|fault| format!("{} {fault}", shown(path)))?;
    let names: Vec<&str> = path.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
    match names.contains(&"..") {
        true => Err(format!("{} climbs by ..; name the path from the root", shown(path))),
        false => Ok(names),
    }
}

fn source_of(agent: &str, source: &[&str]) -> Result<Selector, String> {
    let agent = agent.to_owned();
    let kinds = || SignalKind::ALL.map(SignalKind::name).into_iter().chain(["time"]);
    let signal = |word: &str| {
        SignalKind::named(word)
            .ok_or_else(|| format!("there is no source {}{}", shown(word), hint(word, kinds(), "sources")))
    };
    match *source {
        [] => Err("name a source, such as user.json or time/after/1000.json".to_owned()),
        ["time", "after", file] => Ok(Selector::After { agent, ms: number(file, LONGEST)? }),
        ["time", "at", file] => Ok(Selector::At { agent, unix_ms: number(file, LATEST)? }),
        ["time" | "time.json", ..] => {
            Err("time is waited for as time/after/<ms>.json or time/at/<unix_ms>.json".to_owned())
        }
        [kind] => Ok(Selector::Signal { agent, kind: signal(stem(kind)?)?, parameter: None }),
        [kind, file] => {
            let (kind, parameter) = (signal(kind)?, stem(file)?);
            is_parameter(parameter)?;
            Ok(Selector::Signal { agent, kind, parameter: Some(parameter.to_owned()) })
        }
        [kind, _, ..] => {
            signal(kind)?;
            Err("a source is <kind>.json or <kind>/<parameter>.json".to_owned())
        }
    }
}

fn job_of(agent: &str, job: &[&str]) -> Result<Selector, String> {
    let (job, rest) = match *job {
        ["by", id, ref rest @ ..] => (Job::By(id.to_owned()), rest),
        ["last", ref rest @ ..] => (Job::Last, rest),
        [id, ref rest @ ..] if id.starts_with("job-") => (Job::Id(id.to_owned()), rest),
        // The list itself changes as jobs come and go.
        [] | ["by" | "status.json" | "README.md"] => {
            let path = ["agents", agent, "jobs"].into_iter().chain(job.iter().copied()).collect::<Vec<_>>().join("/");
            return Ok(Selector::Change { path: format!("/{path}") });
        }
        [id, ..] => return Err(format!("{} is no job; ids begin with job-", shown(id))),
    };
    let agent = agent.to_owned();
    let files = JobFile::ALL.map(JobFile::name);
    match *rest {
        // A job's directory is waited for as its status is.
        [] => Ok(Selector::Job { agent, job, file: JobFile::Status }),
        [file] => match JobFile::ALL.into_iter().find(|known| known.name() == file) {
            Some(file) => Ok(Selector::Job { agent, job, file }),
            None if matches!(file, "progress.json" | "log.txt") => {
                let base = Selector::Job { agent, job, file: JobFile::Status }.to_path();
                Ok(Selector::Change { path: base.replace("/status.json", &format!("/{file}")) })
            }
            None => {
                Err(format!("a job cannot be waited for by {}{}", shown(file), hint(file, files, "files that settle")))
            }
        },
        [..] => Err(format!("a job is waited for by {}", files.join(", "))),
    }
}

fn stem(file: &str) -> Result<&str, String> {
    file.strip_suffix(".json").ok_or_else(|| format!("{} must end in .json", shown(file)))
}

fn number(file: &str, most: u64) -> Result<u64, String> {
    let digits = stem(file)?;
    let plain = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    if !plain {
        return Err(format!("{} is no number of milliseconds", shown(digits)));
    }
    match digits.parse() {
        Ok(number) if number <= most => Ok(number),
        _ => Err(format!("{} is more than {most} milliseconds", shown(digits))),
    }
}

#[cfg(test)]
mod tests;
