//! Answers to a question of several words: candidates by the index, ordered by [`rank`](super::rank).

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::rank::{Background, RankedQuestion, Stems, related};
use super::rows;
use super::search::MemorySearch;
use super::tx::{MemoryReader, StoredMemory};
use acheron_base::Result;
use acheron_base::words::{is_beginning, telling, words};
use acheron_store::params;

/// So many memories are looked at closely, and so much of each, in bytes.
const CANDIDATES: usize = 60;
const CLOSELY: usize = 16 << 10;
/// A word of more than a quarter of the memories chooses no candidates if another does, nor does one of more than this; and all
/// words together choose among so many.
const COMMON: usize = 4;
const FEW: usize = 50;
const MANY: usize = 4_000;
const ROWS: usize = 8_000;
/// So many memories with a word tell which words stand near it, and so much of each.
const TELLING: usize = 20;
const PART: usize = 4 << 10;
/// A word of more than an eighth of the memories is too common to have relations.
const UNRELATED: usize = 8;
/// So many memories are the sample by which it is known how common words are.
const SAMPLE: usize = 400;

/// How common words are in the memories of an agent; counted again when there are many more memories.
#[derive(Default)]
pub struct BackgroundCache(Mutex<Option<(usize, Arc<Background>)>>);

impl BackgroundCache {
    fn get(&self, memories: usize, count: impl FnOnce() -> Result<Background>) -> Result<Arc<Background>> {
        if let Some((then, background)) = &*self.0.lock()
            && (*then..=then + then / 4 + FEW).contains(&memories)
        {
            return Ok(background.clone());
        }
        let background = Arc::new(count()?);
        *self.0.lock() = Some((memories, background.clone()));
        Ok(background)
    }
}

impl MemoryReader<'_> {
    /// The rows that answer a question, the best first: the lower the number, the better.
    pub(super) fn answers(&self, search: &MemorySearch, wanted: usize) -> Result<Vec<(i64, f64)>> {
        let stems: BTreeSet<String> = telling(&search.query).into_iter().take(64).collect();
        let memories = usize::try_from(rows::highest(self.conn, self.agent)?).unwrap_or(usize::MAX);
        let most = (memories / COMMON).clamp(FEW, MANY);
        let mut counts = Vec::new();
        for stem in stems {
            let count = self.count(search, &term(&stem), most + 1)?;
            counts.push((stem, count));
        }
        let chosen = choosing(&counts, most, search.is_filtered());
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = self.ids(search, Some(&chosen.join(" OR ")), wanted.max(CANDIDATES))?;
        let background = self.background(memories)?;
        let mut question = RankedQuestion::new(&counts, memories, background.usual_length());
        for (stem, count) in counts.iter().filter(|(_, count)| (3..=memories / UNRELATED).contains(count)) {
            if *count <= most {
                question.relate(stem, &related(stem, &self.having(search, stem)?, &background));
            }
        }
        let rest = found.split_off(found.len().min(CANDIDATES));
        for (row, rank) in &mut found {
            let StoredMemory { head, version } = self.by_row(search, *row)?;
            *rank = -question.points(&words(&head.name), &stems_of(&version.content.text(), CLOSELY));
        }
        found.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        // Those that were not looked at closely stand behind, in the order of the index.
        found.extend(rest.into_iter().map(|(row, _)| (row, 0.0)));
        Ok(found)
    }

    /// Some memories that have a word, as stems.
    fn having(&self, search: &MemorySearch, stem: &str) -> Result<Vec<Stems>> {
        let table = if search.history { "memory_ever" } else { "memory_now" };
        let (first, last) = rows::range(self.agent);
        let mut select = self.conn.prepare_cached(&format!(
            "SELECT rowid FROM {table} WHERE {table} MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4"
        ))?;
        let asked = params![term(stem), first, last, TELLING];
        let ids: Vec<i64> = select.query_map(asked, |row| row.get(0))?.collect::<Result<_, _>>()?;
        let text = |id: i64| Ok(stems_of(&self.by_row(search, id)?.version.content.text(), PART));
        ids.into_iter().map(text).collect()
    }

    fn background(&self, memories: usize) -> Result<Arc<Background>> {
        let count = || {
            let texts = rows::sample(self.conn, self.agent, memories / SAMPLE)?;
            Ok(Background::of(&texts.iter().map(|text| stems_of(text, PART)).collect::<Vec<_>>()))
        };
        match &self.background {
            Some(cache) => cache.get(memories, count),
            None => count().map(Arc::new),
        }
    }
}

/// The words that choose candidates: the rarest, as long as they choose among few rows. With a filter, or if all are common, every
/// word that is known.
fn choosing(counts: &[(String, usize)], most: usize, all: bool) -> Vec<String> {
    let mut known: Vec<&(String, usize)> = counts.iter().filter(|(_, count)| *count > 0).collect();
    known.sort_by_key(|(_, count)| *count);
    let mut rows = 0;
    let rare = known.iter().filter(|(_, count)| *count <= most).take_while(|(_, count)| {
        rows += count;
        rows <= ROWS || rows == *count
    });
    let rare: Vec<String> = rare.map(|(stem, _)| term(stem)).collect();
    if all || rare.is_empty() { known.iter().map(|(stem, _)| term(stem)).collect() } else { rare }
}

/// A stem in the language of the index.
fn term(stem: &str) -> String {
    format!("\"{stem}\"{}", if is_beginning(stem) { " *" } else { "" })
}

fn stems_of(text: &str, most: usize) -> Stems {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    words(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_choose_and_common_ones_only_if_there_are_no_others() {
        let counts = |counts: &[(&str, usize)]| -> Vec<(String, usize)> {
            counts.iter().map(|(stem, count)| ((*stem).to_owned(), *count)).collect()
        };
        let mixed = counts(&[("river", 5001), ("heron", 3), ("none", 0), ("boat", 400)]);
        assert_eq!(choosing(&mixed, 4000, false), ["\"heron\"", "\"boat\""]);
        assert_eq!(choosing(&mixed, 4000, true), ["\"heron\"", "\"boat\"", "\"river\""]);
        assert_eq!(choosing(&counts(&[("river", 51)]), 50, false), ["\"river\""]);
        let many = counts(&[("a", 3000), ("b", 3500), ("c", 3900)]);
        assert_eq!(choosing(&many, 4000, false), ["\"a\"", "\"b\""]);
        assert!(choosing(&counts(&[("none", 0)]), 50, false).is_empty());
    }
}
