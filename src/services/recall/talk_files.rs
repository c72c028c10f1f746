//! Conversations as files: `conversations/<id>/{messages/,control/input,latest.txt,status.json}`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::files::{fetched, no_such, time};
use super::state::RecallState;
use super::talk_dir::{TalkDir, idle};
use super::talks::MESSAGE;
use crate::jobs::files::plain;
use crate::jobs::{Job, JobOutcome};
use crate::policy::{Principal, PrincipalCaller};
use acheron_base::utf8::may_be_part;
use acheron_base::{Error, Result, blocking, quoted};
use acheron_recall::message::{Name, Role};
use acheron_recall::tag::shown;
use acheron_recall::window::fitted;
use acheron_vfs::{
    Answer, Caller, Dir, File as _, Handle, Item, MessageFile, MessageSink, NameQuery, Node, Open, Reply, ReplyFn,
    STARTED, Stat, VersionStore, pretty, waiting,
};

/// The directory of conversations. Making one there begins it.
pub(super) fn conversations(recall: &Arc<RecallState>) -> Node {
    Node::dir(TalksDir(recall.clone()))
}

struct TalksDir(Arc<RecallState>);

impl Dir for TalksDir {
    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }

    fn lookup(&self, name: &str) -> Option<Node> {
        self.0.talks().ok()?.has(name).then(|| one(&self.0, name))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let ids = self.0.talks().and_then(|talks| talks.ids()).unwrap_or_default();
        ids.into_iter().map(|id| (id.clone(), one(&self.0, &id))).collect()
    }

    /// Archives the conversation and removes it. Without messages there is nothing to archive.
    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        let (recall, name) = (self.0.clone(), name.to_owned());
        Answer::soon(blocking(move || {
            idle(&recall, &name)?;
            recall.remove_talk(&name, true).map(drop)
        }))
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        let (recall, name) = (self.0.clone(), name.to_owned());
        Answer::soon(blocking(move || {
            let id = recall.talks()?.begin(Some(&name))?;
            Ok(one(&recall, &id))
        }))
    }
}

fn one(recall: &Arc<RecallState>, id: &str) -> Node {
    let (told, last, id) = (id.to_owned(), recall.clone(), id.to_owned());
    let status = fetched(recall, move |recall| Ok(pretty(&status(recall, &told)?)));
    let input = MessageFile::new(Arc::new(TalkInputFile { recall: recall.clone(), id: id.clone() }));
    let messages = MessagesDir { recall: recall.clone(), id: id.clone() };
    let dir = |below, names| Node::dir(TalkDir { recall: recall.clone(), id: id.clone(), below, names });
    let control = dir("control/", vec![("input", Node::file(input))]);
    let latest = {
        let id = id.clone();
        Node::file(waiting(move |_| latest(&last, &id)))
    };
    let (messages, status) = (Node::dir(messages), Node::file(status));
    dir("", vec![("control", control), ("latest.txt", latest), ("messages", messages), ("status.json", status)])
}

fn status(recall: &RecallState, id: &str) -> Result<Value> {
    let messages = recall.talks()?.messages(id)?;
    let state = if recall.is_busy(id) { "running" } else { "idle" };
    let asked = recall.asked.get(id).map(|asked| asked.clone()).unwrap_or_default();
    let job = asked.last().map(|job| job.id.clone());
    let waiting = asked.iter().filter(|job| !job.settled()).count().saturating_sub(1);
    // The messages that a model would get now; a conversation that cannot be read reports it when it is continued.
    let window = (recall.parts.window)();
    let told = fitted(recall.talks()?.said(id)?, window).ok();
    let (tokens, left_out) = (told.as_ref().map(|told| told.tokens), told.as_ref().map(|told| told.left_out));
    Ok(json!({"conversation": id, "state": state, "messages": messages.len(), "job_id": job, "waiting": waiting,
        "last": messages.last().map(|name| &name.file),
        "window": {"context_tokens": window, "tokens": tokens, "left_out": left_out}}))
}

/// The last answer, when no turn is under way any more.
fn latest(recall: &Arc<RecallState>, id: &str) -> Answer<Bytes> {
    let (recall, id) = (recall.clone(), id.to_owned());
    let asked = recall.asked.get(&id).map(|asked| asked.clone()).unwrap_or_default();
    let running = recall.running(&id);
    let quiet = running.is_none() && asked.iter().all(|job| job.settled());
    let said = async move {
        for job in &asked {
            job.end().await;
        }
        if let Some(outcome) = failure(asked.last()).await {
            return Ok(plain(&outcome));
        }
        if let Some(mut running) = running {
            _ = running.changed().await; // an error says that the turn is over
        }
        blocking(move || last_answer(&recall, &id)).await
    };
    if quiet { Answer::soon(said) } else { Answer::later(said) }
}

/// How a turn failed, if it did.
async fn failure(job: Option<&Arc<Job>>) -> Option<JobOutcome> {
    job?.end().await.outcome.filter(|outcome| outcome.is_err())
}

