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
}

impl Miss {
    pub fn code(&self) -> &'static str {
        match self {
            Miss::Empty => "empty",
            Miss::NotFound => "not_found",
            Miss::Ambiguous(_) => "ambiguous",
            Miss::Denied(_) => "denied",
            Miss::Unreadable => "unreadable",
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
            Err(Miss::NotFound) => self.only(self.titled_folded(name), visible),
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::tests::of;

    fn wiki() -> Index {
        of(&[
            ("index.md", ""),
            ("semantic/Foo.md", "# Foo\n## Part\n"),
            ("semantic/v1.md", ""),
            ("semantic/v1.2.md", ""),
            ("semantic/Bar.md", ""),
            ("episodic/Bar.md", ""),
            ("semantic/Twin.md", ""),
            ("semantic/TWIN.md", ""),
            ("semantic/Cafe\u{301}.md", ""),
            ("semantic/C#.md", ""),
            ("semantic/sleep/REM.md", ""),
            ("semantic/Root.md", ""),
            ("Root.md", ""),
            ("sleep/1/job.md", ""),
            ("episodic-raw/20260101/a/1-user.md", ""),
            ("meta/system-runtime.md", ""),
        ])
    }

    fn told(spoken: &str, access: Access) -> String {
        match wiki().resolve(spoken, access) {
            Ok(Found { page, heading: None }) => page.path.to_string(),
            Ok(Found { page, heading: Some(heading) }) => format!("{} at {heading}", page.path),
            Err(Miss::Ambiguous(paths)) => format!("ambiguous: {}", paths.join(", ")),
            Err(miss) => miss.code().to_owned(),
        }
    }

    #[test]
    fn a_name_leads_to_its_page() {
        for (spoken, wanted) in [
            ("Foo", "semantic/Foo.md"),
            (" Foo ", "semantic/Foo.md"),
            ("foo", "semantic/Foo.md"), // 29
            ("Index", "index.md"),
            ("Foo.md", "semantic/Foo.md"),
            ("semantic/Foo", "semantic/Foo.md"),
            ("./semantic/Foo", "semantic/Foo.md"),
            ("semantic/Foo.md", "semantic/Foo.md"),
            ("Semantic/foo", "semantic/Foo.md"),
            ("[[Foo]]", "semantic/Foo.md"),
            ("Foo|alias", "semantic/Foo.md"), // 35
            ("[[Foo#Part|alias]]", "semantic/Foo.md at Part"),
            ("Foo#Part", "semantic/Foo.md at Part"),
            ("semantic/Foo#Part", "semantic/Foo.md at Part"),
            ("C#", "semantic/C#.md"),
            ("C##Part", "not_found"),
            ("v1.2", "semantic/v1.2.md"), // 30
            ("semantic/v1.2", "semantic/v1.2.md"),
            ("v1", "semantic/v1.md"),
            ("Bar", "ambiguous: episodic/Bar.md, semantic/Bar.md"),
            ("Bar.md", "ambiguous: episodic/Bar.md, semantic/Bar.md"),
            ("semantic/Bar", "semantic/Bar.md"),
            ("Root.md", "Root.md"),
            ("Root", "ambiguous: Root.md, semantic/Root.md"),
            ("Twin", "semantic/Twin.md"),
            ("twin", "ambiguous: semantic/TWIN.md, semantic/Twin.md"),
            ("Caf\u{e9}", "semantic/Cafe\u{301}.md"), // 36
            ("REM", "semantic/sleep/REM.md"),
            ("/semantic/Foo", "denied"), // 31
            ("../secret", "denied"),
            ("semantic/../../secret", "denied"),
            ("semantic/../semantic/Foo", "denied"),
            ("/etc/passwd", "denied"),
            ("a\0b", "denied"),
            ("a\0/b", "denied"),
            ("job", "not_found"), // 32
            ("1-user", "not_found"),
            ("sleep/1/job.md", "denied"),
            ("episodic-raw/20260101/a/1-user", "denied"),
            ("system-runtime", "not_found"),
            ("meta/system-runtime", "meta/system-runtime.md"),
            ("", "empty"),
            ("[[]]", "empty"),
            ("/", "denied"),
            ("..", "denied"),
            (".md", "not_found"),
            ("semantic/", "not_found"),
            ("nothing", "not_found"),
        ] {
            assert_eq!(told(spoken, Access::Nodes), wanted, "{spoken:?}");
        }
        assert_eq!(told("job", Access::Raw), "sleep/1/job.md");
        assert_eq!(told("episodic-raw/20260101/a/1-user", Access::Raw), "episodic-raw/20260101/a/1-user.md");
        assert_eq!(told("../job", Access::Raw), "denied");
    }

    proptest! {
        #[test]
        fn no_name_leads_out(spoken in "(\\.\\./|/|\\.|a|sleep/|Foo|\\.md|#|\\||\\[\\[|\\]\\]|\0| ){0,12}") {
            if let Ok(found) = wiki().resolve(&spoken, Access::Nodes) {
                prop_assert!(!found.page.class.excluded());
            }
            if let Ok(path) = path_of(&spoken) {
                prop_assert!(!path.starts_with('/') && path.split('/').all(|part| part != ".." && !part.is_empty()));
            }
        }
    }
}
