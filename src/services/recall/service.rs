//! The service: commands in, answers out. Everything else is at the recall.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::archive::{Archived, archive};
use super::arguments;
use super::files::files;
use super::renaming::RenamedPage;
use super::sleep_changes::SleepOutcome;
use super::sleep_runs::SleepReport;
use super::state::{RecallState, TurnReport};
use crate::contract::Operation;
use crate::jobs::Call;
use crate::service::{CallTurn, Cx, Service};
use acheron_base::{Code, Error, Result, blocking, quoted};
use acheron_recall::graph::{Broken, Finding, Linked};
use acheron_recall::index::Page;
use acheron_recall::message::Role;
use acheron_recall::page::Class;
use acheron_recall::resolve::{Access, Miss};
use acheron_recall::search::Hit;
use acheron_recall::turn::Looked;
use acheron_vfs::{Caller, Node};

/// A turn may take as long as the longest limit that a mountspec can set, and a little.
const TURN: Duration = Duration::from_secs(3660);

/// In the order of calls: no conversation is called this.
const SLEEP: &str = "/sleep";

pub struct Recall(Arc<RecallState>);

impl Recall {
    pub fn new(recall: Arc<RecallState>) -> Recall {
        Recall(recall)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Begins a conversation.
    New {
        /// Its name; the time in nanoseconds when absent.
        #[serde(default)]
        conversation: Option<String>,
    },
    /// Adds a message to a conversation.
    Add { conversation: String, role: Role, text: String },
    /// Lets the model answer once. What it would recall is not looked up.
    Gen {
        conversation: String,
        /// Whether the answer becomes a message.
        #[serde(default = "yes")]
        write: bool,
    },
    /// Says something, and lets the model recall pages until it has its answer.
    Turn {
        /// A new one when absent.
        #[serde(default)]
        conversation: Option<String>,
        message: String,
    },
    /// Copies a conversation to `episodic-raw/<date>/<conversation>/` of the wiki, byte for byte. It can be
    /// continued; archiving it again adds the messages since.
    Archive { conversation: String },
    /// Removes a conversation with all its messages. `rmdir conversations/<id>` archives it first.
    Delete { conversation: String },
    /// Reads a page by title, path, `[[Title|alias]]` or `Title#heading`.
    Read {
        name: String,
        /// Whether transcripts and jobs may be read too.
        #[serde(default)]
        raw: bool,
    },
    /// Writes a page: a new one, or all of an old one.
    Write {
        /// Below the wiki, such as `semantic/River.md`.
        path: String,
        text: String,
    },
    /// Gives a page another path, and writes the links to it anew, all in one change. `mv` below `nodes/` does the same.
    Rename {
        /// A title or a path.
        name: String,
        /// The new path below the wiki.
        to: String,
    },
    /// Proposes changes of pages from archived conversations, with citations. It changes no page: the proposal is in
    /// `sleep/<run>/`, `diff.patch` shows it, and `apply` makes it. Without a model the most telling sentences are proposed.
    Consolidate {
        /// A day such as `2026-11-16`: messages since then are read, also those that were read before. When absent, those that no
        /// applied run has read.
        #[serde(default)]
        since: Option<String>,
        /// Only says what would be read. No model is asked and nothing is written.
        #[serde(default)]
        dry_run: bool,
    },
    /// Makes the changes that a run of `consolidate` proposed, all in one change. Refused if one of the pages has changed since.
    Apply {
        /// Its name in `sleep/`.
        run: String,
    },
    /// Takes back a run that was applied, all in one change. Refused if one of the pages has changed since.
    Undo { run: String },
    /// Finds pages by their words, and says why.
    Search {
        query: String,
        #[serde(default = "ten")]
        #[schemars(range(min = 1, max = 200))]
        limit: u32,
        #[serde(default)]
        raw: bool,
    },
    /// Where the links of a page lead.
    Links { name: String },
    /// Which pages link to a page.
    Backlinks { name: String },
    /// Pages that no page leads to.
    Orphans {},
    /// Links that lead nowhere, or to several pages.
    Broken {},
    /// How many tokens pages have, the longest first.
    Tokens {
        /// Only this page.
        #[serde(default)]
        name: Option<String>,
    },
    /// All that is to be put right in the wiki.
    Check {},
}

fn yes() -> bool {
    true
}

fn ten() -> u32 {
    10
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Begun")]
pub struct BegunConversation {
    pub conversation: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Said")]
pub struct SaidMessage {
    pub text: String,
    /// The message, if it became one.
    pub filename: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Removed")]
pub struct RemovedConversation {
    pub conversation: String,
    /// How many messages went with it.
    pub removed: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Shown")]
pub struct PageView {
    pub path: String,
    pub title: String,
    /// Without the front matter.
    pub text: String,
    /// The heading, if only what is below it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heading: Option<String>,
    /// The heading that was asked for and that the page does not have: the text is the whole page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_heading: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Written")]
pub struct WrittenPage {
    pub path: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pages")]
pub struct PageList {
    pub pages: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Found")]
pub struct PageHits {
    pub hits: Vec<Hit>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Leads")]
pub struct PageLinks {
    pub path: String,
    pub links: Vec<Linked>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Astray")]
pub struct BrokenLinks {
    pub broken: Vec<Broken>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Size")]
pub struct PageSize {
    pub path: String,
    pub tokens: u64,
    pub bytes: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sizes")]
pub struct PageSizes {
    pub total: u64,
    pub pages: Vec<PageSize>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Checked")]
pub struct WikiCheck {
    pub ok: bool,
    pub nodes: usize,
    pub findings: Vec<Finding>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Turned(Box<TurnReport>),
    Begun(BegunConversation),
    Said(SaidMessage),
    Archived(Archived),
    Removed(RemovedConversation),
    Shown(PageView),
    Written(WrittenPage),
    Renamed(RenamedPage),
    Slept(Box<SleepReport>),
    SleepChanged(SleepOutcome),
    Pages(PageList),
    Found(PageHits),
    Leads(PageLinks),
    Astray(BrokenLinks),
    Sizes(PageSizes),
    Checked(WikiCheck),
}

#[async_trait]
impl Service for Recall {
    const NAME: &'static str = "recall";
    const ABOUT: &'static str = "A wiki of Markdown pages that a model walks from link to link.\n\n\
        It asks for a page by `<recall>Title</recall>`. `nodes/<path>.md` is a page, and writing one there makes it; \
        `conversations/<id>/control/input` takes a message, `latest.txt` waits for the answer; `by/` shows \
        how pages are linked. `sleep/<run>/` has what `consolidate` proposes: `diff.patch`, `report.json`.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        let river = json!({"name": "River"});
        vec![
            Operation::execute("new").gives::<BegunConversation>().example(json!({"conversation": "crossing"})),
            Operation::execute("add")
                .gives::<SaidMessage>()
                .example(json!({"conversation": "crossing", "role": "user", "text": "How wide is the river?"})),
            Operation::execute("gen")
                .gives::<SaidMessage>()
                .deadline(TURN)
                .example(json!({"conversation": "crossing"})),
            Operation::execute("turn")
                .gives::<TurnReport>()
                .deadline(TURN)
                .example(json!({"message": "How wide is the river?"})),
            Operation::execute("archive").gives::<Archived>().idempotent().example(json!({"conversation": "crossing"})),
            Operation::execute("delete").gives::<RemovedConversation>().example(json!({"conversation": "crossing"})),
            Operation::execute("write").gives::<WrittenPage>().idempotent().example(
                json!({"path": "semantic/River.md", "text": "# River\n\nWide, and dark. The fare is an [[Obol]].\n"}),
            ),
            Operation::execute("rename")
                .gives::<RenamedPage>()
                .example(json!({"name": "River", "to": "semantic/Stream.md"})),
            Operation::execute("consolidate")
                .gives::<SleepReport>()
                .deadline(TURN)
                .example(json!({"since": "2026-11-16"})),
            Operation::execute("apply").gives::<SleepOutcome>().example(json!({"run": "2026-11-16-001"})),
            Operation::execute("undo").gives::<SleepOutcome>().example(json!({"run": "2026-11-16-001"})),
            Operation::read("read").gives::<PageView>().example(river.clone()),
            Operation::read("search").gives::<PageHits>().example(json!({"query": "wide river"})),
            Operation::read("links").gives::<PageLinks>().example(river.clone()),
            Operation::read("backlinks").gives::<PageList>().example(river),
            Operation::read("orphans").gives::<PageList>().example(json!({})),
            Operation::read("broken").gives::<BrokenLinks>().example(json!({})),
            Operation::read("tokens").gives::<PageSizes>().example(json!({})),
            Operation::read("check").gives::<WikiCheck>().example(json!({})),
        ]
    }

    /// Calls that write to one conversation wait for each other, and so do those that consolidate.
    fn turn(&self, call: &Call) -> Option<CallTurn> {
        if ["consolidate", "apply", "undo"].contains(&call.operation.as_str()) {
            return Some(self.0.orders.take(SLEEP));
        }
        let id = call.arguments.get("conversation")?.as_str()?;
        let writes = ["new", "add", "gen", "turn", "archive", "delete"].contains(&call.operation.as_str());
        writes.then(|| self.0.orders.take(id))
    }

    fn progress(&self) -> Option<Value> {
        self.0.progress()
    }

    fn files(&self) -> Vec<(String, Node)> {
        files(&self.0)
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        arguments::check(&command)
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        let recall = self.0.clone();
        match command {
            Command::Turn { conversation, message } => {
                let turned = recall.turn(conversation, message, |line| cx.log(line)).await?;
                Ok(Output::Turned(Box::new(turned)))
            }
            Command::Consolidate { since, dry_run } => {
                Ok(Output::Slept(Box::new(recall.consolidate(cx, since, dry_run).await?)))
            }
            Command::Gen { conversation, write } => {
                let (held, preparing) = (conversation.clone(), recall.clone());
                let held = blocking(move || {
                    let held = preparing.talks()?.hold(&held)?;
                    preparing.prepare(&held)?;
                    Ok(held)
                });
                let held = held.await?;
                let text = recall.generate(&conversation).await?;
                let said = blocking(move || {
                    let filename = write.then(|| held.add(Role::Assistant, &text)).transpose()?;
                    Ok(SaidMessage { text, filename })
                });
                Ok(Output::Said(said.await?))
            }
            command => {
                let cx = cx.clone();
                blocking(move || answer_without_model(&recall, &cx, command)).await
            }
        }
    }
}

/// Runs the commands that need no model.
fn answer_without_model(recall: &RecallState, cx: &Cx, command: Command) -> Result<Output> {
    let page = |name: &str| found(name, recall.wiki()?.find(name, Access::Nodes)).map(|found| found.page);
    Ok(match command {
        Command::New { conversation } => {
            let begun = |id: &str| BegunConversation { conversation: id.to_owned() };
            let system = recall.prompt()?;
            let id = recall.talks()?.begin_with(cx, conversation.as_deref(), &system, |id| json!(begun(id)))?;
            Output::Begun(begun(&id))
        }
        Command::Add { conversation, role, text } => {
            let said = |name: &str| SaidMessage { text: text.clone(), filename: Some(name.to_owned()) };
            recall.removed.forget(&conversation);
            let name = recall.talks()?.hold(&conversation)?.add_by(cx, role, &text, |name| json!(said(name)))?;
            Output::Said(said(&name))
        }
        Command::Archive { conversation } => {
            Output::Archived(archive(&recall.talks()?.hold(&conversation)?, recall.wiki()?)?)
        }
        Command::Delete { conversation } => {
            let removed = recall.remove_talk(&conversation, false)?;
            Output::Removed(RemovedConversation { conversation, removed })
        }
        Command::Read { name, raw } => match recall.wiki()?.look(&name, access(raw)) {
            Looked::Page { path, title, part, missing, text, .. } => {
                Output::Shown(PageView { path, title, text, heading: part, missing_heading: missing })
            }
            Looked::Missed(miss) => return found(&name, Err(miss)),
            Looked::Found(_) => return found(&name, Err(Miss::NotFound)),
        },
        Command::Write { path, text } => {
            recall.write_page(&path, text.as_bytes())?;
            Output::Written(WrittenPage { path })
        }
        Command::Rename { name, to } => {
            let from = page(&name)?.path.to_string();
            Output::Renamed(recall.wiki()?.rename(cx, &from, &to)?)
        }
        Command::Apply { run } => Output::SleepChanged(recall.apply_run(cx, &run)?),
        Command::Undo { run } => Output::SleepChanged(recall.undo_run(cx, &run)?),
        Command::Search { query, limit, raw } => {
            let hits = recall.wiki()?.search(&query, access(raw), limit.clamp(1, 200) as usize)?;
            Output::Found(PageHits { hits })
        }
        Command::Links { name } => {
            let page = page(&name)?;
            Output::Leads(PageLinks { path: page.path.to_string(), links: recall.read_wiki()?.index().links_of(&page) })
        }
        Command::Backlinks { name } => {
            let page = page(&name)?;
            Output::Pages(PageList { pages: recall.read_wiki()?.index().backlinks(&page) })
        }
        Command::Orphans {} => Output::Pages(PageList { pages: recall.read_wiki()?.report().orphans.clone() }),
        Command::Broken {} => Output::Astray(BrokenLinks { broken: recall.read_wiki()?.report().broken.clone() }),
        Command::Tokens { name: Some(name) } => Output::Sizes(sizes([&*page(&name)?])),
        Command::Tokens { name: None } => {
            let index = recall.read_wiki()?.index();
            let mine = index.pages().filter(|page| matches!(page.class, Class::Index | Class::Node));
            Output::Sizes(sizes(mine.map(|page| &**page)))
        }
        Command::Check {} => {
            let index = recall.read_wiki()?.index();
            let findings = index.check();
            let ok = findings.iter().all(|finding| finding.severity != "error");
            Output::Checked(WikiCheck { ok, nodes: index.nodes(), findings })
        }
        Command::Turn { .. } | Command::Gen { .. } | Command::Consolidate { .. } => {
            return Err(Error::internal("a turn is no plain command"));
        }
    })
}

fn access(raw: bool) -> Access {
    if raw { Access::Raw } else { Access::Nodes }
}

fn sizes<'a>(pages: impl IntoIterator<Item = &'a Page>) -> PageSizes {
    let size = |page: &Page| PageSize { path: page.path.to_string(), tokens: page.tokens, bytes: page.bytes };
    let mut pages: Vec<PageSize> = pages.into_iter().map(size).collect();
    pages.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.path.cmp(&b.path)));
    PageSizes { total: pages.iter().map(|page| page.tokens).sum(), pages }
}

/// A miss as an error.
pub fn found<T>(name: &str, found: Result<T, Miss>) -> Result<T> {
    let name = quoted(name);
    found.map_err(|miss| match miss {
        Miss::Empty => Error::invalid("name is empty: give the title of a page"),
        Miss::NotFound => Error::not_found(format!("there is no page {name}")),
        Miss::Ambiguous(paths) => Error::conflict(format!("{name} is ambiguous: {}", paths.join(", "))),
        Miss::Denied(why) => Error::forbidden(format!("{name}: {why}")),
        Miss::TooLong => Error::too_large(format!("{name} is longer than the 1 MiB that a page may have: split it")),
        Miss::Unreadable => Error::new(Code::InvalidPayload, format!("{name} is not text that can be read")),
    })
}
