//! How often memory and recall find the session that answers a question, beside `grep` and plain FTS5 on the same sessions.
//!
//! Memory is asked through `memory/control/search.json` of a mount, recall by its search over the same sessions as pages. Only the
//! half of the questions by which no weight was chosen is scored.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use grep_regex::RegexMatcherBuilder;
use grep_searcher::{Searcher, sinks::UTF8};
use serde_json::{Value, json};

use super::opened;
use super::score::{Score, telling};
use crate::Run;
use crate::house::{Scratch, TestHost, plain};
use crate::store::fill_with;
use crate::table::{Aim, Figure};
use acheron_base::tokens;
use acheron_recall::Access;
use acheron_recall::sample_sessions::{SampleQuestion, SessionSet, generate};
use acheron_store::Connection;

const SEED: u64 = 20_261_117;
const QUESTIONS: usize = 640;
/// How many results are asked for.
const RESULTS: usize = 10;

/// What one way of searching has found: the names of sessions, the tokens of what it showed of the first five, and the time.
#[derive(Default)]
struct Ranking {
    score: Score,
    tokens: u64,
    times: Vec<f64>,
}

impl Ranking {
    fn ask(&mut self, right: &str, search: impl FnOnce() -> (Vec<String>, String)) {
        let began = Instant::now();
        let (found, shown) = search();
        self.times.push(began.elapsed().as_secs_f64() * 1000.0);
        self.tokens += tokens::estimate(&shown);
        self.score.count(&found, &[right.to_owned()]);
    }

    fn p50(&mut self) -> f64 {
        self.times.sort_by(f64::total_cmp);
        self.times.get(self.times.len() / 2).copied().unwrap_or(0.0)
    }

    fn row(&mut self, what: String) -> Figure {
        let each = self.tokens / self.times.len().max(1) as u64;
        let detail = format!("p50 {:.1} ms, {each} tokens per answer", self.p50());
        Figure::words(what, format!("{}, recall@5 {:.3}", self.score.shown(), self.score.five()), Aim::Told)
            .detail(detail)
    }
}

pub fn rows(run: &Run) -> Vec<Figure> {
    let sessions = if run.quick { 2_000 } else { 5_000 };
    let set = generate(SEED, sessions, QUESTIONS);
    let scored: Vec<&SampleQuestion> = set.questions.iter().filter(|question| !question.is_for_tuning()).collect();
    let scratch = Scratch::new();
    fill(&scratch.path().join("state"), &set);
    let host = TestHost::in_scratch(scratch, &plain());
    let wiki_dir = Scratch::new();
    write(wiki_dir.path(), &set);
    let wiki = opened(&wiki_dir.path().join("wiki"), &wiki_dir.path().join("index.db"));
    let fts = index(&set);
    let [mut memory, mut recall, mut grep, mut bare]: [Ranking; 4] = Default::default();
    let mut changed = (0, 0);
    for question in &scored {
        let right = set.sessions[question.right].name.as_str();
        let found = asked(&mut memory, right, || by_memory(&host, &question.asked));
        if question.before.is_some() {
            changed = (changed.0 + 1, changed.1 + usize::from(found.is_some_and(|first| first == right)));
        }
        asked(&mut recall, right, || {
            let hits = wiki.search(&question.asked, Access::Nodes, RESULTS).expect("a search");
            let shown = hits.iter().take(5).map(|hit| format!("{} {}\n", hit.path, hit.snippet)).collect();
            (hits.into_iter().map(|hit| name_of(&hit.path)).collect(), shown)
        });
        asked(&mut grep, right, || by_grep(&set, &telling(&question.asked)));
        asked(&mut bare, right, || by_fts(&fts, &set, &telling(&question.asked)));
    }
    let (ours, walk) = (memory.score.five(), recall.score.five());
    let mut figures = vec![
        memory.row(format!("memory: questions about {sessions} sessions, through search.json")),
        recall.row("memory: the same sessions as pages, recall's search".to_owned()),
        grep.row("memory: the same, lines counted as grep does".to_owned()),
        bare.row("memory: the same, plain FTS5".to_owned()),
        Figure::number("memory: recall@5 above grep", ours - grep.score.five(), "", Aim::AtLeast(0.10)),
        Figure::number("memory: recall@5 above plain FTS5", ours - bare.score.five(), "", Aim::AtLeast(0.05)),
        Figure::number("memory: recall's search, recall@5 above plain FTS5", walk - bare.score.five(), "", Aim::Told),
        Figure::words(
            "memory: of changed facts the current one first",
            format!("{} of {}", changed.1, changed.0),
            Aim::Told,
        ),
    ];
    drop(host);
    figures.push(at_many(run));
    figures
}

