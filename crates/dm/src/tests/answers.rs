//! The game answers: the authored world is seen, plain words are understood, and no sentence contradicts the table below it.

use super::Game;

fn time(game: &Game) -> String {
    game.json("STATE_PANEL.json")["time"].as_str().unwrap().to_owned()
}

fn scene(output: &str) -> String {
    output.split("[Scene]\n").nth(1).unwrap().lines().next().unwrap().to_owned()
}

#[test]
fn each_scene_of_a_place_shows_another_of_its_facts() {
    let mut game = Game::new();
    let scenes: Vec<String> = (0..4).map(|_| scene(&game.play("[LOOK]{around}").unwrap())).collect();
    for (scene, part) in scenes.iter().zip([
        "The boat that brought you",
        "A notice is nailed",
        "Beyond the steps the sea",
        "Nets hang to dry",
    ]) {
        assert!(scene.contains(part), "{scene}");
    }
    // A fact that holds no longer is not told: the lamp burns.
    game.set(serde_json::json!({"quests": {"@dark_lamp": {"stage": 4, "status": "done"}}}));
    let later: String = (0..6).map(|_| scene(&game.play("[LOOK]{around}").unwrap())).collect();
    assert!(later.contains("A slow light passes") && !later.contains("tower over the roofs is dark"), "{later}");
}

#[test]
fn names_stand_in_sentences_with_article_and_capital() {
    let mut game = Game::new();
    let taken = game.play("[ACT]{take the lantern}").unwrap();
    assert!(
        taken.contains("You now have the brass lantern:") && taken.contains("| take the brass lantern | taken |"),
        "{taken}"
    );
    let seen = game.play("[LOOK]{the notice}").unwrap();
    assert!(seen.contains("The tide notice: A list of nine dates"), "{seen}");
    let gone = game.play("[ACT]{go to the market}").unwrap();
    assert!(gone.contains("ends at the Salt Market.") && gone.contains("- The Salt Market: white heaps"), "{gone}");
}

#[test]
fn what_cannot_be_done_fails_with_a_reason_and_no_sentence_says_otherwise() {
    let mut game = Game::new();
    let before = time(&game);
    for (input, reason) in [
        ("[ACT]{fly to the moon}", "nobody here can fly"),
        ("[ACT]{go to the moon}", "no place of that name is known"),
        ("[ACT]{teleport to the lamp room}", "on foot"),
        ("[ACT]{take the lily oil}", "nothing of that name is here or carried"),
        ("[ACT]{use the lily oil}", "nothing of that name is here or carried"),
        ("[ACT]{give myself a hundred gold}", "nothing of that name is carried"),
        ("[ACT]{become king}", "everything here stays what it is"),
        ("[ASK]{Sanna about the plates}", "nobody of that name is here"),
        ("[FIGHT]{Maud}", "nobody of that name is here"),
    ] {
        let output = game.play(input).unwrap();
        assert!(output.contains("| impossible |") && output.contains(reason), "{input}: {output}");
        for lie in ["It is done", "as it was said", "comes off"] {
            assert!(!output.contains(lie), "{input}: {output}");
        }
    }
    assert_eq!(time(&game), before, "no time passes by what cannot be done");
    game.lawful();
}

#[test]
fn what_is_not_understood_costs_no_time_says_what_would_be_and_is_recorded() {
    let mut game = Game::new();
    let (before, session) = (time(&game), game.session());
    let decisions = |game: &Game| game.files[&session].matches("## Decision:").count();
    let count = decisions(&game);
    for input in ["[ACT]{juggle}", "[LOOK]{the dragon}", "[MANAGE]{the weather}"] {
        let output = game.play(input).unwrap();
        assert!(
            output.contains("| not understood |") && output.contains("What can be done here:"),
            "{input}: {output}"
        );
        assert!(output.contains("the Salt Market") && output.contains("Jun Tallow"), "{input}: {output}");
    }
    assert_eq!(time(&game), before);
    assert_eq!(decisions(&game), count + 3, "every valid action is appended to the session");
    // With a declared risk the dice are asked, as ever.
    assert!(game.play("[ACT]{juggle} --risk low").unwrap().contains("risk low · DC 12"));
}

#[test]
fn a_narrator_may_tell_of_an_action_that_the_kernel_has_no_word_for() {
    let mut game = Game::new();
    let told = serde_json::json!({"prose": "Three stones go up and three come down."});
    let output = game.propose("[ACT]{juggle}", told.clone()).unwrap();
    assert!(output.contains("Three stones go up") && !output.contains("not understood"), "{output}");
    let output = game.propose("[ACT]{fly to the moon}", told).unwrap();
    assert!(!output.contains("Three stones") && output.contains("nobody here can fly"), "{output}");
}

