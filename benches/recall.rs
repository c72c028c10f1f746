//! Finding a page among 100,000: by title, by backlinks, by words, against walking the directory and against ripgrep.
//!
//! `cargo bench --bench recall [pages]`. The ratio is what says something. Without `rg` its line is left out.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use acheron::services::recall::{Access, Wiki};

fn main() {
    let pages = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(100_000);
    let dir = tempfile::tempdir().expect("a directory");
    make(dir.path(), pages);
    let began = Instant::now();
    let wiki = Wiki::open(dir.path()).expect("a wiki");
    println!("{pages} pages, read in {:?}", began.elapsed());
    let (title, word) = (format!("Page {}", pages / 2), format!("w{}", pages / 2));
    let page = wiki.find(&title, Access::Nodes).expect("it is there").page;
    report("resolve a title", time(1000, || drop(black_box(wiki.find(&title, Access::Nodes)))));
    report("its backlinks", time(1000, || drop(black_box(wiki.index().backlinks(&page)))));
    report("search a rare word", time(100, || drop(black_box(wiki.index().search(&word, Access::Nodes, 10)))));
    report("search a common word", time(3, || drop(black_box(wiki.index().search("river", Access::Nodes, 10)))));
    report("walk for a title", time(3, || assert!(walk(dir.path(), &format!("{title}.md")))));
    if let Some(took) = ripgrep(dir.path(), &word) {
        report("ripgrep a rare word", took);
    }
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

fn ripgrep(dir: &Path, word: &str) -> Option<Duration> {
    let run = || Command::new("rg").args(["-lw", word]).arg(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
    run().ok().filter(|status| status.success())?;
    Some(time(3, || drop(black_box(run()))))
}

/// The mean of some rounds.
fn time(rounds: u32, mut work: impl FnMut()) -> Duration {
    let began = Instant::now();
    for _ in 0..rounds {
        work();
    }
    began.elapsed() / rounds
}

fn report(what: &str, took: Duration) {
    println!("{what:24} {took:>12.2?}");
}
