use super::*;

#[test]
fn the_list_of_empty_words_is_sorted() {
    assert!(EMPTY.is_sorted());
}

#[test]
fn punctuation_and_case_do_not_matter() {
    for (text, expected) in [
        ("Trust repair!", vec!["trust", "repair"]),
        ("the trust—repair", vec!["trust", "repair"]),
        ("ACH-TrustRepair-004", vec!["ach", "trust", "repair", "004"]),
        ("detect(pattern: drift) → log", vec!["detect", "pattern", "drift", "log"]),
        ("Café ﬁn", vec!["cafe", "fin"]),
        ("⟐⇌🜔", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(words(text), expected, "{text}");
    }
}

#[test]
fn endings_fall_off_but_short_words_stay() {
    for (word, expected) in [
        ("repairing", "repair"),
        ("repaired", "repair"),
        ("validation", "valid"),
        ("bring", "bring"),
        ("naïves", "naïves"),
    ] {
        assert_eq!(stem(word), expected);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_gives_a_bounded_number_of_words(text in "\\PC{0,400}") {
        proptest::prop_assert!(words(&text).len() <= MOST);
    }
}
