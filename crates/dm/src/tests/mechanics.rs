//! Every mechanic of the rules is reached in play.

use serde_json::json;

use super::Game;

#[test]
fn insight_reads_somebody_who_is_here() {
    let mut game = Game::new();
    game.set(json!({"location": "@reeves_hall"}));
    let output = game.play("[LOOK]{whether Maud is lying}").unwrap();
    assert!(output.contains("read Maud Orrin: DC 13 · d20("), "DC 8 + insight 3 + level 2: {output}");
    assert!(game.play("[ASK]{size up Maud}").unwrap().contains("read Maud Orrin: DC 13"));
    assert!(!output.contains("daughter"), "it tells that something is kept, not what: {output}");
}

#[test]
fn an_interrogation_breaks_a_weak_will_and_is_remembered() {
    let mut game = Game::new();
    game.set(json!({"location": "@salt_market"}));
    let output = game.play("[ASK]{interrogate Pell}").unwrap();
    assert!(output.contains("interrogate Pell: DC 10 · d20(") && output.contains("Heat 0 -> 1"), "{output}");
    assert_eq!(game.json("STATE_PANEL.json")["trust"]["@clerk_pell"], -2);
}

#[test]
fn thirst_and_load_weigh_on_checks() {
    let mut game = Game::new();
    let index = "items/ITEM_INDEX.md";
    let heavy = game.world.files[index].replace("| @cook_bertrade | 2 |", "| @cook_bertrade | 120 |");
    game.world.files.insert(index.into(), heavy);
    game.world = crate::load::cartridge(&game.world.files).unwrap();
    game.set(json!({"inventory": ["@salt_loaf"], "time": "day 4, 08:00", "location": "@salt_market"}));
    let output = game.play("[LOOK]{around} --risk low").unwrap();
    // int 3, hunger -1 (three days), thirst -2 (three days), load -2 (120 lb): -2 in all.
    assert!(output.contains(")-2="), "{output}");
    let status = game.play("[MANAGE]{status}").unwrap();
    for line in ["| hunger | -1 on every check |", "| thirst | -2 on every check |", "| load | -2 on every check |"] {
        assert!(status.contains(line), "{status}");
    }
    game.set(json!({"location": "@gull_inn"}));
    assert!(!game.plays(&["[ACT]{drink}", "[MANAGE]{status}"]).contains("thirst"));
}

#[test]
fn a_holding_is_given_by_a_cartridge_and_governed() {
    let mut game = Game::new();
    // Months pass here, and the tide of this town would not wait for them.
    game.world.clocks.clear();
    game.world.flags.insert("governance".into(), true);
    assert!(game.play("[MANAGE]{month}").unwrap().contains("| month | no holding |"));
    game.set(json!({"holding": {"lands": 3, "followers": 50, "food": 100, "loyalty": 5}}));
    let harvest = game.play("[MANAGE]{harvest}").unwrap();
    assert!(harvest.contains("harvest: food +120"), "{harvest}");
    assert!(game.play("[MANAGE]{harvest}").unwrap().contains("brought in already"));
    let trained = game.play("[MANAGE]{train}").unwrap();
    assert!(trained.contains("For 24 days 5 of the followers"), "tier 2 trains faster: {trained}");
    let month = game.play("[MANAGE]{month}").unwrap();
    assert!(month.contains("food 220 - 90"), "{month}");
    assert_eq!(game.json("STATE_PANEL.json")["holding"]["food"], 130);
    assert!(game.files["GOVERNANCE_PANEL.md"].contains("- soldiers: 5"));
    game.lawful();
}
