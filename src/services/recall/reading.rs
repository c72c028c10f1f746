//! Reads the pages of a wiki into its index: those that changed, a few at a time. `wiki` begins it, `watch` tells of changes.

use std::sync::{Arc, Weak};

use super::wiki::{PAGE, Wiki};
use acheron_base::confined_dir::{Entry, Kind};
use acheron_base::{Code, Result};
use acheron_recall::index::{Page, PageState};

/// How deep folders are looked into.
const DEPTH: usize = 32;
/// Pages, and bytes of their texts, that are read before they are put into the index together.
const BATCH: usize = 64;
const BATCH_BYTES: usize = 4 << 20;
/// A page that changed so shortly before it was read may have changed again since, in the same tick of the clock of its disk.
const UNSURE_MS: u64 = 2000;

/// The pages and directories of a folder.
#[derive(Default)]
struct WalkedPages {
    pages: Vec<(String, u64, u64)>,
    dirs: Vec<String>,
    /// Directories that could not be listed: what is known of them is kept.
    unlisted: Vec<String>,
}

impl Wiki {
    /// Takes what the index on the disk has, looks which pages are there, and has a thread read those that changed.
    pub(super) fn begin_reading(self: &Arc<Self>) -> Result<()> {
        let stored = self.disk.pages()?;
        self.change(|index| {
            for stored in stored {
                let mut page = stored.page;
                if page.modified_ms + UNSURE_MS >= stored.read_ms {
                    page.modified_ms = 0; // never that of the file
                }
                index.put(page);
            }
        });
        let changed = self.compare("");
        self.progress.begin(self.index().len(), changed.len());
        if changed.is_empty() {
            return Ok(());
        }
        let wiki = Arc::downgrade(self);
        std::thread::Builder::new().name("recall-index".to_owned()).spawn(move || read_all(&wiki, &changed))?;
        Ok(())
    }

    /// Looks at one path again after a report that it changed.
    pub fn refresh(&self, path: &str) {
        if path.is_empty() {
            return self.rescan("");
        }
        if path.split('/').any(|part| part.starts_with('.')) {
            return;
        }
        match self.place().stat(path).map(|entry| entry.kind) {
            Ok(Kind::Dir) => self.rescan(path),
            Ok(Kind::File) if path.ends_with(".md") => self.read_pages(&[path.to_owned()]),
            _ => self.forget(path), // nothing for a link
        }
    }

    /// Looks at everything below a directory again.
    pub fn rescan(&self, dir: &str) {
        for batch in self.compare(dir).chunks(BATCH) {
            self.read_pages(batch);
        }
    }

    /// Takes a page, or a directory with all its pages, out of the index.
    pub(super) fn forget(&self, path: &str) {
        let _changing = self.changing.lock();
        let gone = self.change(|index| match index.is_dir(path) {
            true => index.remove_below(path),
            false if index.remove(path) => vec![Arc::from(path)],
            false => Vec::new(),
        });
        self.told(self.disk.remove(gone.iter().map(|path| &**path)));
    }

    /// Compares the names below a directory with the index: those that are gone are forgotten. Gives the pages to be read.
    fn compare(&self, dir: &str) -> Vec<String> {
        let Some(walked) = self.walk(dir) else { return Vec::new() };
        let _changing = self.changing.lock();
        let mut changed = Vec::new();
        let gone = self.change(|index| {
            let there: std::collections::HashSet<&str> = walked.pages.iter().map(|it| it.0.as_str()).collect();
            let kept = |path: &str| walked.unlisted.iter().any(|dir| path.starts_with(&format!("{dir}/")));
            let below: Vec<Arc<str>> = index.below(dir).map(|page| page.path.clone()).collect();
            let gone: Vec<Arc<str>> =
                below.into_iter().filter(|path| !there.contains(&**path) && !kept(path)).collect();
            gone.iter().for_each(|path| _ = index.remove(path));
            index.keep_dirs(dir, |path| kept(path) || walked.unlisted.iter().any(|it| it == path));
            walked.dirs.iter().for_each(|dir| index.put_dir(dir));
            if !dir.is_empty() {
                index.put_dir(dir);
            }
            for (path, bytes, modified_ms) in &walked.pages {
                let known = index.page(path).is_some_and(|page| {
                    page.state != PageState::Unread && (page.bytes, page.modified_ms) == (*bytes, *modified_ms)
                });
                if !known {
                    if index.page(path).is_none() {
                        index.put(Page::unread(path, *bytes, *modified_ms));
                    }
                    changed.push(path.clone());
                }
            }
            gone
        });
        self.told(self.disk.remove(gone.iter().map(|path| &**path)));
        changed
    }

