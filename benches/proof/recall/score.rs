//! How often a search finds the page that is known to answer, beside counting with ripgrep and plain FTS5 on the same pages.

use std::path::{Path, PathBuf};
use std::time::Instant;

use grep_regex::RegexMatcherBuilder;
use grep_searcher::{Searcher, sinks::UTF8};

use super::{corpus, opened};
use crate::house::Scratch;
use crate::table::{Aim, Figure};
use acheron_base::words::{each_word, is_empty};
use acheron_recall::Access;
use acheron_store::Connection;

/// The places of the right pages: first, among the first five, and the mean of one by the place.
#[derive(Default)]
pub struct Score {
    asked: usize,
    first: usize,
    five: usize,
    mean: f64,
}

impl Score {
    pub fn count(&mut self, found: &[String], right: &[String]) {
        self.asked += 1;
        let Some(place) = found.iter().position(|path| right.contains(path)) else { return };
        self.first += usize::from(place == 0);
        self.five += usize::from(place < 5);
        self.mean += 1.0 / (place + 1) as f64;
    }

    /// The share of the questions whose page was among the first five.
    pub fn five(&self) -> f64 {
        self.five as f64 / self.asked.max(1) as f64
    }

    pub fn shown(&self) -> String {
        let mean = self.mean / self.asked.max(1) as f64;
        format!("first {} of {}, first five {}, MRR {mean:.3}", self.first, self.asked, self.five)
    }
}

pub fn rows() -> Vec<Figure> {
    let scratch = Scratch::new();
    let dir = scratch.make("wiki");
    let (pages, _) = corpus::write(&dir, false);
    let wiki = opened(&dir, &scratch.path().join("index.db"));
    let (files, plain) = (files(&dir), plain(&dir));
    let (mut own, mut counted, mut fts) = (Score::default(), Score::default(), Score::default());
    let mut times = Vec::new();
    for (right, question) in corpus::questions() {
        if !right.iter().any(|page| dir.join(page).is_file()) {
            continue;
        }
        let began = Instant::now();
        let hits = wiki.search(question, Access::Nodes, 10).expect("a search");
        times.push(began.elapsed().as_secs_f64());
        own.count(&hits.into_iter().map(|hit| hit.path).collect::<Vec<_>>(), &right);
        let asked = telling(question);
        counted.count(&by_count(&dir, &files, &asked), &right);
        fts.count(&by_fts(&plain, &asked), &right);
    }
    times.sort_by(f64::total_cmp);
    let half = times.get(times.len() / 2).copied().unwrap_or(0.0);
    vec![
        Figure::words(format!("recall: questions over {pages} pages: its search"), own.shown(), Aim::Told)
            .detail(format!("p50 {:.1} ms", half * 1000.0)),
        Figure::words("recall: the same, counting matches as ripgrep does", counted.shown(), Aim::Told),
        Figure::words("recall: the same, plain FTS5", fts.shown(), Aim::Told),
        Figure::number("recall: first five, above plain FTS5", own.five() - fts.five(), "", Aim::AtLeast(0.05)),
    ]
}

/// The words of a question, as a person would type them into a search; the empty ones would help none of the three.
pub fn telling(question: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(question, |word| words.extend((!is_empty(word)).then(|| word.to_owned())));
    words
}

fn files(root: &Path) -> Vec<PathBuf> {
    let dirs =
        std::fs::read_dir(root).expect("a folder").flatten().map(|entry| entry.path()).filter(|dir| dir.is_dir());
    dirs.flat_map(|dir| std::fs::read_dir(dir).expect("a folder").flatten().map(|entry| entry.path())).collect()
}

/// Pages by the number of lines that have a word of the question, with the library of ripgrep.
fn by_count(root: &Path, files: &[PathBuf], asked: &[String]) -> Vec<String> {
    let matcher =
        RegexMatcherBuilder::new().case_insensitive(true).word(true).build(&asked.join("|")).expect("a pattern");
    let mut counts: Vec<(u64, String)> = Vec::new();
    for file in files {
        let mut count = 0;
        let sink = UTF8(|_, _| {
            count += 1;
            Ok(true)
        });
        if Searcher::new().search_path(&matcher, file, sink).is_ok() && count > 0 {
            counts.push((count, file.strip_prefix(root).expect("below").to_string_lossy().into_owned()));
        }
    }
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    counts.into_iter().take(10).map(|it| it.1).collect()
}

/// A table of FTS5 as its documentation begins: the title and the text, the tokeniser and the rank that come with it.
fn plain(root: &Path) -> Connection {
    let conn = Connection::open_in_memory().expect("a database");
    conn.execute_batch("CREATE VIRTUAL TABLE pages USING fts5 (path UNINDEXED, title, body); BEGIN").expect("a table");
    for file in files(root) {
        let path = file.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a page")).into_owned();
        let title = file.file_stem().expect("a name").to_string_lossy().into_owned();
        conn.execute("INSERT INTO pages VALUES (?1, ?2, ?3)", (path, title, text)).expect("a row");
    }
    conn.execute_batch("COMMIT").expect("a commit");
    conn
}

fn by_fts(conn: &Connection, asked: &[String]) -> Vec<String> {
    let asked: Vec<String> = asked.iter().map(|word| format!("\"{word}\"")).collect();
    let mut select =
        conn.prepare_cached("SELECT path FROM pages WHERE pages MATCH ?1 ORDER BY rank LIMIT 10").expect("a query");
    let rows = select.query_map([asked.join(" OR ")], |row| row.get(0)).expect("rows");
    rows.map(|row| row.expect("a row")).collect()
}
