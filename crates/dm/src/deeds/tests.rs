use super::*;
use crate::state::Progress;
use crate::tests::brinewick;

/// What is left of a text where the turn took the thing, did the deed or did not.
fn cleaned(text: &str, change: impl Fn(&mut State)) -> CleanedProse {
    let world = brinewick();
    let before = State::read(&serde_json::json!({"location": "@lantern_quay"}), &world);
    let mut after = before.clone();
    change(&mut after);
    TurnDeeds::new(&world, &before, &after, "Ivy").clean(text)
}

#[test]
fn each_claim_has_a_hit_a_miss_and_a_turn_that_bears_it_out() {
    type Done = fn(&mut State);
    /// A claim, texts that make it, one that does not, and one that a turn bears out.
    type Case = (&'static str, &'static [&'static str], &'static str, (&'static str, Done));
    let take: Done = |state| state.inventory.push("@lily_oil".into());
    let nothing: Done = |_| ();
    let cases: [Case; 8] = [
        (
            "having",
            &["Ivy picks up the keeper's key and pockets it.", "The lily oil is yours now.", "Jun hands you a purse."],
            "Jun hands the book to the sexton and picks up a rope.",
            ("Ivy picks up the lily oil.", take),
        ),
        (
            "finding",
            &[
                "You find a golden sword and 500 gold.",
                "Ivy now has the lily oil.",
                "She takes the keeper's key.",
                "Ｙｏｕ find the lily oil.",
            ],
            "You now have a moment to breathe, and find the brass lantern on its hook.",
            ("She finds the lily oil.", take),
        ),
        (
            "losing",
            &["Ivy loses the lily oil to the tide.", "You pay five coins for it."],
            "Ivy loses the thread of what he says.",
            ("The boat is late.", nothing),
        ),
        (
            "dying",
            &["Jun Tallow dies.", "You are dead.", "Ivy falls dead."],
            "The wind dies, and Sanna's husband is dead these nine weeks.",
            ("Jun Tallow dies.", |state| {
                state.statuses.insert("@harbourer_jun".into(), "gone".into());
            }),
        ),
        (
            "ending",
            &["The campaign is closed.", "The end.", "Fog. The story ends here.", "Game over!"],
            "At the end of the quay the story is told again.",
            ("The story ends here.", |state| state.memory.ended = "the_water".into()),
        ),
        (
            "mood",
            &["Jun Tallow is hostile now.", "Jun becomes your enemy."],
            "The sea is hostile, and Jun is tired.",
            ("Jun Tallow is hostile now.", |state| {
                state.memory.moods.insert("@harbourer_jun".into(), "hostile".into());
            }),
        ),
        (
            "light",
            &["The lamp is lit again.", "Ivy lights the lamp."],
            "The lamp is dark.",
            ("The lamp burns again.", |state| {
                state.quests.insert("@dark_lamp".into(), Progress { stage: 4, status: "done".into() });
            }),
        ),
        (
            "level",
            &["Heat rises.", "Grace falls sharply."],
            "Heat rises from the stones, and grace is hard to come by.",
            ("Heat rises.", |state| {
                state.indicators.insert("Heat".into(), 2);
            }),
        ),
    ];
    assert_eq!(cases.map(|(name, ..)| name), DEEDS.map(|(name, ..)| name), "every claim has its case");
    for (name, hits, miss, (text, done)) in cases {
        for hit in hits {
            let out = cleaned(hit, nothing);
            assert!(out.reports.iter().any(|own| own.ends_with(&format!("({name})"))), "{name}: {hit}: {out:?}");
        }
        assert_eq!(cleaned(miss, nothing), CleanedProse { text: miss.into(), reports: vec![] }, "{name}");
        assert_eq!(cleaned(text, done), CleanedProse { text: text.into(), reports: vec![] }, "{name}");
    }
}

#[test]
fn only_the_sentence_that_claims_is_taken_out() {
    let out = cleaned("The nets drip. You are dead. Salt blows in.", |_| ());
    assert_eq!(out.text, "The nets drip. Salt blows in.");
    assert_eq!(out.reports, ["\"You are dead\" has not happened (dying)"]);
}

#[test]
fn every_pattern_is_one() {
    let (world, state) = (brinewick(), State::default());
    assert_eq!(TurnDeeds::new(&world, &state, &state, "Ivy").patterns().len(), DEEDS.len());
}
