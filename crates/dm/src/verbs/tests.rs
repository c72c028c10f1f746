use super::*;

#[test]
fn plain_words_have_a_plain_meaning() {
    for (body, wanted) in [
        ("inventory", Some(Verb::Inventory)),
        ("I want to pick up the lantern", Some(Verb::Take)),
        ("rest until morning", Some(Verb::Rest)),
        ("wait two hours", Some(Verb::Wait)),
        ("buy a loaf", Some(Verb::Buy)),
        ("give the coat to Wren", Some(Verb::Give)),
        ("drop the lantern", Some(Verb::Drop)),
        ("eat the bread", Some(Verb::Eat)),
        ("look around", Some(Verb::Search)),
        ("look at the boat", Some(Verb::Look)),
        ("watch whether Maud is lying", Some(Verb::Read)),
        ("is Maud lying?", Some(Verb::Read)),
        ("Is the keeper telling the truth?", Some(Verb::Read)),
        ("is the lamp lit?", None),
        ("fly to the moon", Some(Verb::Impossible(WINGS))),
        ("juggle", None),
        ("get up and look at the steps", Some(Verb::Look)),
        ("goad the guard", None),
    ] {
        assert_eq!(verb(body).map(|(verb, _)| verb), wanted, "{body}");
    }
    assert_eq!(verb("please take the old lamp").map(|(_, rest)| rest).as_deref(), Some("the old lamp"));
}

#[test]
fn a_phrase_of_an_author_is_found_in_other_words_around_it() {
    assert!(says("I carefully light the lamp with oil", "light lamp"));
    assert!(says("pour the oil into the lamp", "pour oil"));
    assert!(says("ask about the boats", "boat"));
    assert!(!says("light the fire", "light lamp"));
    assert!(!says("the lamp is light", "light lamp"));
}

#[test]
fn small_talk_asks_for_nothing() {
    let jun = ["jun".to_owned(), "tallow".to_owned()];
    for (body, small) in [
        ("hello Jun", true),
        ("Jun, how are you?", true),
        ("good morning", true),
        ("thank you, Jun", true),
        ("Jun about the dark lamp", false),
        ("Jun", false),
        ("what do you know of the boats", false),
    ] {
        assert_eq!(small_talk(body, &jun), small, "{body}");
    }
}
