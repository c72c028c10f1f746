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
