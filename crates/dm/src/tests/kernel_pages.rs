//! The pages that the kernel keeps follow the play.

use serde_json::json;

use super::Game;
use crate::session;

#[test]
fn the_index_points_to_where_play_stands() {
    let mut game = Game::new();
    let index = game.files["index.md"].clone();
    assert!(index.contains("## Next goal") && index.contains("@dark_lamp") && !index.contains("- begin"), "{index}");
    game.play("[ASK]{Jun about the lamp}").unwrap();
    game.play("[ACT]{go to the inn}").unwrap();
    let index = &game.files["index.md"];
    assert!(index.contains("the Dark Lamp (@dark_lamp): go to @lighthouse"), "{index}");
    assert!(index.contains(&format!("- session: {}", game.session())), "{index}");
    assert!(index.contains("- place: the Drowned Gull (@gull_inn)") && index.contains("- turn: 2"), "{index}");
    game.lawful();
}

#[test]
fn the_roster_has_everybody_who_was_met() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let page = |game: &Game| game.files["characters/NPCs_active/npc_roster.md"].clone();
    assert!(
        page(&game).contains("| @harbourer_jun | Jun Tallow | @lantern_quay | friendly | active |"),
        "{}",
        page(&game)
    );
    assert!(!page(&game).contains("none yet") && !page(&game).contains("@cook_bertrade"));
    let delta =
        "<!-- ARCHIVE_DELTA\nfiles:\n  - path: characters/NPCs_active/mira.md\n    append: |\n      # Mira\n-->";
    game.propose("[ACT]{go to the inn}", json!({"delta": delta})).unwrap();
    let now = page(&game);
    assert!(now.contains("@harbourer_jun") && now.contains("| @cook_bertrade | "), "{now}");
    game.play("[LOOK]{around}").unwrap();
    assert!(page(&game).contains("- characters/NPCs_active/mira.md"), "whom a narrator filed: {}", page(&game));
    game.set(json!({"statuses": {"@harbourer_jun": "dead"}}));
    game.play("[LOOK]{around}").unwrap();
    assert!(
        page(&game).contains("| @harbourer_jun | Jun Tallow | @lantern_quay | friendly | dead |"),
        "{}",
        page(&game)
    );
    game.lawful();
}

#[test]
fn a_companion_has_its_page_and_comes_along() {
    let mut game = Game::new();
    let page = |game: &Game| game.files["characters/PCs/pet_current.md"].clone();
    game.play("[LOOK]{around}").unwrap();
    assert!(page(&game).contains("| Name | - |"), "{}", page(&game));
    game.set(json!({"statuses": {"@marsh_child": "companion"}}));
    let output = game.play("[ACT]{go to the inn}").unwrap();
    let name = game.world.name("@marsh_child").to_owned();
    assert!(
        page(&game).contains(&format!("| Name | {name} |")) && page(&game).contains("| Handle | @marsh_child |"),
        "{}",
        page(&game)
    );
    assert!(output.split("[HUD]").nth(1).unwrap().contains(&name), "{output}");
    game.set(json!({"statuses": {"@marsh_child": "active"}}));
    game.play("[LOOK]{around}").unwrap();
    assert!(page(&game).contains("| Name | - |"), "{}", page(&game));
    game.lawful();
}

#[test]
fn a_clue_is_logged_with_its_sentence() {
    let mut game = Game::new();
    let output = game.play("[ASK]{Jun about the lamp}").unwrap();
    let row = game.json("clues/CLUE_LOG.json")["clues"][0].clone();
    let summary = row["summary"].as_str().unwrap();
    assert!(summary.contains("nine boats in nine spring tides"), "{row}");
    assert_eq!((&row["handle"], &row["id"]), (&json!("@nine_boats"), &json!("c001")));
    assert_eq!(row["source"], format!("{} 0001", game.session()));
    assert!(output.contains("Clue: ") && !output.contains("@nine_boats"), "{output}");
    game.play("[LOOK]{around}").unwrap();
    assert_eq!(game.json("clues/CLUE_LOG.json")["clues"][0], row, "a row stays as it was written");
}

#[test]
fn the_session_records_what_the_player_was_told() {
    let mut game = Game::new();
    let proposal = json!({"scene": "Rain begins. The nets drip.", "prose": "Jun turns a page."});
    game.propose("[LOOK]{Jun}", proposal).unwrap();
    game.play("[ASK]{Jun about the lamp}").unwrap();
    let text = game.files[&game.session()].clone();
    let told: Vec<&str> = session::turns(&text).into_iter().filter_map(|turn| session::field(turn, "Told")).collect();
    assert!(
        told.iter().any(|own| own.contains("Rain begins. The nets drip.") && own.contains("Jun turns a page.")),
        "{told:?}"
    );
    assert!(told.iter().any(|own| own.contains("nine boats in nine spring tides")), "quest text: {told:?}");
    game.lawful();
}
