//! The wiki as files: `index.md`, `nodes/…`, `by/…`, `prompt.md`.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::json;

use super::state::RecallState;
use super::talk_files::conversations;
use super::wiki::PAGE;
use acheron_base::{Code, Error, Result, blocking};
use acheron_recall::page::{Class, ROOT, check_part, check_path};
use acheron_vfs::{
    Answer, Caller, ComputedFile, Dir, File as _, Handle, Item, Link, Listing, NameQuery, Node, Open, STARTED, Stat,
    VersionStore, VirtualDir,
};

/// The shortest write after which the links of a page are counted, and the longest page of which they are.
const PIECE: usize = 4 << 10;
const LOOKED_AT: usize = 256 << 10;
/// How many pages `by/recent` has.
const RECENT: usize = 100;

/// The names that recall has beside those of every service.
pub fn files(recall: &Arc<RecallState>) -> Vec<(String, Node)> {
    let view = |view: WikiListing| Node::dir(WikiDir { recall: recall.clone(), view, dir: String::new() });
    let by = Listing::default()
        .with("backlinks", view(WikiListing::Backlinks))
        .with("orphans", view(WikiListing::Orphans))
        .with("broken", view(WikiListing::Broken))
        .dir("recent", recent(recall));
    vec![
        ("index.md".into(), page(recall, ROOT)),
        ("nodes".into(), view(WikiListing::Nodes)),
        ("by".into(), Node::dir(by)),
        ("conversations".into(), conversations(recall)),
        ("sleep".into(), Node::dir(super::sleep_files::runs(recall))),
        ("prompt.md".into(), Node::file(fetched(recall, |recall| Ok((recall.prompt()? + "\n").into())))),
    ]
}

/// A file that is made of what is on the disk.
pub(super) fn fetched(
    recall: &Arc<RecallState>,
    make: impl Fn(&RecallState) -> Result<Bytes> + Clone + Send + Sync + 'static,
) -> ComputedFile {
    let recall = recall.clone();
    ComputedFile::fetched(move |_| {
        let (recall, make) = (recall.clone(), make.clone());
        Answer::soon(blocking(move || make(&recall)))
    })
}

