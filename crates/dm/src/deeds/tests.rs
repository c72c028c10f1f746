use super::*;
use crate::state::Progress;
use crate::tests::brinewick;

/// What is left of a text where the turn took the thing, did the deed or did not.
fn cleaned(text: &str, change: impl Fn(&mut State)) -> CleanedProse {
    let world = brinewick();
    let before = State::read(&serde_json::json!({"location": "@lantern_quay", "time": "day 1, 08:00"}), &world);
    let mut after = before.clone();
    change(&mut after);
    TurnDeeds::new(&world, &before, &after, "Ivy").clean(text, TextKind::Prose)
}

#[test]
fn each_claim_has_a_hit_a_miss_and_a_turn_that_bears_it_out() {
    type Done = fn(&mut State);
    /// A claim, texts that make it, one that does not, and one that a turn bears out.
    type Case = (&'static str, &'static [&'static str], &'static str, (&'static str, Done));
    let take: Done = |state| state.inventory.push("@lily_oil".into());
    let nothing: Done = |_| ();
    let cases: [Case; 18] = [
        (
            "having",
            &[
                "Ivy picks up the lamp and pockets it.",
                "The oil is yours now.",
                "Jun hands you a purse.",
                "Jun drops a flask of oil into your bag.",
                "Jun slips a key into your pocket.",
                "A key now hangs at your belt.",
                "Your purse is heavy with gold.",
            ],
            "Jun hands the book on, picks up a rope and gives you a short nod.",
            ("Ivy picks up the lily oil.", take),
        ),
        (
            "handing",
            &["Jun ties a knot and hands it over the rail.", "Jun passes the rope to you."],
            "Jun hands the pen from one hand to the other.",
            ("Jun hands it over.", take),
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
            &[
                "Ivy loses the lily oil to the tide.",
                "You pay five coins for it.",
                "You have lost your dagger.",
                "Your dagger is gone.",
                "Your brass lantern has been stolen.",
            ],
            "Ivy has lost the thread of what he says, and your patience is gone.",
            ("The wind turns.", nothing),
        ),
        (
            "dying",
            &[
                "Jun Tallow dies.",
                "You are dead.",
                "Ivy falls dead.",
                "Jun is murdered on the steps.",
                "Everyone in town is dead.",
            ],
            "The wind dies, and a fish lies dead on the planks.",
            ("Jun Tallow dies.", |state| {
                state.statuses.insert("@harbourer_jun".into(), "gone".into());
            }),
        ),
        (
            "violence",
            &[
                "Jun attacks you with a candlestick.",
                "The guards seize you and throw you in a cell.",
                "Jun draws a knife and turns on you.",
                "Jun draws a blade and lunges.",
            ],
            "The smell of tar hits you, and Jun draws a line through a name.",
            ("Jun attacks you.", |state| state.hp -= 2),
        ),
        (
            "wound",
            &["You are bleeding.", "You are cured.", "Your wound is deep."],
            "The sky is bleeding red.",
            ("You are bleeding.", |state| state.hp -= 2),
        ),
        (
            "standing",
            &["You are free of all charges.", "You are under arrest."],
            "You are free to look about.",
            ("You are free of it.", |state| {
                state.indicators.insert("Heat".into(), 2);
            }),
        ),
        (
            "joining",
            &["Jun joins you.", "Jun goes with you from now on."],
            "Jun follows you with his eyes.",
            ("Jun joins you.", |state| {
                state.statuses.insert("@harbourer_jun".into(), "companion".into());
            }),
        ),
        (
            "pledge",
            &["Jun agrees to light the fire.", "Jun weeps. Jun tells all.", "Jun confesses it."],
            "Jun tells it plainly, and swears at a gull.",
            ("Jun admits it.", |state| {
                state.told.insert("@harbourer_jun".into(), 1);
            }),
        ),
        (
            "ending",
            &[
                "The campaign is closed.",
                "The end.",
                "Fog. The story ends here.",
                "Game over!",
                "Every tale has its close, and this was yours.",
            ],
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
            &[
                "The lamp is lit again.",
                "Ivy lights the lamp.",
                "The lamp of Brinewick burns once more.",
                "The tower is lit.",
                "You light it and it burns.",
            ],
            "The lamp is dark, and the lamp in the window of the toll-house is lit.",
            ("The lamp burns again.", |state| {
                state.quests.insert("@dark_lamp".into(), Progress { stage: 4, status: "done".into() });
            }),
        ),
        (
            "time",
            &["Three days have passed.", "A year later it is the same.", "Hours later, it is still grey."],
            "Minutes pass, and nine nights ago is long past.",
            ("An hour goes by.", |state| state.time.pass(60)),
        ),
        (
            "hour",
            &["It is midnight.", "It is morning on the third day.", "Night falls."],
            "It is a morning like any other.",
            ("It is noon.", |state| state.time.pass(12 * 60 - state.time.minutes() % (24 * 60))),
        ),
        (
            "waking",
            &["You wake on another shore.", "You are suddenly elsewhere."],
            "Gulls wake in the nets.",
            ("You wake.", |state| state.time.pass(120)),
        ),
        (
            "ruin",
            &["Brinewick sinks under the sea.", "A dragon eats the town."],
            "Brinewick wakes late, and the sun sinks.",
            ("The town drowns.", |state| state.memory.ended = "the_water".into()),
        ),
        (
            "level",
            &["Heat rises.", "Grace falls sharply.", "Your debts are forgiven.", "You owe nothing now."],
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
