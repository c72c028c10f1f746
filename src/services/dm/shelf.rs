//! Where text files are read from: a map in memory or a directory on disk, with a note of what was opened.
//!
//! The kernel reads through this and nothing else, so that its reading laws can be checked from outside.

use std::cell::RefCell;
use std::collections::BTreeMap;

use acheron_base::{Error, Result};

pub trait Shelf {
    /// The text of a file, or `None` where there is none.
    fn read(&self, path: &str) -> Result<Option<String>>;
    /// Every path, sorted.
    fn paths(&self) -> Result<Vec<String>>;
}

/// Files in memory, by path.
pub type Files = BTreeMap<String, String>;

impl Shelf for Files {
    fn read(&self, path: &str) -> Result<Option<String>> {
        Ok(self.get(path).cloned())
    }

    fn paths(&self) -> Result<Vec<String>> {
        Ok(self.keys().cloned().collect())
    }
}

/// A shelf that remembers what was taken from it.
pub struct Noted<'a> {
    shelf: &'a dyn Shelf,
    opened: RefCell<Vec<String>>,
}

impl<'a> Noted<'a> {
    pub fn new(shelf: &'a dyn Shelf) -> Self {
        Noted { shelf, opened: RefCell::default() }
    }

    pub fn opened(self) -> Vec<String> {
        self.opened.into_inner()
    }
}

impl Shelf for Noted<'_> {
    fn read(&self, path: &str) -> Result<Option<String>> {
        self.opened.borrow_mut().push(path.to_owned());
        self.shelf.read(path)
    }

    fn paths(&self) -> Result<Vec<String>> {
        self.shelf.paths()
    }
}

/// What the kernel never reads for a turn, however it is asked: hidden files and the written fiction.
pub fn hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.') || part.eq_ignore_ascii_case("writing"))
}

/// The file's text, or a sentence that names what is missing.
pub fn need(shelf: &dyn Shelf, path: &str) -> Result<String> {
    shelf.read(path)?.ok_or_else(|| Error::not_found(format!("there is no {path}")))
}
