//! What to ask the full-text index for. Its words are those of `acheron-base`, as of every search.

use acheron_base::tokens::ideograph;
pub use acheron_base::words::indexed;
use acheron_base::words::{each_word, stem};

/// More words than this in one question are not looked at.
const TERMS: usize = 64;

/// A question to the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordQuery {
    /// Nothing was asked: everything matches.
    Blank,
    /// Something was asked, but no word is in it.
    Wordless,
    Words {
        /// Words and phrases in FTS5's language.
        terms: Vec<String>,
        /// The words themselves, as a reader would look for them.
        needles: Vec<String>,
    },
}

/// Parses a query. Words in double quotes belong together; a word that ends in `*` is a beginning.
/// Nothing that is typed is a fault.
pub fn query(typed: &str) -> WordQuery {
    if typed.trim().is_empty() {
        return WordQuery::Blank;
    }
    let mut terms = Vec::new();
    let mut needles = Vec::new();
    for (n, part) in typed.split('"').enumerate() {
        match n % 2 {
            1 => take(part, false, &mut terms, &mut needles),
            _ => part.split_whitespace().for_each(|word| take(word, word.ends_with('*'), &mut terms, &mut needles)),
        }
    }
    if terms.is_empty() {
        return WordQuery::Wordless;
    }
    WordQuery::Words { terms, needles }
}

/// Adds one term, unless there is no word in it.
fn take(part: &str, beginning: bool, terms: &mut Vec<String>, needles: &mut Vec<String>) {
    if terms.len() == TERMS || !part.chars().any(char::is_alphanumeric) {
        return;
    }
    let mut words = Vec::new();
    each_word(part, |word| words.push(word.to_owned()));
    if words.is_empty() {
        return;
    }
    needles.extend(part.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned));
    let clean = part.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut phrase = indexed(clean);
    let mut last = clean.chars().rev().take_while(|c| ideograph(*c));
    let beginning = match (last.next(), last.next()) {
        // ends in a single one: it is the first of a pair, or the last of a run
        (Some(_), None) => true,
        // ends in a run: its last character need not be the last of the run that is looked for
        (Some(end), Some(_)) => {
            phrase.truncate(phrase.len() - end.len_utf8());
            false
        }
        _ => beginning,
    };
    let term = format!("\"{}\"{}", phrase.trim(), if beginning { " *" } else { "" });
    // An identifier may stand in the text as one word.
    let whole = stem(&words[0]);
    let has_parts = words.len() > 2 && words[1..].concat() == words[0];
    terms.push(if has_parts { format!("({term} OR \"{whole}\")") } else { term });
}

#[cfg(test)]
mod tests;
