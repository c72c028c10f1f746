//! The folder of a wiki, and the index that is kept of it.
//!
//! Names are known as soon as it is open; pages that changed since they were last read are read by a thread of their own.
//!
//! Everything is read and written beneath one open directory. Links are not pages, wherever they lead, and hidden names
//! belong to other programs. Calls touch the disk; call from where blocking is allowed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::page_index::PageIndex;
use super::progress::Progress;
use acheron_base::confined_dir::{ConfinedDir, Kind};
use acheron_base::{Clock, Code, Error, Result, if_exists};
use acheron_recall::graph::Broken;
use acheron_recall::index::Index;
use acheron_recall::page::{FOLDERS, LONGEST_PAGE, ROOT, body, check_path, check_text, section};
use acheron_recall::resolve::{Access, Found, Miss, path_of, spellings};
use acheron_recall::turn::Looked;

/// The longest page.
pub const PAGE: u64 = LONGEST_PAGE as u64;
const FIRST: &str = "# Index\n\nWhat is known, by subject. Link pages as [[Title]].\n";

/// Called with whether the folder is there, when that changes.
pub type WikiListener = Box<dyn Fn(bool) + Send + Sync>;

pub struct Wiki {
    /// Another one when the folder was replaced.
    place: RwLock<Arc<ConfinedDir>>,
    /// Whether something else, or nothing, is where the folder was.
    lost: AtomicBool,
    told: Mutex<Vec<WikiListener>>,
    pub(super) index: RwLock<Index>,
    pub(super) disk: PageIndex,
    pub(super) clock: Clock,
    /// Held while a page is read and what was read is put into the index: the last one to read is the last one to put.
    pub(super) changing: Mutex<()>,
    /// Held from looking at pages until they are changed, by whoever changes more than one or goes by what they were.
    pub(super) writing: Mutex<()>,
    pub progress: Progress,
    report: Mutex<Option<Arc<LinkReport>>>,
}

/// Findings that need a look at every page, cached until one changes.
pub struct LinkReport {
    generation: u64,
    pub orphans: Vec<String>,
    pub broken: Vec<Broken>,
}

impl Wiki {
    /// Opens a folder, whose index is in the file `index`. An empty one gets an entry page and the usual folders.
    pub fn open(folder: ConfinedDir, index: &Path, clock: &Clock) -> Result<Arc<Wiki>> {
        let wiki = Arc::new(Wiki {
            place: RwLock::new(Arc::new(folder.without_links())),
            lost: AtomicBool::new(false),
            told: Mutex::default(),
            index: RwLock::default(),
            disk: PageIndex::open(index)?,
            clock: clock.clone(),
            changing: Mutex::default(),
            writing: Mutex::default(),
            progress: Progress::default(),
            report: Mutex::default(),
        });
        wiki.furnish()?;
        wiki.begin_reading()?;
        Ok(wiki)
    }

    /// Gives an empty folder an entry page and the usual folders.
    fn furnish(&self) -> Result<()> {
        let place = self.place();
        if place.names("")?.is_empty() {
            for folder in FOLDERS {
                place.make_dir(folder)?;
            }
            place.write(ROOT, FIRST.as_bytes())?;
        }
        Ok(())
    }

    /// The folder as it was last opened.
    pub fn place(&self) -> Arc<ConfinedDir> {
        self.place.read().clone()
    }

    /// Has `listener` told when the folder is lost and when it is found again.
    pub fn listen(&self, listener: WikiListener) {
        self.told.lock().push(listener);
    }

    /// Whether the folder is still where it was. Notes it, and tells of it, if that is new.
    pub fn is_in_place(&self) -> bool {
        let is_there = self.place().is_at_its_path();
        if self.lost.swap(!is_there, Ordering::AcqRel) == is_there {
            self.told.lock().iter().for_each(|listener| listener(is_there));
        }
        is_there
    }

    /// Whether the folder was not where it was when that was last looked at. Waits for nothing.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Goes on with the folder that is now where the lost one was.
    pub fn replace_place(&self, folder: ConfinedDir) -> Result<()> {
        *self.place.write() = Arc::new(folder.without_links());
        self.furnish()?;
        self.rescan("");
        self.is_in_place();
        Ok(())
    }

