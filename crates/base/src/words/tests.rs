use proptest::prelude::*;

use super::*;

fn plain(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    each_word(text, |word| found.push(word.to_owned()));
    found
}

#[test]
fn the_list_of_empty_words_is_sorted() {
    assert!(EMPTY.is_sorted());
}

#[test]
fn words_of_any_script_are_found() {
    for (text, wanted) in [
        ("The RIVER's wide, ﬁne", vec!["the", "river", "s", "wide", "fine"]),
        ("Straße über Ελλάδα Café", vec!["straße", "uber", "ελλαδα", "cafe"]),
        ("e\u{301}te\u{301} mañana", vec!["ete", "manana"]),
        ("東京都 2x", vec!["東京", "京都", "都", "2x"]),
        ("Rust言語", vec!["rust", "言語", "語"]),
        ("「東京」", vec!["東京", "京"]),
        ("ﾃﾞｰﾀ ｆｕｌｌ", vec!["デー", "ータ", "タ", "full"]),
        ("नमस्ते", vec!["नमस्ते"]),
        ("pthread_mutex_lock(3)", vec!["pthread", "mutex", "lock", "3"]),
        ("HashMap ACH-TrustRepair-004", vec!["hashmap", "hash", "map", "ach", "trustrepair", "trust", "repair", "004"]),
        ("a\0b ⟐⇌🜔", vec!["a", "b"]),
        ("", vec![]),
    ] {
        assert_eq!(plain(text), wanted, "{text}");
    }
    assert!(plain(&"x".repeat(100)).is_empty());
}

#[test]
fn empty_words_count_only_when_there_are_no_others() {
    assert_eq!(telling("How do I copy the files?"), ["copi", "file"]);
    assert_eq!(telling("to be"), ["to", "be"]);
    assert_eq!(indexed("Copying a FileSystem"), "copi a filesystem file system");
}

#[test]
fn endings_fall_off_as_porter_says() {
    for (word, wanted) in [
        ("repairing", "repair"),
        ("repaired", "repair"),
        ("repairs", "repair"),
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("cats", "cat"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("bled", "bled"),
        ("motoring", "motor"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("sky", "sky"),
        ("relational", "relat"),
        ("validation", "valid"),
        ("digitizer", "digit"),
        ("electrical", "electr"),
        ("hopefulness", "hope"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("probate", "probat"),
        ("rate", "rate"),
        ("cease", "ceas"),
        ("controll", "control"),
        ("naïves", "naïves"),
        ("e0382", "e0382"),
        ("is", "is"),
    ] {
        assert_eq!(stem(word), wanted, "{word}");
    }
}

proptest! {
    #[test]
    fn any_text_has_words_that_are_not_taken_apart_again(text in "\\PC{0,200}") {
        for word in plain(&text) {
            prop_assert!(!word.is_empty() && word.len() <= LONGEST);
            prop_assert_eq!(&plain(&word)[0], &word);
        }
    }

    #[test]
    fn a_stem_is_never_empty(word in "[a-z]{1,12}") {
        prop_assert!(!stem(&word).is_empty());
    }
}
