//! All that is known of a wiki without looking at the disk: titles, paths, links, sizes, words.
//!
//! Kept current page by page, so that finding something never walks a directory. Knows nothing of files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::links::{Link, links};
use crate::page::{Class, body, fold, title};
use crate::resolve::spellings;
use crate::words::{counted, words};
use acheron_base::tokens;

#[derive(Debug)]
pub struct Page {
    pub path: Arc<str>,
    pub class: Class,
    pub bytes: u64,
    pub tokens: u64,
    pub modified_ms: u64,
    pub links: Vec<Link>,
    /// Not text, or too long to be looked into: known by its name alone.
    pub opaque: bool,
    words: HashMap<String, u32>,
}

impl Page {
    /// Reads a page; `text` is `None` if it cannot be read.
    pub fn of(path: &str, text: Option<&str>, bytes: u64, modified_ms: u64) -> Page {
        let class = Class::of(path);
        let inner = body(text.unwrap_or_default());
        let links = links(path, text.unwrap_or_default());
        let (path, opaque) = (Arc::from(path), text.is_none());
        Page { path, class, bytes, tokens: tokens::estimate(inner), modified_ms, links, opaque, words: counted(inner) }
    }

    pub fn title(&self) -> &str {
        title(&self.path)
    }
}

type Paths = BTreeSet<Arc<str>>;

#[derive(Default)]
pub struct Index {
    pages: BTreeMap<Arc<str>, Arc<Page>>,
    dirs: BTreeSet<String>,
    titles: HashMap<String, Paths>,
    folded: HashMap<String, Paths>,
    folded_paths: HashMap<String, Paths>,
    /// By folded title: the pages with a link that may mean it.
    mentions: HashMap<String, Paths>,
    words: HashMap<String, HashMap<Arc<str>, u32>>,
    title_words: HashMap<String, Paths>,
    nodes: usize,
    generation: u64,
}

impl Index {
    /// Adds a page, or replaces it.
    pub fn put(&mut self, page: Page) {
        self.remove(&page.path);
        let page = Arc::new(page);
        let path = &page.path;
        let mut above: &str = path;
        while let Some((dir, _)) = above.rsplit_once('/') {
            self.dirs.insert(dir.to_owned());
            above = dir;
        }
        self.titles.entry(page.title().to_owned()).or_default().insert(path.clone());
        self.folded.entry(fold(page.title())).or_default().insert(path.clone());
        self.folded_paths.entry(fold(path)).or_default().insert(path.clone());
        for key in keys(&page) {
            self.mentions.entry(key).or_default().insert(path.clone());
        }
        for (word, count) in &page.words {
            self.words.entry(word.clone()).or_default().insert(path.clone(), *count);
        }
        for word in words(page.title()) {
            self.title_words.entry(word).or_default().insert(path.clone());
        }
        self.nodes += usize::from(page.class == Class::Node);
        self.generation += 1;
        self.pages.insert(path.clone(), page);
    }

    /// Takes a page away; says whether it was there.
    pub fn remove(&mut self, path: &str) -> bool {
        let Some(page) = self.pages.remove(path) else { return false };
        take(&mut self.titles, page.title(), path);
        take(&mut self.folded, &fold(page.title()), path);
        take(&mut self.folded_paths, &fold(path), path);
        for key in keys(&page) {
            take(&mut self.mentions, &key, path);
        }
        for word in page.words.keys() {
            if let Some(pages) = self.words.get_mut(word) {
                pages.remove(path);
                if pages.is_empty() {
                    self.words.remove(word);
                }
            }
        }
        for word in words(page.title()) {
            take(&mut self.title_words, &word, path);
        }
        self.nodes -= usize::from(page.class == Class::Node);
        self.generation += 1;
        true
    }

    pub fn put_dir(&mut self, dir: &str) {
        self.dirs.insert(dir.to_owned());
    }

