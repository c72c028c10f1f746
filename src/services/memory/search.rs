//! Finding memories by their words.

use std::collections::HashSet;

use super::rows::{self, Version};
use super::snippet::snippet;
use super::tx::{MemoryReader, StoredMemory};
use super::words::{self, WordQuery};
use acheron_base::words::is_empty;
use acheron_base::{Error, Result};
use acheron_store::{OptionalExtension, Rows, params};

/// The longest question, in characters.
const LONGEST: usize = 4096;

/// How much more a word in the name says than one in the text.
const NAME_WEIGHT: &str = "4.0";

/// A query of more terms is a question: what answers it need not have all of them.
const A_FEW: usize = 3;

/// Rows among which the best are chosen at a time.
const MANY: usize = 512;

/// When any word will do, a word counts if it is in at most so many memories, or in at most so many times more than the
/// rarest.
const FEW: usize = 50;
const FAR_MORE: usize = 20;

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

impl MemorySearch {
    pub(super) fn is_filtered(&self) -> bool {
        self.kind.is_some() || self.since_ms.is_some() || !self.tags.is_empty()
    }

    /// As the filter of the statement does.
    fn lets_through(&self, version: &Version) -> bool {
        self.kind.as_ref().is_none_or(|kind| *kind == version.kind)
            && self.since_ms.is_none_or(|since| version.written_at_ms >= since)
            && self.tags.iter().all(|tag| version.tags.contains(tag))
    }
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
pub(super) struct SearchCursor {
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

/// What a query and a cursor tell by themselves: where the page begins.
pub(super) fn check(query: &str, cursor: Option<&str>) -> Result<SearchCursor> {
    match query.chars().count() > LONGEST {
        true => Err(Error::invalid(format!("a query has at most {LONGEST} characters"))),
        false => SearchCursor::read(cursor),
    }
}

impl MemoryReader<'_> {
    /// The best of what matches, and the cursor of what comes after. Of a few words all must be there; only when nothing has
    /// them all, any of the rarer ones will do. More words are a question. Without words everything matches, and the newest
    /// is best.
    pub fn search(&self, search: &MemorySearch) -> Result<(Vec<MemoryHit>, Option<String>)> {
        let mut place = check(&search.query, search.cursor.as_deref())?;
        let mut found = Vec::new();
        let mut needles = Vec::new();
        match words::query(&search.query) {
            WordQuery::Wordless => (),
            WordQuery::Blank => found = self.page(search, None, place.skip)?,
            WordQuery::Words { terms, needles: words } if terms.len() > A_FEW && !search.query.contains(['"', '*']) => {
                needles = words.into_iter().filter(|word| !is_empty(&word.to_lowercase())).collect();
                place.any = true;
                let ranked = self.answers(search, place.skip + search.limit + 1)?;
                found = self.page_of(search, ranked, place.skip)?;
            }
            WordQuery::Words { terms, needles: words } => {
                needles = words;
                if !place.any {
                    found = self.page(search, Some(&terms.join(" AND ")), place.skip)?;
                }
                if place.any || (found.is_empty() && place.skip == 0 && terms.len() > 1) {
                    place.any = true;
                    // A filter may leave nothing of the rarer ones.
                    let rare = match search.is_filtered() {
                        true => terms.iter().map(String::as_str).collect(),
                        false => self.rarer(search, &terms)?,
                    };
                    if !rare.is_empty() {
                        found = self.page(search, Some(&rare.join(" OR ")), place.skip)?;
                    }
                }
            }
        }
        let more = found.len() > search.limit;
        found.truncate(search.limit);
        let next = more.then(|| SearchCursor { skip: place.skip + search.limit, ..place }.show());
        let hit = |(id, rank): (i64, f64)| {
            let memory = self.by_row(search, id)?;
            let snippet = snippet(&memory.version.content.text(), &needles);
            Ok(MemoryHit { memory, score: -rank, snippet })
        };
        Ok((found.into_iter().map(hit).collect::<Result<_>>()?, next))
    }

    /// Row ids and ranks from `skip` on, one more than asked for.
    fn page(&self, search: &MemorySearch, question: Option<&str>, skip: usize) -> Result<Vec<(i64, f64)>> {
        // A memory that is put before others takes a place: the places are counted from the beginning.
        let ranked = self.ids(search, question, skip + search.limit + 1)?;
        self.page_of(search, ranked, skip)
    }

    fn page_of(&self, search: &MemorySearch, ranked: Vec<(i64, f64)>, skip: usize) -> Result<Vec<(i64, f64)>> {
        Ok(self.current_first(search, ranked)?.into_iter().skip(skip).take(search.limit + 1).collect())
    }

    /// Puts the current memory of a fact before the first older one that was found, also if it was not found itself.
    fn current_first(&self, search: &MemorySearch, ranked: Vec<(i64, f64)>) -> Result<Vec<(i64, f64)>> {
        let (mut seen, mut ordered) = (HashSet::new(), Vec::with_capacity(ranked.len()));
        for (id, rank) in ranked {
            if seen.contains(&id) {
                continue;
            }
            if let Some(current) = self.current_row(search, id)?
                && seen.insert(current)
            {
                ordered.push((current, rank));
            }
            if seen.insert(id) {
                ordered.push((id, rank));
            }
        }
        Ok(ordered)
    }

