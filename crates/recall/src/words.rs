//! The words of a text, as they are searched: lower case, normalised; each Han or Kana character is a word.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;

use acheron_base::tokens::ideograph;

/// Longer runs of letters are not indexed.
const LONGEST: usize = 64;

pub fn words(text: &str) -> Vec<String> {
    let (mut found, mut word) = (Vec::new(), String::new());
    let mut end = |word: &mut String| {
        if !word.is_empty() && word.len() <= LONGEST {
            found.push(std::mem::take(word));
        }
        word.clear();
    };
    for c in text.nfkc().flat_map(char::to_lowercase) {
        if ideograph(c) {
            end(&mut word);
            word.push(c);
            end(&mut word);
        } else if c.is_alphanumeric() || (c == '_' || unicode_normalization::char::is_combining_mark(c)) {
            word.push(c);
        } else {
            end(&mut word);
        }
    }
    end(&mut word);
    found
}

/// The number of times that each word occurs.
pub fn counted(text: &str) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    for word in words(text) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_any_script_are_found() {
        assert_eq!(words("The RIVER's wide, ﬁne"), ["the", "river", "s", "wide", "fine"]);
        assert_eq!(words("Straße über Ελλάδα"), ["straße", "über", "ελλάδα"]);
        assert_eq!(words("東京 2x"), ["東", "京", "2x"]);
        assert!(words(&"x".repeat(100)).is_empty());
    }
}
