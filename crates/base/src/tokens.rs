//! Counts the tokens of a text: [`count`] with a real vocabulary, [`at_most`] with none, [`estimate`] quickly.
//!
//! Every model has another vocabulary. `count` uses that of `cl100k_base`, which needs more tokens than newer ones for almost
//! every language, and adds a sixteenth; what fits by it fits. The vocabulary is part of the program and is loaded when it is
//! first needed: 33 MiB and some 50 ms, then a second per 5 MiB. So ask `at_most` first: every token has at least one byte.
//! Any crate may use it; it uses nothing of ours.

use std::sync::atomic::{AtomicBool, Ordering};

use bpe_openai::Tokenizer;
use unicode_normalization::char::is_combining_mark;

/// The longest run of line feeds that is one token in every vocabulary that was looked at.
const LINES_PER_TOKEN: usize = 15;

static LOADED: AtomicBool = AtomicBool::new(false);

/// Whether the vocabulary was needed in this process.
pub fn is_loaded() -> bool {
    LOADED.load(Ordering::Relaxed)
}

fn vocabulary() -> &'static Tokenizer {
    LOADED.store(true, Ordering::Relaxed);
    bpe_openai::cl100k_base()
}

/// The number of tokens of a text, rather too high than too low.
pub fn count(text: &str) -> u64 {
    if text.is_empty() {
        return 0;
    }
    let known = vocabulary().count(text);
    let lines = text.bytes().filter(|byte| *byte == b'\n').count() / LINES_PER_TOKEN;
    (known + known / 16).max(lines).min(text.len()) as u64
}

/// A number of tokens that no text of so many bytes exceeds, in any vocabulary of bytes.
pub fn at_most(text: &str) -> u64 {
    text.len() as u64
}

/// Whether a text has at most `room` tokens. A short one is not counted.
pub fn fits(text: &str, room: u64) -> bool {
    at_most(text) <= room || count(text) <= room
}

/// A long beginning of a text with at most `room` tokens.
pub fn head(text: &str, room: u64) -> &str {
    if fits(text, room) {
        return text;
    }
    let (mut end, mut cost) = (0, 0);
    let known = vocabulary();
    for piece in known.split(text) {
        cost += known.bpe.count(piece.as_bytes()) as u64;
        if cost + cost / 16 > room {
            // A piece without an end, such as a line of base64, is cut by its bytes.
            let rest = room.saturating_sub(count(&text[..end]));
            end += usize::try_from(rest).unwrap_or(usize::MAX).min(piece.len());
            break;
        }
        end += piece.len();
    }
    // The last word of a beginning may cost more than it did within the text.
    loop {
        end = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        if end == 0 || fits(&text[..end], room) {
            return &text[..end];
        }
        end -= 1;
    }
}

/// An estimate for a whole text in one pass, without a vocabulary: for figures that nothing has to fit into.
pub fn estimate(text: &str) -> u64 {
    let mut total = 0;
    let mut run = Run { class: Class::Space, chars: 0 };
    for c in text.chars() {
        let class = Class::of(c);
        if class != run.class {
            total += run.tokens();
            run = Run { class, chars: 0 };
        }
        run.chars += 1;
    }
    total + run.tokens()
}

/// Characters of one class in a row.
struct Run {
    class: Class,
    chars: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Line,
    /// Letters of English and its like.
    Latin,
    Digit,
    /// Letters of other alphabets: shorter pieces.
    Letter,
    /// One character is about a word's part.
    Ideograph,
    Mark,
    /// Rare in vocabularies: emoji and the like are encoded as bytes.
    Rare,
}

impl Class {
    fn of(c: char) -> Class {
        match c {
            '\n' | '\r' => Class::Line,
            c if c.is_whitespace() => Class::Space,
            'a'..='z' | 'A'..='Z' => Class::Latin,
            c if c.is_ascii_digit() => Class::Digit,
            c if c.is_ascii() => Class::Mark,
            c if ideograph(c) => Class::Ideograph,
            c if c.is_alphanumeric() || is_combining_mark(c) => Class::Letter,
            '\u{2000}'..='\u{206f}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' | '\u{a0}'..='\u{bf}' => {
                Class::Mark
            }
            _ => Class::Rare,
        }
    }
}

impl Run {
    fn tokens(&self) -> u64 {
        match self.class {
            // One space belongs to the word after it.
            Class::Space => (self.chars / 2).div_ceil(4),
            Class::Line => self.chars.div_ceil(2),
            Class::Latin => self.chars.div_ceil(5),
            Class::Digit => self.chars.div_ceil(2),
            Class::Letter => self.chars.div_ceil(2),
            Class::Ideograph => self.chars,
            // `->`, `});` and `----` are one or two
            Class::Mark => self.chars.div_ceil(2),
            Class::Rare => self.chars * 3,
        }
    }
}

/// Han, Kana, Hangul: written without spaces, or in syllables.
pub fn ideograph(c: char) -> bool {
    matches!(c,
        '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{3096}' | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}' | '\u{3105}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests;
