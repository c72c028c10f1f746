//! Conversations as files: `conversations/<id>/{messages/,control/input,latest.txt,status.json}`.

use crate::policy::PrincipalCaller;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::desk::Desk;
use super::files::{fetched, no_such, time};
use super::message::{Name, Role};
use super::tag::shown;
use super::talks::MESSAGE;
use super::window::fitted;
use crate::jobs::files::plain;
use crate::policy::Principal;
use acheron_base::blocking;
use acheron_base::{Error, Result, quoted};
use acheron_vfs::{
    Answer, Caller, Dir, File as _, Handle, Hear, Item, Keep, Listing, Node, Once, Open, Reply, STARTED, Speech, Stat,
    pretty, waiting,
};

/// The directory of conversations. Making one there begins it.
pub(super) fn conversations(desk: &Arc<Desk>) -> Node {
    Node::dir(All(desk.clone()))
}

struct All(Arc<Desk>);

impl Dir for All {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.0.talks().ok()?.has(name).then(|| one(&self.0, name))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let ids = self.0.talks().and_then(|talks| talks.ids()).unwrap_or_default();
        ids.into_iter().map(|id| (id.clone(), one(&self.0, &id))).collect()
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        let (desk, name) = (self.0.clone(), name.to_owned());
        Answer::soon(blocking(move || {
            let id = desk.talks()?.begin(Some(&name))?;
            Ok(one(&desk, &id))
        }))
    }
}

fn one(desk: &Arc<Desk>, id: &str) -> Node {
    let (told, last, id) = (id.to_owned(), desk.clone(), id.to_owned());
    let status = fetched(desk, move |desk| Ok(pretty(&status(desk, &told)?)));
    let input = Speech::new(Arc::new(Input { desk: desk.clone(), id: id.clone() }));
    let messages = Messages { desk: desk.clone(), id: id.clone() };
    let listing = Listing::default()
        .dir("messages", messages)
        .dir("control", Listing::default().file("input", input))
        .file("latest.txt", waiting(move |_| latest(&last, &id)))
        .file("status.json", status);
    Node::dir(listing)
}

fn status(desk: &Desk, id: &str) -> Result<Value> {
    let messages = desk.talks()?.messages(id)?;
    let running = desk.running(id).is_some() || desk.asked.get(id).is_some_and(|job| !job.settled());
    let state = if running { "running" } else { "idle" };
    let job = desk.asked.get(id).map(|job| job.id.clone());
    // What a model would be told now; a conversation that cannot be told at all says so when it is gone on with.
    let window = (desk.window)();
    let told = fitted(desk.talks()?.said(id)?, window).ok();
    let (tokens, left_out) = (told.as_ref().map(|told| told.tokens), told.as_ref().map(|told| told.left_out));
    Ok(json!({"conversation": id, "state": state, "messages": messages.len(), "job_id": job,
        "last": messages.last().map(|name| &name.file),
        "window": {"context_tokens": window, "tokens": tokens, "left_out": left_out}}))
}

/// The last answer, when no turn is under way any more.
fn latest(desk: &Arc<Desk>, id: &str) -> Answer<Bytes> {
    let (desk, id) = (desk.clone(), id.to_owned());
    let asked = desk.asked.get(&id).map(|job| job.clone());
    let running = desk.running(&id);
    let quiet = running.is_none() && asked.as_ref().is_none_or(|job| job.settled());
    let said = async move {
        if let Some(job) = &asked {
            let now = job.end().await;
            if let Some(outcome) = now.outcome.as_ref().filter(|outcome| outcome.is_err()) {
                return Ok(plain(outcome));
            }
        }
        if let Some(mut running) = running {
            _ = running.changed().await; // an error says that the turn is over
        }
        blocking(move || last_answer(&desk, &id)).await
    };
    if quiet { Answer::soon(said) } else { Answer::later(said) }
}

