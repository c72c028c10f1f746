//! What the game says of its world is true: water, prices, barred ways, recipients, states that replace each other, beginnings.

use serde_json::{Value, json};

use super::{Game, answers};
use crate::act::Act;
use crate::init::Answers;

/// A begun campaign with a panel changed, and the answer to one input.
fn said(id: &str, patch: Value, input: &str) -> String {
    let mut game = Game::of(id);
    game.set(patch);
    game.play(input).unwrap_or_else(|fault| fault.message)
}

/// A campaign that begins with other answers.
fn begun(id: &str, change: impl Fn(&mut Answers)) -> Result<Game, String> {
    let mut own = answers();
    change(&mut own);
    let mut game = Game::blank(crate::load::cartridge(&crate::shipped::cartridge(id).unwrap()).unwrap());
    game.act(&Act::Init { answers: Box::new(own) }).map_err(|fault| fault.message)?;
    Ok(game)
}

#[test]
fn finding_9_water_is_where_the_cartridge_has_it() {
    let dry = json!([{"id": "drought", "segments": 14, "filled": 14, "visible": true}, {"id": "thirst", "segments": 6, "filled": 0, "visible": false}]);
    let at = |place: &str| json!({"location": place, "inventory": []});
    for (id, patch, input, drunk) in [
        ("longdry", at("@old_steading"), "[ACT]{drink}", false),
        ("longdry", at("@shepherds_hut"), "[ACT]{drink}", false),
        ("longdry", at("@shepherds_hut"), "[ACT]{drink from the butt}", false),
        ("longdry", at("@shepherds_hut"), "[ACT]{drink from the frog}", false),
        ("longdry", at("@shepherds_hut"), "[ACT]{drink from the crook}", false),
        ("longdry", at("@cold_well"), "[ACT]{drink}", true),
        ("longdry", at("@cold_well"), "[ACT]{drink from the bucket}", true),
        ("longdry", at("@cold_well"), "[ACT]{drink from the well}", true),
        ("longdry", at("@cold_well"), "[ACT]{drink some water}", true),
        ("longdry", at("@cold_well"), "[ACT]{drink sand}", false),
        (
            "longdry",
            json!({"clocks": dry.clone(), "fired": ["clock drought"], "endings": ["dust"], "inventory": []}),
            "[ACT]{drink}",
            false,
        ),
        ("longdry", at("@sky_tarn"), "[ACT]{drink}", true),
        ("longdry", at("@dry_ford"), "[ACT]{drink}", false),
        ("brinewick", at("@lighthouse"), "[ACT]{drink}", false),
        ("brinewick", at("@gull_inn"), "[ACT]{drink}", true),
    ] {
        let output = said(id, patch, input);
        assert_eq!(output.contains("| drink | drunk |"), drunk, "{id} {input}: {output}");
        assert!(!output.contains("it is good"), "nobody has said how it tastes: {output}");
    }
    let crypt = said("brinewick", at("@drowned_crypt"), "[ACT]{drink the black water}");
    assert!(crypt.contains("not fit to drink") && !crypt.contains("there is no water"), "{crypt}");
    // A night under a roof without water is a night without water.
    let mut game = Game::of("longdry");
    game.set(json!({"location": "@old_steading", "drank": 480, "inventory": []}));
    game.play("[MANAGE]{sleep}").unwrap();
    assert_eq!(game.json("STATE_PANEL.json")["drank"], 480);
}

#[test]
fn finding_10_a_risk_pays_in_what_was_tried_and_never_in_a_clock() {
    for seed in 0..40 {
        let mut game = Game::with_seed("longdry", seed);
        game.set(json!({"location": "@old_steading", "time": "day 2, 09:00",
            "clocks": [{"id": "drought", "segments": 14, "filled": 3, "visible": true}]}));
        for input in ["[ACT]{hop on one leg} --risk low", "[ACT]{dig for water} --risk mid"] {
            let output = game.play(input).unwrap();
            assert!(!output.contains("a risk that paid"), "{output}");
            let hops = input.contains("hop");
            assert!(!hops || !output.contains("Discoveries"), "hopping finds nothing that is hidden: {output}");
        }
    }
}

