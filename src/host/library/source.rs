//! The global library as plain data: pages, from the program itself or from a folder.
//!
//! Knows nothing of how it is served, nor of who watches the folder.

use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use acheron_base::Result;
use acheron_base::confined_dir::{ConfinedDir, Kind};

static EMBEDDED: Dir = include_dir!("$CARGO_MANIFEST_DIR/global-library");

/// A page larger than this is no page, and is left out; so is what would make the library larger than this together.
const PAGE_LIMIT: u64 = 1 << 20;
const LIBRARY_LIMIT: u64 = 64 << 20;

/// A text of the library and where it stands: `topics/events.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryPage {
    pub path: String,
    pub text: String,
}

/// Where the pages come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibrarySource {
    Embedded,
    Folder(PathBuf),
}

impl LibrarySource {
    /// The library that the spec names; else the folder beside the host if it is a library; else the one in the program.
    pub fn choose(named: Option<&str>, here: &Path, beside: Option<PathBuf>) -> LibrarySource {
        match (named, beside) {
            (Some(folder), _) => LibrarySource::Folder(here.join(folder)),
            (None, Some(folder)) if folder.join("Index.md").is_file() => LibrarySource::Folder(folder),
            (None, _) => LibrarySource::Embedded,
        }
    }

    pub fn folder(&self) -> Option<&Path> {
        match self {
            LibrarySource::Embedded => None,
            LibrarySource::Folder(folder) => Some(folder),
        }
    }

    /// All pages, sorted by path. What is not text is left out, and so are hidden files, which editors leave behind.
    pub fn pages(&self) -> Result<Vec<LibraryPage>> {
        match self {
            LibrarySource::Embedded => Ok(embedded()),
            LibrarySource::Folder(folder) => from_folder(&ConfinedDir::open(folder)?),
        }
    }
}

/// The pages in the program.
pub fn embedded() -> Vec<LibraryPage> {
    let mut pages = Vec::new();
    let mut open = vec![&EMBEDDED];
    while let Some(dir) = open.pop() {
        open.extend(dir.dirs());
        for file in dir.files() {
            if let (Some(path), Some(text)) = (file.path().to_str(), file.contents_utf8()) {
                pages.push(LibraryPage { path: path.to_owned(), text: text.to_owned() });
            }
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    pages
}

pub(super) fn from_folder(folder: &ConfinedDir) -> Result<Vec<LibraryPage>> {
    let mut pages = Vec::new();
    let mut left = LIBRARY_LIMIT;
    for entry in folder.walk("")? {
        let hidden = entry.name.split('/').any(|name| name.starts_with('.'));
        if entry.kind != Kind::File || hidden || entry.size > PAGE_LIMIT.min(left) {
            continue;
        }
        // A page may vanish or change while the folder is read; it is then simply not there.
        if let Ok(text) = folder.read_up_to(&entry.name, PAGE_LIMIT).map(String::from_utf8)
            && let Ok(text) = text
        {
            left = left.saturating_sub(text.len() as u64);
            pages.push(LibraryPage { path: entry.name, text });
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

#[cfg(test)]
mod tests;
