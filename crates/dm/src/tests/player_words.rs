//! Plain words of a newcomer, as one types them who knows only the README: each is answered by what is there.

use serde_json::json;

use super::Game;

#[test]
fn to_talk_to_somebody_about_nothing_is_a_greeting() {
    for input in ["[ACT]{talk to Jun}", "[ACT]{speak with Jun}", "[ACT]{call Jun}"] {
        let output = Game::new().play(input).unwrap();
        assert!(output.contains("| greet Jun Tallow | answered |"), "{input}: {output}");
    }
    let output = Game::new().play("[ASK]{threaten Jun}").unwrap();
    assert!(output.contains("| intimidation with Jun Tallow |"), "a threat alone presses: {output}");
}

#[test]
fn a_noun_of_this_place_is_looked_at_before_a_quest_of_that_name() {
    let mut game = Game::new();
    game.plays(&["[ACT]{go to the market}", "[ACT]{go to the hall}"]);
    let output = game.play("[LOOK]{the ledger}").unwrap();
    assert!(output.contains("The ledger lies open at a page with nine lines."), "{output}");
    let output = game.play("[LOOK]{Salt and Ledger}").unwrap();
    assert!(output.contains("| look at Salt and Ledger |"), "its own name means the quest: {output}");
}

#[test]
fn what_was_taken_away_is_not_shown_where_it_was() {
    let mut game = Game::new();
    game.play("[ACT]{take the notice}").unwrap();
    for _ in 0..8 {
        let output = game.play("[MANAGE]{wait}").unwrap();
        assert!(!output.contains("nailed to the third post"), "{output}");
    }
}

#[test]
fn a_drink_is_not_sold_as_bread() {
    let mut game = Game::new();
    game.play("[ACT]{go to the inn}").unwrap();
    let output = game.play("[ACT]{buy a drink}").unwrap();
    assert!(output.contains("| impossible |") && !output.contains("loaf of salt bread: it"), "{output}");
    assert!(game.play("[ACT]{order food}").unwrap().contains("bought of Bertrade"));
}

#[test]
fn a_clock_that_comes_round_is_told_as_the_hud_shows_it() {
    let mut game = Game::new();
    game.set(json!({"clocks": [{"id": "tide", "segments": 8, "filled": 7, "visible": true}, {"id": "reeve", "segments": 4, "filled": 0, "visible": false}]}));
    let output = game.play("[MANAGE]{wait 3 hours}").unwrap();
    assert!(output.contains("- tide 7/8 -> 8/8, then it begins again and stands at 0/8 (time passes)"), "{output}");
    assert!(output.contains("tide 0/8\n"), "{output}");
}

#[test]
fn an_unknown_instruction_is_told_which_there_are() {
    let refused = crate::input::parse("<help>", &[]).unwrap_err();
    for known in ["<continue>", "<initialize>", "<play on>", "<new campaign NAME>", "<switch campaign NAME>"] {
        assert!(refused.sentence.contains(known), "{}", refused.sentence);
    }
}
