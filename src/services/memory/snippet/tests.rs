use proptest::prelude::*;

use super::*;

fn shown(text: &str, words: &[&str]) -> String {
    snippet(text, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

#[test]
fn a_short_text_is_shown_whole_on_one_line() {
    assert_eq!(shown("one\n  two\tthree\n", &["two"]), "one two three");
    assert_eq!(shown("", &["two"]), "");
}

#[test]
fn the_window_is_where_the_words_are() {
    let text = format!("{} El Niño came back {}", "before ".repeat(50), "after ".repeat(50));
    let seen = shown(&text, &["nino"]);
    assert!(seen.starts_with('…') && seen.ends_with('…') && seen.contains("El Niño came back"), "{seen}");
    assert!(seen.chars().count() <= WIDTH + 2);
}

#[test]
fn the_place_with_most_words_wins() {
    let text = format!("alpha {} alpha beta {}", "x ".repeat(200), "y ".repeat(200));
    assert!(shown(&text, &["alpha", "beta"]).contains("alpha beta"));
}

#[test]
fn words_without_spaces_are_seen() {
    let text = format!("{}東京都に住む{}", "あ".repeat(300), "い".repeat(300));
    assert!(shown(&text, &["東京"]).contains("東京都に住む"));
}

#[test]
fn a_headline_is_the_first_line_with_words() {
    assert_eq!(headline("\n\n  Title \nmore"), "Title");
    assert_eq!(headline(""), "");
    assert_eq!(headline(&"é".repeat(200)).chars().count(), WIDTH + 1);
}

proptest! {
    #[test]
    fn nothing_panics_and_it_stays_short(text in "(?s).{0,400}", words in proptest::collection::vec(".{0,5}", 0..20)) {
        prop_assert!(snippet(&text, &words).chars().count() <= WIDTH + 2);
        prop_assert!(!headline(&text).contains('\n'));
    }
}
