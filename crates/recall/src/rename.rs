//! Pages whose links are written anew, because the page that they lead to has another path.

use crate::index::{Index, Page};
use crate::links::{Link, LinkForm, links, written_path};
use crate::page::{fold, title};
use crate::resolve::Access;

/// A page that takes another path.
pub struct Renaming<'a> {
    index: &'a Index,
    page: &'a Page,
    to: &'a str,
    /// Whether no other page has the new title.
    alone: bool,
}

impl<'a> Renaming<'a> {
    pub fn new(index: &'a Index, page: &'a Page, to: &'a str) -> Renaming<'a> {
        let alone = index.titled_folded(title(to)).all(|path| *path == page.path);
        Renaming { index, page, to, alone }
    }

    /// The text of a page at `path` with links that lead to the new path; nothing if they all do as they are. The page itself
    /// is given at its old path: links that begin where it is begin elsewhere now.
    pub fn text(&self, path: &str, text: &str) -> Option<String> {
        let (mut out, mut end, now) = (String::new(), 0, if path == &*self.page.path { self.to } else { path });
        for link in links(path, text) {
            let Some(written) = self.written(now, &text[link.at.clone()], &link) else { continue };
            if written != text[link.at.clone()] {
                out.push_str(&text[end..link.at.start]);
                out.push_str(&written);
                end = link.at.end;
            }
        }
        out.push_str(&text[end..]);
        (end > 0).then_some(out)
    }

    fn written(&self, now: &str, before: &str, link: &Link) -> Option<String> {
        let leads = self.index.resolve(&link.target, Access::Nodes).ok().map(|found| found.page);
        let mine = leads.as_ref().is_some_and(|page| page.path == self.page.path);
        match link.form {
            LinkForm::Wiki if mine => self.name(before),
            LinkForm::Wiki => None,
            form if mine => Some(written_path(now, self.to, before, form)),
            // The page itself has moved, and its links with it.
            form if now == self.to && !before.starts_with('/') => {
                let path = link.target.strip_prefix("./")?.split('#').next()?;
                (!path.starts_with("..")).then(|| written_path(now, path, before, form))
            }
            _ => None,
        }
    }

    /// `[[Name#heading|alias]]` with the new name; nothing if it is a heading or an alias, which the page keeps.
    fn name(&self, before: &str) -> Option<String> {
        let whole = self.index.titled_folded(before).any(|path| *path == self.page.path);
        let end = if whole { before.len() } else { before.find(['#', '|']).unwrap_or(before.len()) };
        let (name, rest) = before.split_at(end);
        let bare = name.trim();
        let is_title = fold(title(bare)) == fold(self.page.title());
        if !is_title && self.page.names.iter().any(|other| fold(other) == fold(bare)) {
            return None;
        }
        let ending = if bare.ends_with(".md") { ".md" } else { "" };
        let path = self.to.strip_suffix(".md").unwrap_or(self.to);
        let new = if bare.contains('/') || !self.alone { path } else { title(self.to) };
        Some(format!("{new}{ending}{rest}"))
    }
}

#[cfg(test)]
mod tests;