fn last_answer(desk: &Desk, id: &str) -> Result<Bytes> {
    let talks = desk.talks()?;
    let Some(name) = talks.messages(id)?.into_iter().rfind(|name| name.role == Role::Assistant) else {
        return Ok(Bytes::new());
    };
    let text = String::from_utf8_lossy(&talks.read(id, &name.file)?).into_owned();
    Ok((shown(&text) + "\n").into())
}

/// `control/input`: each message is a turn, and so a job.
struct Input {
    desk: Arc<Desk>,
    id: String,
}

impl Hear for Input {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"write a message here; read the answer on the same handle or in ../latest.txt\n")
    }

    fn may(&self, caller: &Caller) -> Result<()> {
        if caller.principal() == &Principal::Nobody {
            return Err(Error::forbidden("the process that asks is gone or unknown"));
        }
        match self.desk.running(&self.id) {
            Some(_) => Err(Error::busy(format!("a turn of the conversation {} is under way", self.id))),
            None => Ok(()),
        }
    }

    fn hear(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        let Some(office) = self.desk.office.upgrade() else {
            return Answer::refuse(Error::unavailable("the host is going down"));
        };
        let (desk, id, caller) = (self.desk.clone(), self.id.clone(), caller.clone());
        Answer::soon(async move {
            let arguments = json!({"conversation": id, "message": message});
            let job = office.call(&caller, &desk.agent, "recall", "turn", arguments).await?;
            desk.asked.insert(id.clone(), job);
            Ok(Arc::new(Once(move || latest(&desk, &id))) as Arc<dyn Reply>)
        })
    }
}

/// The messages of one conversation, as files that people may write too.
struct Messages {
    desk: Arc<Desk>,
    id: String,
}

impl Messages {
    fn item(&self, file: &str) -> Item {
        Item::new(Arc::new(Kept { desk: self.desk.clone(), id: self.id.clone(), file: file.to_owned() }))
    }
}

impl Dir for Messages {
    fn lookup(&self, name: &str) -> Option<Node> {
        Name::parse(name)?;
        self.desk.talks().ok()?.stat(&self.id, name).ok()?;
        Some(Node::file(self.item(name)))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let names = self.desk.talks().and_then(|talks| talks.messages(&self.id)).unwrap_or_default();
        let mut all: Vec<_> = names.into_iter().map(|it| (it.file.clone(), Node::file(self.item(&it.file)))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        if !self.desk.talks()?.has(&self.id) {
            return Err(no_such(&self.id));
        }
        if Name::parse(name).is_none() {
            return Err(Error::invalid(format!("{} is no message: write <nanoseconds>-<role>.md", quoted(name))));
        }
        let item = self.item(name);
        let handle = item.open(caller, Open { truncate: true, ..how })?;
        Ok((Node::file(item), handle))
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        let (desk, id, name) = (self.desk.clone(), self.id.clone(), name.to_owned());
        Answer::soon(blocking(move || desk.talks()?.remove(&id, &name)))
    }
}

struct Kept {
    desk: Arc<Desk>,
    id: String,
    file: String,
}

impl Keep for Kept {
    fn stat(&self) -> Stat {
        let known = self.desk.talks().and_then(|talks| talks.stat(&self.id, &self.file));
        known.map_or(Stat { size: 0, modified: *STARTED }, |(size, ms)| Stat { size, modified: time(ms) })
    }

    fn latest(&self) -> Answer<Bytes> {
        let (desk, id, file) = (self.desk.clone(), self.id.clone(), self.file.clone());
        Answer::soon(blocking(move || Ok(desk.talks()?.read(&id, &file)?.into())))
    }

    fn keep(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        let (desk, id, file) = (self.desk.clone(), self.id.clone(), self.file.clone());
        Answer::soon(blocking(move || desk.talks()?.put(&id, &file, &bytes)))
    }

    fn limit(&self) -> usize {
        MESSAGE
    }
}
