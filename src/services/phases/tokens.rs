//! How many tokens a text has, about: counted from its characters, without a model's tables.
//!
//! English comes out at four characters a token, which is what real tokenizers show; signs and glyphs cost more there, and
//! here. The count of two texts together is never more than the sum of their counts, so budgets can be added up.

/// Counts the tokens of a text.
pub fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut run = 0usize;
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == ' ' {
            run += 1;
            continue;
        }
        count += run.div_ceil(4);
        run = 0;
        count += if c.is_ascii() { 1 } else { c.len_utf8() - 1 };
    }
    count + run.div_ceil(4)
}

/// As much of the beginning of a text as has at most `room` tokens.
pub fn head(text: &str, room: usize) -> &str {
    if tokens(text) <= room {
        return text;
    }
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    // The count never falls when text is added, so the place can be found by halving.
    let fits = boundaries.partition_point(|at| tokens(&text[..*at]) <= room);
    &text[..boundaries[fits.saturating_sub(1)]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_about_as_many_tokens_as_models_say() {
        for (text, expected) in [
            ("", 0),
            ("word", 1),
            ("the cat sat", 3),
            ("a longer sentence of plain English words.", 11),
            ("{\"a\":1}", 7),
            ("⟐⇌", 4),
            ("🜔", 3),
            ("\n\n", 2),
        ] {
            assert_eq!(tokens(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_head_is_as_long_as_it_may_be() {
        assert_eq!(head("abcdefgh", 1), "abcd");
        assert_eq!(head("abcdefgh", 2), "abcdefgh");
        assert_eq!(head("⟐⇌", 3), "⟐");
        assert_eq!(head("⟐", 0), "");
    }

    proptest::proptest! {
        #[test]
        fn together_never_costs_more_than_apart(a in "\\PC{0,60}", b in "\\PC{0,60}", room in 0usize..40) {
            let both = a.clone() + &b;
            proptest::prop_assert!(tokens(&both) <= tokens(&a) + tokens(&b));
            proptest::prop_assert!(tokens(&both) >= tokens(&a));
            proptest::prop_assert!(tokens(head(&a, room)) <= room);
        }
    }
}
