//! How pages hang together: links, backlinks, orphans, broken links, and what is to be put right.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::index::{Index, Page};
use crate::links::LinkRef;
use crate::page::{Class, ROOT};
use crate::resolve::{Access, Miss};

/// A page should fit into a glance.
const LONG: u64 = 2000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Linked {
    /// As it is written.
    pub link: String,
    pub line: usize,
    /// The page that it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why it leads nowhere: `not_found`, `ambiguous` or `denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// What an ambiguous link may mean.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Broken {
    pub page: String,
    #[serde(flatten)]
    pub link: Linked,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// `error` or `warning`.
    pub severity: &'static str,
    /// `missing_index`, `broken_link`, `unreadable`, `orphan`, `same_title` or `long_page`.
    pub code: &'static str,
    pub path: String,
    pub message: String,
}

impl Index {
    /// Where a link leads. A page may cite a transcript, although a model may not recall one.
    fn follow(&self, link: LinkRef<'_>) -> Result<Arc<Page>, Miss> {
        let found = self.resolve(link.target, Access::Nodes).or_else(|miss| match miss {
            Miss::NotFound | Miss::Denied(_) => self.resolve(link.target, Access::Raw),
            miss => Err(miss),
        });
        found.map(|found| found.page)
    }

    pub fn links_of(&self, page: &Page) -> Vec<Linked> {
        let told = |link: LinkRef<'_>| {
            let (to, code, candidates) = match self.follow(link) {
                Ok(page) => (Some(page.path.to_string()), None, Vec::new()),
                Err(Miss::Ambiguous(candidates)) => (None, Some("ambiguous"), candidates),
                Err(miss) => (None, Some(miss.code()), Vec::new()),
            };
            Linked { link: link.target.to_owned(), line: link.line, to, code, candidates }
        };
        page.links.iter().map(told).collect()
    }

    /// The pages that link to this one, sorted; a page does not hold itself up.
    pub fn backlinks(&self, page: &Page) -> Vec<String> {
        let leads = |from: &Page| from.links.iter().any(|link| self.follow(link).is_ok_and(|to| to.path == page.path));
        let from = self.mentioning(page).into_iter().filter(|from| from.path != page.path && leads(from));
        from.map(|from| from.path.to_string()).collect()
    }

    /// Nodes that no page leads to. The entry page needs none.
    pub fn orphans(&self) -> Vec<String> {
        let mut reached = HashSet::new();
        for from in self.pages().filter(|page| !page.class.excluded()) {
            let to = from.links.iter().filter_map(|link| self.follow(link).ok());
            reached.extend(to.filter(|to| to.path != from.path).map(|to| to.path.clone()));
        }
        let alone = self.pages().filter(|page| page.class == Class::Node && !reached.contains(&page.path));
        alone.map(|page| page.path.to_string()).collect()
    }

    /// Links that lead nowhere, page by page. What stands in transcripts was never meant to.
    pub fn broken(&self) -> Vec<Broken> {
        let mut found = Vec::new();
        for page in self.pages().filter(|page| !page.class.excluded()) {
            let broken = self.links_of(page).into_iter().filter(|link| link.to.is_none());
            found.extend(broken.map(|link| Broken { page: page.path.to_string(), link }));
        }
        found
    }

    /// All that is to be put right, the worst first.
    pub fn check(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut add = |severity, code, path: &str, message: String| {
            found.push(Finding { severity, code, path: path.to_owned(), message });
        };
        if self.page(ROOT).is_none() {
            add("error", "missing_index", ROOT, "there is no entry page".to_owned());
        }
        for Broken { page, link } in self.broken() {
            let why = match link.code {
                Some("ambiguous") => format!("may mean {}", link.candidates.join(" or ")),
                _ => "leads nowhere".to_owned(),
            };
            add("error", "broken_link", &page, format!("line {}: [[{}]] {why}", link.line, link.link));
        }
        let mine = || self.pages().filter(|page| !page.class.excluded());
        for page in mine() {
            if let Some(fault) = page.state.fault() {
                add("error", "unreadable", &page.path, fault.to_owned());
            }
        }
        for path in self.orphans() {
            add("warning", "orphan", &path, "no page leads here".to_owned());
        }
        for page in mine().filter(|page| page.class == Class::Node) {
            if let Err(Miss::Ambiguous(paths)) = self.resolve(page.title(), Access::Nodes) {
                add("warning", "same_title", &page.path, format!("the title is that of {} pages", paths.len()));
            }
            if page.tokens > LONG {
                add("warning", "long_page", &page.path, format!("{} tokens; {LONG} are easily read", page.tokens));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
