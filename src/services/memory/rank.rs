//! The order of memories for a question: which of them say what is asked, perhaps in other words. Data in, points out; `search`
//! brings the data.
//!
//! Each word of the question counts by its rarity. What counts most is how much of the question stands close together in a
//! memory, because a fact is one sentence in a long text. A word that is not there is stood in for, in part, by a word that
//! often stands near it in other memories ([`Relations`]): such words are learned from the memories themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many words in a row are one place.
const PLACE: usize = 32;
/// How much the whole text counts beside its best place.
const WHOLE: f64 = 0.3;
/// How much a word in the name counts.
const NAME: f64 = 1.0;
/// The constants of BM25 for the whole text.
const SOON: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// The most that a related word stands in for the word itself.
const STANDING_IN: f64 = 0.6;

/// How many words before and after a word are near it.
const NEAR: usize = 25;
/// A related word stands near the word in so many texts at least, and so many times more often than elsewhere.
const OFTEN: usize = 3;
const LIFT: f64 = 4.0;
/// So many related words are kept for each word.
const RELATED: usize = 15;

/// A text as words: stems in order.
pub type Stems = Vec<String>;

/// How common words are, by a sample of texts.
#[derive(Debug, Default)]
pub struct Background {
    texts: usize,
    words: usize,
    /// In how many texts of the sample each word stands.
    counts: HashMap<String, u32>,
}

impl Background {
    pub fn of(sample: &[Stems]) -> Background {
        let mut counts = HashMap::new();
        for text in sample {
            for word in text.iter().collect::<BTreeSet<_>>() {
                *counts.entry(word.clone()).or_default() += 1;
            }
        }
        Background { texts: sample.len(), words: sample.iter().map(Vec::len).sum(), counts }
    }

    pub fn usual_length(&self) -> f64 {
        (self.words as f64 / self.texts.max(1) as f64).max(1.0)
    }

    /// The share of places of some words that have this word by chance.
    fn chance(&self, word: &str, words: usize) -> f64 {
        let count = self.counts.get(word).copied().unwrap_or(0);
        let share = (f64::from(count) + 0.5) / self.texts.max(1) as f64;
        share * (words as f64 / self.usual_length()).min(1.0)
    }
}

/// Words that often stand near a word, and how far each stands in for it.
pub type Relations = BTreeMap<String, f64>;

/// Learns from texts that have a word which words often stand near it.
pub fn related(word: &str, texts: &[Stems], background: &Background) -> Relations {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut having = 0usize;
    for text in texts {
        let Some(at) = text.iter().position(|it| it == word) else { continue };
        having += 1;
        let near = &text[at.saturating_sub(NEAR)..(at + NEAR).min(text.len())];
        for other in near.iter().collect::<BTreeSet<_>>() {
            *counts.entry(other).or_default() += 1;
        }
    }
    let mut found: Vec<(f64, f64, &str)> = Vec::new();
    for (other, count) in counts.into_iter().filter(|(other, count)| *other != word && *count >= OFTEN) {
        let share = count as f64 / having.max(1) as f64;
        let lift = share / background.chance(other, 2 * NEAR);
        if lift >= LIFT {
            found.push((share * lift.ln(), share, other));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.2.cmp(b.2)));
    let found = found.into_iter().take(RELATED);
    found.map(|(_, share, other)| (other.to_owned(), STANDING_IN * (2.0 * share).min(1.0))).collect()
}

/// A question, and what the memories know of its words.
#[derive(Debug, Default)]
pub struct RankedQuestion {
    /// Each stem once, with its rarity.
    words: Vec<(String, f64)>,
    /// For each stem of a text, the words of the question that it is or stands in for, and how far.
    meanings: HashMap<String, Vec<(usize, f64)>>,
    usual_length: f64,
}

impl RankedQuestion {
    /// `counts` says in how many of the memories each stem of the question stands.
    pub fn new(counts: &[(String, usize)], memories: usize, usual_length: f64) -> RankedQuestion {
        let all = memories.max(1) as f64;
        let rarity = |count: usize| (1.0 + (all - (count as f64).min(all) + 0.5) / (count as f64 + 0.5)).ln();
        let words: Vec<(String, f64)> = counts.iter().map(|(stem, count)| (stem.clone(), rarity(*count))).collect();
        let own = words.iter().enumerate().map(|(number, (stem, _))| (stem.clone(), vec![(number, 1.0)]));
        RankedQuestion { meanings: own.collect(), words, usual_length: usual_length.max(1.0) }
    }

    /// Lets other words stand in for a word of the question. A word of the question stands for itself alone.
    pub fn relate(&mut self, word: &str, relations: &Relations) {
        let Some(number) = self.words.iter().position(|(stem, _)| stem == word) else { return };
        for (other, share) in relations {
            if !self.words.iter().any(|(stem, _)| stem == other) {
                self.meanings.entry(other.clone()).or_default().push((number, *share));
            }
        }
    }

    /// The points of one memory.
    pub fn points(&self, name: &[String], text: &[String]) -> f64 {
        self.best_place(text) + WHOLE * self.whole(text) + NAME * self.named(name)
    }

    /// How much of the question stands in the best place of a text.
    fn best_place(&self, text: &[String]) -> f64 {
        let found: Vec<(usize, &Vec<(usize, f64)>)> = text
            .iter()
            .enumerate()
            .filter_map(|(at, word)| self.meanings.get(word).map(|meanings| (at, meanings)))
            .collect();
        let mut best = 0.0f64;
        let mut there = vec![0.0f64; self.words.len()];
        for (first, (begin, _)) in found.iter().enumerate() {
            there.fill(0.0);
            for (at, meanings) in &found[first..] {
                if at - begin >= PLACE {
                    break;
                }
                for (word, share) in *meanings {
                    there[*word] = there[*word].max(*share);
                }
            }
            best = best.max(there.iter().zip(&self.words).map(|(share, (_, rarity))| share * rarity).sum());
        }
        best
    }

    /// BM25 over the whole text.
    fn whole(&self, text: &[String]) -> f64 {
        let damping = SOON * (1.0 - LENGTH + LENGTH * text.len() as f64 / self.usual_length);
        let mut counts = vec![0.0f64; self.words.len()];
        for word in text {
            for (number, share) in self.meanings.get(word).into_iter().flatten().filter(|it| it.1 >= 1.0) {
                counts[*number] += share;
            }
        }
        let often = |count: f64| count * (SOON + 1.0) / (count + damping);
        counts.into_iter().zip(&self.words).map(|(count, (_, rarity))| rarity * often(count)).sum()
    }

    fn named(&self, name: &[String]) -> f64 {
        self.words.iter().filter(|(stem, _)| name.contains(stem)).map(|it| it.1).sum()
    }
}

#[cfg(test)]
mod tests;
