//! Endings: an epilogue from the cartridge, a closed campaign that can be read as a story and played on.

use serde_json::json;

use super::Game;
use crate::act::Act;

fn last_step() -> Game {
    let mut game = Game::new();
    game.set(json!({
        "location": "@lamp_room", "inventory": ["@lily_oil"], "indicators": {"Grace": 6},
        "quests": {"@dark_lamp": {"stage": 3, "status": "active"}, "@two_plates": {"stage": 3, "status": "done"}},
    }));
    game
}

#[test]
fn quests_lead_to_an_epilogue_that_tells_what_was_done_and_what_was_not() {
    let mut game = last_step();
    let output = game.play("[ACT]{light the lamp}").unwrap();
    assert!(output.contains("Epilogue: The Lamp Burns\n"), "{output}");
    assert!(
        output.contains("the second plate is a small one now") && !output.contains("still laid for two"),
        "{output}"
    );
    assert!(output.contains("no bell holds it there"), "{output}");
    assert_eq!(game.json("STATE_PANEL.json")["ended"], "the_lamp");
    let refused = game.play("[LOOK]{around}").unwrap_err().message;
    assert!(refused.contains("the story has ended: The Lamp Burns") && refused.contains("<play on>"), "{refused}");
    assert!(game.play("[OOC] How do checks work?").is_ok(), "questions are answered still");
    game.lawful();
}

#[test]
fn a_closed_campaign_is_played_on_and_does_not_end_twice() {
    let mut game = last_step();
    assert!(game.act(&Act::PlayOn).unwrap_err().message.contains("the campaign is open"));
    game.play("[ACT]{light the lamp}").unwrap();
    assert_eq!(game.json(".kernel/menu.json")[0]["input"], "<play on>");
    let output = game.act(&Act::PlayOn).unwrap();
    assert!(output.contains("goes on after its ending: The Lamp Burns"), "{output}");
    game.lawful();
    let looked = game.play("[LOOK]{around}").unwrap();
    assert!(looked.contains("[Scene]") && !looked.contains("Epilogue"), "{looked}");
    game.lawful();
    // An ending that would come at once after it is passed by as well.
    let mut game = Game::of("longdry");
    game.set(json!({"quests": {"@last_well": {"stage": 3, "status": "done"}, "@empty_house": {"stage": 2, "status": "done"}}}));
    assert!(game.play("[LOOK]{around}").unwrap().contains("Epilogue: The House by the Stream"));
    game.act(&Act::PlayOn).unwrap();
    assert!(!game.play("[LOOK]{around}").unwrap().contains("Epilogue"));
}

#[test]
fn a_town_that_nobody_helps_ends_too() {
    let mut game = Game::new();
    game.set(
        json!({"indicators": {"Grace": 1}, "clocks": [{"id": "tide", "segments": 8, "filled": 7, "visible": true}]}),
    );
    let output = game.play("[ACT]{wait until night}").unwrap();
    assert!(output.contains("Epilogue: The Tenth Tide"), "{output}");
}

#[test]
fn the_story_is_one_page_with_everything_that_was_told() {
    let mut game = last_step();
    game.plays(&["[LOOK]{the wick}", "[ACT]{light the lamp}"]);
    let story = crate::story::render(game.files(), &game.world).unwrap();
    assert!(story.starts_with("# Brinewick: the story of Ann\n"), "{story}");
    for part in [
        "## Day 1",
        "The last boat in ran aground",
        "> 08:05 · [LOOK]{the wick}",
        "The wick is trimmed and dry.",
        "The wick takes, the glass turns, and far out something turns with it.",
        "## The Lamp Burns",
        "the tide keeps to its steps.",
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    assert!(!story.contains("- State:") && !story.contains("- Panel:"), "{story}");
}
