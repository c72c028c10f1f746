//! Search over symbols: BM25 on words, and the likeness of small vectors, updated in place.
//!
//! The index holds what it needs to take a symbol out again, so a change costs as much as the symbol, not as much as the
//! catalogue. Order is deterministic: by score, then by id.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::symbol::Symbol;
use super::vector::{Vector, likeness, vector};
use acheron_base::words::telling;

/// How much a word counts by where it stands.
const NAME: u32 = 3;
const RECIPE: u32 = 2;
const ROLE: u32 = 2;
const TEXT: u32 = 1;

/// Below this likeness (in thousandths), with no word in common, two texts are unrelated.
const STRANGERS: i32 = 250;

/// As much of each text is looked at, in bytes: one long symbol must not make the search of everybody slow.
const LOOKED_AT: usize = 2048;

fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(LOOKED_AT)]
}

/// The score of a symbol whose name or macro is the query.
const EXACT: u32 = 1000;

/// One symbol that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SymbolHit {
    pub id: String,
    /// 0 to 1000.
    pub score: u32,
    /// The part that words in common give, in thousandths of the best.
    pub words: u32,
    /// How alike the texts are, in thousandths.
    pub likeness: u32,
}

/// Narrows a search.
#[derive(Clone, Debug, Default)]
pub struct Within<'a> {
    pub domain: Option<&'a str>,
    pub tag: Option<&'a str>,
}

/// The words and vectors of every symbol.
#[derive(Default)]
pub struct Index {
    entries: Vec<Option<IndexEntry>>,
    free: Vec<u32>,
    places: HashMap<String, u32>,
    terms: HashMap<String, u32>,
    /// For each term, the entries that contain it, with their weights.
    postings: Vec<Vec<(u32, u32)>>,
    total: u64,
}

struct IndexEntry {
    id: String,
    domain: String,
    tag: String,
    terms: Vec<u32>,
    length: u32,
    vector: Vector,
    /// Its name and its macro, as whole phrases.
    phrases: [String; 2],
}

impl Index {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a symbol, or replaces the one of that id.
    pub fn put(&mut self, symbol: &Symbol) {
        self.remove(&symbol.id);
        let mut weights: HashMap<u32, u32> = HashMap::new();
        let fields = [
            (&symbol.name, NAME),
            (&symbol.recipe, RECIPE),
            (&symbol.symbolic_role, ROLE),
            (&symbol.description, TEXT),
            (&symbol.id, TEXT),
        ];
        for (text, weight) in fields {
            for word in telling(beginning(text)) {
                let term = self.term(&word);
                *weights.entry(term).or_default() += weight;
            }
        }
        let place = self.free.pop().unwrap_or(self.entries.len() as u32);
        let mut terms: Vec<(u32, u32)> = weights.into_iter().collect();
        terms.sort_unstable();
        for (term, weight) in &terms {
            self.postings[*term as usize].push((place, *weight));
        }
        let length = terms.iter().map(|(_, weight)| weight).sum();
        self.total += u64::from(length);
        let whole = fields.map(|(text, _)| beginning(text)).join(" ");
        let entry = IndexEntry {
            id: symbol.id.clone(),
            domain: symbol.symbol_domain.clone(),
            tag: symbol.symbol_tag.clone(),
            terms: terms.into_iter().map(|(term, _)| term).collect(),
            length,
            vector: vector(&whole),
            phrases: [phrase(beginning(&symbol.name)), phrase(beginning(&symbol.recipe))],
        };
        if place as usize == self.entries.len() {
            self.entries.push(Some(entry));
        } else {
            self.entries[place as usize] = Some(entry);
        }
        self.places.insert(symbol.id.clone(), place);
    }

    /// Takes a symbol out; whether it was there.
    pub fn remove(&mut self, id: &str) -> bool {
        let Some(place) = self.places.remove(id) else { return false };
        let Some(entry) = self.entries[place as usize].take() else { return false };
        for term in entry.terms {
            self.postings[term as usize].retain(|(other, _)| *other != place);
        }
        self.total -= u64::from(entry.length);
        self.free.push(place);
        true
    }

    /// The `k` nearest symbols to a text.
    pub fn search(&self, query: &str, k: usize, within: &Within) -> Vec<SymbolHit> {
        let strengths = self.strengths(query);
        let best = strengths.values().copied().fold(0.0f32, f32::max);
        let (asked, exact) = (vector(query), phrase(query));
        let mut hits: Vec<(u32, u32, i32, &str)> = Vec::new();
        for (place, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            let elsewhere = within.domain.is_some_and(|domain| domain != entry.domain)
                || within.tag.is_some_and(|tag| tag != entry.tag);
            if elsewhere {
                continue;
            }
            let strength = strengths.get(&(place as u32)).copied().unwrap_or(0.0);
            let words = if best > 0.0 { (strength / best * 1000.0).round() as u32 } else { 0 };
            let likeness = likeness(&asked, &entry.vector).max(0);
            let is_meant = !exact.is_empty() && entry.phrases.contains(&exact);
            if words == 0 && likeness < STRANGERS && !is_meant {
                continue;
            }
            // The symbol that is called what was asked for comes first, however often others repeat its words.
            let score = if is_meant { EXACT } else { ((words * 6 + likeness as u32 * 4) / 10).min(EXACT - 1) };
            hits.push((score, words, likeness, &entry.id));
        }
        hits.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.3.cmp(b.3)));
        hits.truncate(k);
        let hit = |(score, words, likeness, id): (u32, u32, i32, &str)| SymbolHit {
            id: id.to_owned(),
            score,
            words,
            likeness: likeness as u32,
        };
        hits.into_iter().map(hit).collect()
    }

    fn term(&mut self, word: &str) -> u32 {
        if let Some(term) = self.terms.get(word) {
            return *term;
        }
        let term = self.postings.len() as u32;
        self.terms.insert(word.to_owned(), term);
        self.postings.push(Vec::new());
        term
    }

    /// BM25 (k1 = 1.2, b = 0.75) of every symbol that shares a word with the query.
    fn strengths(&self, query: &str) -> HashMap<u32, f32> {
        let mut asked: Vec<u32> = telling(query).iter().filter_map(|word| self.terms.get(word).copied()).collect();
        asked.sort_unstable();
        asked.dedup();
        let count = self.len() as f32;
        let usual = (self.total as f32 / count.max(1.0)).max(1.0);
        let mut strengths: HashMap<u32, f32> = HashMap::new();
        for term in asked {
            let holders = &self.postings[term as usize];
            let rarity = (1.0 + (count - holders.len() as f32 + 0.5) / (holders.len() as f32 + 0.5)).ln();
            for (place, weight) in holders {
                let length = self.entries[*place as usize].as_ref().map_or(0, |entry| entry.length);
                let weight = *weight as f32;
                let damping = weight + 1.2 * (0.25 + 0.75 * length as f32 / usual);
                *strengths.entry(*place).or_default() += rarity * weight * 2.2 / damping;
            }
        }
        strengths
    }
}

/// A text as one phrase: its letters and digits in small letters, other characters as one blank.
fn phrase(text: &str) -> String {
    let folded: String =
        text.chars().flat_map(char::to_lowercase).map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    folded.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
