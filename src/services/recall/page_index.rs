//! The index of a wiki on the disk: what is known of each page, and its words. It is kept between starts, and can be thrown away:
//! everything in it is read from the pages. `wiki` uses it; calls touch the disk.

use std::path::Path;

use acheron_base::words::is_beginning;
use acheron_base::{Result, words};
use acheron_recall::index::{Page, PageState};
use acheron_recall::links::LinkList;
use acheron_recall::page::{body, headings};
use acheron_store::cache::CacheDb;
use acheron_store::{Connection, OptionalExtension as _, params};

/// Rises with every change of the tables, or of what is read from a page.
const FORM: u32 = 1;

const SCHEMA: &str = "
    CREATE TABLE pages (
        id          INTEGER PRIMARY KEY,
        path        TEXT NOT NULL UNIQUE,
        -- not shown unless it is asked for
        excluded    INTEGER NOT NULL,
        bytes       INTEGER NOT NULL,
        modified_ms INTEGER NOT NULL,
        -- when it was read; a page that changed just before may have changed again
        read_ms     INTEGER NOT NULL,
        tokens      INTEGER NOT NULL,
        words       INTEGER NOT NULL,
        state       INTEGER NOT NULL,
        names       TEXT NOT NULL,
        links       TEXT NOT NULL
    );
    CREATE VIRTUAL TABLE page_words USING fts5 (
        title, names, headings, body, content = '', contentless_delete = 1,
        tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc'\"
    );
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab (page_words, row);";

/// How much more a word in the title, in other names and in headings says, when candidates are chosen.
const WEIGHTS: &str = "6.0, 4.0, 2.0, 1.0";
/// How many pages are looked at closely.
const CANDIDATES: usize = 120;
const TITLED: usize = 20;
/// A word that more than a third of the pages have chooses no candidates, if another does.
const COMMON: u64 = 3;

pub struct PageIndex(CacheDb);

/// A page as it was stored.
pub struct StoredPage {
    pub page: Page,
    pub read_ms: u64,
}

impl PageIndex {
    pub fn open(path: &Path) -> Result<PageIndex> {
        Ok(PageIndex(CacheDb::open(path, SCHEMA, words::VERSION * 1000 + FORM)?))
    }