/// The answer of one turn, for the handle that asked for it.
fn own_answer(job: &Arc<Job>) -> Answer<Bytes> {
    let (ended, job) = (job.settled(), job.clone());
    let said = async move {
        let outcome = job.end().await.outcome;
        let text = outcome
            .as_ref()
            .and_then(|outcome| Some(outcome.as_ref().as_ref().ok()?.get("text")?.as_str()?.to_owned()));
        Ok(match (text, outcome) {
            (Some(text), _) => (text + "\n").into(),
            (None, Some(outcome)) => plain(&outcome),
            (None, None) => Bytes::new(),
        })
    };
    if ended { Answer::soon(said) } else { Answer::later(said) }
}

fn last_answer(recall: &RecallState, id: &str) -> Result<Bytes> {
    let talks = recall.talks()?;
    let Some(name) = talks.messages(id)?.into_iter().rfind(|name| name.role == Role::Assistant) else {
        return Ok(Bytes::new());
    };
    let text = String::from_utf8_lossy(&talks.read(id, &name.file)?).into_owned();
    Ok((shown(&text) + "\n").into())
}

/// `control/input`: each message is a turn, and so a job.
struct TalkInputFile {
    recall: Arc<RecallState>,
    id: String,
}

impl MessageSink for TalkInputFile {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"write a message here; read the answer on the same handle or in ../latest.txt\n")
    }

    fn may(&self, caller: &Caller) -> Result<()> {
        if caller.principal() == &Principal::Nobody {
            return Err(Error::forbidden("the process that asks is gone or unknown"));
        }
        Ok(())
    }

    fn receive(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        let Some(context) = self.recall.parts.context.upgrade() else {
            return Answer::refuse(Error::unavailable("the host is going down"));
        };
        let (recall, id, caller) = (self.recall.clone(), self.id.clone(), caller.clone());
        Answer::soon(async move {
            let arguments = json!({"conversation": id, "message": message});
            let job = context.call(&caller, &recall.parts.agent, "recall", "turn", arguments).await?;
            recall.asks(&id, &job);
            Ok(Arc::new(ReplyFn(move || own_answer(&job))) as Arc<dyn Reply>)
        })
    }
}

/// The messages of one conversation, as files that people may write too.
struct MessagesDir {
    recall: Arc<RecallState>,
    id: String,
}

impl MessagesDir {
    fn item(&self, file: &str) -> Item {
        Item::new(Arc::new(TalkFile { recall: self.recall.clone(), id: self.id.clone(), file: file.to_owned() }))
    }
}

impl Dir for MessagesDir {
    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }

    fn lookup(&self, name: &str) -> Option<Node> {
        Name::parse(name)?;
        self.recall.talks().ok()?.stat(&self.id, name).ok()?;
        Some(Node::file(self.item(name)))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let names = self.recall.talks().and_then(|talks| talks.messages(&self.id)).unwrap_or_default();
        let mut all: Vec<_> = names.into_iter().map(|it| (it.file.clone(), Node::file(self.item(&it.file)))).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        if !self.recall.talks()?.has(&self.id) {
            return Err(no_such(&self.id));
        }
        if Name::parse(name).is_none() {
            return Err(Error::invalid(format!("{} is not a message: write <nanoseconds>-<role>.md", quoted(name))));
        }
        let item = self.item(name);
        let handle = item.open(caller, Open { truncate: true, ..how })?;
        Ok((Node::file(item), handle))
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        let (recall, id, name) = (self.recall.clone(), self.id.clone(), name.to_owned());
        Answer::soon(blocking(move || {
            idle(&recall, &id)?;
            recall.talks()?.remove(&id, &name)
        }))
    }
}

struct TalkFile {
    recall: Arc<RecallState>,
    id: String,
    file: String,
}

impl VersionStore for TalkFile {
    fn has_quick_stat(&self) -> bool {
        false
    }

    fn stat(&self) -> Stat {
        let known = self.recall.talks().and_then(|talks| talks.stat(&self.id, &self.file));
        known.map_or(Stat { size: 0, modified: STARTED }, |(size, ms)| Stat { size, modified: time(ms) })
    }

    fn latest(&self) -> Answer<Bytes> {
        let (recall, id, file) = (self.recall.clone(), self.id.clone(), self.file.clone());
        Answer::soon(blocking(move || Ok(recall.talks()?.read(&id, &file)?.into())))
    }

    fn check(&self, _caller: &Caller, draft: &[u8], new: Range<usize>) -> Result<()> {
        match may_be_part(&draft[new.clone()], new.start == 0) {
            true => Ok(()),
            false => Err(Error::invalid("a message is UTF-8 text")),
        }
    }

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        let (recall, id, file) = (self.recall.clone(), self.id.clone(), self.file.clone());
        Answer::soon(blocking(move || recall.talks()?.put(&id, &file, &bytes)))
    }

    fn limit(&self) -> usize {
        MESSAGE
    }
}
