//! What the player orders is done as it was said, or the answer says what was not: weapons, names, denials, numbers, two orders.

use serde_json::{Value, json};

use super::Game;

fn said(id: &str, patch: Value, input: &str) -> String {
    let mut game = Game::of(id);
    game.set(patch);
    game.play(input).unwrap_or_else(|fault| fault.message)
}

#[test]
fn finding_15_one_fights_with_what_is_carried() {
    for (input, lack) in [
        ("[FIGHT]{Jun with a longsword}", "no longsword is carried"),
        ("[FIGHT]{Jun with my crossbow}", "no crossbow is carried"),
        ("[FIGHT]{Jun with a bow}", "no bow is carried"),
        ("[FIGHT]{Jun with the brass lantern}", "the brass lantern is not carried"),
        ("[FIGHT]{throw a dart at Jun}", "no dart is carried"),
    ] {
        let output = said("brinewick", json!({}), input);
        assert!(output.contains("| impossible |") && output.contains(lack), "{input}: {output}");
        assert!(!output.contains("d20("), "{input}: {output}");
    }
    let thrown = |patch: Value, input: &str| {
        let mut all = String::new();
        for seed in 0..12 {
            let mut game = Game::with_seed("brinewick", seed);
            game.set(patch.clone());
            all.push_str(&game.play(input).unwrap());
            all.push_str(game.files.get(crate::dice::DICE).map(String::as_str).unwrap_or_default());
        }
        all
    };
    let dagger = thrown(json!({}), "[FIGHT]{Jun}");
    assert!(dagger.contains("dagger damage"), "{dagger}");
    let fists = thrown(json!({}), "[FIGHT]{Jun with bare fists}");
    assert!(fists.contains("fist damage") && !fists.contains("dagger damage"), "{fists}");
    let rock = thrown(json!({}), "[FIGHT]{throw a rock at Jun}");
    assert!(
        rock.contains("rock damage") && rock.contains("You pick up a rock") && !rock.contains("dagger damage"),
        "{rock}"
    );
    let lantern = thrown(json!({"inventory": ["@brass_lantern"]}), "[FIGHT]{Jun with the lantern}");
    assert!(lantern.contains("no weapon") && lantern.contains("fist damage"), "{lantern}");
    let empty = thrown(json!({"inventory": []}), "[FIGHT]{Jun}");
    assert!(empty.contains("fist damage") && !empty.contains("dagger damage"), "{empty}");
    let bar = said("longdry", json!({"inventory": ["@iron_bar"]}), "[FIGHT]{Josk with the bar}");
    assert!(!bar.contains("no weapon"), "{bar}");
}

#[test]
fn finding_15_the_weapon_is_carried_like_anything_else() {
    for id in ["brinewick", "longdry"] {
        let mut game = Game::of(id);
        assert!(game.play("[ACT]{inventory}").unwrap().contains("The dagger"), "{id}");
        assert!(game.play("[MANAGE]{status}").unwrap().contains("dagger"), "{id}");
        assert!(game.play("[ACT]{drop the dagger}").unwrap().contains("| dropped |"), "{id}");
        assert!(!game.play("[MANAGE]{status}").unwrap().contains("dagger, "), "{id}");
        assert!(game.play("[ACT]{take the dagger}").unwrap().contains("| taken |"), "{id}");
    }
    // A cartridge without a thing for it still says what the page of the character has.
    assert!(Game::of("_template").play("[ACT]{inventory}").unwrap().contains("dagger"));
}

#[test]
fn finding_18_any_word_of_a_name_finds_what_is_at_hand() {
    let mut game = Game::new();
    game.set(json!({"location": "@gull_inn", "inventory": ["@oilskin"]}));
    game.play("[MANAGE]{status}").unwrap();
    assert!(game.play("[LOOK]{the oilskin}").unwrap().contains("It is wet inside"));
    assert!(game.play("[ACT]{drop the oilskin}").unwrap().contains("| drop the captain's oilskin | dropped |"));
    assert!(game.play("[ACT]{take the captain's coat}").unwrap().contains("| taken |"));
    // A word for something that is not there finds nothing, and names nothing.
    let output = game.play("[ACT]{take the keeper's thing}").unwrap();
    assert!(!output.contains("keeper's key"), "{output}");
}

