//! What the player reads is good English, in an order that makes sense, and each thing is said once.

use serde_json::{Value, json};

use super::Game;

fn said(id: &str, patch: Value, input: &str) -> String {
    let mut game = Game::of(id);
    game.set(patch);
    game.play(input).unwrap_or_else(|fault| fault.message)
}

/// The lines under a heading.
fn block<'a>(output: &'a str, title: &str) -> Vec<&'a str> {
    let text = output.split(&format!("\n{title}:\n")).nth(1).unwrap_or_default();
    text.lines().take_while(|line| line.starts_with("- ")).collect()
}

#[test]
fn a_cost_is_told_once_and_in_words() {
    for seed in 0..30 {
        let mut game = Game::with_seed("brinewick", seed);
        let output = game.play("[ACT]{juggle} --risk mid").unwrap();
        if !output.contains("failure") {
            continue;
        }
        assert_eq!(output.matches("Rumor").count(), 2, "the change, and the HUD: {output}");
        assert!(output.contains("- cost: 20 minutes"), "{output}");
        let story = crate::story::render(game.files(), &game.world).unwrap();
        assert!(!story.contains("Time 20"), "{story}");
        return;
    }
    panic!("no throw failed");
}

#[test]
fn a_cause_stands_before_its_effect() {
    for seed in 0..30 {
        let mut game = Game::with_seed("brinewick", seed);
        game.set(json!({"indicators": {"Heat": 2}}));
        let output = game.play("[ACT]{juggle} --risk high").unwrap();
        let lines = block(&output, "Consequences");
        let at = |part: &str| lines.iter().position(|line| line.contains(part));
        if let (Some(heat), Some(arrest)) = (at("Heat 2 -> 3"), at("salt guard")) {
            assert!(heat < arrest && arrest < at("Heat 3 -> 1").unwrap(), "{output}");
            return;
        }
    }
    panic!("nobody was arrested");
}

#[test]
fn a_level_at_its_end_is_said_in_words() {
    let output = said("brinewick", json!({"indicators": {"Rumor": 3}, "fired": ["Rumor>=2"]}), "[CAST]{a blessing}");
    assert!(!output.contains("overflow") && !output.contains("3 -> 3"), "{output}");
    assert!(output.contains("Rumor stays at 3 (a rite before witnesses; it cannot rise, 1 is lost)"), "{output}");
}

#[test]
fn somebody_hostile_does_something_that_can_be_read() {
    let mut game = Game::of("longdry");
    game.set(json!({"location": "@dry_ford"}));
    let output = game.plays(&["[ACT]{wait}", "[ACT]{wait}"]);
    assert!(!output.contains("Brann acts") && output.contains("club"), "{output}");
}

#[test]
fn a_failed_step_has_a_sentence_of_its_own() {
    for seed in 0..30 {
        let mut game = Game::with_seed("longdry", seed);
        game.set(json!({"location": "@stone_ring", "clues": ["@old_channel"], "quests": {"@last_well": {"stage": 1, "status": "active"}}}));
        let output = game.play("[ASK]{Mave about the tarn}").unwrap();
        assert!(!output.contains("it goes wrong") && !output.contains("turns to"), "{output}");
        if output.contains("failure") {
            assert!(output.contains("a number"), "the cartridge tells how it fails: {output}");
            return;
        }
    }
    panic!("no throw failed");
}

#[test]
fn a_clue_has_a_name() {
    let output = said("brinewick", json!({}), "[ASK]{Jun about the lamp}");
    assert!(output.contains("- Clue: nine boats in nine spring tides"), "{output}");
    let page = json!({"location": "@reeves_hall", "inventory": ["@ledger_page"], "quests": {"@salt_and_ledger": {"stage": 2, "status": "active"}}});
    let output = said("brinewick", page, "[ASK]{Maud about the page}");
    assert!(output.contains("- Clue: ") && !output.contains("Clue: reeves daughter"), "{output}");
}