    /// All pages that are known.
    pub fn pages(&self) -> Result<Vec<StoredPage>> {
        self.0.look(|conn| {
            let mut select = conn.prepare_cached(
                "SELECT path, bytes, modified_ms, tokens, words, state, names, links, read_ms FROM pages",
            )?;
            let rows = select.query_map([], |row| {
                let path: String = row.get(0)?;
                let names: String = row.get(6)?;
                let page = Page {
                    tokens: row.get(3)?,
                    words: row.get(4)?,
                    state: state(row.get(5)?),
                    names: names.split_terminator('\n').map(str::to_owned).collect(),
                    links: LinkList::from_stored(row.get(7)?),
                    ..Page::unread(&path, row.get(1)?, row.get(2)?)
                };
                Ok(StoredPage { page, read_ms: row.get(8)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Stores pages with their texts; one that is there is replaced.
    pub fn put(&self, pages: &[(Page, String)], read_ms: u64) -> Result<()> {
        self.0.change(|conn| pages.iter().try_for_each(|(page, text)| put(conn, page, text, read_ms)))
    }

    pub fn remove<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Result<()> {
        self.0.change(|conn| paths.into_iter().try_for_each(|path| remove(conn, path)))
    }

    pub fn candidates(&self, stems: Vec<String>, all: bool, pages: u64) -> Result<Candidates> {
        self.0.look(|conn| {
            let counted = stems.into_iter().map(|stem| count(conn, &stem).map(|count| (stem, count)));
            let counts: Vec<(String, u64)> = counted.collect::<Result<_>>()?;
            let known = || counts.iter().filter(|(_, count)| *count > 0);
            let rare: Vec<String> =
                known().filter(|(_, count)| count * COMMON <= pages).map(|(stem, _)| term(stem)).collect();
            let every: Vec<String> = known().map(|(stem, _)| term(stem)).collect();
            let mut found = Vec::new();
            if !every.is_empty() {
                let choosing = if rare.is_empty() { &every } else { &rare };
                best(conn, &choosing.join(" OR "), all, CANDIDATES, &mut found)?;
                best(conn, &format!("{{title names}} : ({})", every.join(" OR ")), all, TITLED, &mut found)?;
            }
            Ok(Candidates { counts, paths: found })
        })
    }
}

/// What the index knows about a question.
pub struct Candidates {
    /// In how many pages each stem stands.
    pub counts: Vec<(String, u64)>,
    /// The pages that may answer, the likeliest first.
    pub paths: Vec<String>,
}

fn put(conn: &Connection, page: &Page, text: &str, read_ms: u64) -> Result<()> {
    remove(conn, &page.path)?;
    let mut insert = conn.prepare_cached(
        "INSERT INTO pages (path, excluded, bytes, modified_ms, read_ms, tokens, words, state, names, links) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    let (names, links) = (page.names.join("\n"), page.links.stored());
    insert.execute(params![
        &*page.path,
        page.class.excluded(),
        page.bytes,
        page.modified_ms,
        read_ms,
        page.tokens,
        page.words,
        number(page.state),
        names,
        links
    ])?;
    let id = conn.last_insert_rowid();
    let inner = body(text);
    let headings: Vec<&str> = headings(inner).into_iter().map(|heading| heading.text).collect();
    let mut insert = conn
        .prepare_cached("INSERT INTO page_words (rowid, title, names, headings, body) VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let [title, names, headings, inner] = [page.title(), &names, &headings.join("\n"), inner].map(words::indexed);
    insert.execute(params![id, title, names, headings, inner])?;
    Ok(())
}

fn remove(conn: &Connection, path: &str) -> Result<()> {
    let mut select = conn.prepare_cached("SELECT id FROM pages WHERE path = ?1")?;
    let Some(id) = select.query_row([path], |row| row.get::<_, i64>(0)).optional()? else { return Ok(()) };
    conn.prepare_cached("DELETE FROM page_words WHERE rowid = ?1")?.execute([id])?;
    conn.prepare_cached("DELETE FROM pages WHERE id = ?1")?.execute([id])?;
    Ok(())
}

/// Adds the paths of the best pages that are not there yet.
fn best(conn: &Connection, asked: &str, all: bool, most: usize, found: &mut Vec<String>) -> Result<()> {
    let mut select = conn.prepare_cached(&format!(
        "SELECT p.path FROM page_words JOIN pages p ON p.id = page_words.rowid \
         WHERE page_words MATCH ?1 AND p.excluded <= ?2 ORDER BY bm25(page_words, {WEIGHTS}), p.path LIMIT ?3"
    ))?;
    let rows = select.query_map(params![asked, all, most], |row| row.get::<_, String>(0))?;
    for path in rows {
        let path = path?;
        if !found.contains(&path) {
            found.push(path);
        }
    }
    Ok(())
}

/// A stem in the language of the index.
fn term(stem: &str) -> String {
    format!("\"{stem}\"{}", if is_beginning(stem) { " *" } else { "" })
}

fn count(conn: &Connection, stem: &str) -> Result<u64> {
    if is_beginning(stem) {
        let mut select = conn.prepare_cached("SELECT max(doc) FROM vocabulary WHERE term >= ?1 AND term < ?2")?;
        let found: Option<u64> = select.query_row([stem, &format!("{stem}\u{10ffff}")], |row| row.get(0))?;
        return Ok(found.unwrap_or(0));
    }
    let mut select = conn.prepare_cached("SELECT doc FROM vocabulary WHERE term = ?1")?;
    Ok(select.query_row([stem], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn number(state: PageState) -> u8 {
    match state {
        PageState::Known => 0,
        PageState::Unread => 1,
        PageState::NotText => 2,
        PageState::TooLong => 3,
    }
}

fn state(number: u8) -> PageState {
    match number {
        0 => PageState::Known,
        2 => PageState::NotText,
        3 => PageState::TooLong,
        _ => PageState::Unread,
    }
}
