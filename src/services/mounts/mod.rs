//! `mounts`: names in an agent's directory that lead to other places of the tree.
//!
//! A binding is a link in the tree, so it shows in listings, is followed by everybody, and never widens a right: who follows it
//! is asked at the place where it leads.

mod table;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use dashmap::DashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::table::{Binding, Table};
use self::table::{full, own_name, relative};
use crate::contract::Operation;
use crate::error::{Error, Result};
use crate::place::Place;
use crate::service::{Cx, Service};
use crate::vfs::{Caller, Dir, Link, Listing, Node};

/// Where an agent's bindings are kept.
const FILE: &str = "binds.json";

/// The bindings of all agents, and the directories that they stand in.
#[derive(Default)]
pub struct Bindings(DashMap<String, Held>);

struct Held {
    home: Weak<Listing>,
    place: Arc<Place>,
    table: Table,
}

impl Bindings {
    /// An agent's directory is there: its names are put back into it.
    pub fn settle(&self, agent: &str, home: &Arc<Listing>, place: Place) -> Result<()> {
        let table: Table = match place.read(FILE) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|err| Error::invalid(format!("{FILE} of {agent}: {err}")))?
            }
            Err(err) if err.code == crate::error::Code::NotFound => Table::default(),
            Err(err) => return Err(err),
        };
        for (name, target) in &table.0 {
            if home.lookup(name).is_none() {
                home.put(name, Node::link(Path(relative(target))));
            }
        }
        let held = Held { home: Arc::downgrade(home), place: Arc::new(place), table };
        self.0.insert(agent.to_owned(), held);
        Ok(())
    }

    pub fn table(&self, agent: &str) -> Table {
        self.0.get(agent).map(|held| held.table.clone()).unwrap_or_default()
    }

    /// `/meta/ns`: every binding as a payload that can be written back.
    pub fn ns(&self) -> String {
        let mut agents: Vec<String> = self.0.iter().map(|held| held.key().clone()).collect();
        agents.sort();
        let lines = agents.iter().flat_map(|agent| self.table(agent).bindings(agent));
        lines.map(|binding| format!("{}\n", json!({ "op": "bind", "arguments": binding }))).collect()
    }

    /// Makes a change that is safe when it returns: the file first, then the tree.
    fn change(&self, agent: &str, name: &str, change: impl FnOnce(&Table) -> Result<Table>) -> Result<Table> {
        let mut held = self.0.get_mut(agent).ok_or_else(|| Error::not_found(format!("there is no agent `{agent}`")))?;
        let home = held.home.upgrade().ok_or_else(|| Error::unavailable("the agent has moved out"))?;
        if home.lookup(name).is_some() && !held.table.0.contains_key(name) {
            return Err(Error::already_exists(format!("/agents/{agent}/{name} is there already, and not a binding")));
        }
        let table = change(&held.table)?;
        let json = serde_json::to_vec_pretty(&table).map_err(|err| Error::internal(err.to_string()))?;
        held.place.write(FILE, &json)?;
        match table.0.get(name) {
            Some(target) => home.put(name, Node::link(Path(relative(target)))),
            None => _ = home.take(name),
        }
        held.table = table.clone();
        Ok(table)
    }
}

/// A link that says the same to everybody.
struct Path(String);

impl Link for Path {
    fn target(&self, _caller: &Caller) -> Result<String> {
        Ok(self.0.clone())
    }
}

/// The bindings of one agent.
pub struct Mounts {
    agent: String,
    bindings: Arc<Bindings>,
}

impl Mounts {
    pub fn new(agent: &str, bindings: Arc<Bindings>) -> Self {
        Mounts { agent: agent.to_owned(), bindings }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Lists the bindings of this agent.
    List {},
    /// Gives a place of the tree a name in this agent's directory; a name that is bound already gets the new target.
    Bind {
        /// `/agents/self/<name>`
        bind_path: String,
        /// Any place that you may read, such as `/projects/here/fs/src`.
        target_path: String,
    },
    /// Takes a name away again.
    Unbind { bind_path: String },
    /// Tells where a path leads when bindings are followed.
    Resolve { path: String },
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Listed {
    pub binds: Vec<Binding>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Resolved {
    pub path: String,
    /// Nothing if nothing is there, or you may not see it.
    pub resolved_path: Option<String>,
    /// Whether a binding was followed.
    pub matched: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Listed(Listed),
    Resolved(Resolved),
}

#[async_trait]
impl Service for Mounts {
    const NAME: &'static str = "mounts";
    const ABOUT: &'static str = "Names in your own directory that lead to other places of the tree.\n\n\
        A binding shows in listings, lasts over a restart and gives no right that you do not have at its target.";

    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::read("list").example(json!({})).gives::<Listed>(),
            Operation::write("bind")
                .example(json!({ "bind_path": "/agents/self/library", "target_path": "/global/library" }))
                .gives::<Listed>(),
            Operation::read("resolve").example(json!({ "path": "/agents/self/library/Index.md" })).gives::<Resolved>(),
            Operation::write("unbind").example(json!({ "bind_path": "/agents/self/library" })).gives::<Listed>(),
        ]
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        let agent = &self.agent;
        let listed = |table: Table| Output::Listed(Listed { binds: table.bindings(agent) });
        Ok(match command {
            Command::List {} => listed(self.bindings.table(agent)),
            Command::Bind { bind_path, target_path } => {
                let (bind_path, target) = (full(agent, &bind_path)?, full(agent, &target_path)?);
                let name = own_name(agent, &bind_path)?;
                // As the agent, whoever asks: the name is the agent's, and must not be a way past what it may see.
                cx.tree()?.find(&Caller::agent(agent), &target)?;
                listed(self.bindings.change(agent, name, |table| table.with(agent, name, &target))?)
            }
            Command::Unbind { bind_path } => {
                let bind_path = full(agent, &bind_path)?;
                let name = own_name(agent, &bind_path)?;
                let changed = self.bindings.change(agent, name, |table| {
                    let mut table = table.clone();
                    match table.0.remove(name) {
                        Some(_) => Ok(table),
                        None => Err(Error::not_found(format!("nothing is bound to `{bind_path}`"))),
                    }
                })?;
                listed(changed)
            }
            Command::Resolve { path } => {
                let path = full(agent, &path)?;
                let (_, matched) = self.bindings.table(agent).resolve(agent, &path)?;
                let found = cx.tree()?.find(&cx.caller, &path).ok().map(|(real, _)| real);
                Output::Resolved(Resolved { path, resolved_path: found, matched })
            }
        })
    }
}
