//! The programs of all agents that run now, whichever way they were started: by a call, in a session, by a service of the
//! mountspec, by `acheron exec`. Each has an entry here with the plan that it was started with, so that one function can end
//! those that could still do what their agent may no longer do ([`lost`](super::lost)). Used by the host and by all that
//! start programs.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::surroundings::Surroundings;
use acheron_base::{Error, Result, blocking};
use acheron_sandbox::Plan;

/// The number of attempts to start a program while rights change.
const TRIES: usize = 100;

/// Serves a listener in the sandbox of an agent's program until what it returns is dropped.
pub type ServeNetwork = Box<dyn Fn(&str, TcpListener) -> Result<NetworkGuard> + Send + Sync>;
pub type NetworkGuard = Box<dyn Any + Send + Sync>;

/// All running programs.
#[derive(Default)]
pub struct RunningPrograms {
    entries: Mutex<ProgramEntries>,
    network: OnceLock<ServeNetwork>,
}

#[derive(Default)]
struct ProgramEntries {
    /// Counts the changes of rights: a plan that was made before one may allow too much.
    changes: u64,
    next: u64,
    all: BTreeMap<u64, ProgramEntry>,
}

struct ProgramEntry {
    agent: String,
    plan: Plan,
    /// Why it must end.
    end: watch::Sender<Option<String>>,
}

/// The entry of one program; dropping it removes the entry.
pub struct RunningProgram {
    programs: Arc<RunningPrograms>,
    number: u64,
    agent: String,
    end: watch::Receiver<Option<String>>,
    /// What serves the ports of its sandbox.
    served: Mutex<Vec<NetworkGuard>>,
}

impl RunningPrograms {
    /// Names what serves the sandboxes of programs.
    pub fn serve_networks(&self, network: ServeNetwork) {
        _ = self.network.set(network); // there is only one
    }

    /// Makes the surroundings of a program that is about to be started, and an entry for it.
    pub async fn begin(
        self: &Arc<Self>,
        agent: &str,
        find: impl Fn() -> Result<Surroundings> + Clone + Send + 'static,
    ) -> Result<(Surroundings, RunningProgram)> {
        for _ in 0..TRIES {
            let changes = self.entries.lock().changes;
            let around = blocking(find.clone()).await?;
            if let Some(program) = self.enter(changes, agent, around.plan(Vec::new())) {
                return Ok((around, program));
            }
        }
        Err(Error::busy("the rights of this agent change all the time; try again"))
    }

    /// Makes an entry, unless rights have changed since `changes` were counted.
    fn enter(self: &Arc<Self>, changes: u64, agent: &str, plan: Plan) -> Option<RunningProgram> {
        let (sender, end) = watch::channel(None);
        let mut entries = self.entries.lock();
        if entries.changes != changes {
            return None;
        }
        let number = entries.next;
        entries.next += 1;
        entries.all.insert(number, ProgramEntry { agent: agent.to_owned(), plan, end: sender });
        let (programs, agent) = (self.clone(), agent.to_owned());
        Some(RunningProgram { programs, number, agent, end, served: Mutex::default() })
    }

    /// Notes that rights have changed; returns the agents that have programs with older plans.
    pub fn rights_changed(&self) -> BTreeSet<String> {
        let mut entries = self.entries.lock();
        entries.changes += 1;
        entries.all.values().map(|entry| entry.agent.clone()).collect()
    }

    /// Ends the programs of an agent for which `why` has a reason.
    pub fn end_where(&self, agent: &str, why: impl Fn(&Plan) -> Option<String>) {
        for entry in
            self.entries.lock().all.values().filter(|entry| entry.agent == agent && entry.end.borrow().is_none())
        {
            if let Some(why) = why(&entry.plan) {
                entry.end.send_replace(Some(why));
            }
        }
    }
}

impl RunningProgram {
    /// Has the listeners of its sandbox served for as long as this lives.
    pub fn serve(&self, listeners: Vec<(u16, OwnedFd)>) -> Result<()> {
        for (_, listener) in listeners {
            let network = self.programs.network.get();
            let network = network.ok_or_else(|| Error::unavailable("nothing serves the network of this program"))?;
            self.served.lock().push(network(&self.agent, TcpListener::from(listener))?);
        }
        Ok(())
    }

    /// Waits until the program must end; returns the reason.
    pub async fn taken_away(&self) -> String {
        let mut end = self.end.clone();
        let reason = end.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        match reason {
            Some(why) => why,
            // The entry lives as long as this, so its sender does not go before.
            None => std::future::pending().await,
        }
    }
}

/// Waits until a program must end, or its call is cancelled; returns the error of the call.
pub async fn stopped(program: Option<&RunningProgram>, cancelled: impl Future<Output = ()>) -> Error {
    let taken_away = async {
        match program {
            Some(program) => program.taken_away().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancelled => Error::cancelled("the command was cancelled, and everything it had started ended"),
        why = taken_away => ended_because(&why),
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        self.programs.entries.lock().all.remove(&self.number);
    }
}

/// The error of a program that was ended.
pub fn ended_because(why: &str) -> Error {
    Error::forbidden(format!("the host ended the program, because {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_plan_that_is_older_than_a_change_of_rights_starts_nothing() {
        let programs = Arc::new(RunningPrograms::default());
        let plan = |network: bool| Plan { network, ..Plan::new("ada", ["true"]) };
        let old = programs.enter(0, "ada", plan(true)).unwrap();
        let other = programs.enter(0, "bob", plan(true)).unwrap();
        assert_eq!(programs.rights_changed().into_iter().collect::<Vec<_>>(), ["ada", "bob"]);
        assert!(programs.enter(0, "ada", plan(true)).is_none());
        let new = programs.enter(1, "ada", plan(false)).unwrap();
        programs.end_where("ada", |plan| plan.network.then(|| "the network is gone".to_owned()));
        assert_eq!(old.taken_away().await, "the network is gone");
        let error = stopped(Some(&old), std::future::pending()).await;
        assert_eq!(error.message, "the host ended the program, because the network is gone");
        assert!(new.end.borrow().is_none() && other.end.borrow().is_none());
        drop((old, new));
        assert_eq!(programs.rights_changed().into_iter().collect::<Vec<_>>(), ["bob"]);
    }
}
