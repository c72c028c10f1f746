//! Finding memories by their words.

use super::rows;
use super::snippet::snippet;
use super::tx::{MemoryReader, StoredMemory};
use super::words::{self, WordQuery};
use acheron_base::{Error, Result};
use acheron_store::{OptionalExtension, params};

/// The longest question, in characters.
const LONGEST: usize = 4096;

/// A search.
#[derive(Clone, Debug, Default)]
pub struct MemorySearch {
    pub query: String,
    pub kind: Option<String>,
    /// All of them.
    pub tags: Vec<String>,
    pub since_ms: Option<u64>,
    /// Old versions too, and what was deleted.
    pub history: bool,
    pub limit: usize,
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MemoryHit {
    pub memory: StoredMemory,
    /// Larger is better.
    pub score: f64,
    pub snippet: String,
}

/// Where the next page begins, and whether all words are asked for, or any.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SearchCursor {
    any: bool,
    skip: usize,
}

impl SearchCursor {
    fn read(cursor: Option<&str>) -> Result<SearchCursor> {
        let Some(cursor) = cursor else { return Ok(SearchCursor { any: false, skip: 0 }) };
        let number = |text: &str| text.parse().ok().filter(|skip| *skip <= 1_000_000);
        let (any, skip) = match (cursor.strip_prefix("all-"), cursor.strip_prefix("any-")) {
            (Some(skip), _) => (false, number(skip)),
            (_, Some(skip)) => (true, number(skip)),
            _ => (false, None),
        };
        let skip = skip.ok_or_else(|| Error::invalid("the cursor is not valid: give the one from the last answer"))?;
        Ok(SearchCursor { any, skip })
    }

    fn show(self) -> String {
        format!("{}-{}", if self.any { "any" } else { "all" }, self.skip)
    }
}

impl MemoryReader<'_> {
    /// The best of what matches, and the cursor of what comes after. All words must be there; only when nothing has
    /// them all, any will do. Without words everything matches, and the newest is best.
    pub fn search(&self, search: &MemorySearch) -> Result<(Vec<MemoryHit>, Option<String>)> {
        if search.query.chars().count() > LONGEST {
            return Err(Error::invalid(format!("a query has at most {LONGEST} characters")));
        }
        let mut place = SearchCursor::read(search.cursor.as_deref())?;
        let mut found = Vec::new();
        let mut needles = Vec::new();
        match words::query(&search.query) {
            WordQuery::Wordless => (),
            WordQuery::Blank => found = self.ids(search, None, place.skip)?,
            WordQuery::Words { all, any, needles: words } => {
                needles = words;
                if !place.any {
                    found = self.ids(search, Some(&all), place.skip)?;
                }
                if place.any || (found.is_empty() && place.skip == 0) {
                    place.any = true;
                    found = self.ids(search, Some(&any), place.skip)?;
                }
            }
        }
        let more = found.len() > search.limit;
        found.truncate(search.limit);
        let next = more.then(|| SearchCursor { skip: place.skip + search.limit, ..place }.show());
        let hit = |(id, rank): (i64, f64)| {
            let memory = if search.history { self.by_version(id)? } else { self.by_memory(id)? };
            let snippet = snippet(&memory.version.content.text(), &needles);
            Ok(MemoryHit { memory, score: -rank, snippet })
        };
        Ok((found.into_iter().map(hit).collect::<Result<_>>()?, next))
    }

    /// Row ids and ranks, one more than asked for. Rows are only joined when a filter asks for it: ranking alone is
    /// answered by the index.
    fn ids(&self, search: &MemorySearch, question: Option<&str>, skip: usize) -> Result<Vec<(i64, f64)>> {
        let (table, id) = if search.history { ("memory_ever", "v.id") } else { ("memory_now", "m.id") };
        let (first, last) = rows::range(self.agent);
        let versions = "memory_versions v JOIN memories m ON m.id = v.memory";
        let latest = if search.history { "v.deleted = 0" } else { "v.version = m.version AND m.deleted = 0" };
        let filtered = search.kind.is_some() || search.since_ms.is_some() || !search.tags.is_empty();
        let filter = "(?5 IS NULL OR v.kind = ?5) AND (?6 IS NULL OR v.created_at_ms >= ?6) AND NOT EXISTS \
                      (SELECT 1 FROM json_each(?7) t WHERE t.value NOT IN (SELECT value FROM json_each(v.tags)))";
        let sql = match (question, filtered) {
            (Some(_), false) => format!(
                "SELECT rowid, rank FROM {table} WHERE {table} MATCH ?8 AND rowid BETWEEN ?1 AND ?2 \
                 AND ?5 IS NULL AND ?6 IS NULL AND ?7 IS NOT NULL ORDER BY rank LIMIT ?3 OFFSET ?4"
            ),
            (Some(_), true) => format!(
                "SELECT w.rowid, w.rank FROM {table} w CROSS JOIN {versions} WHERE {id} = w.rowid AND {latest} \
                 AND w.{table} MATCH ?8 AND w.rowid BETWEEN ?1 AND ?2 AND {filter} ORDER BY w.rank LIMIT ?3 OFFSET ?4"
            ),
            (None, _) => format!(
                "SELECT {id}, 0.0 FROM {versions} WHERE {id} BETWEEN ?1 AND ?2 AND {latest} AND {filter} AND ?8 IS NULL \
                 ORDER BY v.created_at_ms DESC, v.id DESC LIMIT ?3 OFFSET ?4"
            ),
        };
        let mut select = self.conn.prepare_cached(&sql)?;
        let tags = rows::list(&search.tags);
        let asked = params![first, last, search.limit + 1, skip, search.kind, search.since_ms, tags, question];
        Ok(select.query_map(asked, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?)
    }

    fn by_memory(&self, id: i64) -> Result<StoredMemory> {
        let head = rows::head_by_id(self.conn, id)?;
        let version = rows::version(self.conn, id, head.version)?;
        Ok(StoredMemory { version: version.ok_or_else(|| lost(id))?, head })
    }

    fn by_version(&self, id: i64) -> Result<StoredMemory> {
        let mut select = self.conn.prepare_cached("SELECT memory, version FROM memory_versions WHERE id = ?1")?;
        let found = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (memory, version) = found.ok_or_else(|| lost(id))?;
        let head = rows::head_by_id(self.conn, memory)?;
        Ok(StoredMemory { version: rows::version(self.conn, memory, version)?.ok_or_else(|| lost(id))?, head })
    }
}

fn lost(id: i64) -> Error {
    Error::internal(format!("the index of memory knows row {id}, which is not there"))
}