#[test]
fn finding_19_a_denial_is_no_order() {
    for input in [
        "[ACT]{never go to the inn}",
        "[ACT]{do not go to the inn}",
        "[ACT]{don't take the lantern}",
        "[FIGHT]{do not hit Jun}",
    ] {
        let output = said("brinewick", json!({}), input);
        assert!(output.contains("| not understood |") && output.contains("· Lantern Quay ·"), "{input}: {output}");
        assert!(output.contains("what is not to be done"), "{input}: {output}");
    }
    let lit = json!({"location": "@lamp_room", "inventory": ["@lily_oil"], "quests": {"@dark_lamp": {"stage": 3, "status": "active"}}});
    assert!(!said("brinewick", lit, "[ACT]{never light the lamp}").contains("The wick takes"));
}

#[test]
fn finding_19_a_span_of_time_is_taken_as_it_was_said_or_refused() {
    for (input, part) in [
        ("[ACT]{wait -5 hours}", "backwards"),
        ("[ACT]{wait 99999999999999999999 years}", "at most two days"),
        ("[ACT]{wait 1000 hours}", "at most two days"),
        ("[ACT]{wait ten years}", "at most two days"),
        ("[ACT]{wait 0 minutes}", "at most two days"),
    ] {
        let output = said("brinewick", json!({}), input);
        assert!(output.contains(part) && output.contains("\nday 1, 08:00 ·"), "{input}: {output}");
    }
    for (input, time) in [
        ("[ACT]{wait half an hour}", "08:30"),
        ("[ACT]{wait five hours}", "13:00"),
        ("[ACT]{wait 90 minutes}", "09:30"),
        ("[ACT]{wait}", "08:30"),
        ("[ACT]{wait for Jun}", "08:30"),
    ] {
        let output = said("brinewick", json!({}), input);
        assert!(output.contains(&format!("\nday 1, {time} ·")), "{input}: {output}");
    }
}

#[test]
fn finding_19_of_two_orders_none_is_dropped_without_a_word() {
    let mut game = Game::new();
    let both = game.play("[ACT]{take notice and lantern}").unwrap();
    assert!(
        both.contains("| take the tide notice | taken |") && both.contains("| take the brass lantern | taken |"),
        "{both}"
    );
    let output = game.play("[ACT]{drop the lantern and go to the inn}").unwrap();
    assert!(output.contains("| drop the brass lantern | dropped |") && output.contains("· Lantern Quay ·"), "{output}");
    assert!(output.contains("| go to the inn | left undone: one order in one input |"), "{output}");
    let one = game.play("[ACT]{get up and look at the boat}").unwrap();
    assert!(one.contains("lies on its side") && !one.contains("left undone"), "{one}");
}

#[test]
fn finding_19_words_are_not_read_as_other_words() {
    let well = json!({});
    let ride = said("longdry", well.clone(), "[ACT]{ride a mule}");
    assert!(ride.contains("| not understood |") && !ride.contains("no place of that name"), "{ride}");
    let jump = said("longdry", well, "[ACT]{jump into the well}");
    assert!(!jump.contains("already") && jump.contains("| not understood |"), "{jump}");
    let me = said("brinewick", json!({}), "[LOOK]{me}");
    assert!(me.contains("HP 12 of 12") && me.contains("\nday 1, 08:00 ·"), "{me}");
    for input in ["[ACT]{read Jun}", "[ASK]{read Jun}", "[LOOK]{read Jun}"] {
        let output = said("brinewick", json!({}), input);
        assert!(output.contains("read Jun Tallow: DC"), "{input}: {output}");
    }
    let weather = said("brinewick", json!({}), "[ASK]{Jun about the weather}");
    assert!(!weather.contains("greet Jun") && weather.contains("nothing to say"), "{weather}");
    let lilies = json!({"location": "@reed_path", "moods": {"@guard_holt": "neutral"}, "quests": {"@dark_lamp": {"stage": 2, "status": "active"}}});
    let look = said("brinewick", lilies.clone(), "[LOOK]{the lilies}");
    assert!(!look.contains("DC") && look.contains("ilies"), "looking presses nothing: {look}");
    assert!(said("brinewick", lilies, "[ACT]{press the lilies}").contains("the Dark Lamp: DC 12"));
}

#[test]
fn finding_19_what_was_done_or_asked_before_is_said_to_be() {
    let rung = json!({"location": "@chapel_yard", "quests": {"@sextons_bell": {"stage": 2, "status": "done"}}});
    let output = said("brinewick", rung, "[ACT]{ring the bell}");
    assert!(output.contains("| done before |") && !output.contains("not understood"), "{output}");
    let open = json!({"location": "@sky_tarn", "quests": {"@last_well": {"stage": 3, "status": "done"}}, "endings": ["water"]});
    let output = said("longdry", open, "[ACT]{open the sluice}");
    assert!(output.contains("| done before |"), "{output}");
    let asked = json!({"location": "@lighthouse", "quests": {"@dark_lamp": {"stage": 2, "status": "active"}}});
    let output = said("brinewick", asked, "[ASK]{Osric about the oil}");
    assert!(output.contains("Lily oil,") && output.contains("| told again |"), "{output}");
}

