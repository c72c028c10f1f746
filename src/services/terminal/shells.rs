//! The sessions of all agents: opened, found, listed, and ended together when the host goes down.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::session::{Facts, Session};
use acheron_base::{Error, Result};
use acheron_vfs::Listing;

/// How many sessions an agent may have open, and how many closed ones are kept to be read.
const OPEN: usize = 32;
const CLOSED: usize = 16;

/// Every session there is.
#[derive(Default)]
pub struct Shells(Mutex<Vec<OpenShell>>);

struct OpenShell {
    agent: String,
    session: Arc<Session>,
    /// Where its directory stands.
    shown: Arc<Listing>,
}

impl Shells {
    fn all(&self) -> MutexGuard<'_, Vec<OpenShell>> {
        self.0.lock()
    }

    /// Of one agent, the oldest first.
    pub fn of(&self, agent: &str) -> Vec<Arc<Session>> {
        self.all().iter().filter(|kept| kept.agent == agent).map(|kept| kept.session.clone()).collect()
    }

    pub fn facts(&self, agent: &str) -> Vec<Facts> {
        self.of(agent).iter().map(|session| session.facts()).collect()
    }

    /// The session of that name, or the newest that is open.
    pub fn find(&self, agent: &str, id: Option<&str>) -> Result<Arc<Session>> {
        let mine = self.of(agent);
        let found = match id {
            Some(id) => mine.into_iter().rfind(|session| session.id == id),
            None => mine.into_iter().rfind(|session| session.is_open()),
        };
        found.ok_or_else(|| match id {
            Some(id) => Error::not_found(format!("there is no session `{}`", id.escape_debug())),
            None => Error::not_found("no session is open; open one with create"),
        })
    }

    /// The name for a new session: the one asked for if it is free, else the first of `term-1`, `term-2`, … that is.
    pub fn name(&self, agent: &str, wanted: Option<&str>) -> Result<String> {
        let mine = self.of(agent);
        if mine.iter().filter(|session| session.is_open()).count() >= OPEN {
            return Err(Error::busy(format!("{OPEN} sessions are open already; close one first")));
        }
        let taken = |id: &str| mine.iter().any(|session| session.id == id);
        wanted.map_or(Ok(()), check_name)?;
        match wanted {
            None => Ok((1..).map(|n| format!("term-{n}")).find(|id| !taken(id)).unwrap_or_default()),
            Some(id) if mine.iter().any(|session| session.id == id && session.is_open()) => {
                Err(Error::already_exists(format!("there is a session `{id}` already")))
            }
            Some(id) => Ok(id.to_owned()),
        }
    }

    /// Keeps a new session. A closed one of the same name is forgotten, and so are the oldest closed ones.
    pub fn keep(&self, agent: &str, session: Arc<Session>, shown: Arc<Listing>) {
        let mut all = self.all();
        for replaced in all.extract_if(.., |kept| kept.agent == agent && kept.session.id == session.id) {
            // Closed already, unless two asked for the same name at once.
            replaced.session.end();
        }
        let closed = |kept: &OpenShell| kept.agent == agent && !kept.session.is_open();
        let mut surplus = all.iter().filter(|kept| closed(kept)).count().saturating_sub(CLOSED);
        all.retain(|kept| {
            let goes = surplus > 0 && closed(kept);
            if goes {
                surplus -= 1;
                kept.shown.take(&kept.session.id);
            }
            !goes
        });
        all.push(OpenShell { agent: agent.to_owned(), session, shown });
    }

    /// Ends the sessions of an agent that moves out.
    pub fn leave(&self, agent: &str) {
        for kept in self.all().extract_if(.., |kept| kept.agent == agent) {
            kept.session.end();
        }
    }

    /// Ends every session, soon.
    pub fn end(&self) {
        for kept in self.all().iter() {
            kept.session.end();
        }
    }

    /// Ends every session and waits until nothing of them is left.
    pub async fn close(&self) {
        self.end();
        let sessions: Vec<Arc<Session>> = self.all().drain(..).map(|kept| kept.session).collect();
        for session in sessions {
            session.close().await;
        }
    }
}

/// Whether a session may be called this.
pub fn check_name(id: &str) -> Result<()> {
    let plain = id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    match plain && (1..=64).contains(&id.len()) {
        true => Ok(()),
        false => {
            Err(Error::invalid(format!("`{}` cannot name a session: letters, digits, - and _ can", id.escape_debug())))
        }
    }
}
