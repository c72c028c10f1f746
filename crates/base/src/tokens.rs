//! Estimates the number of tokens of a text. It uses no vocabulary of a model, because every model has another one. The
//! estimate is the same on every machine, costs one pass, and errs on the high side, so that text that fits by this
//! count fits.

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
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_cost_about_what_models_say() {
        // beside each: what o200k_base and cl100k_base count, roughly
        let table = [
            ("", 0),
            ("hello", 1),
            ("hello world", 2),
            ("The quick brown fox jumps over the lazy dog.", 10), // 10
            ("internationalization", 4),                          // 3
            ("x = y + 1;\n", 7),                                  // 7
            ("2026-11-16", 6),                                    // 6
            ("東京都", 3),                                        // 2 to 4
            ("Привет, мир", 6),                                   // 5 to 6
            ("🙂", 3),                                            // 2 to 3
            ("a\n\n\nb", 4),
            ("        indented", 3),
        ];
        for (text, tokens) in table {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn a_head_is_as_long_as_it_may_be() {
        assert_eq!(head("abcdefgh", 1), "abcde");
        assert_eq!(head("abcdefgh", 2), "abcdefgh");
        assert_eq!(head("🜔🜔", 4), "🜔");
        assert_eq!(head("⟐", 0), "");
    }

    proptest! {
        #[test]
        fn a_head_fits(text in "\\PC{0,60}", room in 0u64..40) {
            prop_assert!(count(head(&text, room)) <= room);
            prop_assert!(text.starts_with(head(&text, room)));
        }

        #[test]
        fn a_longer_text_never_costs_less(a in ".{0,60}", b in ".{0,60}") {
            let both = a.clone() + &b;
            prop_assert!(count(&both) >= count(&a));
        }

        #[test]
        fn no_text_costs_more_than_three_a_character(text in ".{0,200}") {
            prop_assert!(count(&text) <= 3 * text.chars().count() as u64);
        }
    }
}