#[test]
fn finding_11_what_cannot_be_paid_is_not_sold() {
    let poor = json!({"indicators": {"Favour": 0}, "fired": ["Favour<=0"], "inventory": []});
    let output = said("longdry", poor.clone(), "[ACT]{buy the oatcake}");
    assert!(output.contains("| impossible |") && output.contains("the price is Favour 1"), "{output}");
    assert!(!output.contains("| buy the oatcake | bought"), "{output}");
    let deep = json!({"location": "@gull_inn", "indicators": {"Debt": 10}, "fired": ["Debt>=7 & Grace<=3"]});
    let output = said("brinewick", deep, "[ACT]{buy the loaf}");
    assert!(output.contains("| impossible |") && !output.contains("bought of"), "{output}");
    // A toll is a price too.
    let mut toll = poor;
    toll["location"] = json!("@dry_ford");
    let output = said("longdry", toll, "[ASK]{pay Brann the toll}");
    assert!(!output.contains("lifts the rope"), "{output}");
}

#[test]
fn finding_12_who_bars_the_way_bars_it() {
    let at_ford = json!({"location": "@dry_ford", "seen": ["@cold_well", "@dry_ford", "@red_gorge"]});
    let barred = said("longdry", at_ford.clone(), "[ACT]{go to the gorge}");
    assert!(barred.contains("the toll, or the way back") && barred.contains("· the Dry Ford ·"), "{barred}");
    let mut from_afar = at_ford.clone();
    from_afar["location"] = json!("@cold_well");
    let stopped = said("longdry", from_afar, "[ACT]{go to the gorge}");
    assert!(stopped.contains("Brann bars the way") && stopped.contains("· Cold Well ·"), "{stopped}");
    let back = said("longdry", at_ford.clone(), "[ACT]{go to the well}");
    assert!(back.contains("· Cold Well ·"), "the way back is open: {back}");
    for open in [
        json!({"moods": {"@toll_brann": "neutral"}}),
        json!({"statuses": {"@toll_brann": "inactive"}, "down": {"@toll_brann": 90000}}),
    ] {
        let mut patch = at_ford.clone();
        crate::json::merge(&mut patch, &open);
        let gone = said("longdry", patch, "[ACT]{go to the gorge}");
        assert!(gone.contains("· the Red Gorge ·"), "{gone}");
    }
    let paid = said("longdry", at_ford, "[ACT]{pay the toll}");
    assert!(paid.contains("lifts the rope"), "he need not be named: nobody else is there: {paid}");
}

#[test]
fn finding_13_the_recipient_of_a_deed_counts() {
    let carrying = json!({"inventory": ["@letter"]});
    let wrong = said("longdry", carrying.clone(), "[ACT]{give letter to Josk}");
    assert!(!wrong.contains("The warden reads it") && wrong.contains("Josk"), "{wrong}");
    for input in ["[ACT]{give the letter to Ilse}", "[ACT]{deliver the letter}"] {
        let right = said("longdry", carrying.clone(), input);
        assert!(right.contains("The warden reads it"), "{input}: {right}");
    }
}

#[test]
fn finding_14_a_state_that_is_replaced_is_gone() {
    let done = |quest: &str, stage: u64| json!({quest: {"stage": stage, "status": "done"}});
    for (place, quests, look, lie) in [
        ("@reeves_hall", done("@salt_and_ledger", 3), "[LOOK]{the ledger}", "lies open"),
        ("@gull_inn", done("@two_plates", 3), "[LOOK]{the table}", "dusty"),
        ("@lamp_room", done("@dark_lamp", 4), "[LOOK]{the oil well}", "is empty"),
    ] {
        let output = said(
            "brinewick",
            json!({"location": place, "quests": quests, "endings": ["the_lamp", "for_the_dead"]}),
            look,
        );
        assert!(!output.contains(lie), "{look}: {output}");
    }
    let pressed =
        json!({"location": "@reed_path", "statuses": {"@marsh_lily": "gone"}, "moods": {"@guard_holt": "neutral"}});
    let output = said("brinewick", pressed, "[LOOK]{the lilies}");
    assert!(!output.contains("lilies grow") && !output.contains("not at hand"), "{output}");
    for id in ["brinewick", "longdry", "_template"] {
        let world = crate::load::cartridge(&crate::shipped::cartridge(id).unwrap()).unwrap();
        let notes = crate::inspect::inspect(&world.files).notes;
        assert!(!notes.iter().any(|note| note.contains("both hold")), "{id}: {notes:?}");
    }
}

#[test]
fn finding_14_a_clock_stops_when_the_cartridge_says_so() {
    let mut game = Game::of("longdry");
    game.set(json!({"quests": {"@last_well": {"stage": 3, "status": "done"}}, "endings": ["water", "settled"],
        "clocks": [{"id": "drought", "segments": 14, "filled": 13, "visible": true}]}));
    let output = game.plays(&["[ACT]{wait two days}", "[LOOK]{the bucket}"]);
    assert!(!output.contains("drought") && !output.contains("comes up with mud"), "{output}");
    let mut game = Game::new();
    game.set(json!({"quests": {"@dark_lamp": {"stage": 4, "status": "done"}}, "endings": ["the_lamp"], "indicators": {"Grace": 8}}));
    game.plays(&["[ACT]{wait two days}", "[ACT]{wait two days}"]);
    assert_eq!(game.json("STATE_PANEL.json")["indicators"]["Grace"], 8);
}

