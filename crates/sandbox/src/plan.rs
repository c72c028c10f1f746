//! The program of a sandbox and what it sees: plain data, checked before anything is started. The caller of
//! [`start`](super::start) makes it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::level::Level;
use super::limits::{AgentLimits, Limits};
use super::path_rules::PathRule;
use super::system::check_system;
use acheron_base::host_dir::Id;
use acheron_base::{Error, Result};

/// One program and its surroundings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The agent that owns the process. It is in the command line of the sandbox, where the host finds it again.
    pub agent: String,
    pub argv: Vec<String>,
    /// The working directory, inside.
    pub cwd: PathBuf,
    /// The environment, beside what [`Plan::environment`] adds.
    pub env: BTreeMap<String, String>,
    pub binds: Vec<Bind>,
    pub links: Vec<Link>,
    /// Parts of binds that are shown differently.
    pub path_rules: Vec<PathRule>,
    /// Directories of the host that are shown as a part of the system, under their own names, read-only.
    #[serde(default)]
    pub system: Vec<PathBuf>,
    /// Paths that must not be visible in the directories of the system, by their names inside. Made by
    /// [`hidden_paths`](super::hidden_paths).
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    /// Whether the sandbox shares the network of the host; otherwise it has only a loopback device.
    pub network: bool,
    /// Ports of that loopback device at which whoever started the sandbox listens: each listener is made inside and handed
    /// out.
    #[serde(default)]
    pub listen: Vec<u16>,
    pub terminal: Terminal,
    pub limits: Limits,
    /// The limits that it shares with the agent's other sandboxes, if any.
    pub together: Option<SharedLimits>,
    /// The walls around the program, all of which must stand.
    #[serde(default)]
    pub level: Level,
    /// Runs even without a layer that this machine cannot provide. The mountspec must allow it.
    pub unconfined: bool,
    /// No confinement: only ends the program with all that it started. For programs of the operator.
    pub bare: bool,
}

/// The limits for all sandboxes of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLimits {
    /// The host of the agent: another host may have an agent of the same name. Made by [`host_id`](super::host_id).
    pub host: String,
    /// The agent that the limits belong to: helpers count with the agent that they work for, at every depth.
    pub owner: String,
    pub limits: AgentLimits,
}

/// A directory or file of the host, seen inside as `target`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bind {
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
    /// Whether mounts below the source are hidden behind empty directories.
    pub alone: bool,
    /// The identity that the source must have, where something else could have taken its place.
    pub id: Option<Id>,
    /// Whether it is on a disk, so that what programs write and make there counts; a part of the tree is not.
    pub on_disk: bool,
}

/// A symbolic link inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub path: PathBuf,
    pub to: PathBuf,
}

/// The controlling terminal of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Terminal {
    /// None: a session of its own.
    None,
    /// Its standard input, in a session of its own.
    Own,
    /// The terminal of the caller (`acheron exec`).
    Shared,
}

/// The search path for a program that is named without a slash.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
/// Names at the top of the new root that belong to the sandbox itself.
const RESERVED: [&str; 10] = ["bin", "dev", "etc", "home", "lib", "lib64", "proc", "sbin", "sys", "usr"];

impl Plan {
    /// A plan for `argv` as `agent`, with no binds and every layer required.
    pub fn new(agent: impl Into<String>, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Plan {
            agent: agent.into(),
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: PathBuf::from("/home"),
            env: BTreeMap::new(),
            binds: Vec::new(),
            links: Vec::new(),
            path_rules: Vec::new(),
            system: Vec::new(),
            hidden: Vec::new(),
            network: false,
            listen: Vec::new(),
            terminal: Terminal::None,
            limits: Limits::default(),
            together: None,
            level: Level::Namespaces,
            unconfined: false,
            bare: false,
        }
    }

    pub fn bind(mut self, source: impl Into<PathBuf>, target: impl Into<PathBuf>, read_only: bool) -> Self {
        let (source, target) = (source.into(), target.into());
        self.binds.push(Bind { source, target, read_only, alone: false, id: None, on_disk: true });
        self
    }

    /// Shows what is bound below `from` under another name, with its rules; a link leads from the old name to the new one.
    pub fn relocate(&mut self, from: &Path, to: &Path) {
        let moved = |path: &mut PathBuf| {
            if let Ok(below) = path.strip_prefix(from) {
                *path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
            }
        };
        self.binds.iter_mut().for_each(|bind| moved(&mut bind.target));
        for rule in &mut self.path_rules {
            moved(&mut rule.path);
            moved(&mut rule.bind);
        }
        self.links.iter_mut().for_each(|link| moved(&mut link.path));
        moved(&mut self.cwd);
        self.links.push(Link { path: from.to_owned(), to: to.to_owned() });
    }

