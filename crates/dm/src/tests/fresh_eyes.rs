//! What a fresh player and an author found beside the narrator (`prose_truth`): orders, prices, flight, hidden places, reports of
//! faults.

use serde_json::json;

use super::Game;
use crate::inspect::inspect;

#[test]
fn finding_8_a_second_order_is_named_whatever_the_verb() {
    let mut game = Game::new();
    game.play("[ACT]{go to the Salt Market}").unwrap();
    for (input, left) in [
        ("[ASK]{Pell about the scales, then take the false weight}", "take the false weight"),
        ("[ASK]{Pell about the scales. Go to the quay.}", "Go to the quay"),
        ("[ASK]{Pell about Jun and then go to the quay}", "go to the quay"),
        ("[ASK]{Pell about the scales and go to the quay}", "go to the quay"),
        ("[LOOK]{the scales and go to the Reeve's Hall}", "go to the Reeve's Hall"),
    ] {
        let shown = game.play(input).unwrap();
        assert!(shown.contains(&format!("| {left} | left undone: one order in one input |")), "{input}: {shown}");
        assert_eq!(game.json("STATE_PANEL.json")["location"], "@salt_market", "{input}");
    }
    for whole in
        ["[ASK]{Pell about salt and oil}", "[ASK]{Pell to light the lamp and ring the bell}", "[LOOK]{salt and scales}"]
    {
        let shown = game.play(whole).unwrap();
        assert!(!shown.contains("left undone"), "{whole}: {shown}");
    }
}

#[test]
fn finding_9_asking_tells_a_price_and_never_pays() {
    let mut game = Game::of("longdry");
    game.play("[ACT]{go to the Dry Ford}").unwrap();
    let before = game.json("STATE_PANEL.json")["indicators"].clone();
    let shown = game.play("[ASK]{Brann about the toll}").unwrap();
    assert!(shown.contains("Brann names the price: 1 Favour. Nothing is paid yet."), "{shown}");
    assert_eq!(game.json("STATE_PANEL.json")["indicators"], before);
    let shown = game.play("[ACT]{pay the toll}").unwrap();
    assert!(shown.contains("(a toll was paid)"), "{shown}");
}

#[test]
fn finding_9_the_lower_line_is_told_at_the_well() {
    let mut game = Game::of("longdry");
    game.play("[ACT]{go to the Dry Ford}").unwrap();
    game.set(json!({"indicators": {"Favour": 1}}));
    let shown = game.play("[ACT]{pay the toll}").unwrap();
    assert!(!shown.contains("filled to a lower line"), "hours away from the cup: {shown}");
    let shown = game.play("[ACT]{go to Cold Well}").unwrap();
    assert!(shown.contains("filled to a lower line") || shown.contains("Filled to a lower line"), "{shown}");
}

#[test]
fn finding_10_one_can_flee() {
    for input in ["[ACT]{flee}", "[ACT]{run away from Osric}", "[ACT]{escape}", "[ACT]{retreat to the quay}"] {
        let mut game = Game::new();
        game.play("[ACT]{go to the Lighthouse}").unwrap();
        game.set(json!({"moods": {"@keeper_osric": "hostile"}}));
        let shown = game.play(input).unwrap();
        assert_eq!(game.json("STATE_PANEL.json")["location"], "@lantern_quay", "{input}: {shown}");
    }
}

#[test]
fn finding_12_a_person_filed_by_a_narrator_answers_to_a_short_name() {
    let page = "<!-- ARCHIVE_DELTA\nfiles:\n  - path: characters/NPCs_active/marta_finch.md\n    append: |\n      # Marta Finch\n      An eel seller.\n-->";
    let mut game = Game::new();
    game.propose("[LOOK]{around}", json!({"delta": page})).unwrap();
    for input in ["[ASK]{Marta about eels}", "[ASK]{Marta}", "[ASK]{Finch}"] {
        let shown = game.play(input).unwrap();
        assert!(shown.contains("| talk to Marta Finch |") && !shown.contains("Jun Tallow:"), "{input}: {shown}");
    }
    let shown = game.play("[LOOK]{Marta Finch}").unwrap();
    assert!(shown.contains("| look at Marta Finch | seen |"), "{shown}");
    assert!(shown.contains("Marta Finch is here"), "{shown}");
    let shown = game.play("[LOOK]{around}").unwrap();
    let hud = shown.split("[HUD]").nth(1).unwrap();
    assert!(hud.contains("Marta Finch"), "the HUD knows who is here: {hud}");
    assert!(shown.contains("Jun Tallow and Marta Finch are here"), "{shown}");
}

