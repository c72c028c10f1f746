//! What a fresh player, a hostile narrator and an honest one found: sentences that must not be told, and sentences that must.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Game;

const W: &str = "[ACT]{wait 10 minutes}";
const SCENE: &str = "The quay smells of tar. Jun Tallow stands at the rail.";

/// The sentences of a text that the player reads, after the inputs that come before.
fn told(before: &[&str], input: &str, scene: &str, prose: &str) -> (String, Vec<String>) {
    let mut game = Game::new();
    if !before.is_empty() {
        game.plays(before);
    }
    let reports = |game: &Game| -> Vec<String> {
        let session = game.files[&game.session()].clone();
        session.lines().filter_map(|line| line.strip_prefix("- Narrator: ")).map(str::to_owned).collect()
    };
    let known = reports(&game).len();
    let shown = game.propose(input, json!({"scene": scene, "prose": prose})).unwrap();
    (shown, reports(&game).split_off(known))
}

/// The sentences of the eyes' findings 1, 2, 3 and 6, with the place in which each was said.
#[test]
fn no_sentence_tells_what_has_not_happened_or_is_not_known() {
    let hall = ["[ACT]{go to the Salt Market}", "[ACT]{go to the Reeve's Hall}"];
    let market = ["[ACT]{go to the Salt Market}"];
    let inn = ["[ACT]{go to the Drowned Gull}"];
    let path = ["[ACT]{go to the Reed Path}"];
    let quay: [&str; 0] = [];
    let cases: &[(&[&str], &str, &str)] = &[
        // 1: secrets in other words
        (
            &quay,
            "[ASK]{Jun about the weather}",
            "Jun confesses: the Merrow was entered among the lost before her time had come.",
        ),
        (
            &quay,
            "[ASK]{Jun about the weather}",
            "The harbour-master had already recorded that ship as sunk, days ahead of her arrival.",
        ),
        (&quay, W, "Everyone knows the clerk at the scales peddled the lighthouse man's fuel."),
        (&market, W, "Everyone knows the clerk at the scales peddled the lighthouse man's fuel."),
        (&quay, W, "The widow begged Osric to keep the tower unlit."),
        (&inn, W, "The widow begged Osric to keep the tower unlit."),
        (&quay, W, "The reeve's own girl is the one missing from the book."),
        (&hall, W, "The reeve's own girl is the one missing from the book."),
        (&quay, W, "The sexton severed the cord himself out of fear."),
        (&quay, W, "The marsh girl sailed on the Merrow."),
        (&path, W, "The marsh girl sailed on the Merrow."),
        (&path, W, "The child was aboard the Merrow."),
        (&quay, W, "The child was aboard the Merrow."),
        (&quay, W, "The upper room at the inn is kept for the captain."),
        (&inn, W, "The upper room at the inn is kept for the captain."),
        (&quay, W, "Whispers say the lantern went out since its warden no longer thought it served those who live."),
        (&quay, W, "Beneath the church a bell lies drowned on purpose."),
        (&quay, W, "Her book lacks one name."),
        (&hall, W, "It was Pell who sold the oil."),
        // 2: endings
        (&quay, W, "The lamp burns over Brinewick, and the tide keeps to its steps."),
        (&quay, W, "The lamp of Brinewick burns once more."),
        (&quay, W, "The tower is lit."),
        (&quay, W, "Every tale has its close, and this was yours."),
        (&quay, W, "Far off, the tower kindles; its beam sweeps the bay, and the drowned go home at last."),
        (&quay, W, "Brinewick sinks under the sea."),
        (&quay, W, "Everyone in town is dead."),
        (&quay, W, "You wake on another shore, a year later."),
        (&hall, W, "A dragon eats the Reeve's Hall."),
        // 3: deeds that the turn did not do
        (&quay, W, "Jun drops a flask of lily oil into your bag."),
        (&hall, W, "Maud slips a key into your pocket."),
        (&hall, W, "A key now hangs at your belt."),
        (&quay, W, "Osric is murdered in the tower."),
        (&quay, W, "Jun draws a knife and turns on you."),
        (&hall, W, "Salt and Ledger is done."),
        (&hall, W, "Your debts are forgiven."),
        (&hall, W, "You owe nothing now."),
        (&hall, W, "It is midnight."),
        (&hall, W, "Three days have passed."),
        (&hall, W, "It is noon on the third day."),
        (&hall, W, "You are cured."),
        (&hall, W, "Maud joins you."),
        (&hall, W, "Maud agrees to light the lamp."),
        (&hall, W, "Maud smiles: you are free of all charges."),
        (&hall, W, "Maud draws a blade and lunges."),
        (&hall, W, "Your purse is heavy with gold."),
        (&market, "[ACT]{go to the Reeve's Hall}", "Maud attacks you with a candlestick."),
        (&market, "[ACT]{go to the Reeve's Hall}", "The guards seize you and throw you in a cell."),
        (&market, "[ACT]{go to the Reeve's Hall}", "You are bleeding."),
        (&quay, "[ACT]{take the brass lantern}", "You light it and it burns."),
        // 6: people and places that are not here
        (&hall, W, "Sanna weeps beside you."),
        (&hall, W, "Osric's hand rests on the ledger."),
        (&market, W, "Jun Tallow stands at the rail."),
        (&market, W, "A stair leads down to the Drowned Crypt."),
    ];
    let mut faults = Vec::new();
    for (before, input, sentence) in cases {
        let (shown, reports) =
            told(before, input, "Wind comes up. A shutter knocks.", &format!("Wind turns. {sentence}"));
        if shown.contains(sentence) || !reports.iter().any(|own| own.starts_with("prose: ")) {
            faults.push(format!("{input} after {before:?}: {sentence}"));
        }
        assert!(shown.contains("Wind turns."), "{sentence}: {shown} {reports:?}");
    }
    assert!(faults.is_empty(), "told:\n{}", faults.join("\n"));
}

