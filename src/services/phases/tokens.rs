//! Cutting a text to so many tokens, by the house's own estimate.

pub fn tokens(text: &str) -> usize {
    crate::tokens::count(text) as usize
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
    fn a_head_is_as_long_as_it_may_be() {
        assert_eq!(head("abcdefgh", 1), "abcde");
        assert_eq!(head("abcdefgh", 2), "abcdefgh");
        assert_eq!(head("🜔🜔", 4), "🜔");
        assert_eq!(head("⟐", 0), "");
    }

    proptest::proptest! {
        #[test]
        fn a_head_fits(text in "\\PC{0,60}", room in 0usize..40) {
            proptest::prop_assert!(tokens(head(&text, room)) <= room);
            proptest::prop_assert!(text.starts_with(head(&text, room)));
        }
    }
}
