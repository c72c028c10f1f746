//! Conversation: small talk and common knowledge are free, and the menu names only what is there.

use serde_json::json;

use super::Game;

#[test]
fn small_talk_is_no_check_and_plays_no_stage() {
    let mut game = Game::new();
    for input in ["[ASK]{hello Jun}", "[ASK]{Jun, how are you?}", "[ASK]{good morning}", "[ACT]{thank Jun}"] {
        let output = game.play(input).unwrap();
        assert!(
            output.contains("No check was needed.") && output.contains("| greet Jun Tallow | answered |"),
            "{input}: {output}"
        );
    }
    assert_eq!(game.json("STATE_PANEL.json")["quests"]["@dark_lamp"]["stage"], 0);
    assert_eq!(game.json("STATE_PANEL.json")["told"], json!({}));
}

#[test]
fn a_topic_is_told_for_the_asking_and_a_secret_is_not() {
    let mut game = Game::new();
    let boats = game.play("[ASK]{Jun about the boats}").unwrap();
    assert!(boats.contains("Jun Tallow: \"Nine boats in nine spring tides."), "{boats}");
    assert!(boats.contains("No check was needed."), "{boats}");
    let nothing = game.play("[ASK]{Jun about the king of Spain}").unwrap();
    assert!(nothing.contains("No check was needed.") && nothing.contains("would talk about the keeper"), "{nothing}");
    let pressed = game.play("[ASK]{press Jun for what is not said}").unwrap();
    assert!(pressed.contains("persuasion with Jun Tallow: DC"), "{pressed}");
}

#[test]
fn somebody_absent_unconscious_or_hostile_plays_no_stage() {
    let stage = |game: &Game| game.json("STATE_PANEL.json")["quests"]["@dark_lamp"]["stage"].clone();
    for (patch, part) in [
        (json!({"placed": {"@harbourer_jun": "@gull_inn"}, "noted": ["@harbourer_jun"]}), "Jun Tallow is not here"),
        (
            json!({"statuses": {"@harbourer_jun": "inactive"}, "down": {"@harbourer_jun": 90000}}),
            "Jun Tallow is unconscious",
        ),
        (json!({"moods": {"@harbourer_jun": "hostile"}}), "Jun Tallow wants no word from you"),
    ] {
        let mut game = Game::new();
        game.set(patch);
        let output = game.play("[ASK]{@harbourer_jun about the lamp}").unwrap();
        assert!(output.contains(part), "{output}");
        assert_eq!(stage(&game), 0);
    }
}

#[test]
fn a_stage_that_cannot_be_done_yet_leaves_talk_as_it_is() {
    let mut game = Game::new();
    game.set(json!({"location": "@chapel_yard", "quests": {"@sextons_bell": {"stage": 2, "status": "done"}}}));
    let output = game.plays(&["[LOOK]{Ivo}", "[ASK]{Ivo about the graves}"]);
    assert!(output.contains("Ivo Crane: \"Nine, and I have nobody"), "{output}");
}

/// Every handle in the menu is here or next to here, and known to the player.
#[test]
fn the_menu_names_only_what_is_there() {
    let mut game = Game::new();
    for step in 0..60 {
        let panel = game.json("STATE_PANEL.json");
        let hud = panel["hud"].as_object().unwrap().values().map(|id| id.as_str().unwrap().to_owned());
        let mut known: Vec<String> = hud.collect();
        known.extend(panel["seen"].as_array().unwrap().iter().map(|at| format!("loc_{}", &at.as_str().unwrap()[1..])));
        let menu = game.json(".kernel/menu.json");
        let items = menu.as_array().unwrap();
        for item in items {
            let input = item["input"].as_str().unwrap();
            assert!(!input.contains("where the locals never go") && !input.contains("sleeps below"), "{input}");
            for handle in
                input.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '@').filter(|word| word.starts_with('@'))
            {
                let object = game.world.object(handle).unwrap();
                let way = format!("go to {handle}");
                assert!(known.contains(&object.id()) || input.contains(&way), "{input} in turn {step}: {known:?}");
            }
        }
        let input = items[step % items.len()]["input"].as_str().unwrap().to_owned();
        if input.starts_with('<') {
            break;
        }
        game.play(&input).unwrap_or_else(|fault| panic!("{input}: {fault}"));
    }
}

#[test]
fn a_stage_with_words_of_its_own_is_not_meant_by_the_name_of_another_thing() {
    let mut game = Game::new();
    game.set(json!({"location": "@chapel_yard"}));
    let output = game.play("[ASK]{Ivo about the key}").unwrap();
    assert!(output.contains("The keeper threw something away here"), "{output}");
    assert_eq!(game.json("STATE_PANEL.json")["quests"]["@sextons_bell"]["stage"], 0);
    // Of two people, the one who is named first is spoken to.
    game.set(json!({"location": "@reed_path"}));
    let output = game.play("[ASK]{Wren about the guard, who may go home}").unwrap();
    assert!(output.contains("Wren: \"He is afraid."), "{output}");
}