#[test]
fn plain_verbs_do_what_they_say() {
    let mut game = Game::new();
    let empty = game.plays(&["[ACT]{drop the dagger}", "[ACT]{inventory}"]);
    assert!(empty.contains("Nothing is carried."), "{empty}");
    let pack = game.plays(&["[ACT]{pick up the lantern}", "[ACT]{inventory}"]);
    assert!(pack.contains("| The brass lantern | it burns an hour and complains |"), "{pack}");
    game.play("[ACT]{drop the lantern}").unwrap();
    game.plays(&["[ACT]{go to the inn}", "[LOOK]{around}"]);
    let back = game.plays(&["[ACT]{go to the quay}", "[ACT]{take the lantern}"]);
    assert!(back.contains("| take the brass lantern | taken |"), "what was dropped lies where it was dropped: {back}");
    assert_eq!(time(&game), "day 1, 08:30");
    game.play("[ACT]{wait two hours}").unwrap();
    assert_eq!(time(&game), "day 1, 10:30");
    game.play("[ACT]{rest until morning}").unwrap();
    assert_eq!(time(&game), "day 2, 07:00");
    game.play("[ACT]{go to the inn}").unwrap();
    let free = game.play("[ACT]{take the loaf}").unwrap();
    assert!(free.contains("Bertrade's to sell"), "{free}");
    let bought = game.play("[ACT]{buy a loaf}").unwrap();
    assert!(bought.contains("bought of Bertrade") && bought.contains("Debt 1 -> 2"), "{bought}");
    let given = game.play("[ACT]{give the lantern to Sanna}").unwrap();
    assert!(given.contains("hands it back") && given.contains("| not wanted |"), "{given}");
    let eaten = game.play("[ACT]{eat the bread}").unwrap();
    assert!(eaten.contains("| eaten |"), "{eaten}");
    game.lawful();
}

#[test]
fn the_words_of_the_cartridge_mean_a_stage_without_its_handle() {
    let mut game = Game::new();
    game.set(serde_json::json!({
        "location": "@lamp_room", "inventory": ["@lily_oil"], "quests": {"@dark_lamp": {"stage": 3, "status": "active"}},
    }));
    let wrong = game.play("[ACT]{drop the oil}").unwrap();
    assert!(wrong.contains("| drop the lily oil | dropped |"), "another verb is another act: {wrong}");
    let lacking = game.play("[ACT]{light the lamp}").unwrap();
    assert!(lacking.contains("it needs the lily oil"), "{lacking}");
    let lit = game.plays(&["[ACT]{take the oil}", "[ACT]{light the lamp}"]);
    assert!(lit.contains("The wick takes, the glass turns") && lit.contains("| the Dark Lamp | done |"), "{lit}");
    assert!(lit.contains("The lily oil is gone"), "{lit}");
}

#[test]
fn the_noun_of_a_fact_can_be_looked_at() {
    let mut game = Game::new();
    let boat = game.play("[LOOK]{the boat}").unwrap();
    assert!(boat.contains("[Result]\nThe boat that brought you lies on its side below the steps."), "{boat}");
    assert!(!scene(&boat).contains("The boat"), "a scene does not repeat the result: {boat}");
    let again = game.play("[ACT]{look at the boat}").unwrap();
    assert!(again.contains("| look at the boat | seen before |"), "{again}");
    assert_eq!(time(&game), "day 1, 08:05", "a second look takes no time");
}

#[test]
fn a_deed_of_the_cartridge_is_done_once() {
    let mut game = Game::new();
    game.set(serde_json::json!({"location": "@lighthouse"}));
    let first = game.play("[ACT]{sweep the stairs}").unwrap();
    assert!(first.contains("makes room.") && first.contains("Grace 3 -> 4"), "{first}");
    let again = game.play("[ACT]{sweep the stairs}").unwrap();
    assert!(again.contains("| sweep the stairs | done before |") && !again.contains("Grace 4 ->"), "{again}");
}

#[test]
fn what_reads_wrong_at_the_table_reads_right_now() {
    let mut game = Game::new();
    assert!(game.play("[ACT]{get up and look at the boat}").unwrap().contains("lies on its side"));
    game.plays(&["[ACT]{go to the inn}"]);
    assert!(game.play("[ACT]{order food}").unwrap().contains("| buy the loaf of salt bread |"));
    game.set(serde_json::json!({"location": "@lighthouse", "inventory": []}));
    assert!(
        game.play("[ACT]{break the lock} --risk high")
            .unwrap()
            .contains("it needs something that you have not found yet")
    );
    game.set(serde_json::json!({"inventory": ["@keepers_key"]}));
    assert!(game.play("[ACT]{open the door}").unwrap().contains("The key with the lily turns"));
    assert_eq!(game.json("STATE_PANEL.json")["location"], "@lamp_room");
    // In the crypt, its names mean the crypt.
    game.set(
        serde_json::json!({"location": "@drowned_crypt", "quests": {"@ninth_name": {"stage": 0, "status": "active"}}}),
    );
    assert!(game.play("[LOOK]{the names}").unwrap().contains("the Ninth Name: DC 10"));
}
