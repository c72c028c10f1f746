//! Which files are not worth looking at: hidden ones, and those that `.gitignore` and `.ignore` name.
//!
//! The rules are git's own, by the `ignore` crate; the files are read through a place without links, so that a
//! pipe of that name blocks nothing and no link shows by its rules what it leads to.

use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use acheron_base::ConfinedDir;

const LARGEST: u64 = 1 << 20;

/// The rules of a directory and those above it, the nearest last.
#[derive(Default)]
pub struct Ignored {
    layers: Vec<Gitignore>,
}

impl Ignored {
    /// Takes the rules of one more directory, from the files that may be seen; returns how many to take off again.
    pub fn enter(&mut self, place: &ConfinedDir, rel: &str, seen: &dyn Fn(&str) -> bool) -> usize {
        let before = self.layers.len();
        let files: &[&str] =
            if rel.is_empty() { &[".git/info/exclude", ".gitignore", ".ignore"] } else { &[".gitignore", ".ignore"] };
        for file in files {
            let path = if rel.is_empty() { (*file).to_owned() } else { format!("{rel}/{file}") };
            if !seen(&path) {
                continue;
            }
            let Ok(bytes) = place.read_up_to(&path, LARGEST) else { continue };
            let mut builder = GitignoreBuilder::new(Path::new("/").join(rel));
            for line in String::from_utf8_lossy(&bytes).lines() {
                _ = builder.add_line(None, line); // a line that is no pattern forbids nothing, as in git
            }
            self.layers.extend(builder.build());
        }
        self.layers.len() - before
    }

    pub fn leave(&mut self, layers: usize) {
        self.layers.truncate(self.layers.len() - layers);
    }

    /// Whether something is passed over; the nearest rule that speaks of it decides.
    pub fn is(&self, rel: &str, dir: bool) -> bool {
        if rel.rsplit('/').next().is_some_and(|name| name.starts_with('.')) {
            return true;
        }
        let path = Path::new("/").join(rel);
        for layer in self.layers.iter().rev() {
            match layer.matched(&path, dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}