#[test]
fn a_barred_or_shut_way_is_told_with_what_would_help() {
    let output = said("longdry", json!({"location": "@stone_ring", "seen": ["@stone_ring"]}), "[ACT]{go to the tarn}");
    assert!(!output.contains("meet the condition") && output.contains("A costly alternative:"), "{output}");
}

#[test]
fn numbers_and_names_stand_in_sentences_as_people_write_them() {
    assert_eq!(crate::play::spoken(421), "a little over 7 hours");
    assert_eq!(crate::play::spoken(115), "an hour and 55 minutes");
    assert_eq!(crate::play::spoken(1), "a minute");
    let holding = json!({"holding": {"lands": 2, "followers": 12, "food": 60, "loyalty": 6}, "endings": ["dust"]});
    let one = said("longdry", holding.clone(), "[MANAGE]{train 1}");
    assert!(one.contains("one of the followers learns the spear"), "{one}");
    let many = said("longdry", holding, "[MANAGE]{train 500000}");
    assert!(many.contains("at most 1") && !many.contains("learns the spear"), "{many}");
    let jun = said("brinewick", json!({"location": "@gull_inn", "seen": ["@gull_inn"]}), "[LOOK]{jun}");
    assert!(!jun.contains("no jun"), "{jun}");
    assert!(!crate::tests::brinewick().object("@gull_inn").unwrap().summary.contains("for who can"));
}

#[test]
fn the_kernel_speaks_to_the_player_as_the_cartridges_do() {
    let mut game = Game::new();
    for input in ["[LOOK]{around}", "[ACT]{take the lantern}", "[ACT]{drop the lantern}", "[ACT]{go to the quay}"] {
        let output = game.play(input).unwrap();
        let result = output.split("[Result]\n").nth(1).unwrap().lines().next().unwrap();
        assert!(!result.contains("Ann"), "{input}: {result}");
    }
}

#[test]
fn what_a_seller_has_is_sold_again_once_it_is_used_up() {
    let mut game = Game::of("longdry");
    game.set(json!({"location": "@sky_tarn", "inventory": ["@water_skin", "@oat_cake"]}));
    game.plays(&["[ACT]{drink the skin of water}", "[ACT]{eat the oatcake}"]);
    game.set(json!({"location": "@cold_well", "indicators": {"Favour": 4}}));
    assert!(game.play("[ACT]{buy a skin of water}").unwrap().contains("bought of Ilse"));
    assert!(game.play("[ACT]{buy the oatcake}").unwrap().contains("bought of Josk"));
}

#[test]
fn a_lantern_can_be_lit() {
    let output = said("brinewick", json!({"inventory": ["@brass_lantern"]}), "[ACT]{light the lantern}");
    assert!(output.contains("| light the lantern | done |"), "{output}");
}

#[test]
fn a_threat_changes_how_somebody_feels() {
    let mut game = Game::new();
    let output = game.play("[ASK]{threaten Jun for the truth} --risk high").unwrap();
    assert!(output.contains("Jun Tallow is wary now"), "{output}");
    assert_eq!(game.json("STATE_PANEL.json")["moods"]["@harbourer_jun"], "wary");
    let mut game = Game::new();
    assert!(game.play("[ASK]{interrogate Jun}").unwrap().contains("Jun Tallow is wary now"));
}

#[test]
fn the_knocked_out_are_seen() {
    let mut game = Game::new();
    game.set(json!({"statuses": {"@harbourer_jun": "inactive"}, "down": {"@harbourer_jun": 90000}}));
    let output = game.play("[LOOK]{around}").unwrap();
    assert!(output.contains("Jun Tallow lies here, unconscious"), "{output}");
    assert!(game.play("[LOOK]{Jun}").unwrap().contains("unconscious"));
}

#[test]
fn the_bold_suggestion_does_not_search_what_was_searched() {
    let mut game = Game::of("longdry");
    game.set(json!({"location": "@shepherds_hut", "placed": {"@shepherd_odd": "@stone_ring"}, "inventory": []}));
    game.plays(&["[LOOK]{around}", "[LOOK]{around}"]);
    let menu = game.json(".kernel/menu.json").to_string();
    assert!(!menu.contains("heedless of the noise"), "{menu}");
}
