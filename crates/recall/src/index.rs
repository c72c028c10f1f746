//! All that is known of a wiki without looking at the disk: names, links, sizes.
//!
//! Kept current page by page, so that finding something never walks a directory. The words of the pages are not here: there are
//! as many as the pages are long, and whoever has the pages has them on its disk. Knows nothing of files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::links::{LinkList, links};
use crate::page::{Class, body, fold, other_names, title};
use crate::resolve::spellings;
use acheron_base::{tokens, words};

/// How much is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    Known,
    /// Its text was not looked at yet.
    Unread,
    NotText,
    TooLong,
}

impl PageState {
    /// Why nothing is known of its text; nothing where it is, or will be.
    pub fn fault(self) -> Option<&'static str> {
        match self {
            PageState::Known | PageState::Unread => None,
            PageState::NotText => Some("is not UTF-8 text"),
            PageState::TooLong => Some("is longer than the 1 MiB that a page may have: split it"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    pub path: Arc<str>,
    pub class: Class,
    pub bytes: u64,
    pub tokens: u64,
    /// How many words its text has.
    pub words: u32,
    pub modified_ms: u64,
    pub state: PageState,
    /// Other names than that of its file: its first heading, and the `aliases` of its front matter.
    pub names: Vec<String>,
    pub links: LinkList,
}

impl Page {
    /// Reads a page.
    pub fn of(path: &str, text: &str, bytes: u64, modified_ms: u64) -> Page {
        let inner = body(text);
        let mut count = 0;
        words::each_word(inner, |_| count += 1);
        let links = LinkList::of(&links(path, text));
        let known = Page::unread(path, bytes, modified_ms);
        let (tokens, names) = (tokens::estimate(inner), other_names(path, text));
        Page { tokens, words: count, state: PageState::Known, names, links, ..known }
    }

    /// A page of which only the name is known.
    pub fn unread(path: &str, bytes: u64, modified_ms: u64) -> Page {
        let (class, path) = (Class::of(path), Arc::from(path));
        let (state, names, links) = (PageState::Unread, Vec::new(), LinkList::default());
        Page { path, class, bytes, tokens: 0, words: 0, modified_ms, state, names, links }
    }

    pub fn title(&self) -> &str {
        title(&self.path)
    }
}

/// Paths by a folded name, sorted.
#[derive(Clone, Default)]
struct PathsByName(HashMap<Box<str>, Vec<Arc<str>>>);

impl PathsByName {
    fn add(&mut self, name: String, path: &Arc<str>) {
        let paths = self.0.entry(name.into_boxed_str()).or_default();
        if let Err(place) = paths.binary_search(path) {
            paths.insert(place, path.clone());
        }
    }

    fn take(&mut self, name: &str, path: &str) {
        if let Some(paths) = self.0.get_mut(name) {
            paths.retain(|it| &**it != path);
            if paths.is_empty() {
                self.0.remove(name);
            }
        }
    }

    fn get(&self, name: &str) -> std::slice::Iter<'_, Arc<str>> {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default().iter()
    }
}

#[derive(Clone, Default)]
pub struct Index {
    pages: BTreeMap<Arc<str>, Arc<Page>>,
    dirs: BTreeSet<String>,
    /// By the name of the file.
    titles: PathsByName,
    /// By heading and alias.
    names: PathsByName,
    /// By folded title: the pages with a link that may mean it.
    mentions: PathsByName,
    nodes: usize,
    unread: usize,
    words: u64,
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
            if !self.dirs.contains(dir) {
                self.dirs.insert(dir.to_owned());
            }
            above = dir;
        }
        self.titles.add(fold(page.title()), path);
        page.names.iter().for_each(|name| self.names.add(fold(name), path));
        for key in keys(&page) {
            self.mentions.add(key, path);
        }
        self.nodes += usize::from(page.class == Class::Node);
        self.unread += usize::from(page.state == PageState::Unread);
        self.words += u64::from(page.words);
        self.generation += 1;
        self.pages.insert(path.clone(), page);
    }

    /// Takes a page away; says whether it was there.
    pub fn remove(&mut self, path: &str) -> bool {
        let Some(page) = self.pages.remove(path) else { return false };
        self.titles.take(&fold(page.title()), path);
        page.names.iter().for_each(|name| self.names.take(&fold(name), path));
        for key in keys(&page) {
            self.mentions.take(&key, path);
        }
        self.nodes -= usize::from(page.class == Class::Node);
        self.unread -= usize::from(page.state == PageState::Unread);
        self.words -= u64::from(page.words);
        self.generation += 1;
        true
    }

    pub fn put_dir(&mut self, dir: &str) {
        self.dirs.insert(dir.to_owned());
    }

    /// Forgets the directories below one, but for those that `kept` says, and those with pages.
    pub fn keep_dirs(&mut self, dir: &str, kept: impl Fn(&str) -> bool) {
        let inside = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let pages = &self.pages;
        let has_pages = |it: &str| {
            let below = format!("{it}/");
            pages.range(Arc::<str>::from(below.as_str())..).next().is_some_and(|(path, _)| path.starts_with(&below))
        };
        self.dirs.retain(|it| !it.starts_with(&inside) || kept(it) || has_pages(it));
    }

    /// Forgets a directory and all that is below it; gives the pages that were there.
    pub fn remove_below(&mut self, dir: &str) -> Vec<Arc<str>> {
        let gone: Vec<Arc<str>> = self.below(dir).map(|page| page.path.clone()).collect();
        for path in &gone {
            self.remove(path);
        }
        let inside = format!("{dir}/");
        self.dirs.retain(|it| !dir.is_empty() && it != dir && !it.starts_with(&inside));
        gone
    }

    pub fn page(&self, path: &str) -> Option<&Arc<Page>> {
        self.pages.get(path)
    }

    pub fn pages(&self) -> impl Iterator<Item = &Arc<Page>> {
        self.pages.values()
    }

    /// The pages in a directory and below it.
    pub fn below(&self, dir: &str) -> impl Iterator<Item = &Arc<Page>> {
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
        self.titled_folded(title).filter(move |path| crate::page::title(path) == title)
    }

    /// Pages of this title but for case and composition.
    pub(crate) fn titled_folded(&self, title: &str) -> impl Iterator<Item = &Arc<str>> {
        self.titles.get(&fold(title))
    }

    /// Pages with this heading or alias.
    pub(crate) fn also_named(&self, name: &str) -> impl Iterator<Item = &Arc<str>> {
        self.names.get(&fold(name))
    }

    pub(crate) fn at_folded(&self, path: &str) -> impl Iterator<Item = &Arc<str>> {
        let wanted = fold(path);
        self.titled_folded(title(path)).filter(move |path| fold(path) == wanted)
    }

    /// Pages with a link that may mean this page, sorted.
    pub(crate) fn mentioning(&self, page: &Page) -> Vec<&Arc<Page>> {
        let names = std::iter::once(page.title()).chain(page.names.iter().map(String::as_str));
        let paths: BTreeSet<&Arc<str>> = names.flat_map(|name| self.mentions.get(&fold(title(name)))).collect();
        paths.into_iter().filter_map(|path| self.pages.get(path)).collect()
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

    /// How many pages were not looked into yet.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// How many words all pages have.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// Rises with every change.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

/// Under which titles the links of a page are to be found again.
fn keys(page: &Page) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for link in page.links.iter() {
        keys.extend(spellings(link.target).into_iter().map(|target| fold(title(target.trim()))));
    }
    keys
}

#[cfg(test)]
pub(crate) mod tests;
