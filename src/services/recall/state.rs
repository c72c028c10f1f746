//! One agent's recall at work: its wiki, its conversations, its model, brought together turn by turn.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use dashmap::DashMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::archive::archive;
use super::speak::{RecallModelSpeaker, Speak};
use super::talk_dir::RemovedNames;
use super::talk_order::TalkOrders;
use super::talks::{LockedTalk, Talks};
use super::watch::Wikis;
use super::wiki::Wiki;
use crate::agent::own_model::OwnModel;
use crate::jobs::Job;
use crate::service::ServiceContext;
use crate::services::prompts::Library;
use crate::state::quota::{QuotaKind, Quotas};
use acheron_base::{Clock, ConfinedDir, Error, Result, Room, blocking};
use acheron_recall::block::{injected, is_new_index, new_index};
use acheron_recall::message::Role;
use acheron_recall::resolve::Access;
use acheron_recall::turn::{Action, FoundPage, Limits, Looked, Outcome, Turn, Wanted};
use acheron_recall::window::{answer, fitted};

/// How much of the entry page is put into the prompt.
const ROOT_BYTES: usize = 32 << 10;
/// How many pages a search of a model shows.
const SEARCHED: usize = 8;
/// The window of a model of which nothing is known.
const WINDOW: u32 = 32_768;

/// Opens the folder of the wiki, made if it is not there.
pub type OpenFolder = Box<dyn Fn(&Path) -> Result<ConfinedDir> + Send + Sync>;
/// Says how many tokens a model takes.
pub type ReadWindow = Box<dyn Fn() -> u32 + Send + Sync>;

/// The parts from which the recall of one agent is built.
pub struct RecallParts {
    pub agent: String,
    /// Begins turns from files; empty where there are none.
    pub context: Weak<ServiceContext>,
    pub clock: Clock,
    pub wikis: Arc<Wikis>,
    /// The wiki.
    pub folder: PathBuf,
    pub open: OpenFolder,
    /// The file with the index of the wiki.
    pub index: PathBuf,
    /// The conversations.
    pub home: PathBuf,
    /// For the conversations.
    pub room: Arc<Room>,
    /// For the links of a page.
    pub quotas: Arc<Quotas>,
    pub prompts: Arc<Library>,
    pub speak: Arc<dyn Speak>,
    /// Of one turn.
    pub limits: Limits,
    /// How many tokens the model takes, its answer among them: as it is now.
    pub window: ReadWindow,
}

pub struct RecallState {
    pub parts: RecallParts,
    wiki: OnceLock<Arc<Wiki>>,
    talks: OnceLock<Arc<Talks>>,
    /// Conversations with a turn under way; the sender goes when the turn ends.
    running: DashMap<String, watch::Receiver<()>>,
    /// The turns that were begun by a conversation's `control/input`: those that have not ended, and the last one.
    pub asked: DashMap<String, Vec<Arc<Job>>>,
    pub orders: TalkOrders,
    pub removed: RemovedNames,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Turned")]
pub struct TurnReport {
    pub conversation: String,
    /// The message with the answer.
    pub filename: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Answers by the model of an agent, and says how many tokens that takes.
pub fn by_model(own: Arc<OwnModel>) -> (Arc<dyn Speak>, ReadWindow) {
    let described = own.clone();
    let window = move || described.described().map_or(WINDOW, |model| model.context_tokens);
    let longest = {
        let window = window.clone();
        move || answer(window())
    };
    let speak = RecallModelSpeaker::new(longest, move || own.open());
    (Arc::new(speak), Box::new(window))
}

impl RecallState {
    pub fn new(parts: RecallParts) -> RecallState {
        RecallState {
            parts,
            wiki: OnceLock::new(),
            talks: OnceLock::new(),
            running: DashMap::new(),
            asked: DashMap::new(),
            orders: TalkOrders::default(),
            removed: RemovedNames::default(),
        }
    }

    /// The wiki, opened when it is first needed: an agent that never recalls costs nothing.
    pub fn wiki(&self) -> Result<&Arc<Wiki>> {
        match self.wiki.get() {
            Some(wiki) if wiki.is_in_place() => Ok(wiki),
            Some(wiki) => self.found_again(wiki),
            None => {
                let folder = (self.parts.open)(&self.parts.folder)?;
                let opened = self.parts.wikis.open(folder, &self.parts.index, &self.parts.clock)?;
                Ok(self.wiki.get_or_init(|| {
                    self.tell_when_indexed(&opened);
                    self.tell_when_lost(&opened);
                    opened
                }))
            }
        }
    }

