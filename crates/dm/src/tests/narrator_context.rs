//! What a narrator is told of a turn, and what `[OOC]` answers.

use serde_json::json;

use super::{AT, Game, brinewick};
use crate::brief::Brief;
use crate::turn::{ActContext, ready};

fn brief(game: &Game, input: &str) -> Brief {
    let context = ActContext { world: &game.world, files: &game.files, campaign: "c1", seed: 7, at: AT };
    Brief::new(&ready(context, input).unwrap(), input, &game.world)
}

/// The folders that the snippets come from, and their text.
fn sources(brief: &Brief) -> (Vec<String>, String) {
    let folder = |from: &str| from.trim_start_matches('[').split([':', '/']).next().unwrap_or_default().to_owned();
    let mut folders: Vec<String> = brief.snippets.iter().map(|own| folder(&own.from)).collect();
    folders.dedup();
    (folders, brief.snippets.iter().map(|own| own.text.as_str()).collect::<Vec<_>>().join("\n"))
}

#[test]
fn nothing_that_a_narrator_needs_starves() {
    let game = Game::new();
    let (folders, text) = sources(&brief(&game, "[LOOK]{around}"));
    for folder in ["locations", "characters", "quests", "lore"] {
        assert!(folders.iter().any(|own| own == folder), "{folder}: {folders:?}\n{text}");
    }
    assert!(text.contains("The boat that brought you"), "facts of the place come before its fields: {text}");
    assert!(text.contains("marsh lily"), "CANON is routed: {text}");
    let (folders, text) = sources(&brief(&game, "[CAST]{a light}"));
    assert!(text.contains("night tide"), "MIST is routed: {text}");
    assert!(folders.contains(&"quests".to_owned()), "{folders:?}");
    let (folders, _) = sources(&brief(&game, "[ASK]{Jun about the Merrow}"));
    assert!(folders.contains(&"mechanics".to_owned()), "{folders:?}");
    let hidden = ["down as lost before she was due", "every spring tide without the lamp"];
    for input in ["[LOOK]{around}", "[ASK]{Jun about the Merrow}", "[FIGHT]{Jun}", "[MANAGE]{rest}"] {
        let (_, text) = sources(&brief(&game, input));
        assert!(!hidden.iter().any(|secret| text.contains(secret)), "{input}: {text}");
    }
}

#[test]
fn a_file_that_yields_no_line_uses_nothing_up() {
    let mut game = Game::new();
    for path in ["locations/lantern_quay.md", "lore/CANON/lamp.md"] {
        game.world.files.insert(path.into(), "# Empty\n\n| a | b |\n|---|---|\n| c | d |\n".into());
    }
    let brief = brief(&game, "[LOOK]{around}");
    let (folders, text) = sources(&brief);
    assert!(text.contains("tarred planks"), "a place without lines has its summary: {text}");
    assert!(folders.contains(&"quests".to_owned()) && folders.contains(&"characters".to_owned()), "{folders:?}");
}

#[test]
fn invariants_are_shown_and_kept() {
    let mut game = Game::new();
    let salt = "Salt is never given away.";
    game.play("[LOOK]{around}").unwrap();
    assert!(game.files[".kernel/boot.md"].contains(salt), "{}", game.files[".kernel/boot.md"]);
    assert!(game.files[".kernel/boot.md"].lines().count() <= 12);
    assert!(brief(&game, "[LOOK]{around}").invariants.iter().any(|own| own == salt));
    let gift = json!({"prose": "Jun shrugs. He gives a bag of salt away. A gull cries."});
    let output = game.propose("[LOOK]{Jun}", gift).unwrap();
    assert!(output.contains("Jun shrugs. A gull cries.") && !output.contains("bag of salt"), "{output}");
    assert!(
        game.files[&game.session()].contains("- Narrator: prose: it breaks an invariant: Salt is never given away.")
    );
    let trade = json!({"prose": "Jun weighs salt for coin."});
    assert!(game.propose("[LOOK]{Jun}", trade).unwrap().contains("weighs salt for coin"));
}

#[test]
fn feature_flags_are_kept() {
    let with = |flags: &str| {
        let mut files = crate::shipped::cartridge("brinewick").unwrap();
        let head = files["CARTRIDGE.md"].clone();
        let start = head.find("## feature_flags").unwrap();
        files.insert("CARTRIDGE.md".into(), format!("{}## feature_flags\n\n{flags}\n", &head[..start]));
        crate::load::cartridge(&files).unwrap()
    };
    let fault = |flags: &str| with(flags).faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(fault("- magic: on").contains("unknown feature flag magic"), "{}", fault("- magic: on"));
    assert!(fault("- governance: maybe").contains("governance must be on or off"));
    assert!(fault("- fiction_sync: on").contains("fiction_sync"));
    assert!(fault("- indicators: off").contains("unknown indicator"), "what is off cannot be changed");
    let mut game = Game::new();
    let output = game.play("[MANAGE]{settle the month}").unwrap();
    assert!(output.contains("governance is off in this cartridge"), "{output}");
    game.world = with("- indicators: on\n- map_system: off");
    let output = game.play("[MANAGE]{map}").unwrap();
    assert!(output.contains("map_system is off in this cartridge") && !output.contains("[1]"), "{output}");
    assert!(brief(&game, "[LOOK]{around}").boot.contains("off: map_system"));
    game.world = brinewick();
}

