//! Memories that say nearly the same as a new one. They are only reported: whether one supersedes the other is for the writer to
//! say.
//!
//! It runs in every change, on the thread of the writer, so it looks up few words and reads few memories: those that share a rare
//! word with the new text.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::answers::path;
use super::rows;
use super::tx::{MemoryTx, StoredMemory};
use acheron_base::Result;
use acheron_base::words::telling;
use acheron_store::params;

/// So much of a text is compared, in bytes.
const REACH: usize = 4096;
/// So many words are looked up: the longest, which are rare the most often.
const LOOKED_UP: usize = 6;
/// A word of more memories than this tells nothing about one of them.
const RARE: usize = 8;
/// So many memories are read, and so many are reported.
const READ: usize = 8;
const REPORTED: usize = 3;
/// The least share of the words, weighed by their rarity, that two texts have in common if they are similar.
const SHARE: f64 = 0.5;

/// A memory that says nearly the same.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Similar")]
pub struct SimilarMemory {
    pub memory_path: String,
    /// The share of their words that both have, 0.5 to 1; a rare word counts more.
    pub share: f64,
}

/// The words of a text, each once, and in how many memories those stand that were looked up.
struct ComparedText {
    words: BTreeSet<String>,
    counts: BTreeMap<String, usize>,
}

impl ComparedText {
    fn weight(&self, word: &str) -> f64 {
        let most = (RARE + 1) as f64;
        let count = self.counts.get(word).map_or(most, |count| (*count).max(1) as f64);
        (1.0 + most / count).ln()
    }

    /// The share of the words that both have.
    fn share(&self, other: &BTreeSet<String>) -> f64 {
        let sum = |words: &mut dyn Iterator<Item = &String>| words.map(|word| self.weight(word)).sum::<f64>();
        let all = sum(&mut self.words.union(other));
        if all > 0.0 { sum(&mut self.words.intersection(other)) / all } else { 0.0 }
    }
}

impl MemoryTx<'_> {
    /// The memories that say nearly the same as the latest version of this one, the most similar first. Those that are in its
    /// group of facts, or are superseded, are left out.
    pub fn similar(&self, memory: &StoredMemory) -> Result<Vec<SimilarMemory>> {
        let mut text = ComparedText { words: compared(&memory.version.content.text()), counts: BTreeMap::new() };
        let mut ids = BTreeSet::new();
        for word in longest(&text.words) {
            let having = self.having(&word)?;
            text.counts.insert(word, having.len());
            if having.len() <= RARE {
                ids.extend(having);
            }
        }
        ids.remove(&memory.head.id);
        let mut found = Vec::new();
        // The newest first.
        for id in ids.into_iter().rev().take(READ) {
            let head = rows::head_by_id(self.tx, id)?;
            let same_fact = head.fact.is_some_and(|(fact, _)| memory.head.fact.is_some_and(|own| own.0 == fact));
            if head.deleted || head.superseded_by.is_some() || same_fact {
                continue;
            }
            let Some(version) = rows::version(self.tx, id, head.version)? else { continue };
            let share = text.share(&compared(&version.content.text()));
            if share >= SHARE {
                found.push(SimilarMemory { memory_path: path(&head.name), share: (share * 100.0).round() / 100.0 });
            }
        }
        found.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.memory_path.cmp(&b.memory_path)));
        found.truncate(REPORTED);
        Ok(found)
    }

    /// The memories that have a word, one more than [`RARE`] at most.
    fn having(&self, word: &str) -> Result<Vec<i64>> {
        let (first, last) = rows::range(self.agent);
        let mut select = self.tx.prepare_cached(
            "SELECT rowid FROM memory_now WHERE memory_now MATCH ?1 AND rowid BETWEEN ?2 AND ?3 LIMIT ?4",
        )?;
        let asked = params![format!("content : \"{word}\""), first, last, RARE + 1];
        Ok(select.query_map(asked, |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

fn compared(text: &str) -> BTreeSet<String> {
    let end = (0..=REACH.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    telling(&text[..end]).into_iter().collect()
}

fn longest(words: &BTreeSet<String>) -> Vec<String> {
    let mut words: Vec<&String> = words.iter().collect();
    words.sort_by_key(|word| (std::cmp::Reverse(word.len()), *word));
    words.into_iter().take(LOOKED_UP).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(words: &str, counts: &[(&str, usize)]) -> ComparedText {
        let counts = counts.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect();
        ComparedText { words: compared(words), counts }
    }

    #[test]
    fn a_rare_word_in_common_says_more_than_common_ones() {
        let key = text("the key of kestrel17 is in vault north", &[("kestrel17", 1)]);
        assert!(key.share(&compared("the key of kestrel17 is in vault south")) >= SHARE, "another value");
        assert!(key.share(&compared("the key of kestrel18 is in vault north")) < SHARE, "another thing");
        assert_eq!(key.share(&compared("the key of kestrel17 is in vault north")), 1.0);
        assert_eq!(text("", &[]).share(&compared("")), 0.0);
    }
}