    /// The wiki with the folder that is now where the lost one was. One that is gone is not made anew: it may be put back.
    fn found_again<'a>(&self, wiki: &'a Arc<Wiki>) -> Result<&'a Arc<Wiki>> {
        let _writing = wiki.writing.lock();
        let folder = &self.parts.folder;
        if !wiki.is_in_place() {
            if !folder.is_dir() {
                return Err(Error::unavailable(format!(
                    "the folder of the wiki, {}, is gone: put it back, or make an empty one there",
                    folder.display()
                )));
            }
            wiki.replace_place((self.parts.open)(folder)?)?;
            self.parts.wikis.watch_again(wiki);
        }
        Ok(wiki)
    }

    /// Has an event tell that the folder is lost, and that it is found again.
    fn tell_when_lost(&self, wiki: &Wiki) {
        let (context, agent) = (self.parts.context.clone(), self.parts.agent.clone());
        wiki.listen(Box::new(move |is_there| {
            let Some(context) = context.upgrade() else { return };
            if let Ok(log) = context.event_logs.of(&agent) {
                let told = if is_there { "found" } else { "lost" };
                log.note("recall", &format!("/agents/{agent}/recall/status.json"), json!({ "wiki": told }));
            }
        }));
    }

    /// Has an event tell that all pages were read, if they have to be.
    fn tell_when_indexed(&self, wiki: &Wiki) {
        let (context, agent) = (self.parts.context.clone(), self.parts.agent.clone());
        wiki.progress.when_ended(Box::new(move |read| {
            let Some(context) = context.upgrade() else { return };
            if let Ok(log) = context.event_logs.of(&agent) {
                log.note("recall", &format!("/agents/{agent}/recall/status.json"), json!({ "indexed": read }));
            }
        }));
    }

    /// How far the wiki has been read, if it is open.
    pub fn progress(&self) -> Option<Value> {
        self.wiki.get().map(|wiki| wiki.progress.shown())
    }

    /// The wiki with all its pages read. Blocks.
    pub fn read_wiki(&self) -> Result<&Arc<Wiki>> {
        let wiki = self.wiki()?;
        wiki.progress.wait();
        Ok(wiki)
    }

    /// Makes a page, or its next version, by whatever door it comes.
    pub fn write_page(&self, path: &str, bytes: &[u8]) -> Result<()> {
        std::str::from_utf8(bytes).map_or(Ok(()), |text| self.check_links(path, text))?;
        self.wiki()?.write(path, bytes)
    }

    /// Whether a page has no more links than it may have.
    pub fn check_links(&self, path: &str, text: &str) -> Result<()> {
        let links = acheron_recall::links::links(path, text).len();
        self.parts.quotas.check(QuotaKind::LinksPerPage, 0, links as u64)
    }

    pub fn talks(&self) -> Result<&Arc<Talks>> {
        match self.talks.get() {
            Some(talks) => Ok(talks),
            None => {
                let place =
                    ConfinedDir::create(self.parts.home.join("conversations"))?.with_room(self.parts.room.clone());
                Ok(self.talks.get_or_init(|| Arc::new(Talks::new(place, self.parts.clock.clone()))))
            }
        }
    }

    /// The runtime prompt, as a conversation that begins now gets it.
    pub fn prompt(&self) -> Result<String> {
        let wiki = self.wiki()?;
        let root = self.root()?;
        let include = wiki.index().has_memory();
        self.parts.prompts.text("runtime", "default", &json!({ "include_recall": include, "memory_root": root }))
    }

    /// The entry page, as much of it as is shown.
    fn root(&self) -> Result<String> {
        let mut root = self.wiki()?.root();
        if root.len() > ROOT_BYTES {
            let end = (0..=ROOT_BYTES).rev().find(|at| root.is_char_boundary(*at)).unwrap_or(0);
            root.truncate(end);
            root.push_str("\n[the index goes on]");
        }
        Ok(root)
    }

    /// Tells a conversation of an index that is not the one it was shown. One that began with words of its own was shown none.
    fn refresh_index(&self, held: &LockedTalk) -> Result<()> {
        let (root, prompt, said) = (self.root()?, self.prompt()?, held.talks.said(&held.id)?);
        let first = prompt.lines().next().unwrap_or_default();
        let begun = said.iter().find(|(role, text)| *role == Role::System && text.starts_with(first));
        let last =
            said.iter().rfind(|(role, text)| *role == Role::User && injected(text) && is_new_index(text)).or(begun);
        let fresh = new_index(&root);
        match last {
            Some((_, shown)) if !shown.ends_with(&root) && *shown != fresh => held.add(Role::User, &fresh).map(drop),
            _ => Ok(()),
        }
    }

    /// Whether a turn of a conversation is under way, and when it is over.
    pub fn running(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.running.get(id).map(|running| running.clone())
    }

    /// Records a turn that a conversation's `control/input` began.
    pub fn asks(&self, id: &str, job: &Arc<Job>) {
        let mut asked = self.asked.entry(id.to_owned()).or_default();
        asked.retain(|job| !job.settled());
        asked.push(job.clone());
    }