    /// The whole environment: nothing from the host, so none of its secrets.
    pub fn environment(&self) -> BTreeMap<String, String> {
        let given = [
            ("PATH", PATH),
            ("HOME", "/home"),
            ("TMPDIR", "/tmp"),
            ("LANG", "C.UTF-8"),
            ("TERM", "dumb"),
            ("USER", "agent"),
            ("ACHERON_AGENT", &self.agent),
        ];
        let mut all: BTreeMap<String, String> = given.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        all.extend(self.env.clone());
        all
    }

    /// Refuses a plan that cannot be carried out or is ambiguous.
    pub fn check(&self) -> Result<()> {
        let clean = |text: &str| !text.contains('\0');
        if self.argv.is_empty() || self.argv[0].is_empty() {
            return Err(Error::invalid("there is no program to run"));
        }
        if !self.argv.iter().all(|word| clean(word)) {
            return Err(Error::invalid("an argument contains a NUL byte"));
        }
        if let Some(key) = self.env.keys().find(|key| key.is_empty() || key.contains('=') || !clean(key)) {
            return Err(Error::invalid(format!("`{}` cannot name an environment variable", key.escape_debug())));
        }
        if let Some((key, _)) = self.env.iter().find(|(_, value)| !clean(value)) {
            return Err(Error::invalid(format!("the environment variable `{key}` contains a NUL byte")));
        }
        let plain =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !plain(&self.agent) {
            return Err(Error::invalid(format!("`{}` is not an agent's name", self.agent.escape_debug())));
        }
        if let Some(shared) = self.together.as_ref().filter(|shared| !plain(&shared.host)) {
            return Err(Error::invalid(format!("`{}` is not a host's name", shared.host.escape_debug())));
        }
        if let Some(shared) = self.together.as_ref().filter(|shared| !plain(&shared.owner)) {
            return Err(Error::invalid(format!("`{}` is not an agent's name", shared.owner.escape_debug())));
        }
        if !self.cwd.is_absolute() {
            return Err(Error::invalid(format!("the working directory `{}` is not absolute", self.cwd.display())));
        }
        for bind in &self.binds {
            inside(&bind.target)?;
            if !bind.source.is_absolute() {
                return Err(Error::invalid(format!("the bind source `{}` is not absolute", bind.source.display())));
            }
        }
        self.system.iter().try_for_each(|named| check_system(named))?;
        if let Some(path) = self.hidden.iter().find(|path| !plain_path(path)) {
            return Err(Error::invalid(format!("`{}` cannot be hidden: it is not a plain path", path.display())));
        }
        if !self.listen.is_empty() && (self.network || self.level == Level::Landlock) {
            return Err(Error::invalid("only a sandbox with a network of its own has ports to listen at"));
        }
        self.path_rules.iter().try_for_each(|rule| inside(&rule.path).map(|_| ()))?;
        self.links.iter().try_for_each(|link| inside(&link.path).map(|_| ()))
    }

    /// The binds in the order in which they are made: the deeper ones later.
    pub fn ordered(&self) -> Vec<&Bind> {
        let mut binds: Vec<&Bind> = self.binds.iter().collect();
        binds.sort_by_key(|bind| bind.target.components().count());
        binds
    }
}

fn plain_path(path: &Path) -> bool {
    let below = path.strip_prefix("/").unwrap_or(Path::new(""));
    below.components().next().is_some() && below.components().all(|part| matches!(part, Component::Normal(_)))
}

/// The path of `target` under the new root: `/a/b` → `a/b`. Refuses `..` and names that belong to the sandbox.
pub(super) fn inside(target: &Path) -> Result<&Path> {
    let refused = |why: &str| Err(Error::invalid(format!("`{}` cannot be bound to: it {why}", target.display())));
    let Ok(relative) = target.strip_prefix("/") else { return refused("is not absolute") };
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
        return refused("is not a plain path");
    }
    match relative.iter().next().and_then(|first| first.to_str()) {
        None => refused("is the root itself or no text"),
        // A directory in memory, in which programs keep what they like.
        Some("home") => Ok(relative),
        Some(first) if RESERVED.contains(&first) => refused("belongs to the sandbox itself"),
        Some(_) => Ok(relative),
    }
}

#[cfg(test)]
mod tests;
