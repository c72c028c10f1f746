//! Finding a page among 100,000: by title, by backlinks, by words, against walking the directory and against ripgrep.
//!
//! Without `rg` its line is left out.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Run;
use super::house::Scratch;
use super::method::{Pace, compare};
use super::table::{Aim, Figure};
use acheron::services::recall::Wiki;
use acheron_base::ConfinedDir;
use acheron_recall::Access;

pub fn rows(run: &Run) -> Vec<Figure> {
    let pages = if run.quick { 2_000 } else { 100_000 };
    let dir = Scratch::new();
    make(dir.path(), pages);
    let began = Instant::now();
    let wiki = Wiki::open(ConfinedDir::open(dir.path()).expect("a directory")).expect("a wiki");
    let read = began.elapsed();
    let (title, word) = (format!("Page {}", pages / 2), format!("w{}", pages / 2));
    let page = wiki.find(&title, Access::Nodes).expect("it is there").page;
    let pace = Pace { chunks: 3, ops: 1 };
    let walked = |_| assert!(walk(dir.path(), &format!("{title}.md")));
    let found = compare(pace, |_| drop(black_box(wiki.find(&title, Access::Nodes))), walked);
    let linked = compare(pace, |_| drop(black_box(wiki.index().backlinks(&page))), walked);
    let mut figures = vec![
        Figure::ratio(format!("recall: a title among {pages} pages ÷ walking the directory"), found, Aim::Told),
        Figure::ratio("recall: backlinks ÷ walking the directory", linked, Aim::Told),
    ];
    if ripgrep(dir.path(), &word) {
        let grep = |_| assert!(ripgrep(dir.path(), &word));
        let rare = compare(pace, |_| drop(black_box(wiki.index().search(&word, Access::Nodes, 10))), grep);
        let common = compare(pace, |_| drop(black_box(wiki.index().search("river", Access::Nodes, 10))), grep);
        figures.push(Figure::ratio("recall: searching a rare word ÷ ripgrep", rare, Aim::Told));
        figures.push(Figure::ratio("recall: searching a word of every page ÷ ripgrep", common, Aim::Told));
    }
    figures.push(Figure::number("recall: reading all pages at the start", read.as_secs_f64(), "s", Aim::Told));
    figures
}

/// A hundred folders of pages, each linking to the next two.
fn make(root: &Path, pages: usize) {
    for number in 0..pages {
        let folder = root.join(format!("semantic/{}", number % 100));
        if number < 100 {
            std::fs::create_dir_all(&folder).expect("a folder");
        }
        let (next, after) = ((number + 1) % pages, (number + 2) % pages);
        let text =
            format!("# Page {number}\n\nThe river w{number} flows to [[Page {next}]] and [[page {after}|on]].\n");
        std::fs::write(folder.join(format!("Page {number}.md")), text).expect("a page");
    }
    std::fs::write(root.join("index.md"), "[[Page 0]]\n").expect("an index");
}

fn walk(dir: &Path, name: &str) -> bool {
    let mut found = false;
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => found |= walk(&entry.path(), name),
            false => found |= entry.file_name() == name,
        }
    }
    found
}

/// Whether ripgrep is there and has found the word.
fn ripgrep(dir: &Path, word: &str) -> bool {
    let run = Command::new("rg").args(["-lw", word]).arg(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}