pub(super) fn time(ms: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WikiListing {
    /// The pages themselves.
    Nodes,
    /// Which pages lead to each.
    Backlinks,
    /// Those that nothing leads to, as links to them.
    Orphans,
    /// The pages with links that lead nowhere, and which.
    Broken,
}

/// A directory of the wiki, or one that mirrors it.
struct WikiDir {
    recall: Arc<RecallState>,
    view: WikiListing,
    dir: String,
}

impl WikiDir {
    fn path(&self, name: &str) -> String {
        if self.dir.is_empty() { name.to_owned() } else { format!("{}/{name}", self.dir) }
    }

    fn child(&self, path: String) -> Node {
        Node::dir(WikiDir { recall: self.recall.clone(), view: self.view, dir: path })
    }

    /// Names of directories and of pages. A wiki that cannot be opened has none; the operations tell why.
    fn names(&self) -> (Vec<String>, Vec<String>) {
        let Ok(wiki) = self.recall.wiki() else { return Default::default() };
        let of = |paths: Vec<&str>| {
            let inside = self.path("");
            let below = paths.into_iter().filter_map(|path| path.strip_prefix(&inside));
            let (mut dirs, mut pages) = (Vec::new(), Vec::new());
            for rest in below {
                match rest.split_once('/') {
                    Some((dir, _)) => dirs.push(dir.to_owned()),
                    None => pages.push(rest.to_owned()),
                }
            }
            dirs.dedup();
            pages.dedup();
            (dirs, pages)
        };
        match self.view {
            WikiListing::Nodes | WikiListing::Backlinks => {
                let (mut dirs, pages) = wiki.index().names(&self.dir);
                dirs.retain(|dir| !Class::of(&format!("{}/x.md", self.path(dir))).excluded());
                (dirs, pages)
            }
            WikiListing::Orphans => of(wiki.report().orphans.iter().map(String::as_str).collect()),
            WikiListing::Broken => of(wiki.report().broken.iter().map(|it| it.page.as_str()).collect()),
        }
    }

    fn leaf(&self, path: String) -> Node {
        match self.view {
            WikiListing::Nodes => page(&self.recall, &path),
            WikiListing::Backlinks => Node::file(fetched(&self.recall, move |recall| {
                let index = recall.read_wiki()?.index();
                Ok(index.page(&path).map(|page| lines(index.backlinks(page))).unwrap_or_default())
            })),
            WikiListing::Orphans => {
                let up = "../".repeat(path.matches('/').count() + 2);
                Node::link(LinkTarget(format!("{up}nodes/{path}")))
            }
            WikiListing::Broken => Node::file(fetched(&self.recall, move |recall| {
                let report = recall.wiki()?.report();
                let mine = report.broken.iter().filter(|it| it.page == path);
                Ok(lines(
                    mine.map(|it| format!("{}: [[{}]] {}", it.link.line, it.link.link, it.link.code.unwrap_or(""))),
                ))
            })),
        }
    }
}

fn lines(lines: impl IntoIterator<Item = String>) -> Bytes {
    lines.into_iter().map(|line| line + "\n").collect::<String>().into()
}

/// Never quick: the wiki may have to be opened, which lists all of it, and the index may be locked for a change.
impl Dir for WikiDir {
    fn is_quick(&self, _query: NameQuery) -> bool {
        false
    }

    fn lookup(&self, name: &str) -> Option<Node> {
        let path = self.path(name);
        if matches!(self.view, WikiListing::Nodes | WikiListing::Backlinks) {
            let wiki = self.recall.wiki().ok()?;
            let index = wiki.index();
            if Class::of(&format!("{path}/x.md")).excluded() {
                return None;
            }
            return match index.page(&path) {
                Some(_) => Some(self.leaf(path)),
                None => index.is_dir(&path).then(|| self.child(path)),
            };
        }
        let (dirs, pages) = self.names();
        if pages.iter().any(|page| page == name) {
            return Some(self.leaf(path));
        }
        dirs.iter().any(|dir| dir == name).then(|| self.child(path))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let (dirs, pages) = self.names();
        let dirs = dirs.into_iter().map(|name| (name.clone(), self.child(self.path(&name))));
        let pages = pages.into_iter().map(|name| (name.clone(), self.leaf(self.path(&name))));
        let mut all: Vec<_> = dirs.chain(pages).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        let path = self.path(name);
        let child = self.child(path.clone());
        self.changed("no directory can be made here", move |wiki| wiki.make_dir(&path)).map(|()| child)
    }

    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        let path = self.path(name);
        self.changed("no directory can be removed here", move |wiki| wiki.remove_dir(&path))
    }

    fn takes_new(&self, name: &str) -> bool {
        matches!(self.view, WikiListing::Nodes) && check_path(&self.path(name)).is_ok()
    }

    fn create(&self, caller: &Caller, name: &str, how: Open) -> Result<(Node, Box<dyn Handle>)> {
        self.own("no page can be made here")?;
        let path = self.path(name);
        // Checked now, because an error at close is lost.
        check_path(&path)?;
        let item = Item::new(Arc::new(PageFile { recall: self.recall.clone(), path }));
        let handle = item.open(caller, Open { truncate: true, ..how })?;
        Ok((Node::file(item), handle))
    }

    /// By a call, so that it is in the journal, and done again after a crash.
    fn rename(&self, caller: &Caller, from: &str, to: &str) -> Answer<()> {
        if let Err(error) = self.own("no page can be renamed here") {
            return Answer::refuse(error);
        }
        let name = self.path(from.rsplit('/').next().unwrap_or(from));
        let target = from.strip_suffix(&name).and_then(|above| to.strip_prefix(above)).map(str::to_owned);
        let (Some(target), Some(context)) = (target, self.recall.parts.context.upgrade()) else {
            return Answer::refuse(Error::new(Code::Os(libc::EXDEV), "a page is renamed within its own wiki"));
        };
        let (agent, caller) = (self.recall.parts.agent.clone(), caller.clone());
        Answer::soon(async move {
            let arguments = json!({"name": name, "to": target});
            // `mv` takes EINVAL for a directory that is moved into itself.
            let told = |error: &Error| match error.code {
                Code::InvalidPayload => acheron_vfs::not_permitted(error.message.clone()),
                _ => error.clone(),
            };
            let job =
                context.call(&caller, &agent, "recall", "rename", arguments).await.map_err(|error| told(&error))?;
            match job.end().await.outcome.as_deref() {
                Some(Err(error)) => Err(told(error)),
                _ => Ok(()),
            }
        })
    }

    fn remove(&self, _caller: &Caller, name: &str) -> Answer<()> {
        let path = self.path(name);
        self.changed("no page can be removed here", move |wiki| wiki.remove(&path))
    }
}