    /// Whether a turn of a conversation runs or waits.
    pub fn is_busy(&self, id: &str) -> bool {
        self.orders.is_busy(id)
            || self.running.contains_key(id)
            || self.asked.get(id).is_some_and(|asked| asked.iter().any(|job| !job.settled()))
    }

    /// Removes a conversation; first archives it, if that is wanted and it has messages.
    pub fn remove_talk(&self, id: &str, archives: bool) -> Result<usize> {
        let talks = self.talks()?;
        let held = talks.hold(id)?;
        let messages = talks.messages(id)?.len();
        if archives && messages > 0 {
            archive(&held, self.wiki()?)?;
        }
        held.delete()?;
        self.asked.remove(id);
        self.removed.forget(id);
        Ok(messages)
    }

    /// Makes sure that a conversation begins with the prompt.
    pub fn prepare(&self, held: &LockedTalk) -> Result<()> {
        self.removed.forget(&held.id);
        held.open_with(|| self.prompt())?;
        self.refresh_index(held)
    }

    /// One answer to a conversation as it stands.
    pub async fn generate(self: &Arc<Self>, id: &str) -> Result<String> {
        let (recall, id) = (self.clone(), id.to_owned());
        let said = blocking(move || recall.talks()?.said(&id)).await?;
        self.parts.speak.speak(&fitted(said, (self.parts.window)())?.said).await
    }

    /// A message and all that follows from it. `tell` receives the names of the pages that are recalled.
    pub async fn turn(
        self: &Arc<Self>,
        conversation: Option<String>,
        message: String,
        tell: impl Fn(&str) + Send + Sync,
    ) -> Result<TurnReport> {
        check_message(&message)?;
        let recall = self.clone();
        let held = blocking(move || {
            let talks = recall.talks()?;
            let id = conversation.map_or_else(|| talks.begin(None), Ok)?;
            let held = talks.hold(&id)?;
            recall.prepare(&held)?;
            held.add(Role::User, message.trim_end_matches('\n'))?;
            Ok(Arc::new(held))
        })
        .await?;
        let _running = RunningTalk::begin(self, &held.id);
        let mut turn = Turn::new(self.parts.limits, self.parts.clock.now_ms());
        let mut filename = String::new();
        loop {
            let left = Duration::from_millis(turn.left_ms(self.parts.clock.now_ms()));
            let Ok(said) = tokio::time::timeout(left, self.generate(&held.id)).await else {
                return Ok(TurnReport { conversation: held.id.clone(), filename, outcome: turn.give_up() });
            };
            let (recall, held_too, said) = (self.clone(), held.clone(), said?);
            let (back, file, actions) = blocking(move || {
                let file = held_too.add(Role::Assistant, &said)?;
                let wiki = recall.wiki()?;
                let mut look = |wanted: Wanted<'_>| match wanted {
                    Wanted::Page(name) => wiki.look(name, Access::Nodes),
                    Wanted::Search(query) => Looked::Found(found_pages(wiki, query)),
                };
                let actions = turn.step(&said, recall.parts.clock.now_ms(), &mut look);
                for action in &actions {
                    if let Action::Add(text) = action {
                        held_too.add(Role::User, text)?;
                    }
                }
                Ok((turn, file, actions))
            })
            .await?;
            (turn, filename) = (back, file);
            for action in actions {
                match action {
                    Action::Add(text) => tell(text.lines().next().unwrap_or_default()),
                    Action::Generate => {}
                    Action::Finish(outcome) => {
                        return Ok(TurnReport { conversation: held.id.clone(), filename, outcome });
                    }
                }
            }
        }
    }
}

/// What a search shows to a model. A search that fails finds nothing, and the log has the cause.
fn found_pages(wiki: &Wiki, query: &str) -> Vec<FoundPage> {
    let hits = wiki.search(query, Access::Nodes, SEARCHED).unwrap_or_else(|error| {
        tracing::warn!(%error, "a search of a turn failed");
        Vec::new()
    });
    hits.into_iter().map(|hit| FoundPage { path: hit.path, title: hit.title, snippet: hit.snippet }).collect()
}

/// Shows a conversation as running until it is dropped.
struct RunningTalk<'a> {
    recall: &'a RecallState,
    id: String,
    _over: watch::Sender<()>,
}

impl<'a> RunningTalk<'a> {
    fn begin(recall: &'a RecallState, id: &str) -> RunningTalk<'a> {
        let (over, running) = watch::channel(());
        recall.running.insert(id.to_owned(), running);
        RunningTalk { recall, id: id.to_owned(), _over: over }
    }
}

impl Drop for RunningTalk<'_> {
    fn drop(&mut self) {
        self.recall.running.remove(&self.id);
    }
}

/// Whether this may be said in a turn.
pub fn check_message(message: &str) -> Result<()> {
    match message.trim().is_empty() {
        true => Err(Error::invalid("the message is empty")),
        false => Ok(()),
    }
}