#[test]
fn finding_16_a_hook_is_true_and_has_a_number() {
    let game = begun("longdry", |_| ()).unwrap();
    let carried = game.json("STATE_PANEL.json")["inventory"].to_string();
    assert!(carried.contains("@letter") && carried.contains("@water_skin"), "{carried}");
    let mut game = begun("longdry", |own| own.start_hook = "2".into()).unwrap();
    let first = game.files[".kernel/output.md"].clone();
    assert!(first.contains("Your mother was born at the Old Steading"), "{first}");
    assert!(!game.json("STATE_PANEL.json")["inventory"].to_string().contains("@letter"));
    assert!(!game.play("[LOOK]{around}").unwrap().contains("Letter for the warden"), "it is in no other story");
    let mut game = begun("brinewick", |own| own.start_hook = "2".into()).unwrap();
    let read = game.play("[LOOK]{the letter}").unwrap();
    assert!(read.contains("oil") && read.contains("| seen |"), "{read}");
    let refused = begun("brinewick", |own| own.start_hook = "7".into()).err().unwrap();
    assert!(refused.contains("1 to 3"), "{refused}");
    let own = begun("brinewick", |own| own.start_hook = "You owe the reeve a debt.".into()).unwrap();
    assert!(own.files[".kernel/output.md"].contains("You owe the reeve a debt."));
}

#[test]
fn finding_17_a_story_does_not_begin_behind_a_shut_gate() {
    let refused = begun("longdry", |own| own.start_loc = "@sky_tarn".into()).err().unwrap();
    assert!(refused.contains("no path shows on it"), "{refused}");
    let refused = begun("brinewick", |own| own.start_loc = "the lamp room".into()).err().unwrap();
    assert!(refused.contains("has a new lock"), "{refused}");
    let refused = begun("brinewick", |own| own.start_loc = "the crypt".into()).err().unwrap();
    assert!(refused.contains("water that pushes back"), "{refused}");
    assert!(begun("brinewick", |own| own.start_loc = "the market".into()).is_ok());
}

#[test]
fn finding_21_an_arrest_is_told_where_one_is_then() {
    let mut game = Game::new();
    game.set(json!({"indicators": {"Heat": 3}}));
    let output = game.play("[ACT]{juggle}").unwrap();
    let hints = output.split("What can be done here:").nth(1).unwrap_or_default();
    assert!(output.contains("· the Reeve's Hall ·") && hints.contains("Maud Orrin"), "{output}");
    assert!(!hints.contains("Jun Tallow") && !hints.contains("go to the Lighthouse"), "{output}");
    let output = said("brinewick", json!({"location": "@reeves_hall", "indicators": {"Heat": 3}}), "[ACT]{wait}");
    assert!(!output.contains("takes you to the hall"), "{output}");
}

#[test]
fn finding_23_one_wakes_where_the_cartridge_says_and_weather_fits_the_hour() {
    let fallen = |id: &str| said(id, json!({"hp": 0}), "[ACT]{wait}");
    let well = fallen("longdry");
    assert!(!well.contains("broth") && !well.contains("from the road") && well.contains("Cold Well"), "{well}");
    assert!(fallen("brinewick").contains("the smell of broth"));
    for seed in 0..60 {
        let mut game = Game::with_seed("longdry", seed);
        game.set(json!({"time": "day 2, 23:00", "seen": ["@cold_well"], "inventory": []}));
        let night = game.play("[ACT]{go to the hut}").unwrap();
        assert!(!night.contains("The heat stands"), "{night}");
        let rain = night.contains("a storm breaks") || night.contains("Rain falls") || night.contains("High cloud");
        assert!(!(rain && night.contains("stars are so many")), "{night}");
    }
    let mut game = Game::new();
    let told = (0..6).map(|_| game.play("[ACT]{wait 12 hours}").unwrap());
    for output in told.collect::<Vec<_>>() {
        assert!(
            !output.contains("night tide comes") && !output.contains("HP 12 ->"),
            "nobody is wet in a hall: {output}"
        );
        if output.contains("[HUD]\nday") && output.contains("Epilogue") {
            break;
        }
    }
}
