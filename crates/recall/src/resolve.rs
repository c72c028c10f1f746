//! From what a model calls a page to the page. Looks at the index alone, so nothing outside can be meant by any name.

use std::sync::Arc;

use crate::index::{Index, Page};
use crate::page::{Class, title};

/// Whether transcripts and jobs, which are hidden from models, may be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Nodes,
    Raw,
}

#[derive(Clone, Debug)]
pub struct Found {
    pub page: Arc<Page>,
    /// The part that was asked for, where one was.
    pub heading: Option<String>,
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    Empty,
    NotFound,
    Ambiguous(Vec<String>),
    Denied(&'static str),
    /// It is there, and is not text.
    Unreadable,
    /// It is there, and longer than a page may be.
    TooLong,
}

impl Miss {
    pub fn code(&self) -> &'static str {
        match self {
            Miss::Empty => "empty",
            Miss::NotFound => "not_found",
            Miss::Ambiguous(_) => "ambiguous",
            Miss::Denied(_) => "denied",
            Miss::Unreadable => "unreadable",
            Miss::TooLong => "too_long",
        }
    }
}

/// The possible meanings of a name, the most literal first: a page may be called `C#`.
pub fn spellings(spoken: &str) -> Vec<&str> {
    let whole = unbracketed(spoken);
    let plain = whole.split('|').next().unwrap_or(whole);
    let bare = plain.split('#').next().unwrap_or(plain);
    let mut all = vec![whole, plain.trim(), bare.trim()];
    all.dedup();
    all
}

fn unbracketed(spoken: &str) -> &str {
    let spoken = spoken.trim();
    spoken.strip_prefix("[[").and_then(|inner| inner.strip_suffix("]]")).map_or(spoken, str::trim)
}

impl Index {
    pub fn resolve(&self, spoken: &str, access: Access) -> Result<Found, Miss> {
        let all = spellings(spoken);
        let mut miss = Miss::Empty;
        for (number, name) in all.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            match self.named(name, access) {
                Ok(page) => {
                    let rest =
                        all[number.saturating_sub(1)].strip_prefix(name).and_then(|rest| rest.trim().strip_prefix('#'));
                    let heading = rest.map(|heading| heading.trim().to_owned()).filter(|heading| !heading.is_empty());
                    return Ok(Found { page: page.clone(), heading });
                }
                Err(Miss::NotFound) => miss = Miss::NotFound,
                Err(other) => return Err(other),
            }
        }
        Err(miss)
    }

    fn named(&self, name: &str, access: Access) -> Result<&Arc<Page>, Miss> {
        if name.contains('\0') {
            return Err(Miss::Denied("a name holds no NUL"));
        }
        if name.contains('/') || name.ends_with(".md") || name == ".." {
            match self.at(name, access) {
                Err(Miss::NotFound) if !name.contains('/') => self.called(title(name), access),
                found => found,
            }
        } else {
            self.called(name, access)
        }
    }

    /// The page at a path below the wiki.
    fn at(&self, name: &str, access: Access) -> Result<&Arc<Page>, Miss> {
        let path = path_of(name)?;
        if Class::of(&path).excluded() && access == Access::Nodes {
            return Err(Miss::Denied("transcripts and jobs are not recalled"));
        }
        if let Some(page) = self.page(&path) {
            return Ok(page);
        }
        self.only(self.at_folded(&path), |page| access == Access::Raw || !page.class.excluded())
    }

    /// The page of a title.
    fn called(&self, name: &str, access: Access) -> Result<&Arc<Page>, Miss> {
        let visible = |page: &Page| access == Access::Raw || matches!(page.class, Class::Index | Class::Node);
        match self.only(self.titled(name), visible) {
            Err(Miss::NotFound) => match self.only(self.titled_folded(name), visible) {
                Err(Miss::NotFound) => self.only(self.also_named(name), visible),
                found => found,
            },
            found => found,
        }
    }

    fn only<'a>(
        &'a self,
        paths: impl Iterator<Item = &'a Arc<str>>,
        visible: impl Fn(&Page) -> bool,
    ) -> Result<&'a Arc<Page>, Miss> {
        let found: Vec<_> = paths.filter_map(|path| self.page(path)).filter(|page| visible(page)).collect();
        match found[..] {
            [] => Err(Miss::NotFound),
            [page] => Ok(page),
            _ => Err(Miss::Ambiguous(found.iter().map(|page| page.path.to_string()).collect())),
        }
    }
}

/// The path that a name with a slash in it, or one that ends in `.md`, is for. The ending is added, never replaced.
pub fn path_of(name: &str) -> Result<String, Miss> {
    if name.contains('\0') {
        return Err(Miss::Denied("a name holds no NUL"));
    }
    if name.starts_with('/') {
        return Err(Miss::Denied("paths begin below the wiki"));
    }
    if name.split('/').any(|part| part == "..") {
        return Err(Miss::Denied("paths do not climb"));
    }
    let parts: Vec<&str> = name.split('/').filter(|part| *part != ".").collect();
    if parts.iter().any(|part| part.is_empty()) || parts.last().is_none_or(|last| *last == ".md") {
        return Err(Miss::NotFound);
    }
    let path = parts.join("/");
    Ok(if path.ends_with(".md") { path } else { format!("{path}.md") })
}

#[cfg(test)]
mod tests;
