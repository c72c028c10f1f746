//! Words for the full-text index, and what to ask it for.
//!
//! FTS5 takes a run of Han or Kana for one long word. So such runs are written as overlapping pairs, 東京都 as
//! `東京 京都 都`: a word of two characters is one pair, a longer one is pairs in a row, and the last character alone
//! lets a single one be found as the beginning of a pair.

use unicode_normalization::UnicodeNormalization;

use acheron_base::tokens::ideograph;

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

/// The text as the index is to see it.
pub fn indexed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut chars = text.nfkc().peekable();
    while let Some(c) = chars.next() {
        if !ideograph(c) {
            // a zero would end the text for SQLite
            out.push(if c == '\0' { ' ' } else { c });
            continue;
        }
        out.push(' ');
        let mut here = c;
        while let Some(next) = chars.next_if(|next| ideograph(*next)) {
            out.extend([here, next, ' ']);
            here = next;
        }
        out.extend([here, ' ']);
    }
    out
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
    let clean: String = part.nfkc().map(|c| if c.is_control() || c == '"' { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    needles.extend(words.iter().map(|word| (*word).to_owned()));
    let clean = clean.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut phrase = indexed(clean).trim().to_owned();
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
    terms.push(format!("\"{}\"{}", phrase.trim(), if beginning { " *" } else { "" }));
}

#[cfg(test)]
mod tests;
