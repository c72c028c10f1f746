//! Text into words, for every search: memory, recall and symbols find the same text by the same words. Any crate may use it.
//!
//! Case, accents and punctuation do not matter. An identifier is found whole and by its parts: `HashMap` is `hashmap`, `hash`
//! and `map`. Han, Kana and Hangul are written without spaces, so a run of them becomes overlapping pairs, 東京都 `東京 京都
//! 都`: a word of two characters is one pair, a longer one is pairs in a row, and the last character alone lets a single one
//! be found as the beginning of a pair. English endings are taken off ([`stem`]).

mod stem;
#[cfg(test)]
mod tests;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

pub use stem::stem;

use crate::tokens::ideograph;

/// Rises when a text gets other words than before: whatever was indexed must be indexed again.
pub const VERSION: u32 = 1;

/// Longer runs of letters are no words, but keys and encoded data.
const LONGEST: usize = 64;

/// Words that say nothing about what a text is about.
const EMPTY: [&str; 66] = [
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can", "could", "did",
    "do", "does", "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my",
    "of", "on", "one", "or", "s", "should", "so", "some", "such", "t", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "this", "to", "was", "we", "what", "when", "where", "which", "who", "will", "with",
    "would", "you",
];

/// Calls `each` with every word in order: folded, not stemmed. An identifier of several parts is given whole, then by parts.
pub fn each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut run = LetterRun::default();
    let mut last_ideograph: Option<char> = None;
    for c in text.nfkc() {
        if ideograph(c) {
            run.end(&mut each);
            if let Some(before) = last_ideograph.replace(c) {
                each(&String::from_iter([before, c]));
            }
            continue;
        }
        if let Some(last) = last_ideograph.take() {
            each(last.encode_utf8(&mut [0; 4]));
        }
        if c.is_alphanumeric() {
            run.push(c);
        } else if !is_combining_mark(c) {
            run.end(&mut each);
        } else if !run.word.is_empty() && c >= '\u{590}' {
            run.word.push(c); // a vowel sign, not an accent
        }
    }
    if let Some(last) = last_ideograph {
        each(last.encode_utf8(&mut [0; 4]));
    }
    run.end(&mut each);
}

/// Letters and digits in a row.
#[derive(Default)]
struct LetterRun {
    word: String,
    /// Where parts begin, but for the first.
    parts: Vec<usize>,
    lower_before: bool,
}

impl LetterRun {
    fn push(&mut self, c: char) {
        if c.is_ascii() {
            self.part(c);
            return self.word.push(c.to_ascii_lowercase());
        }
        self.part(c);
        // Accents of alphabets; in other scripts a mark makes another letter.
        let bare = [c].into_iter().nfkd().next().filter(|base| (*base as u32) < 0x590).unwrap_or(c);
        self.word.extend(bare.to_lowercase());
    }

    fn part(&mut self, c: char) {
        if c.is_uppercase() && self.lower_before {
            self.parts.push(self.word.len());
        }
        self.lower_before = c.is_lowercase();
    }

    fn end(&mut self, each: &mut impl FnMut(&str)) {
        if !self.word.is_empty() && self.word.len() <= LONGEST {
            each(&self.word);
            let ends = self.parts.iter().copied().skip(1).chain([self.word.len()]);
            if let Some(first) = self.parts.first() {
                each(&self.word[..*first]);
            }
            for (begin, end) in self.parts.iter().zip(ends) {
                each(&self.word[*begin..end]);
            }
        }
        self.word.clear();
        self.parts.clear();
        self.lower_before = false;
    }
}

/// The stems of a text, in order.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| found.push(stem(word).into_owned()));
    found
}

/// The stems of a text that say what it is about, in order. A text of nothing but empty words has them all.
pub fn telling(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| {
        if !is_empty(word) {
            found.push(stem(word).into_owned());
        }
    });
    if found.is_empty() { words(text) } else { found }
}

/// Whether a word, folded and not stemmed, says nothing about what a text is about.
pub fn is_empty(word: &str) -> bool {
    EMPTY.binary_search(&word).is_ok()
}

/// Whether a word is one character of a script without spaces, to be looked for as the beginning of a pair.
pub fn is_beginning(word: &str) -> bool {
    let mut chars = word.chars();
    matches!((chars.next(), chars.next()), (Some(c), None) if ideograph(c))
}

/// The stems of a text with spaces between, as a full-text index is given them.
pub fn indexed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    each_word(text, |word| {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&stem(word));
    });
    out
}
