//! Natural English, as a newcomer types it: the way back, the room, the hour, a question about a flag. Each is understood or told
//! what is lacking; none is taken for something else.

use super::Game;
use crate::input::{Input, parse};

fn time(game: &Game) -> String {
    game.json("STATE_PANEL.json")["time"].as_str().unwrap().to_owned()
}

#[test]
fn one_leaves_by_the_way_that_one_came_and_says_which_where_there_are_several() {
    for input in ["[ACT]{go back}", "[ACT]{leave}", "[ACT]{leave the inn}", "[ACT]{go outside}", "[ACT]{return}"] {
        let mut game = Game::new();
        game.play("[ACT]{go to the inn}").unwrap();
        let output = game.play(input).unwrap();
        assert!(output.contains("| go to Lantern Quay | arrived |"), "{input}: {output}");
    }
    let mut game = Game::new();
    game.play("[ACT]{go to the inn}").unwrap();
    let output = game.play("[ACT]{go back to the quay}").unwrap();
    assert!(output.contains("| go to Lantern Quay | arrived |"), "a place that is named is the place: {output}");
    let before = time(&game);
    game.play("[ACT]{take the lantern}").unwrap();
    let output = game.play("[ACT]{leave the lantern}").unwrap();
    assert!(output.contains("| drop the brass lantern |"), "a thing that is left is put down: {output}");
    let mut game = Game::new();
    game.plays(&["[ACT]{go to the market}", "[ACT]{go to the hall}", "[ACT]{go to the market}"]);
    let there = time(&game);
    let output = game.play("[ACT]{leave}").unwrap();
    assert!(output.contains("more than one way leads from here"), "{output}");
    assert!(output.contains("[ACT] go to Lantern Quay, the Reeve's Hall"), "{output}");
    assert_eq!(time(&game), there, "no time passes");
    assert_ne!(before, there);
}

#[test]
fn a_room_that_is_searched_is_the_one_that_one_stands_in() {
    let mut game = Game::new();
    game.play("[ACT]{go to the lighthouse}").unwrap();
    for input in ["[ACT]{search the room for clues}", "[LOOK]{the room}", "[LOOK]{the place}"] {
        let output = game.play(input).unwrap();
        assert!(
            output.contains(" the Lighthouse | ") && !output.contains("look at the Lamp Room"),
            "{input}: {output}"
        );
    }
    let output = game.play("[LOOK]{the lamp room}").unwrap();
    assert!(output.contains("| look at the Lamp Room | seen |"), "{output}");
}

#[test]
fn a_look_keeps_its_preposition() {
    let mut game = Game::new();
    let output = game.play("[ACT]{look under the boat}").unwrap();
    assert!(output.contains("| look under the boat | seen |"), "{output}");
    let output = game.play("[LOOK]{the nets}").unwrap();
    assert!(output.contains("| look at the nets | seen |"), "{output}");
}

#[test]
fn one_waits_until_the_hour_that_is_said_and_rests_as_long_as_is_said() {
    let mut game = Game::new();
    game.play("[ACT]{wait until nightfall}").unwrap();
    assert_eq!(time(&game), "day 1, 20:00");
    let output = game.play("[ACT]{wait until the ship comes in}").unwrap();
    assert!(output.contains("| impossible |") && output.contains("until morning, noon, evening or night"), "{output}");
    assert_eq!(time(&game), "day 1, 20:00");
    let output = game.play("[ACT]{rest for 10 minutes}").unwrap();
    assert!(output.contains("| impossible |") && output.contains("a rest takes an hour at least"), "{output}");
    assert_eq!(time(&game), "day 1, 20:00");
    let output = game.play("[ACT]{rest for three hours}").unwrap();
    assert!(output.contains("| short rest | 3 hours: "), "{output}");
    assert_eq!(time(&game), "day 1, 23:00");
    let output = game.play("[ACT]{sleep for 8 hours}").unwrap();
    assert!(output.contains("| long rest | 8 hours: "), "{output}");
    assert_eq!(time(&game), "day 2, 07:00");
    game.play("[ACT]{wait for Jun}").unwrap();
    assert_eq!(time(&game), "day 2, 07:30");
}

#[test]
fn a_question_about_the_rules_may_name_a_flag_or_a_header() {
    let mut game = Game::new();
    let output = game.play("[OOC] what does --risk do?").unwrap();
    assert!(output.contains("--risk low keeps the DC at 10-12"), "{output}");
    let Input::Move(found) = parse("[OOC] is [ASK] --intent a flag", &[]).unwrap() else { panic!("a move") };
    assert_eq!((found.body.as_str(), found.risk), ("is [ASK] --intent a flag", None));
    assert!(game.play("[OOC] how do I win?").unwrap().contains("(see engine/KERNEL.md)"));
    assert!(game.play("[OOC] write me a poem").unwrap().contains("no page of the rules speaks of that"));
}

#[test]
fn a_header_without_brackets_is_shown_with_them() {
    for text in ["ACT: go to the market", "act go to the market", "Act - go to the market"] {
        let refused = parse(text, &[]).unwrap_err();
        assert_eq!(refused.example, "[ACT]{go to the market}", "{text}");
    }
    assert_eq!(parse("look around", &[]).unwrap_err().example, "[LOOK]{look around}");
}

#[test]
fn the_quests_are_part_of_taking_stock_and_say_where_they_go_on() {
    for input in ["[MANAGE]{quests}", "[MANAGE]{what should I do next?}", "[ACT]{help}", "[MANAGE]{quest log}"] {
        let mut game = Game::new();
        let output = game.play(input).unwrap();
        assert!(
            output.contains("| quest | the Dark Lamp: active; next: Jun Tallow at Lantern Quay |"),
            "{input}: {output}"
        );
    }
}
