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

#[test]
fn a_search_that_is_named_takes_its_own_time() {
    let mut game = Game::new();
    let time = |game: &Game| game.json("STATE_PANEL.json")["time"].as_str().unwrap().to_owned();
    game.play("[LOOK]{a glance around}").unwrap();
    assert_eq!(time(&game), "day 1, 08:01");
    game.play("[LOOK]{scour everything}").unwrap();
    assert_eq!(time(&game), "day 1, 08:31");
    game.set(json!({"location": "@drowned_crypt"}));
    let output = game.play("[ACT]{search for footprints} --risk low").unwrap();
    assert!(output.contains("search the Drowned Crypt: risk low"), "{output}");
}

#[test]
fn a_long_way_takes_as_long_as_pace_load_and_weather_let_it() {
    let legs = |input: &str, patch: serde_json::Value| {
        let mut game = Game::of("longdry");
        game.world.tables.retain(|table| table.name != "Weather");
        game.set(patch);
        let output = game.play(input).unwrap();
        let line =
            output.lines().find(|line| line.contains("arrived (")).unwrap_or_else(|| panic!("{output}")).to_owned();
        let panel = game.json("STATE_PANEL.json");
        (panel["time"].as_str().unwrap().to_owned(), panel["fatigue"].as_i64().unwrap(), line)
    };
    let march = legs("[ACT]{go to the ford}", json!({}));
    assert_eq!((march.0.as_str(), march.1), ("day 1, 10:34", 0), "9 km at 28 km in 8 hours: {}", march.2);
    let forced = legs("[ACT]{hurry to the ford}", json!({}));
    assert_eq!((forced.0.as_str(), forced.1), ("day 1, 10:02", 1), "{}", forced.2);
    let slow = legs("[ACT]{walk slowly to the ford}", json!({}));
    assert_eq!((slow.0.as_str(), slow.1), ("day 1, 11:00", 0), "{}", slow.2);
    // 160 pounds cannot run: three heavy things.
    let mut game = Game::of("longdry");
    game.world.tables.retain(|table| table.name != "Weather");
    for object in game.world.objects.iter_mut().filter(|object| object.handle == "@iron_bar") {
        object.fields.insert("weight".into(), "160".into());
    }
    game.set(json!({"inventory": ["@iron_bar"]}));
    assert!(game.play("[ACT]{hurry to the ford}").unwrap().contains("9 km slowly"));
    // Rain takes a tenth or three tenths of the way.
    let mut game = Game::of("longdry");
    for table in game.world.tables.iter_mut().filter(|table| table.name == "Weather") {
        table.rows.iter_mut().for_each(|row| row[1] = "heavy rain".into());
    }
    assert!(game.play("[ACT]{go to the ford}").unwrap().contains("9 km at a march, heavy rain"));
    assert_eq!(game.json("STATE_PANEL.json")["time"], "day 1, 11:47");
}