    /// Nothing if the directory itself cannot be listed: it may be out of reach for a while.
    fn walk(&self, dir: &str) -> Option<WalkedPages> {
        let mut walked = WalkedPages::default();
        let mut open = vec![(dir.to_owned(), 0)];
        while let Some((dir, depth)) = open.pop() {
            let entries = match self.place().list(&dir) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => {
                    tracing::warn!(%error, "a folder of the wiki cannot be read");
                    return None;
                }
                Err(error) if error.code == Code::NotFound => continue,
                Err(_) => {
                    walked.unlisted.push(dir);
                    continue;
                }
            };
            for Entry { name, kind, size, modified_ms } in entries {
                if name.starts_with('.') {
                    continue;
                }
                let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
                match kind {
                    Kind::Dir if depth < DEPTH => {
                        walked.dirs.push(path.clone());
                        open.push((path, depth + 1));
                    }
                    Kind::File if path.ends_with(".md") => walked.pages.push((path, size, modified_ms)),
                    _ => {}
                }
            }
        }
        Some(walked)
    }

    /// Reads pages and puts them into the index.
    fn read_pages(&self, paths: &[String]) {
        let _changing = self.changing.lock();
        let mut batch = Vec::new();
        let mut bytes = 0;
        for path in paths {
            let (page, text) = self.read_page(path);
            match page {
                Some(page) => {
                    bytes += text.len();
                    batch.push((page, text));
                }
                None => {
                    self.change(|index| index.remove(path));
                    self.told(self.disk.remove([path.as_str()]));
                }
            }
            if bytes >= BATCH_BYTES {
                self.put(std::mem::take(&mut batch));
                bytes = 0;
            }
        }
        self.put(batch);
    }

    fn put(&self, batch: Vec<(Page, String)>) {
        self.told(self.disk.put(&batch, self.clock.now_ms()));
        self.change(|index| batch.into_iter().for_each(|(page, _)| index.put(page)));
    }

    fn read_page(&self, path: &str) -> (Option<Page>, String) {
        // The time is taken before the text: a change in between is found at the next look.
        let Ok(entry) = self.place().stat(path) else { return (None, String::new()) };
        if entry.kind != Kind::File {
            return (None, String::new());
        }
        let unknown = |state| Some(Page { state, ..Page::unread(path, entry.size, entry.modified_ms) });
        if entry.size > PAGE {
            return (unknown(PageState::TooLong), String::new());
        }
        match self.text(path) {
            Ok(text) => (Some(Page::of(path, &text, entry.size, entry.modified_ms)), text),
            Err(error) if error.code == Code::NotFound => (None, String::new()),
            Err(_) => (unknown(PageState::NotText), String::new()),
        }
    }

    fn told(&self, changed: Result<()>) {
        if let Err(error) = changed {
            tracing::warn!(%error, "the index of a wiki cannot be written");
            self.progress.fail(&error);
        }
    }
}

fn read_all(wiki: &Weak<Wiki>, changed: &[String]) {
    for batch in changed.chunks(BATCH) {
        let Some(wiki) = wiki.upgrade() else { return };
        wiki.read_pages(batch);
        wiki.progress.step(batch.len());
    }
    if let Some(wiki) = wiki.upgrade() {
        wiki.progress.end();
    }
}
