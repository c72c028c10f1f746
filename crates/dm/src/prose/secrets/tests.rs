use super::*;
use crate::tests::brinewick;

#[test]
fn a_secret_is_told_by_enough_of_its_words_and_by_nothing_that_a_page_tells() {
    let world = brinewick();
    let state = State::read(&serde_json::json!({"location": "@lantern_quay"}), &world);
    let pages = OpenPages::new(&world, &state);
    for (secret, owner, tells, not) in [
        (
            "Pell sold the keeper's oil",
            "@clerk_pell",
            "Pell has sold the oil that belonged to the keeper.",
            "The keeper needs oil.",
        ),
        ("she was on the Merrow", "@marsh_child", "Wren was on the Merrow.", "The Merrow did not come home."),
        (
            "the tenth name is her own daughter's",
            "@reeve_maud",
            "The tenth name is that of a daughter.",
            "Nine names stand there.",
        ),
        (
            "Under the chapel hangs a bell that was sunk to be forgotten.",
            "",
            "A forgotten bell was sunk beneath the chapel.",
            "Under the chapel, it is said, something hangs.",
        ),
        (
            "The reeve counts salt and not people, and her ledger is one name short.",
            "",
            "There is a name too few in the ledger, which is short by one.",
            "She counts salt, the reeve.",
        ),
    ] {
        let own = UntoldSecret::new(secret, Some(owner), String::new(), &pages);
        assert!(own.paraphrased_in(&SaidSentence::new(tells), &pages), "{tells}");
        assert!(!own.paraphrased_in(&SaidSentence::new(not), &pages), "{not}");
    }
}
