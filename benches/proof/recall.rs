//! Recall: finding a page among 100,000 by title, by backlinks and by words, against walking the directory and against ripgrep;
//! reading 20,000 pages for the first and for the second time; how often a search finds the page that is known to answer; and how
//! often memory and recall find the session that answers a question, in a generated set (`recall/sessions.md`).
//!
//! Without `rg` its rows are left out; without manual pages or `rustc` the questions about them are.

mod corpus;
mod memories;
mod score;

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use super::Run;
use super::house::{Scratch, status};
use super::method::{Pace, compare};
use super::table::{Aim, Figure};
use acheron::services::recall::Wiki;
use acheron_base::{Clock, ConfinedDir};
use acheron_recall::Access;

pub fn rows(run: &Run) -> Vec<Figure> {
    let mut figures = large(run);
    figures.extend(found(run));
    figures.extend(score::rows());
    figures.extend(memories::rows(run));
    figures
}

/// Opens a wiki and waits until all of it has been read.
fn opened(dir: &Path, index: &Path) -> Arc<Wiki> {
    let wiki = Wiki::open(ConfinedDir::open(dir).expect("a directory"), index, &Clock::real()).expect("a wiki");
    wiki.progress.wait();
    wiki
}

fn found(run: &Run) -> Vec<Figure> {
    let pages = if run.quick { 2_000 } else { 100_000 };
    let scratch = Scratch::new();
    let dir = scratch.make("wiki");
    make(&dir, pages);
    let wiki = opened(&dir, &scratch.path().join("index.db"));
    let (title, word) = (format!("Page {}", pages / 2), format!("w{}", pages / 2));
    let page = wiki.find(&title, Access::Nodes).expect("it is there").page;
    let pace = Pace { chunks: 3, ops: 1 };
    let walked = |_| assert!(walk(&dir, &format!("{title}.md")));
    let found = compare(pace, |_| drop(black_box(wiki.find(&title, Access::Nodes))), walked);
    let linked = compare(pace, |_| drop(black_box(wiki.index().backlinks(&page))), walked);
    let mut figures = vec![
        Figure::ratio(format!("recall: a title among {pages} pages ÷ walking the directory"), found, Aim::Told),
        Figure::ratio("recall: backlinks ÷ walking the directory", linked, Aim::Told),
    ];
    if ripgrep(&dir, &word) {
        let grep = |_| assert!(ripgrep(&dir, &word));
        let rare = compare(pace, |_| drop(black_box(wiki.search(&word, Access::Nodes, 10))), grep);
        let common = compare(pace, |_| drop(black_box(wiki.search("river", Access::Nodes, 10))), grep);
        figures.push(Figure::ratio("recall: searching a rare word ÷ ripgrep", rare, Aim::Told));
        figures.push(Figure::ratio("recall: searching a word of every page ÷ ripgrep", common, Aim::Told));
    }
    figures
}

/// Reads 20,000 pages of 6 KB, then opens them again.
fn large(run: &Run) -> Vec<Figure> {
    let pages = if run.quick { 2_000 } else { 20_000 };
    let scratch = Scratch::new();
    let (dir, index) = (scratch.make("wiki"), scratch.path().join("index.db"));
    let bytes = make_long(&dir, pages) as f64 / 1e6;
    let before = status(std::process::id(), "VmRSS") as f64 / 1024.0;
    let began = Instant::now();
    drop(opened(&dir, &index));
    let (first, began) = (began.elapsed().as_secs_f64(), Instant::now());
    let wiki = opened(&dir, &index);
    let (second, after) = (began.elapsed().as_secs_f64(), status(std::process::id(), "VmRSS") as f64 / 1024.0);
    let disk = std::fs::metadata(&index).map_or(0, |it| it.len()) as f64 / 1e6;
    drop(wiki);
    let what = format!("{pages} pages, {bytes:.0} MB");
    vec![
        Figure::number(format!("recall: reading {what}"), first, "s", Aim::Told).detail("on a thread of its own"),
        Figure::number("recall: opening them again", second, "s", Aim::Told),
        Figure::number("recall: memory for them", after - before, "MiB", Aim::AtMost(100.0))
            .detail(format!("the index on the disk has {disk:.0} MB")),
    ]
}

/// Pages of many different words; gives the bytes of all.
fn make_long(root: &Path, pages: usize) -> usize {
    let folder = root.join("semantic");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (mut seed, mut bytes) = (1u64, 0);
    for number in 0..pages {
        let mut text = format!("# Page {number}\n\n[[Page {}]] [[Page {}]]\n", number / 2, (number + 1) % pages);
        while text.len() < 6_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few words are common and most are rare, as in a language.
            let spread = 1u64 << ((seed >> 59) % 17);
            text.push_str(&format!("w{:x} ", (seed >> 33) % spread));
        }
        let path = folder.join(format!("Page {number}.md"));
        std::fs::write(&path, &text).expect("a page");
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
        std::fs::File::open(&path).and_then(|file| file.set_modified(old)).expect("an older page");
        bytes += text.len();
    }
    bytes
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
