//! Text into words, for search: folded, without punctuation, with the ending taken off.
//!
//! Deterministic and without a language model: `Trust repair!` and `trust repair` are the same two words.

use unicode_normalization::UnicodeNormalization;

/// The most words of one text that are looked at.
const MOST: usize = 4096;

/// Words that say nothing about what a text is about.
const EMPTY: [&str; 44] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "by", "can", "do", "does", "for", "from", "has",
    "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "so", "that", "the",
    "their", "this", "to", "was", "we", "what", "when", "which", "who", "with", "you",
];

/// The words of a text, in order. Camel case and hyphens part words, so that an id can be searched too.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in text.nfkd().filter(|c| !unicode_normalization::char::is_combining_mark(*c)) {
        if c.is_alphanumeric() {
            if c.is_uppercase() && lower_before {
                take(&mut word, &mut found);
            }
            lower_before = c.is_lowercase();
            word.extend(c.to_lowercase());
        } else {
            take(&mut word, &mut found);
            lower_before = false;
        }
        if found.len() >= MOST {
            return found;
        }
    }
    take(&mut word, &mut found);
    found
}

fn take(word: &mut String, found: &mut Vec<String>) {
    let whole = std::mem::take(word);
    if !whole.is_empty() && whole.len() <= 256 && EMPTY.binary_search(&whole.as_str()).is_err() {
        found.push(whole);
    }
}

/// A word without its commonest English endings, so that `repaired`, `repairing` and `repairs` meet.
pub fn stem(word: &str) -> &str {
    if !word.is_ascii() {
        return word;
    }
    for ending in [
        "ations", "ation", "ingly", "ments", "ment", "ness", "ings", "ing", "edly", "ies", "ied", "ion", "ed", "es",
        "ly", "s", "e", "y",
    ] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= 4
        {
            return rest;
        }
    }
    word
}

#[cfg(test)]
mod tests;
