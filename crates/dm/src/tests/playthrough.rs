//! The committed script of inputs resolves every quest of the cartridge, without a narrator.

use serde_json::json;

use super::Game;

const SCRIPT: &str = include_str!("../../../../tests/corpus/dm_input/brinewick.play");

/// The inputs of a script: lines that are neither empty nor a comment.
fn inputs(script: &str) -> impl Iterator<Item = &str> {
    script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn the_script_resolves_every_quest_and_leaves_lawful_files() {
    let mut game = Game::new();
    for input in inputs(SCRIPT) {
        let output = game.play(input).unwrap_or_else(|fault| panic!("{input}: {fault}"));
        for slot in ["[Scene]", "[Adjudication]", "[Result]", "[Next Suggestions]", "[HUD]"] {
            assert!(output.contains(slot), "{input}: {output}");
        }
        if std::env::var_os("DM_SHOW").is_some() {
            println!("> {input}\n{output}");
        }
        game.lawful();
    }
    let left: Vec<_> = game.quests().into_iter().filter(|(_, status)| status != "done").collect();
    assert_eq!(left, [], "quests that are not done");
    assert_eq!(game.quests().len(), 5);
}

#[test]
fn row_120_the_menu_has_five_that_can_be_played_and_one_is_risky() {
    let mut game = Game::new();
    for turn in 0..40 {
        let menu = game.json(".kernel/menu.json");
        let items = menu.as_array().unwrap();
        assert_eq!(items.len(), 5, "also where a narrator offers two");
        assert!(items.iter().any(|item| item["risky"] == true));
        let input = items[turn % 5]["input"].as_str().unwrap().to_owned();
        let few = json!({"options": ["[ACT]{wait}", "[LOOK]{the sky}"]});
        game.propose(&input, few).unwrap_or_else(|fault| panic!("{input}: {fault}"));
        game.lawful();
    }
}
