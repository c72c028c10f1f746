//! What a player asked for at the beginning reaches every turn; a narrator's advantage and the ground settle together.

use serde_json::{Value, json};

use super::{AT, Game, answers, brinewick};
use crate::act::Act;
use crate::brief::Brief;
use crate::turn::{ActContext, ready};

fn with_veils() -> Game {
    let mut game = Game::blank(brinewick());
    let mut own = answers();
    own.lines_veils = "no harm to animals; drowning only off stage".into();
    own.pacing = "slow as a tide".into();
    game.act(&Act::Init { answers: Box::new(own) }).unwrap();
    game
}

#[test]
fn every_preference_reaches_the_summary_and_the_narrator() {
    let mut game = with_veils();
    game.play("[LOOK]{around}").unwrap();
    let boot = game.files[".kernel/boot.md"].clone();
    assert!(boot.starts_with("preferences: LINES_VEILS=no harm to animals; drowning only off stage · "), "{boot}");
    for part in ["STYLE=realistic, suspense", "DIFFICULTY=standard", "PACING=slow as a tide", "COMBAT_FREQ=low"] {
        assert!(boot.contains(part), "{part}: {boot}");
    }
    assert!(boot.lines().count() <= 12, "row 122: {boot}");
    let context = ActContext { world: &game.world, files: &game.files, campaign: "c1", seed: 7, at: AT };
    let input = "[LOOK]{around}";
    let brief = Brief::new(&ready(context, input).unwrap(), input, &game.world);
    let brief: Value = json!(brief);
    assert_eq!(brief["lines_veils"], "no harm to animals; drowning only off stage");
    assert_eq!(brief["preferences"][1], "DIFFICULTY=standard");
}

#[test]
fn a_ninth_preference_is_reported() {
    let mut game = with_veils();
    let page = game.files["PLAYER_PROFILE.md"].clone();
    game.files.insert("PLAYER_PROFILE.md".into(), format!("{page}- HUMOUR=dry\n- MUSIC=none\n- LIGHT=dim\n"));
    game.play("[LOOK]{around}").unwrap();
    let boot = &game.files[".kernel/boot.md"];
    assert!(boot.contains("HUMOUR=dry") && !boot.contains("MUSIC") && boot.contains("2 more are not read"), "{boot}");
    let report = crate::continuity::check(game.files(), &game.world).unwrap();
    let found = report.findings.iter().find(|own| own.check == "player_profile").unwrap();
    assert!(!found.ok && found.detail.contains("10 preferences"), "{}", found.detail);
}

/// The attacks of a fight on the quay, as they are shown.
fn attacks(ground: &str, weapon: &str, proposal: Value) -> Vec<String> {
    let mut game = Game::new();
    for object in game.world.objects.iter_mut().filter(|own| own.handle == "@lantern_quay") {
        object.fields.insert("ground".into(), ground.into());
    }
    let page = game.files["characters/PCs/pc_current.md"].replace("| dagger |", &format!("| {weapon} |"));
    game.files.insert("characters/PCs/pc_current.md".into(), page);
    let output = game.propose("[FIGHT]{Jun}", proposal).unwrap();
    output.lines().filter(|line| line.starts_with("Ann attacks")).map(str::to_owned).collect()
}

#[test]
fn advantage_of_a_narrator_and_of_the_ground_settle_together() {
    for (ground, weapon, proposed, shown) in [
        ("narrow", "dagger", "advantage", "(advantage)"),
        ("narrow", "dagger", "disadvantage", "(disadvantage)"),
        ("dark", "shortbow", "normal", "(disadvantage)"),
        ("dark", "shortbow", "disadvantage", "(disadvantage)"),
        ("dark", "shortbow", "advantage", ""),
    ] {
        for line in attacks(ground, weapon, json!({"advantage": proposed})) {
            assert_eq!(line.contains(" (advantage)"), shown == "(advantage)", "{ground} {proposed}: {line}");
            assert_eq!(line.contains(" (disadvantage)"), shown == "(disadvantage)", "{ground} {proposed}: {line}");
        }
    }
    assert!(!attacks("narrow", "dagger", json!({})).is_empty());
}
