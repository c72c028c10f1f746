//! The committed script of inputs resolves every quest of the cartridge, without a narrator.

use serde_json::json;

use super::Game;

pub(super) const BRINEWICK: &str = include_str!("../../../../tests/corpus/dm_input/brinewick.play");
pub(super) const LONGDRY: &str = include_str!("../../../../tests/corpus/dm_input/longdry.play");

/// The inputs of a script: lines that are neither empty nor a comment.
pub(super) fn inputs(script: &str) -> impl Iterator<Item = &str> {
    script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn the_script_of_each_cartridge_resolves_every_quest_and_ends_its_story() {
    for (id, script, ending) in [("brinewick", BRINEWICK, "Ten Names"), ("longdry", LONGDRY, "The House by the Stream")]
    {
        let mut game = Game::of(id);
        let mut last = String::new();
        for input in inputs(script) {
            last = game.play(input).unwrap_or_else(|fault| panic!("{id}: {input}: {fault}"));
            for slot in ["[Scene]", "[Adjudication]", "[Result]", "[Next Suggestions]", "[HUD]"] {
                assert!(last.contains(slot), "{input}: {last}");
            }
            if std::env::var_os("DM_SHOW").is_some() {
                println!("> {input}\n{last}");
            }
            game.lawful();
        }
        let left: Vec<_> = game.quests().into_iter().filter(|(_, status)| status != "done").collect();
        assert_eq!(left, [], "{id}: quests that are not done");
        assert_eq!(game.quests().len(), game.world.quests.len());
        assert!(last.contains(&format!("Epilogue: {ending}")), "{id}: {last}");
    }
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

#[test]
fn the_template_plays_from_its_hook_to_its_ending() {
    let mut game = Game::of("_template");
    game.plays(&["[LOOK]{the hinges}", "[ASK]{Hobb about the gate}"]);
    for _ in 0..20 {
        if game.play("[LOOK]{around}").unwrap().contains("Gate key") {
            break;
        }
    }
    let mut last = game.play("[ACT]{take the key}").unwrap();
    for _ in 0..20 {
        last = game.play("[ACT]{open the gate}").unwrap();
        if last.contains("Epilogue") {
            break;
        }
    }
    assert!(last.contains("Epilogue: The Other Side") && last.contains("Hobb goes first"), "{last}");
    game.lawful();
}
