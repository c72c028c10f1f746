//! `mounts`: names in an agent's directory, or in a project, that lead to other places of the tree.
//!
//! A binding is a link in the tree, so it shows in listings, can be followed by every caller, and never widens a right:
//! a caller that follows it is asked at the place where it leads.

mod table;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::policy::PrincipalCaller;

pub use self::table::{AllBindings, Binding, BindingTable};
use self::table::{full, place, relative};
use crate::contract::Operation;
use crate::service::{self, ChangeFiles as _, Cx, Service};
use acheron_base::confined_dir::FileChange;
use acheron_base::{Code, ConfinedDir, Error, Result, blocking};
use acheron_vfs::{Caller, Dir, Link, Listing, Node};

/// As many names may be bound in one directory.
const MOST: usize = 256;

/// Where the bindings of a directory are kept.
const FILE: &str = "binds.json";

/// The bindings of all agents and projects, by the directory that they stand in: `/agents/charon`, `/projects/here`.
#[derive(Default)]
pub struct Bindings {
    dirs: Mutex<BTreeMap<String, BindingDir>>,
    /// One change after the other. Who only looks does not wait for the disk.
    turn: Mutex<()>,
}

struct BindingDir {
    home: Weak<Listing>,
    place: Arc<ConfinedDir>,
    table: BindingTable,
}

impl Bindings {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, BindingDir>> {
        self.dirs.lock()
    }

    /// The directory at `path` is there: its names are put back into it. What is kept of them is kept in `place`.
    pub fn settle(&self, path: &str, home: &Arc<Listing>, place: ConfinedDir) -> Result<()> {
        let table: BindingTable = match place.read_if_exists(FILE)? {
            Some(bytes) => {
                serde_json::from_slice(&bytes).map_err(|err| Error::invalid(format!("{FILE} of {path}: {err}")))?
            }
            None => BindingTable::default(),
        };
        for (name, target) in &table.0 {
            if home.lookup(name).is_none() {
                home.put(name, Node::link(FixedLink(relative(target))));
            }
        }
        let held = BindingDir { home: Arc::downgrade(home), place: Arc::new(place), table };
        self.held().insert(path.to_owned(), held);
        Ok(())
    }

    /// The bindings that stand in the directory at `path`.
    pub fn of(&self, path: &str) -> Vec<Binding> {
        self.held().get(path).map(|held| held.table.bindings(path)).unwrap_or_default()
    }

    /// Every binding.
    pub fn all(&self) -> Vec<Binding> {
        self.held().iter().flat_map(|(path, held)| held.table.bindings(path)).collect()
    }

    /// `/meta/ns`: every binding as a payload that can be written back.
    pub fn ns(&self) -> String {
        let lines = self.all().into_iter();
        lines.map(|binding| format!("{}\n", json!({ "op": "bind", "arguments": binding }))).collect()
    }

    /// Gives `name` in the directory at `path` a target, or takes it away. What is done is safe when this returns: the file
    /// first, which `write` writes, then the tree.
    fn change(&self, path: &str, name: &str, target: Option<&str>, write: WriteBindings<'_>) -> Result<Vec<Binding>> {
        let _turn = self.turn.lock();
        let others = self.all();
        let names = AllBindings::of(others.iter().cloned());
        let (home, place, mut table) = {
            let all = self.held();
            let held = all.get(path).ok_or_else(|| Error::not_found(format!("there is no `{path}`")))?;
            (held.home.clone(), held.place.clone(), held.table.clone())
        };
        let home = home.upgrade().ok_or_else(|| Error::unavailable("the agent was removed"))?;
        if home.lookup(name).is_some() && !table.0.contains_key(name) {
            return Err(Error::already_exists(format!("{path}/{name} is there already, and not a binding")));
        }
        match target {
            Some(target) => {
                if table.0.len() >= MOST && !table.0.contains_key(name) {
                    let said = format!("{path} has {MOST} bindings already, the most that a directory may have");
                    return Err(Error::new(Code::BudgetExceeded, format!("{said}; unbind one first")));
                }
                names.check(&format!("{path}/{name}"), target)?;
                table.0.insert(name.to_owned(), target.to_owned());
            }
            None if table.0.remove(name).is_some() => (),
            None => return Err(Error::not_found(format!("nothing is bound to `{path}/{name}`"))),
        }
        let json = serde_json::to_vec_pretty(&table).map_err(|err| Error::internal(err.to_string()))?;
        let mut after: Vec<Binding> = others.into_iter().filter(|other| place_of(&other.bind_path) != path).collect();
        after.extend(table.bindings(path));
        write(&place, FileChange::write(FILE, json), &after)?;
        if let Some(held) = self.held().get_mut(path) {
            held.table = table;
        }
        match target {
            Some(target) => home.put(name, Node::link(FixedLink(relative(target)))),
            None => _ = home.take(name),
        }
        Ok(after)
    }
}

/// Writes the file of a directory's bindings; gets all bindings as they are then.
type WriteBindings<'a> = &'a dyn Fn(&ConfinedDir, FileChange, &[Binding]) -> Result<()>;