#[test]
fn a_question_finds_its_page() {
    let mut game = Game::new();
    for (question, page) in [
        ("how do checks work?", "engine/mechanics/HOUSE_RULES.md"),
        ("What is the DC?", "engine/mechanics/HOUSE_RULES.md"),
        ("what does advantage do", "engine/mechanics/HOUSE_RULES.md"),
        ("how do I rest?", "engine/mechanics/SURVIVAL.md"),
        ("what happens when I am hungry", "engine/mechanics/SURVIVAL.md"),
        ("how does a fight work", "engine/mechanics/COMBAT.md"),
        ("which weapons are there", "engine/mechanics/COMBAT.md"),
        ("how do I persuade somebody?", "engine/mechanics/SOCIAL_INVESTIGATION.md"),
        ("how do I use the map", "engine/mechanics/MAPS.md"),
        ("what are the headers", "engine/CLI_SPEC.md"),
        ("what does --risk high mean", "engine/CLI_SPEC.md"),
        ("how do I continue a campaign", "engine/HOT_START.md"),
        ("can I undo", "engine/ARCHIVE_DELTA.md"),
        ("what is Heat", "lore/MECHANICS/INDICATORS.md"),
        ("what is a clock?", "engine/mechanics/HOUSE_RULES.md"),
        ("what is the tide?", "lore/MECHANICS/CLOCKS.md"),
    ] {
        let output = game.play(&format!("[OOC]{{{question}}}")).unwrap();
        assert!(output.contains(&format!("{page})")), "{question}: {output}");
    }
    let unknown = game.play("[OOC] zzz qqq").unwrap();
    assert!(
        unknown.contains("no page of the rules speaks of that") && unknown.contains("engine/QUESTIONS.md"),
        "{unknown}"
    );
    let heat = game.play("[OOC] what is Heat").unwrap();
    assert!(heat.contains("how closely the reeve's people watch"), "{heat}");
}

#[test]
fn a_model_answers_a_question_from_its_page() {
    let mut game = Game::new();
    let own = brief(&game, "[OOC] how do checks work?");
    assert!(own.page.contains("d20 plus modifiers against a DC"), "the page is the model's context: {}", own.page);
    let before = game.files.clone();
    let said = json!({"answer": "You throw a d20 and beat the DC.\u{1b}[31m Jun wrote the Merrow down as lost before she was due."});
    let output = game.propose("[OOC] how do checks work?", said).unwrap();
    assert!(
        output.starts_with("[OOC]\na check is d20 plus modifiers")
            && output.contains("\nThe narrator's words, which are no rule: You throw a d20 and beat the DC.\n"),
        "{output}"
    );
    let seed = game.propose("[OOC]{what is the seed?}", json!({"answer": "The seed is 7."})).unwrap();
    assert!(seed.contains("no page of the rules speaks of that") && !seed.contains("The seed is"), "{seed}");
    assert!(output.contains("\n(see engine/mechanics/HOUSE_RULES.md)\n"), "{output}");
    assert!(!output.contains('\u{1b}') && !output.contains("Merrow"), "{output}");
    let failed = game.propose("[OOC] how do checks work?", json!({"narrator_failed": "out"})).unwrap();
    assert!(failed.contains("a check is d20"), "{failed}");
    assert_eq!(game.files, before);
}

#[test]
fn every_question_of_the_index_leads_to_a_page() {
    for entry in crate::questions::index(&crate::engine::SharedEngine::default()) {
        assert!(crate::engine::SharedEngine::default().page(&entry.page).is_some(), "{}", entry.page);
        assert!(!entry.asked.is_empty() && entry.answer.chars().count() <= 200, "{}", entry.answer);
    }
    let listed: Vec<String> =
        crate::questions::index(&crate::engine::SharedEngine::default()).into_iter().map(|entry| entry.page).collect();
    for (path, _) in crate::engine::SharedEngine::default().pages().iter().filter(|(path, _)| path.ends_with(".md")) {
        let known = listed.contains(path) || matches!(path.as_str(), "QUESTIONS.md" | "mechanics/INDEX_SPEC.md");
        assert!(known, "no question leads to {path}");
    }
}
