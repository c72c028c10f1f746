//! Changes that the project's ignore rules name, such as what a build leaves: told as one line for each directory, and not
//! carried back unless named. The rules are those of the view, `.gitignore` and `.ignore`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::change::{Change, EntryType};
use super::root::Root;
use super::walk::Layers;

const FILES: [&str; 2] = [".gitignore", ".ignore"];
/// A longer file of rules is left out.
const LONGEST: u64 = 1 << 20;

/// The outermost ignored path of each change; `None` for one that is not ignored.
pub fn tops(layers: &Layers<'_>, changes: &[Change]) -> Vec<Option<PathBuf>> {
    let rules = IgnoreRules::new(*layers);
    changes.iter().map(|change| rules.top(&change.path.0, change.entry_type() == EntryType::Dir)).collect()
}

/// The ignore rules of a view, each file of them read once.
pub struct IgnoreRules<'a> {
    layers: Layers<'a>,
    /// By directory.
    known: RefCell<HashMap<PathBuf, Rc<Gitignore>>>,
}

impl<'a> IgnoreRules<'a> {
    pub fn new(layers: Layers<'a>) -> IgnoreRules<'a> {
        IgnoreRules { layers, known: RefCell::default() }
    }

    /// The outermost ignored directory that a path lies in, or the path itself.
    pub fn top(&self, path: &Path, is_dir: bool) -> Option<PathBuf> {
        let mut at = PathBuf::new();
        let count = path.components().count();
        for (number, name) in path.iter().enumerate() {
            at.push(name);
            if self.ignores(&at, is_dir || number + 1 < count) {
                return Some(at);
            }
        }
        None
    }

    /// Whether a rule of a directory above names this path; the deepest directory has the last word.
    fn ignores(&self, path: &Path, is_dir: bool) -> bool {
        for dir in path.ancestors().skip(1) {
            let rules = self.of(dir);
            let found = rules.matched(path.strip_prefix(dir).unwrap_or(path), is_dir);
            if !found.is_none() {
                return found.is_ignore();
            }
        }
        false
    }

    fn of(&self, dir: &Path) -> Rc<Gitignore> {
        if let Some(known) = self.known.borrow().get(dir) {
            return known.clone();
        }
        let mut builder = GitignoreBuilder::new("");
        for name in FILES {
            let file = dir.join(name);
            let text = text(self.layers.upper, &file).or_else(|| text(self.layers.base, &file)).unwrap_or_default();
            for line in text.lines() {
                _ = builder.add_line(None, line); // a rule that is none names nothing
            }
        }
        let rules = Rc::new(builder.build().unwrap_or_else(|_| Gitignore::empty()));
        self.known.borrow_mut().insert(dir.to_owned(), rules.clone());
        rules
    }
}

fn text(root: &Root, file: &Path) -> Option<String> {
    let bytes = root.read(file, EntryType::File, LONGEST).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::MarkNames;

    #[test]
    fn ignored_paths_are_told_by_their_outermost_directory() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        ["upper/sub", "base/sub"].into_iter().for_each(|name| std::fs::create_dir_all(at(name)).unwrap());
        std::fs::write(at("base/.gitignore"), "/target\n*.log\n").unwrap();
        std::fs::write(at("upper/sub/.gitignore"), "!keep.log\n").unwrap();
        let (upper, base) = (Root::open(&at("upper")).unwrap(), Root::open(&at("base")).unwrap());
        let layers = Layers { upper: &upper, base: &base, marks: MarkNames::Trusted };
        let rules = IgnoreRules::new(layers);
        for (path, top) in [
            ("src/a.rs", None),
            ("target/debug/x", Some("target")),
            ("sub/target/x", None),
            ("sub/a.log", Some("sub/a.log")),
            ("sub/keep.log", None),
        ] {
            assert_eq!(rules.top(Path::new(path), false), top.map(PathBuf::from), "{path}");
        }
    }
}
