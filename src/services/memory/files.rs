//! The files of memory: `items/<name>/{content,meta.json,versions/<n>}` and `active.json`.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::content::{Content, LIMIT};
use super::live::Slot;
use super::path::{self, Target};
use super::store::MemoryStore;
use super::tx::NewMemory;
use acheron_base::{Error, Result};
use acheron_vfs::{
    Answer, Caller, ChangeNotifier, ComputedFile, Dir, Item, Listing, MANY_NAMES, NameQuery, Node, Stat, VersionStore,
    VirtualDir, pretty,
};

/// The names that memory has beside those of every service.
pub fn files(memory: &Arc<MemoryStore>) -> Vec<(String, Node)> {
    let active = {
        let memory = memory.clone();
        ComputedFile::fetched(move |_| {
            let memory = memory.clone();
            Answer::soon(async move { Ok(pretty(&memory.active().await?)) })
        })
    };
    vec![("active.json".into(), Node::file(active)), ("items".into(), Node::dir(Items(memory.clone())))]
}

/// The directory of memories. Making one there remembers an empty note, removing one deletes it.
struct Items(Arc<MemoryStore>);

impl Dir for Items {
    fn lookup(&self, name: &str) -> Option<Node> {
        self.0.live.get(name).map(|slot| item(&self.0, slot))
    }

    fn list(&self) -> Vec<(String, Node)> {
        let found = |name: String| Some((name.clone(), self.lookup(&name)?));
        self.0.live.names().into_iter().filter_map(found).collect()
    }

    fn is_quick(&self, query: NameQuery) -> bool {
        query == NameQuery::One || self.0.live.count() <= MANY_NAMES
    }

    fn modified(&self) -> SystemTime {
        self.0.live.changed()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.0.live.notifier)
    }

    fn make_dir(&self, _caller: &Caller, name: &str) -> Answer<Node> {
        if let Err(error) = path::check(name) {
            return Answer::refuse(error);
        }
        let (memory, name, note) = (self.0.clone(), name.to_owned(), NewMemory::note(name));
        let made = self.0.commit(move |memory, commit| memory.create(commit, note, &[]));
        Answer::soon(async move {
            made.await?;
            let node = Items(memory).lookup(&name);
            node.ok_or_else(|| Error::not_found(format!("the memory {name} was deleted at once")))
        })
    }

    fn remove_dir(&self, _caller: &Caller, name: &str) -> Answer<()> {
        let target = Target::latest(name);
        Answer::soon(self.0.commit(move |memory, commit| memory.delete(commit, &target))).map(drop)
    }
}

fn item(memory: &Arc<MemoryStore>, slot: Arc<Slot>) -> Node {
    let meta = {
        let (memory, slot) = (memory.clone(), slot.clone());
        let modified = slot.clone();
        let shown = move |_: &Caller| {
            let (memory, name) = (memory.clone(), slot.name.clone());
            Answer::soon(async move { Ok(pretty(&memory.meta(name).await?)) })
        };
        ComputedFile::fetched(shown).modified_at(move || modified.modified())
    };
    let content = Item::new(Arc::new(ContentFile { memory: memory.clone(), slot: slot.clone() }));
    let listing = Listing::default().file("content", content).file("meta.json", meta);
    Node::dir(listing.dir("versions", versions(memory, slot)))
}

/// One file per version. A deletion is an empty file.
fn versions(memory: &Arc<MemoryStore>, slot: Arc<Slot>) -> VirtualDir {
    let (memory, notifier, modified) = (memory.clone(), slot.versions.clone(), slot.clone());
    let latest = {
        let slot = slot.clone();
        move || slot.now().version
    };
    let count = {
        let latest = latest.clone();
        move || usize::try_from(latest()).unwrap_or(usize::MAX)
    };
    let names = {
        let latest = latest.clone();
        move || (1..=latest()).map(|version| version.to_string()).collect()
    };
    let find = move |name: &str| {
        let version: u64 = name.parse().ok()?;
        let there = version.to_string() == name && (1..=latest()).contains(&version);
        let (memory, name) = (memory.clone(), slot.name.clone());
        there.then(|| {
            Node::file(ComputedFile::fetched(move |_| {
                let (memory, name) = (memory.clone(), name.clone());
                Answer::soon(async move { memory.content(name, version).await })
            }))
        })
    };
    VirtualDir::new(names, find).counted(count).notifying(notifier).modified_at(move || modified.modified())
}

/// `content`: the latest version, and the place where the next one is written.
struct ContentFile {
    memory: Arc<MemoryStore>,
    slot: Arc<Slot>,
}

impl VersionStore for ContentFile {
    fn stat(&self) -> Stat {
        Stat { size: self.slot.now().bytes, modified: self.slot.modified() }
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        Some(&self.slot.content)
    }

    fn latest(&self) -> Answer<Bytes> {
        let (memory, now) = (self.memory.clone(), self.slot.now());
        Answer::soon(async move { memory.content(now.name, now.version).await })
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        match self.slot.now().write_protected {
            true => Err(Error::forbidden(format!("the memory {} is write-protected", self.slot.name))),
            false => Ok(()),
        }
    }

    fn check(&self, _caller: &Caller, draft: &[u8], new: Range<usize>) -> Result<()> {
        Content::check_part(&draft[new.clone()], new.start)
    }

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        let name = self.slot.name.clone();
        Answer::soon(self.memory.commit(move |memory, commit| memory.write(commit, &name, &bytes)))
    }

    fn limit(&self) -> usize {
        LIMIT
    }
}