/// The directory that a name stands in.
fn place_of(bind_path: &str) -> &str {
    bind_path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// A link with the same target for every caller.
struct FixedLink(String);

impl Link for FixedLink {
    fn target(&self, _caller: &Caller) -> Result<String> {
        Ok(self.0.clone())
    }
}

/// The bindings that one agent may make and see.
#[derive(Clone)]
pub struct Mounts {
    agent: String,
    bindings: Arc<Bindings>,
    writable: CheckWritable,
}

/// Refuses a path of a project where nothing may be changed now.
pub type CheckWritable = Arc<dyn Fn(&str) -> Result<()> + Send + Sync>;

impl Mounts {
    pub fn new(agent: &str, bindings: Arc<Bindings>, writable: CheckWritable) -> Self {
        Mounts { agent: agent.to_owned(), bindings, writable }
    }

    /// The places where this agent may change names, whichever caller asks: a name must not lead past the agent's rights.
    fn place<'a>(&self, cx: &Cx, bind_path: &'a str) -> Result<(&'a str, &'a str)> {
        let (home, name) = place(&self.agent, bind_path)?;
        cx.tree()?.may(&Caller::agent(&self.agent), acheron_vfs::Access::Write, bind_path)?;
        if home.starts_with("/projects/") {
            (self.writable)(bind_path)?;
        }
        Ok((home, name))
    }

    /// Changes one name, and says what there is then.
    async fn change(&self, cx: &Cx, bind_path: String, target: Option<String>) -> Result<Output> {
        let (own, cx) = (self.clone(), cx.clone());
        blocking(move || {
            let (home, name) = own.place(&cx, &bind_path)?;
            let after = own.bindings.change(home, name, target.as_deref(), &|place, change, after| {
                cx.change_files(place, vec![change], service::json(own.listed(&cx, after)?)?)
            })?;
            own.listed(&cx, &after)
        })
        .await
    }

    /// Those in its own directory, and in the projects that it may read.
    fn listed(&self, cx: &Cx, all: &[Binding]) -> Result<Output> {
        let (tree, agent) = (cx.tree()?, Caller::agent(&self.agent));
        let own = format!("/agents/{}/", self.agent);
        let seen = |binding: &Binding| {
            binding.bind_path.starts_with(&own)
                || binding.bind_path.starts_with("/projects/") && tree.sees(&agent, &binding.bind_path)
        };
        Ok(Output::Listed(BindingList { binds: all.iter().filter(|binding| seen(binding)).cloned().collect() }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Lists the bindings in this agent's directory and in its projects.
    List {},
    /// Gives a place of the tree a name in this agent's directory, or in a project that it may write; a name that is
    /// bound already gets the new target.
    Bind {
        /// `/agents/self/<name>` or `/projects/<project>/<name>`
        bind_path: String,
        /// Any place that you may read, such as `/projects/here/fs/src`.
        target_path: String,
    },
    /// Takes a name away again.
    Unbind { bind_path: String },
    /// Resolves a path through the bindings.
    Resolve { path: String },
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Listed")]
pub struct BindingList {
    pub binds: Vec<Binding>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Resolved")]
pub struct ResolvedBinding {
    pub path: String,
    /// Nothing if nothing is there, or you may not see it.
    pub resolved_path: Option<String>,
    /// Whether a binding was followed.
    pub matched: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Listed(BindingList),
    Resolved(ResolvedBinding),
}

#[async_trait]
impl Service for Mounts {
    const NAME: &'static str = "mounts";
    const ABOUT: &'static str = "Names in your own directory, or in a project, that lead to other places of the tree.\n\n\
        A binding shows in listings, is the same for every caller that sees it, lasts over a restart and gives no right that \
        you do not have at its target.";

    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::read("list").quick().example(json!({})).gives::<BindingList>(),
            Operation::execute("bind")
                .example(json!({ "bind_path": "/agents/self/library", "target_path": "/global/library" }))
                .gives::<BindingList>(),
            Operation::read("resolve")
                .example(json!({ "path": "/agents/self/library/Index.md" }))
                .gives::<ResolvedBinding>(),
            Operation::execute("unbind").example(json!({ "bind_path": "/agents/self/library" })).gives::<BindingList>(),
        ]
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        let agent = &self.agent;
        match command {
            Command::List {} => Ok(()),
            Command::Bind { bind_path, target_path } => {
                full(agent, &target_path)?;
                place(agent, &full(agent, &bind_path)?).map(drop)
            }
            Command::Unbind { bind_path: path } | Command::Resolve { path } => full(agent, &path).map(drop),
        }
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        let agent = &self.agent;
        match command {
            Command::List {} => self.listed(cx, &self.bindings.all()),
            Command::Bind { bind_path, target_path } => {
                let (bind_path, target) = (full(agent, &bind_path)?, full(agent, &target_path)?);
                cx.tree()?.find(&Caller::agent(agent), &target)?;
                self.change(cx, bind_path, Some(target)).await
            }
            Command::Unbind { bind_path } => {
                let bind_path = full(agent, &bind_path)?;
                self.change(cx, bind_path, None).await
            }
            Command::Resolve { path } => {
                let path = full(agent, &path)?;
                let (_, matched) = AllBindings::of(self.bindings.all()).resolve(&path)?;
                let found = cx.tree()?.find(&cx.caller, &path).ok().map(|(real, _)| real);
                Ok(Output::Resolved(ResolvedBinding { path, resolved_path: found, matched }))
            }
        }
    }
}