impl WikiDir {
    /// The wiki, if this is the directory where it is changed.
    fn own(&self, refusal: &str) -> Result<&Arc<super::Wiki>> {
        match self.view {
            WikiListing::Nodes => self.recall.wiki(),
            _ => Err(acheron_vfs::not_permitted(format!("{refusal}: that is done in nodes/"))),
        }
    }

    /// A change of the wiki, off the thread that asked: it must reach the disk.
    fn changed(&self, refusal: &str, change: impl FnOnce(&super::Wiki) -> Result<()> + Send + 'static) -> Answer<()> {
        match self.own(refusal) {
            Ok(wiki) => {
                let wiki = wiki.clone();
                Answer::soon(blocking(move || change(&wiki)))
            }
            Err(error) => Answer::refuse(error),
        }
    }
}

struct LinkTarget(String);

impl Link for LinkTarget {
    fn target(&self, _caller: &Caller) -> Result<String> {
        Ok(self.0.clone())
    }
}

/// The pages that changed last, the newest first.
fn recent(recall: &Arc<RecallState>) -> VirtualDir {
    let named = |recall: &RecallState| -> Vec<(String, String)> {
        let Ok(wiki) = recall.wiki() else { return Vec::new() };
        let index = wiki.index();
        let mut pages: Vec<_> = index.pages().filter(|page| page.class == Class::Node).collect();
        pages.sort_by(|a, b| b.modified_ms.cmp(&a.modified_ms).then_with(|| a.path.cmp(&b.path)));
        let named = pages.iter().take(RECENT).enumerate();
        named.map(|(number, page)| (format!("{:03}-{}.md", number + 1, page.title()), page.path.to_string())).collect()
    };
    let (listed, found) = (recall.clone(), recall.clone());
    VirtualDir::new(
        move || named(&listed).into_iter().map(|(name, _)| name).collect(),
        move |name| {
            let path = named(&found).into_iter().find(|(other, _)| other == name)?.1;
            Some(Node::link(LinkTarget(format!("../../nodes/{path}"))))
        },
    )
    .slow()
}

fn page(recall: &Arc<RecallState>, path: &str) -> Node {
    Node::file(Item::new(Arc::new(PageFile { recall: recall.clone(), path: path.to_owned() })))
}

/// One page, read and written whole.
struct PageFile {
    recall: Arc<RecallState>,
    path: String,
}

impl VersionStore for PageFile {
    fn has_quick_stat(&self) -> bool {
        false
    }

    fn stat(&self) -> Stat {
        let known = self.recall.wiki().and_then(|wiki| wiki.stat(&self.path));
        known.map_or(Stat { size: 0, modified: STARTED }, |(size, ms)| Stat { size, modified: time(ms) })
    }

    fn latest(&self) -> Answer<Bytes> {
        let (recall, path) = (self.recall.clone(), self.path.clone());
        Answer::soon(blocking(move || Ok(recall.wiki()?.bytes(&path)?.into())))
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        check_path(&self.path)
    }

    /// What is known to be wrong while it is written is refused then: a shell does not hear what is refused at the close.
    fn check(&self, _caller: &Caller, draft: &[u8], new: Range<usize>) -> Result<()> {
        check_part(&draft[new.clone()], new.start == 0)?;
        // A long page, or one that comes in small pieces, is looked at when it is whole: this must not take long.
        let whole = draft.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &draft[..end]);
        if new.len() < PIECE || whole.len() > LOOKED_AT {
            return Ok(());
        }
        std::str::from_utf8(whole).map_or(Ok(()), |text| self.recall.check_links(&self.path, text))
    }

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        let (recall, path) = (self.recall.clone(), self.path.clone());
        Answer::soon(blocking(move || recall.write_page(&path, &bytes)))
    }

    fn limit(&self) -> usize {
        usize::try_from(PAGE).unwrap_or(usize::MAX)
    }
}

/// The error for a conversation that does not exist.
pub(super) fn no_such(id: &str) -> Error {
    Error::not_found(format!("there is no conversation {id}"))
}
