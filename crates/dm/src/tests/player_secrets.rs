//! What a player can read names nothing that the player has not found, and no secret of the game master.

use super::Game;

#[test]
fn goals_name_only_what_the_player_knows() {
    let mut game = Game::new();
    let load = game.act(&crate::act::Act::Load).unwrap();
    game.play("[LOOK]{around}").unwrap();
    let pages = ["HOT_PACK.json", "MAINLINE_PANEL.json", "index.md"].map(|path| game.files[path].clone());
    for page in pages.iter().chain([&load]) {
        for hidden in ["@false_weight", "@sexton_ivo at", "@widow_sanna at"] {
            assert!(!page.contains(hidden), "{hidden}: {page}");
        }
        assert!(page.contains("@harbourer_jun at @lantern_quay"), "who is here is named: {page}");
        assert!(page.contains("go to @salt_market"), "a place that one can see is named: {page}");
        assert!(page.contains("find the bell a voice again"), "a goal that is not known yet is its quest: {page}");
    }
    game.play("[ACT]{go to the market}").unwrap();
    assert!(game.files["index.md"].contains("look around at @salt_market"), "{}", game.files["index.md"]);
    assert!(!game.files["index.md"].contains("@false_weight"));
}

#[test]
fn no_view_of_a_played_campaign_tells_a_secret() {
    let mut game = Game::new();
    let note =
        "<!-- ARCHIVE_DELTA\nfiles:\n  - path: notes/plan.md\n    append: |\n      the plan of the narrator\n-->";
    let secret = "Jun wrote the Merrow down as lost before she was due";
    let lies = serde_json::json!({
        "delta": note, "prose": format!("[HUD] {secret}"), "consequences": [secret],
        "options": [format!("[ASK]{{{secret}}}"), "[ACT]{wait}", "[LOOK]{around}"],
    });
    game.propose("[LOOK]{around}", lies).unwrap();
    assert!(game.files.contains_key("notes/plan.md"));
    let shown = game.files.keys().filter(|path| crate::files::shown(path));
    let mut views: Vec<String> = shown.map(|path| crate::players::view(path, &game.files[path]).unwrap()).collect();
    views.push(crate::players::journal(&game.files[crate::act::JOURNAL]));
    views.push(crate::players::delta(&game.files[".kernel/delta.md"]).unwrap());
    let boot = crate::boot::read(game.files(), &game.world).unwrap();
    views.push(crate::players::boot(&boot.summary(&game.world)));
    for view in &views {
        for hidden in
            ["\"reeve\"", "\"seed\"", "the plan of the narrator", "Merrow down as lost", "Whoever lights the lamp"]
        {
            assert!(!view.contains(hidden), "{hidden}: {view}");
        }
    }
}

#[test]
fn a_thing_that_was_never_seen_is_not_named() {
    let mut game = Game::new();
    for input in
        ["[ACT]{take the key}", "[ACT]{buy oil}", "[ACT]{use the key}", "[LOOK]{the key}", "[ACT]{eat the key}"]
    {
        let output = game.play(input).unwrap();
        let told = output.split("[Next Suggestions]").next().unwrap();
        assert!(!told.contains("keeper's key") && !told.contains("lily oil"), "{input}: {told}");
    }
}

#[test]
fn a_place_that_was_never_seen_is_not_named() {
    let output = Game::of("longdry").play("[ACT]{go to the tarn}").unwrap();
    let told = output.split("[Next Suggestions]").next().unwrap();
    assert!(told.contains("no place of that name is known") && !told.contains("Sky Tarn"), "{told}");
}
