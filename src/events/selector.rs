//! Parses the paths of `wait.json` into selectors.

use serde::{Deserialize, Serialize};

use acheron_base::{Error, Result};
use acheron_vfs::normalize;

/// The sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalType {
    User,
    Agent,
    Hook,
}

impl SignalType {
    pub const ALL: [SignalType; 3] = [SignalType::Agent, SignalType::Hook, SignalType::User];

    pub fn name(self) -> &'static str {
        match self {
            SignalType::User => "user",
            SignalType::Agent => "agent",
            SignalType::Hook => "hook",
        }
    }

    pub fn named(name: &str) -> Option<SignalType> {
        SignalType::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// One thing to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The end of a job.
    Job(String),
    /// A message to the agent.
    Chat,
    /// A signal, with a given parameter or with any.
    Signal(SignalType, Option<String>),
    /// A message that has come to the agent's inbox.
    Mail,
    /// Milliseconds after the arming.
    After(u64),
    /// A time in Unix milliseconds.
    At(u64),
    /// A change at or below a path.
    Path(String),
}

/// The names at the root of the tree.
const TOP: [&str; 9] = ["agents", "projects", "global", "nodes", "mail", "meta", "README.md", "AGENTS.md", ".ignore"];

/// The longest parameter that still gives a valid file name.
const MAX_PARAMETER: usize = 200;

impl Selector {
    /// Parses a path of the agent `agent`. `job` finds the job of a correlation id or of `last`.
    pub fn parse(path: &str, agent: &str, job: impl Fn(&str) -> Option<String>) -> Result<Selector> {
        if path.trim().is_empty() {
            return Err(Error::invalid("a path to wait for is empty"));
        }
        let whole = normalize(path)?;
        let whole = match whole.strip_prefix("/agents/self") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/agents/{agent}{rest}"),
            _ => whole,
        };
        let Some(own) = whole.strip_prefix(&format!("/agents/{agent}/")) else {
            return Selector::elsewhere(whole, agent);
        };
        let names: Vec<&str> = own.split('/').collect();
        match names[..] {
            ["jobs", "by", word] | ["jobs", "by", word, "status.json" | "result.txt" | "result.json"] => {
                job(word).map(Selector::Job).ok_or_else(|| no_job(&format!("by/{word}")))
            }
            ["jobs", id, "status.json" | "result.txt" | "result.json"] => {
                job(id).map(Selector::Job).ok_or_else(|| no_job(id))
            }
            ["chat", "control", "input"] => Ok(Selector::Chat),
            ["events", "sources", ref source @ ..] => Selector::source(source),
            _ => Ok(Selector::Path(whole)),
        }
    }

    /// Parses the names below `events/sources`.
    pub fn source(names: &[&str]) -> Result<Selector> {
        let refuse = |why: &str| Err(Error::invalid(format!("sources/{} is not a source: {why}", names.join("/"))));
        let bare = |name: &str| name.strip_suffix(".json").map(str::to_owned);
        match names {
            ["mail.json"] => Ok(Selector::Mail),
            [kind] => match bare(kind).as_deref().and_then(SignalType::named) {
                Some(kind) => Ok(Selector::Signal(kind, None)),
                None => refuse(
                    "it is agent.json, hook.json, user.json, mail.json, or a file below agent, hook, user or time",
                ),
            },
            ["time", when @ ("after" | "at"), number] => match bare(number).map(|number| number.parse::<u64>()) {
                Some(Ok(ms)) if *when == "after" => Ok(Selector::After(ms)),
                Some(Ok(ms)) => Ok(Selector::At(ms)),
                _ => refuse("it is a number of milliseconds followed by .json"),
            },
            ["time", ..] => refuse("a time is time/after/<ms>.json or time/at/<unix_ms>.json"),
            [kind, parameter] => match (SignalType::named(kind), bare(parameter)) {
                (None, _) => refuse("its kind is agent, hook, user or time"),
                (_, None) => refuse("its file name ends in .json"),
                (Some(kind), Some(parameter)) => {
                    check_parameter(&parameter)?;
                    Ok(Selector::Signal(kind, Some(parameter)))
                }
            },
            _ => refuse("the path is too deep"),
        }
    }

    fn elsewhere(path: String, agent: &str) -> Result<Selector> {
        if let Some(other) = path.strip_prefix("/agents/")
            && !other.is_empty()
            && other != agent
        {
            return Err(Error::invalid(format!(
                "{path} belongs to another agent; wait in its own events, or have it send a signal"
            )));
        }
        let top = path.split('/').nth(1).unwrap_or_default();
        match top.is_empty() || TOP.contains(&top) {
            true => Ok(Selector::Path(path)),
            false => Err(Error::invalid(format!(
                "{path} is not in the tree: a path begins with {}",
                TOP.map(|name| format!("/{name}")).join(", ")
            ))),
        }
    }

    /// The path of the source in the tree of `agent`.
    pub fn path(&self, agent: &str) -> String {
        let source = |name: String| format!("/agents/{agent}/events/sources/{name}.json");
        match self {
            Selector::Job(id) => format!("/agents/{agent}/jobs/{id}/status.json"),
            Selector::Chat => format!("/agents/{agent}/chat/control/input"),
            Selector::Signal(kind, None) => source(kind.name().to_owned()),
            Selector::Signal(kind, Some(parameter)) => source(format!("{}/{parameter}", kind.name())),
            Selector::Mail => source("mail".to_owned()),
            Selector::After(ms) => source(format!("time/after/{ms}")),
            Selector::At(ms) => source(format!("time/at/{ms}")),
            Selector::Path(path) => path.clone(),
        }
    }
}

fn no_job(id: &str) -> Error {
    Error::invalid(format!("there is no job `{id}` to wait for"))
}

/// A parameter becomes a file name.
pub fn check_parameter(parameter: &str) -> Result<()> {
    let fault = match parameter {
        "" => "is empty",
        "." | ".." => "cannot be . or ..",
        it if it.len() > MAX_PARAMETER => "is too long",
        it if it.contains(['/', '\0']) || it.chars().any(char::is_control) => "contains a slash or a control character",
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("the parameter {fault}; it becomes the name of a file")))
}

#[cfg(test)]
mod tests;
