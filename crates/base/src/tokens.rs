//! Estimates the number of tokens of a text. It uses no vocabulary of a model, because every model has another one. The
//! estimate is the same on every machine, costs one pass, and errs on the high side, so that text that fits by this
//! count fits. Any crate may use it; it uses nothing of ours.

use unicode_normalization::char::is_combining_mark;

/// The estimate for a whole text.
pub fn count(text: &str) -> u64 {
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

/// The longest beginning of a text with at most `room` tokens.
pub fn head(text: &str, room: u64) -> &str {
    if count(text) <= room {
        return text;
    }
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    // The count never falls when text is added, so binary search works.
    let fits = ends.partition_point(|end| count(&text[..*end]) <= room);
    &text[..ends[fits.saturating_sub(1)]]
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