    /// The row of the current memory of a fact, if the row found is an older one and the filter lets it through.
    fn current_row(&self, search: &MemorySearch, row: i64) -> Result<Option<i64>> {
        let memory = match search.history {
            true => self.by_version(row)?.head.id,
            false => row,
        };
        let Some(id) = self.current(memory)? else { return Ok(None) };
        let StoredMemory { head, version } = self.by_memory(id)?;
        if !search.lets_through(&version) {
            return Ok(None);
        }
        match search.history {
            true => rows::version_id(self.conn, head.id, head.version).map(Some),
            false => Ok(Some(id)),
        }
    }

    /// The terms that tell memories apart: one that is in far more of them than another is left out. Every memory with
    /// such a term would have to be ranked, only to stand behind those with the rarer one.
    fn rarer<'t>(&self, search: &MemorySearch, terms: &'t [String]) -> Result<Vec<&'t str>> {
        let mut rare = Vec::new();
        // Counting is cheap as long as it may stop early.
        for limit in [FEW, FEW * FAR_MORE, FEW * FAR_MORE * FAR_MORE] {
            let counts =
                terms.iter().map(|term| self.count(search, term, limit + 1)).collect::<Result<Vec<usize>>>()?;
            let Some(rarest) = counts.iter().copied().filter(|count| *count > 0).min() else { break };
            let most = (rarest * FAR_MORE).max(FEW);
            let counted = terms.iter().zip(counts).filter(|(_, count)| (1..=most).contains(count));
            rare = counted.map(|(term, _)| term.as_str()).collect();
            if most <= limit {
                break;
            }
        }
        Ok(rare)
    }

    /// The number of memories with a term, at most `limit`.
    pub(super) fn count(&self, search: &MemorySearch, term: &str, limit: usize) -> Result<usize> {
        let table = if search.history { "memory_ever" } else { "memory_now" };
        let (first, last) = rows::range(self.agent);
        let mut select = self.conn.prepare_cached(&format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4)"
        ))?;
        Ok(select.query_row(params![term, first, last, limit], |row| row.get(0))?)
    }

    /// The best row ids and ranks, `wanted` of them. Rows are only joined when a filter asks for it: ranking alone is
    /// answered by the index.
    pub(super) fn ids(&self, search: &MemorySearch, question: Option<&str>, wanted: usize) -> Result<Vec<(i64, f64)>> {
        let (table, id) = if search.history { ("memory_ever", "v.id") } else { ("memory_now", "m.id") };
        let (first, last) = rows::range(self.agent);
        let versions = "memory_versions v JOIN memories m ON m.id = v.memory";
        let latest = if search.history { "v.deleted = 0" } else { "v.version = m.version AND m.deleted = 0" };
        let filter = "(?5 IS NULL OR v.kind = ?5) AND (?6 IS NULL OR v.created_at_ms >= ?6) AND NOT EXISTS \
                      (SELECT 1 FROM json_each(?7) t WHERE t.value NOT IN (SELECT value FROM json_each(v.tags)))";
        let Some(question) = question else {
            let mut select = self.conn.prepare_cached(&format!(
                "SELECT {id} FROM {versions} WHERE {id} BETWEEN ?1 AND ?2 AND {latest} AND {filter} \
                 ORDER BY v.created_at_ms DESC, v.id DESC LIMIT ?3 OFFSET ?4"
            ))?;
            let tags = rows::list(&search.tags);
            let asked = params![first, last, wanted, 0, search.kind, search.since_ms, tags];
            return Ok(select.query_map(asked, |row| Ok((row.get(0)?, 0.0)))?.collect::<Result<_, _>>()?);
        };
        if search.is_filtered() {
            let mut select = self.conn.prepare_cached(&format!(
                "SELECT w.rowid, bm25({table}, {NAME_WEIGHT}, 1.0) FROM {table} w CROSS JOIN {versions} \
                 WHERE {id} = w.rowid AND {latest} AND w.{table} MATCH ?3 AND w.rowid BETWEEN ?1 AND ?2 \
                 AND ?4 IS NULL AND {filter}"
            ))?;
            let tags = rows::list(&search.tags);
            let asked = params![first, last, question, None::<i64>, search.kind, search.since_ms, tags];
            best(select.query(asked)?, wanted)
        } else {
            let mut select = self.conn.prepare_cached(&format!(
                "SELECT rowid, bm25({table}, {NAME_WEIGHT}, 1.0) FROM {table} \
                 WHERE {table} MATCH ?3 AND rowid BETWEEN ?1 AND ?2"
            ))?;
            best(select.query(params![first, last, question])?, wanted)
        }
    }

    /// The memory of a row of the index.
    pub(super) fn by_row(&self, search: &MemorySearch, row: i64) -> Result<StoredMemory> {
        if search.history { self.by_version(row) } else { self.by_memory(row) }
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

/// The rows with the lowest ranks, the lowest first. `ORDER BY rank` does the same in a statement that is parsed anew for each
/// search, and sorts all rows.
fn best(mut rows: Rows<'_>, wanted: usize) -> Result<Vec<(i64, f64)>> {
    let mut best: Vec<(i64, f64)> = Vec::new();
    let better = |a: &(i64, f64), b: &(i64, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
    while let Some(row) = rows.next()? {
        best.push((row.get(0)?, row.get(1)?));
        // Now and then only, so that each row costs little.
        if best.len() >= 2 * wanted.max(MANY) {
            best.select_nth_unstable_by(wanted - 1, better);
            best.truncate(wanted);
        }
    }
    best.sort_unstable_by(better);
    best.truncate(wanted);
    Ok(best)
}

fn lost(id: i64) -> Error {
    Error::internal(format!("the index of memory knows row {id}, which is not there"))
}

#[cfg(test)]
mod tests;