    /// Forgets a directory and all that is below it.
    pub fn remove_below(&mut self, dir: &str) {
        let gone: Vec<Arc<str>> = self.below(dir).map(|page| page.path.clone()).collect();
        for path in gone {
            self.remove(&path);
        }
        let inside = format!("{dir}/");
        self.dirs.retain(|it| !dir.is_empty() && it != dir && !it.starts_with(&inside));
    }

    pub fn page(&self, path: &str) -> Option<&Arc<Page>> {
        self.pages.get(path)
    }

    pub fn pages(&self) -> impl Iterator<Item = &Arc<Page>> {
        self.pages.values()
    }

    fn below(&self, dir: &str) -> impl Iterator<Item = &Arc<Page>> {
        let inside = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let from: Arc<str> = Arc::from(inside.as_str());
        self.pages.range(from..).map(|(_, page)| page).take_while(move |page| page.path.starts_with(&inside))
    }

    pub fn is_dir(&self, dir: &str) -> bool {
        dir.is_empty() || self.dirs.contains(dir)
    }

    /// The names in a directory: those of directories, then those of pages.
    pub fn names(&self, dir: &str) -> (Vec<String>, Vec<String>) {
        let inside = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let child = |path: &str| path.strip_prefix(&inside).filter(|rest| !rest.contains('/')).map(str::to_owned);
        let dirs = self.dirs.range(inside.clone()..).take_while(|path| path.starts_with(&inside));
        let dirs = dirs.filter_map(|path| child(path)).collect();
        let (mut pages, mut from) = (Vec::new(), Arc::<str>::from(inside.as_str()));
        // Whole directories are jumped over: `0` comes right after the slash.
        while let Some((path, _)) = self.pages.range(from..).next().filter(|(path, _)| path.starts_with(&inside)) {
            let rest = &path[inside.len()..];
            from = match rest.split_once('/') {
                Some((dir, _)) => Arc::from(format!("{inside}{dir}0")),
                None => {
                    pages.push(rest.to_owned());
                    Arc::from(format!("{path}\0"))
                }
            };
        }
        (dirs, pages)
    }

    /// Pages of exactly this title.
    pub(crate) fn titled(&self, title: &str) -> impl Iterator<Item = &Arc<str>> {
        self.titles.get(title).into_iter().flatten()
    }

    /// Pages of this title but for case and composition.
    pub(crate) fn titled_folded(&self, title: &str) -> impl Iterator<Item = &Arc<str>> {
        self.folded.get(&fold(title)).into_iter().flatten()
    }

    pub(crate) fn at_folded(&self, path: &str) -> impl Iterator<Item = &Arc<str>> {
        self.folded_paths.get(&fold(path)).into_iter().flatten()
    }

    /// Pages with a link that may mean this title.
    pub(crate) fn mentioning(&self, title: &str) -> impl Iterator<Item = &Arc<Page>> {
        self.mentions.get(&fold(title)).into_iter().flatten().filter_map(|path| self.pages.get(path))
    }

    /// The pages that have a word, and how often.
    pub(crate) fn having(&self, word: &str) -> impl Iterator<Item = (&Arc<Page>, u32)> {
        self.words.get(word).into_iter().flatten().filter_map(|(path, count)| Some((self.pages.get(path)?, *count)))
    }

    /// The pages that have a word in their title.
    pub(crate) fn titled_with(&self, word: &str) -> impl Iterator<Item = &Arc<Page>> {
        self.title_words.get(word).into_iter().flatten().filter_map(|path| self.pages.get(path))
    }

    pub fn len(&self) -> usize {
        self.pages.len()
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether there is anything to recall beside the entry page.
    pub fn has_memory(&self) -> bool {
        self.nodes > 0
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Rises with every change.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

/// Under which titles the links of a page are to be found again.
fn keys(page: &Page) -> BTreeSet<String> {
    page.links.iter().flat_map(|link| spellings(&link.target)).map(|target| fold(title(target.trim()))).collect()
}

fn take(map: &mut HashMap<String, Paths>, key: &str, path: &str) {
    if let Some(paths) = map.get_mut(key) {
        paths.remove(path);
        if paths.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
