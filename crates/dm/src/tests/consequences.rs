//! Consequences bite: falling, heat, clocks, hostile people, violence, things that are gone.

use serde_json::json;

use super::Game;

#[test]
fn a_character_without_hit_points_falls_outside_a_fight_too() {
    let mut game = Game::new();
    for clock in game.world.clocks.iter_mut().filter(|clock| clock.id == "tide") {
        clock.effects = crate::rule::effects("hp-1").unwrap();
    }
    game.set(json!({"hp": 1, "clocks": [{"id": "tide", "segments": 8, "filled": 7, "visible": true}, {"id": "reeve", "segments": 4, "filled": 0, "visible": false}]}));
    let output = game.play("[ACT]{wait until night}").unwrap();
    assert!(output.contains("HP 1 -> 0") && output.contains("Darkness; hours later"), "{output}");
    let panel = game.json("STATE_PANEL.json");
    assert_eq!(
        (&panel["location"], &panel["hp"]),
        (&json!("@gull_inn"), &json!(6)),
        "one wakes where the cartridge says"
    );
    assert!(output.contains("Debt 1 -> 2 (a cot and broth at the Gull)"), "{output}");
    game.lawful();
}

#[test]
fn heat_and_a_full_clock_do_what_the_cartridge_says() {
    let mut game = Game::new();
    game.set(json!({"indicators": {"Heat": 3}, "location": "@salt_market"}));
    let output = game.play("[ACT]{wait}").unwrap();
    assert!(output.contains("shuts you in the reeve's hall") && output.contains("Heat 3 -> 1"), "{output}");
    assert_eq!(game.json("STATE_PANEL.json")["location"], "@reeves_hall");
    // The tide begins anew, and comes again.
    let mut game = Game::new();
    for turn in 0..3 {
        game.play("[ACT]{wait 30 hours}").unwrap_or_else(|fault| panic!("{turn}: {fault}"));
    }
    let grace = game.json("STATE_PANEL.json")["indicators"]["Grace"].as_i64().unwrap();
    assert!(grace <= 0, "the tide has come {grace}");
}

#[test]
fn hostile_people_warn_and_then_act_and_can_be_talked_down() {
    let mut game = Game::new();
    game.set(json!({"location": "@chapel_yard", "seen": ["@lantern_quay", "@salt_market", "@chapel_yard"]}));
    let arrived = game.play("[ACT]{go to the marsh}").unwrap();
    assert!(arrived.contains("Holt bars the planks with his club"), "{arrived}");
    let struck = game.play("[ACT]{wait}").unwrap();
    assert!(struck.contains("| Holt attacks Ann |"), "{struck}");
    for _ in 0..12 {
        if game.play("[ASK]{tell Holt that he may go home}").unwrap().contains("goes home by way of the Gull") {
            break;
        }
        game.set(json!({"hp": 12, "location": "@reed_path", "indicators": {"Heat": 0}}));
    }
    assert_eq!(game.json("STATE_PANEL.json")["placed"]["@guard_holt"], "@gull_inn");
    let calm = game.play("[ACT]{wait}").unwrap();
    assert!(!calm.contains("Holt attacks"), "{calm}");
}

#[test]
fn violence_is_remembered_and_somebody_who_fell_wakes_again() {
    let mut game = Game::new();
    let struck = game.play("[FIGHT]{Jun}").unwrap();
    assert!(struck.contains("Jun Tallow is hostile now"), "{struck}");
    let talk = game.play("[ASK]{Jun about the boats}").unwrap();
    assert!(talk.contains("wants no word"), "{talk}");
    for _ in 0..30 {
        game.set(json!({"hp": 12, "location": "@lantern_quay", "indicators": {"Heat": 0}}));
        if game.play("[FIGHT]{Jun}").unwrap().contains("Jun Tallow is out of the fight") {
            break;
        }
    }
    assert!(game.play("[ASK]{Jun about the boats}").unwrap().contains("is unconscious"));
    let woken = game.plays(&["[ACT]{wait 9 hours}", "[ASK]{make peace with Jun}"]);
    assert!(woken.contains("make peace with Jun Tallow"), "{woken}");
    assert!(game.json("STATE_PANEL.json")["trust"]["@harbourer_jun"].as_i64().unwrap() < 0);
}

#[test]
fn what_is_eaten_or_handed_in_is_gone() {
    let mut game = Game::new();
    let again =
        game.plays(&["[ACT]{go to the inn}", "[ACT]{buy the loaf}", "[ACT]{eat the loaf}", "[ACT]{eat the loaf}"]);
    assert!(again.contains("the loaf of salt bread is not carried"), "{again}");
    game.plays(&["[ASK]{Sanna about the plate}"]);
    game.set(json!({"location": "@reed_path", "moods": {"@guard_holt": "neutral"}}));
    let given = game.play("[ACT]{give the coat to Wren}").unwrap();
    assert!(given.contains("The captain's oilskin is gone") && given.contains("The child puts it on"), "{given}");
}

#[test]
fn a_hidden_clock_stays_hidden() {
    let mut game = Game::new();
    game.set(json!({"indicators": {"Rumor": 2}}));
    let output = game.play("[LOOK]{around}").unwrap();
    assert!(output.contains("The reeve sends somebody to ask who you are"), "{output}");
    assert_eq!(game.json("STATE_PANEL.json")["clocks"][1]["filled"], 1, "it ticks");
    let turns = &game.files[&game.session()];
    let clocks = crate::session::field(crate::session::turns(turns).pop().unwrap(), "Clocks").unwrap();
    for shown in [&output, &game.files[".kernel/boot.md"], clocks] {
        assert!(!shown.contains("reeve 0/4") && !shown.contains("reeve 1/4"), "{shown}");
    }
}

#[test]
fn repeated_looks_discover_nothing_new() {
    let mut game = Game::new();
    let first = game.play("[LOOK]{around}").unwrap();
    assert!(first.contains("Discoveries:\n- Tide notice"), "{first}");
    for input in ["[LOOK]{around}", "[LOOK]{the notice}", "[LOOK]{the notice}"] {
        let again = game.play(input).unwrap();
        assert!(!again.contains("Discoveries:"), "{input}: {again}");
    }
    let gone = game.plays(&["[ACT]{go to the inn}", "[ACT]{go to the quay}"]);
    assert!(!gone.contains("Discoveries:"), "{gone}");
}