#[test]
fn finding_14_every_fault_of_a_row_is_told_at_once() {
    let mut files = crate::shipped::cartridge("longdry").unwrap();
    let page = "lore/MECHANICS/DEEDS.md";
    let row = "| ACT/FLY | wave | - | - | @gate | @sword & Luck>=2 & it rains | luck 99 | explode @gate; Joy+1 | hp-x | yes | you wave | - |\n";
    files.get_mut(page).unwrap().push_str(row);
    let line = files[page].lines().count();
    let found = inspect(&files);
    let own: Vec<&str> = found
        .faults
        .iter()
        .filter(|own| own.path == page && own.line == line)
        .map(|own| own.message.as_str())
        .collect();
    for part in ["@gate", "@sword", "explode", "Luck", "luck", "99", "FLY", "it rains", "Joy+1", "hp-x"] {
        assert!(own.iter().any(|message| message.contains(part)), "{part}: {own:#?}");
    }
    files.insert(
        "lore/MECHANICS/INDICATORS.md".into(),
        "| indicator | min | max | start |\n|---|---|---|---|\n| Debt | 5 | 3 | 5 |\n".into(),
    );
    assert!(inspect(&files).faults.iter().any(|own| own.message == "min 5 is more than max 3"));
    let near: Vec<String> =
        found.faults.iter().map(|own| own.message.clone()).filter(|own| own.contains("@gate;")).collect();
    assert!(near.iter().all(|own| !own.contains("@rope")), "{near:?}");
}

#[test]
fn finding_15_a_hidden_place_answers_as_one_that_does_not_exist() {
    let answer = |place: &str| {
        let mut game = Game::new();
        let shown = game.play(&format!("[ACT]{{go to {place}}}")).unwrap();
        shown.split("[Result]").nth(1).unwrap().replace(place, "PLACE")
    };
    for place in ["the Drowned Crypt", "the Lamp Room"] {
        assert_eq!(answer(place), answer("Narnia"), "{place}");
    }
}

#[test]
fn finding_16_what_is_carried_is_said_so() {
    let mut game = Game::of("longdry");
    game.set(json!({"inventory": ["@water_skin"]}));
    let prose = "Ilse ties it off with a knot that looks older than she is and hands it over the counter.";
    let shown =
        game.propose("[ACT]{buy the skin of water}", json!({"prose": format!("The rope groans. {prose}")})).unwrap();
    assert!(shown.contains("is in your pack: it is not had twice"), "{shown}");
    assert!(!shown.contains("over the counter") && shown.contains("The rope groans."), "{shown}");
}

#[test]
fn finding_17_a_question_about_somebody_is_answered_as_one() {
    let mut game = Game::of("longdry");
    for _ in 0..2 {
        let shown = game.play("[ASK]{Ilse about Mave}").unwrap();
        assert!(shown.contains("does not know, or does not tell it for the asking"), "{shown}");
    }
    let shown = game.play("[ACT]{kill the sheep}").unwrap();
    assert!(shown.contains("there is nobody of that name here to be fought"), "{shown}");
}

#[test]
fn finding_21_a_flag_within_the_braces_is_refused_with_its_form() {
    let refused = Game::new().play("[ACT]{leap the gap --risk high}").unwrap_err();
    assert!(refused.message.contains("flags stand after the braces"), "{refused}");
    assert!(refused.message.contains("Example: [ACT]{leap the gap} --risk high"), "{refused}");
}

#[test]
fn finding_14_a_page_that_cannot_be_read_is_not_said_to_be_lacking() {
    let mut files = crate::shipped::cartridge("brinewick").unwrap();
    files.remove("lore/INDEX.md");
    files.get_mut("ROUTES.md").unwrap().push_str("- [LOOK] -> lore/INDEX.md\n");
    let mut found = inspect(&files);
    assert!(found.faults.iter().any(|own| own.message == "there is no lore/INDEX.md"));
    let message = "the page is not UTF-8 text".to_owned();
    found.add(vec![crate::world::Fault { path: "lore/INDEX.md".into(), line: 1, message }]);
    assert_eq!(found.faults.len(), 1, "{:?}", found.faults);
}

#[test]
fn finding_18_what_is_set_aside_is_recorded_and_no_stump_is_left() {
    let mut game = Game::new();
    game.propose("[ACT]{fly to the moon}", json!({"prose": "Up it goes."})).unwrap();
    assert!(
        game.files[&game.session()].contains("- Set aside: prose: the move was not done"),
        "{}",
        game.files[&game.session()]
    );
    let shown = game.propose("[ACT]{wait}", json!({"prose": "Red tide. Type [ACT]{light the lamp} now."})).unwrap();
    assert!(shown.contains("Red tide.") && !shown.contains("Type"), "{shown}");
}
