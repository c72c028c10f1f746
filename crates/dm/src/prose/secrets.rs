//! Whether a sentence tells a secret: its words in a row, or most of the words that carry it, in whatever order and form. Only
//! `prose` uses it.

use crate::refs::normal;
use crate::verbs::alike;

/// The words of a secret in a row that tell it.
pub const RUN: usize = 6;

/// A secret that has not been told.
pub struct UntoldSecret {
    /// Its text in normal form.
    pub text: String,
    /// The words that carry it.
    words: Vec<String>,
    /// How many of them tell it.
    enough: usize,
    pub report: String,
}

/// Words that carry nothing of a secret.
const STOP: &[&str] = &[
    "the", "a", "an", "and", "or", "but", "if", "of", "to", "in", "on", "at", "by", "for", "from", "with", "without",
    "under", "over", "into", "out", "off", "up", "down", "as", "than", "then", "so", "not", "no", "that", "this",
    "these", "those", "what", "who", "whom", "which", "where", "when", "why", "how", "he", "she", "it", "they", "we",
    "you", "i", "him", "her", "his", "hers", "its", "their", "them", "my", "your", "our", "own", "is", "are", "was",
    "were", "be", "been", "being", "has", "have", "had", "do", "does", "did", "will", "would", "may", "might", "can",
    "could", "there", "here", "one", "all", "before", "after", "because", "whoever", "s", "that_s", "else",
];

/// The words of a text that carry it.
fn content(text: &str) -> Vec<String> {
    let mut words: Vec<String> =
        normal(text).split(' ').filter(|word| !word.is_empty() && !STOP.contains(word)).map(str::to_owned).collect();
    words.sort();
    words.dedup();
    words
}

impl UntoldSecret {
    /// A secret of `owner`, who may stand in it as he or she: a short one is told only together with the name.
    pub fn new(secret: &str, owner: &str, report: String) -> UntoldSecret {
        let mut words = content(secret);
        if words.len() <= 2 {
            words.extend(content(owner).into_iter().take(1));
            words.sort();
            words.dedup();
        }
        let enough = if words.len() <= 3 { words.len() } else { (words.len() * 2).div_ceil(3) };
        UntoldSecret { text: normal(secret), words, enough: enough.max(2), report }
    }

    /// Whether a sentence in normal form repeats all of it, or so many of its words in a row.
    pub fn repeated_in(&self, text: &str, run: usize) -> bool {
        let words: Vec<&str> = self.text.split(' ').filter(|word| !word.is_empty()).collect();
        let text = format!(" {text} ");
        !words.is_empty()
            && words.windows(words.len().min(run)).any(|run| text.contains(&format!(" {} ", run.join(" "))))
    }

    /// Whether a sentence in normal form has most of the words that carry it.
    pub fn paraphrased_in(&self, sentence: &str) -> bool {
        let said = content(sentence);
        let met = self.words.iter().filter(|word| said.iter().any(|own| alike(own, word))).count();
        met >= self.enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_told_by_most_of_its_words() {
        for (secret, owner, tells, not) in [
            (
                "Pell sold the keeper's oil",
                "Pell",
                "Pell has sold the oil that belonged to the keeper.",
                "The keeper needs oil.",
            ),
            ("she was on the Merrow", "Wren", "Wren was on the Merrow.", "The Merrow did not come home."),
            (
                "the tenth name is her own daughter's",
                "Maud Ferrow",
                "The tenth name is that of a daughter.",
                "Nine names stand there.",
            ),
            (
                "Under the chapel hangs a bell that was sunk to be forgotten.",
                "",
                "A forgotten bell was sunk beneath the chapel.",
                "Under the chapel, it is said, something hangs.",
            ),
        ] {
            let own = UntoldSecret::new(secret, owner, String::new());
            assert!(own.paraphrased_in(&normal(tells)), "{tells}");
            assert!(!own.paraphrased_in(&normal(not)), "{not}");
        }
    }
}