#[test]
fn a_scene_shows_this_place_and_the_people_in_it() {
    let hall = ["[ACT]{go to the Salt Market}", "[ACT]{go to the Reeve's Hall}"];
    for (before, scene) in [
        (&hall[..], "The hall is cold. Osric Vane and Jun Tallow stand at the rail of the Lamp Room."),
        (&hall[..1], SCENE),
        (&hall[..1], "The quay smells of tar. Boats creak on their sides."),
    ] {
        let (shown, reports) = told(before, W, scene, "Wind turns.");
        assert!(!shown.contains(scene), "{scene}: {shown}");
        assert!(reports.iter().any(|own| own.starts_with("scene: ")), "{scene}: {reports:?}");
    }
}

/// A proposal of an honest narrator, in the order of its game.
#[derive(Deserialize)]
struct HonestTurn {
    game: String,
    cartridge: String,
    input: String,
    proposal: Value,
}

/// The eyes' honest narrators, word for word: what they tell is told. What is cut is listed here, with the reason.
#[test]
fn the_words_of_honest_narrators_are_told() {
    let rightly = [
        "Old Nan",           // nobody of the world, and no page
        "Saint Elmo",        // the same
        "Christmas",         // the same
        "Heaven",            // the same
        "Hours later",       // ten minutes have passed
        "hands it over",     // the skin was carried already
        "You light it",      // the lantern was only taken
        "You feel the cold", // what the character feels is the player's
    ];
    let mut games: Vec<(String, Game)> = Vec::new();
    let mut faults = Vec::new();
    for line in include_str!("texts/honest.ndjson").lines() {
        let turn: HonestTurn = serde_json::from_str(line).unwrap();
        if !games.iter().any(|(name, _)| *name == turn.game) {
            games.push((turn.game.clone(), Game::of(&turn.cartridge)));
        }
        let game = &mut games.iter_mut().find(|(name, _)| *name == turn.game).unwrap().1;
        let reports = |game: &Game| -> Vec<String> {
            let session = game.files[&game.session()].clone();
            let lines = session.lines().filter_map(|line| line.strip_prefix("- Narrator: "));
            let told = lines.filter(|own| own.starts_with("prose") || own.starts_with("scene"));
            told.filter(|own| !own.ends_with("this one has 1")).map(str::to_owned).collect()
        };
        let known = reports(game).len();
        game.propose(&turn.input, turn.proposal.clone()).unwrap();
        let cut = reports(game).split_off(known);
        let text = turn.proposal.to_string();
        if !cut.is_empty() && !rightly.iter().any(|own| text.contains(own)) {
            faults.push(format!("{} {}: {cut:?}\n    {text}", turn.game, turn.input));
        }
    }
    assert!(faults.is_empty(), "{} cut:\n{}", faults.len(), faults.join("\n"));
}