/// The time of a question among 100,000 sessions, through the mount.
fn at_many(run: &Run) -> Figure {
    let sessions = if run.quick { 10_000 } else { 100_000 };
    let set = generate(SEED, sessions, QUESTIONS);
    let scratch = Scratch::new();
    fill(&scratch.path().join("state"), &set);
    let host = TestHost::in_scratch(scratch, &plain());
    let mut memory = Ranking::default();
    for question in set.questions.iter().filter(|question| !question.is_for_tuning()) {
        asked(&mut memory, &set.sessions[question.right].name, || by_memory(&host, &question.asked));
    }
    let five = memory.score.five();
    Figure::number(format!("memory: a question among {sessions} sessions, p50"), memory.p50(), "ms", Aim::AtMost(10.0))
        .detail(format!("through the mount; recall@5 {five:.3}"))
}

/// Asks once; gives what was found first.
fn asked(ranking: &mut Ranking, right: &str, search: impl FnOnce() -> (Vec<String>, String)) -> Option<String> {
    let mut first = None;
    ranking.ask(right, || {
        let (found, shown) = search();
        first = found.first().cloned();
        (found, shown)
    });
    first
}

/// Each session is a memory; one with a changed fact supersedes the one before.
fn fill(state: &Path, set: &SessionSet) {
    let mut older: Vec<Option<&str>> = vec![None; set.sessions.len()];
    for question in &set.questions {
        older[question.right] = question.before.map(|before| set.sessions[before].name.as_str());
    }
    fill_with(state, set.sessions.len(), |number| {
        let session = &set.sessions[number];
        let supersedes: Vec<&str> = older[number].into_iter().collect();
        json!({ "kind": "session", "name": session.name, "content": session.text, "supersedes": supersedes })
    });
}

fn write(root: &Path, set: &SessionSet) {
    let folder = root.join("wiki/semantic");
    std::fs::create_dir_all(&folder).expect("a folder");
    for session in &set.sessions {
        let text = format!("# {}\n\n{}", session.name, session.text);
        std::fs::write(folder.join(format!("{}.md", session.name)), text).expect("a page");
    }
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md").to_owned()
}

fn by_memory(host: &TestHost, question: &str) -> (Vec<String>, String) {
    let control = File::options().read(true).write(true).open(host.own("memory/control/search.json"));
    let control = control.expect("a control file");
    let mut answer = vec![0; 1 << 20];
    let command = json!({ "query": question, "limit": RESULTS }).to_string();
    control.write_at(command.as_bytes(), 0).expect("a command");
    let length = control.read_at(&mut answer, 0).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer[..length]).expect("JSON");
    let hits = answer["result"]["results"].as_array().cloned().unwrap_or_default();
    let shown = hits.iter().take(5).map(Value::to_string).collect();
    (hits.iter().filter_map(|hit| hit["memory_path"].as_str()).map(name_of).collect(), shown)
}

/// Sessions by the number of lines that have a word of the question, with the library of ripgrep.
fn by_grep(set: &SessionSet, words: &[String]) -> (Vec<String>, String) {
    let matcher =
        RegexMatcherBuilder::new().case_insensitive(true).word(true).build(&words.join("|")).expect("a pattern");
    let mut counts: Vec<(usize, &str, String)> = Vec::new();
    let mut searcher = Searcher::new();
    for session in &set.sessions {
        let (mut count, mut lines) = (0, String::new());
        let sink = UTF8(|_, line| {
            count += 1;
            lines.push_str(line);
            Ok(true)
        });
        searcher.search_slice(&matcher, session.text.as_bytes(), sink).expect("a search");
        if count > 0 {
            counts.push((count, session.name.as_str(), lines));
        }
    }
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    counts.truncate(RESULTS);
    let shown = counts.iter().take(5).map(|it| it.2.as_str()).collect();
    (counts.iter().map(|it| it.1.to_owned()).collect(), shown)
}

/// A table of FTS5 as its documentation begins: the tokeniser and the rank that come with it.
fn index(set: &SessionSet) -> Connection {
    let conn = Connection::open_in_memory().expect("a database");
    conn.execute_batch("CREATE VIRTUAL TABLE sessions USING fts5 (text); BEGIN").expect("a table");
    for (number, session) in set.sessions.iter().enumerate() {
        let row = (number as i64, &session.text);
        conn.execute("INSERT INTO sessions (rowid, text) VALUES (?1, ?2)", row).expect("a row");
    }
    conn.execute_batch("COMMIT").expect("a commit");
    conn
}

fn by_fts(conn: &Connection, set: &SessionSet, words: &[String]) -> (Vec<String>, String) {
    let asked: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let sql = "SELECT rowid, snippet(sessions, 0, '', '', '…', 32) FROM sessions WHERE sessions MATCH ?1 ORDER BY rank LIMIT 10";
    let mut select = conn.prepare_cached(sql).expect("a query");
    let rows = select.query_map([asked.join(" OR ")], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)));
    let rows: Vec<(i64, String)> = rows.expect("rows").map(|row| row.expect("a row")).collect();
    let shown = rows.iter().take(5).map(|it| it.1.as_str()).collect();
    (rows.iter().map(|it| set.sessions[it.0 as usize].name.clone()).collect(), shown)
}