    pub fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read()
    }

    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        let mut index = self.index.write();
        let changed = change(&mut index);
        self.progress.count(index.len());
        changed
    }

    /// What is wrong with links; nothing as long as pages are being read, because links may mean what is not known yet.
    pub fn report(&self) -> Arc<LinkReport> {
        let index = self.index();
        if index.unread() > 0 {
            return Arc::new(LinkReport { generation: 0, orphans: Vec::new(), broken: Vec::new() });
        }
        let mut kept = self.report.lock();
        match &*kept {
            Some(report) if report.generation == index.generation() => report.clone(),
            _ => {
                let fresh =
                    LinkReport { generation: index.generation(), orphans: index.orphans(), broken: index.broken() };
                kept.insert(Arc::new(fresh)).clone()
            }
        }
    }

    /// The entry page, without its front matter; empty if there is none.
    pub fn root(&self) -> String {
        self.text(ROOT).map(|text| body(&text).trim().to_owned()).unwrap_or_default()
    }

    /// The page to which a name leads.
    pub fn find(&self, name: &str, access: Access) -> Result<Found, Miss> {
        let found = self.index().resolve(name, access);
        let found = match found {
            Err(Miss::NotFound) => self.beyond(name, access),
            found => found,
        };
        match found {
            Err(Miss::NotFound) if self.progress.is_running() => {
                self.progress.wait(); // it may be the heading of a page that was not read yet
                self.index().resolve(name, access)
            }
            found => found,
        }
    }

    /// A path that the index does not have: a link, which is refused, or a file so new that the watcher has not reported it.
    fn beyond(&self, name: &str, access: Access) -> Result<Found, Miss> {
        for name in spellings(name).into_iter().filter(|name| name.contains('/') || name.ends_with(".md")) {
            let Ok(path) = path_of(name) else { continue };
            if self.place().has_link(&path) {
                return Err(Miss::Denied("it is a link, and links are not followed"));
            }
            if self.place().stat(&path).is_ok_and(|entry| entry.kind == Kind::File) {
                self.refresh(&path);
            }
        }
        self.index().resolve(name, access)
    }

    /// The text that a model is shown for a name.
    pub fn look(&self, name: &str, access: Access) -> Looked {
        let Found { page, heading } = match self.find(name, access) {
            Ok(found) => found,
            Err(miss) => return Looked::Missed(miss),
        };
        match self.text(&page.path) {
            Ok(text) => {
                let whole = body(&text);
                let (part, missing) = match heading {
                    Some(heading) if section(whole, &heading).is_none() => (None, Some(heading)),
                    heading => (heading, None),
                };
                let version = version(&text);
                let text = part.as_deref().and_then(|part| section(whole, part)).unwrap_or(whole).to_owned();
                Looked::Page {
                    path: page.path.to_string(),
                    title: page.title().to_owned(),
                    part,
                    missing,
                    text,
                    version,
                }
            }
            Err(error) => Looked::Missed(match error.code {
                Code::NotFound => Miss::NotFound,
                Code::Forbidden => Miss::Denied("it leads out of the wiki"),
                Code::TooLarge => Miss::TooLong,
                _ => Miss::Unreadable,
            }),
        }
    }

    pub fn text(&self, path: &str) -> Result<String> {
        String::from_utf8(self.bytes(path)?).map_err(|_| Error::invalid(format!("{path} is not UTF-8 text")))
    }

    pub fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        self.no_link(path)?;
        self.place().read_up_to(path, PAGE)
    }

    /// Size and time as the disk has them now.
    pub fn stat(&self, path: &str) -> Result<(u64, u64)> {
        self.place().stat(path).map(|entry| (entry.size, entry.modified_ms))
    }

    /// Makes a page, or its next version.
    pub fn write(&self, path: &str, bytes: &[u8]) -> Result<()> {
        check_path(path)?;
        check_text(bytes)?;
        self.no_link(path)?;
        let _writing = self.writing.lock();
        self.place().write(path, bytes)?;
        self.refresh(path);
        Ok(())
    }

    /// Adds a message to a transcript; whether it was not there yet. One that is there stays what it was.
    pub fn put_away(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        self.no_link(path)?;
        match if_exists(self.place().read_up_to(path, PAGE))? {
            Some(there) if there == bytes => return Ok(false),
            Some(_) => return Err(Error::conflict(format!("{path} exists already, with other content"))),
            None => {}
        }
        if let Some((dir, _)) = path.rsplit_once('/') {
            self.place().make_dir(dir)?;
        }
        self.place().write(path, bytes)?;
        self.refresh(path);
        Ok(true)
    }

    pub fn remove(&self, path: &str) -> Result<()> {
        check_path(path)?;
        let _writing = self.writing.lock();
        self.place().remove(path)?;
        self.forget(path);
        Ok(())
    }

    pub fn make_dir(&self, dir: &str) -> Result<()> {
        check_path(&format!("{dir}/x.md"))?;
        self.place().make_dir(dir)?;
        self.change(|index| index.put_dir(dir));
        Ok(())
    }

    /// Removes a directory that has nothing in it.
    pub fn remove_dir(&self, dir: &str) -> Result<()> {
        check_path(&format!("{dir}/x.md"))?;
        if !self.place().names(dir)?.is_empty() {
            return Err(Error::new(Code::Os(libc::ENOTEMPTY), format!("{dir} is not empty")));
        }
        self.place().remove_dir_all(dir)?;
        self.forget(dir);
        Ok(())
    }

    pub(super) fn no_link(&self, path: &str) -> Result<()> {
        match self.place().has_link(path) {
            true => Err(Error::forbidden(format!("{path} is a link, and links are not followed"))),
            false => Ok(()),
        }
    }
}

fn version(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