#[test]
fn finding_20_a_search_finds_nothing_that_is_carried() {
    for seed in 0..20 {
        let mut game = Game::with_seed("longdry", seed);
        game.set(json!({"location": "@old_steading", "inventory": ["@split_wedge"]}));
        for _ in 0..3 {
            let output = game.play("[ACT]{search}").unwrap();
            assert!(!output.contains("Oak wedge"), "{output}");
        }
    }
}

#[test]
fn finding_22_no_answer_names_what_was_not_met() {
    for (input, name) in [
        ("[LOOK]{@keeper_key}", "@keepers_key"),
        ("[ACT]{take @lily_ol}", "@lily_oil"),
        ("[ACT]{go to @drowned_cript}", "@drowned_crypt"),
        ("[ASK]{@marsh_child}", "Wren"),
        ("[FIGHT]{@marsh_child}", "Wren"),
    ] {
        let output = said("brinewick", json!({}), input);
        assert!(!output.contains(name), "{input}: {output}");
    }
    // What is here is still offered.
    assert!(said("brinewick", json!({}), "[LOOK]{@tide_notise}").contains("@tide_notice"));
    let game = Game::new();
    let pack = crate::players::view("HOT_PACK.json", &game.files["HOT_PACK.json"]).unwrap();
    assert!(!pack.contains("@marsh_child") && !pack.contains("@reeve_maud"), "{pack}");
    let panel = crate::players::view("MAINLINE_PANEL.json", &game.files["MAINLINE_PANEL.json"]).unwrap();
    assert!(!panel.contains("@marsh_child"), "{panel}");
}

#[test]
fn what_is_asked_about_is_no_greeting_and_is_named_in_the_answer() {
    let mut game = Game::new();
    game.play("[ACT]{take the lantern}").unwrap();
    let lantern = game.play("[ASK]{Jun about the lantern}").unwrap();
    assert!(lantern.contains("nothing to say to that") && !lantern.contains("| greet"), "{lantern}");
    assert!(
        game.play("[ASK]{hello Jun}").unwrap().contains("the tide and the lamp"),
        "the main thread is among the topics"
    );
    assert!(game.play("[ASK]{Jun about Osric}").unwrap().contains("| ask Jun Tallow about Osric | told |"));
    let tower = said("brinewick", json!({"location": "@lighthouse"}), "[ASK]{Osric about the lamp}");
    assert!(!tower.contains("| greet"), "a word of the Lamp Room is no greeting: {tower}");
}

#[test]
fn everything_is_all_that_lies_here_and_is_free() {
    let mut game = Game::new();
    let all = game.play("[ACT]{take everything}").unwrap();
    assert!(
        all.contains("| take the tide notice | taken |") && all.contains("| take the brass lantern | taken |"),
        "{all}"
    );
    let inn = said("brinewick", json!({"location": "@gull_inn"}), "[ACT]{take everything}");
    assert!(inn.contains("| impossible |") && !inn.contains("| taken |"), "the loaf is Bertrade's: {inn}");
}

#[test]
fn what_is_carried_and_what_is_not_found_yet_are_told_as_they_are() {
    let hut = said(
        "longdry",
        json!({"location": "@shepherds_hut", "inventory": ["@water_skin"]}),
        "[ACT]{drink from the butt}",
    );
    assert!(hut.contains("the skin of water is what you carry") && !hut.contains("none is carried"), "{hut}");
    let door = said("brinewick", json!({"location": "@lighthouse"}), "[ACT]{break down the door}");
    assert!(door.contains("something that you have not found yet") && !door.contains("keeper's key"), "{door}");
    // A fact that has all the words is nearer than a thing that has one of them.
    let ring = said("longdry", json!({"location": "@stone_ring"}), "[LOOK]{the place of the twelfth stone}");
    assert!(ring.contains("[Result]\nIn the place of the twelfth stone"), "{ring}");
    let wall = json!({"location": "@red_gorge", "clues": ["@ram_in_the_gorge"], "quests": {"@lost_flock": {"stage": 1, "status": "active"}}});
    assert!(!said("longdry", wall, "[LOOK]{the wall}").contains("DC 10"), "a look at the wall is no search");
}
