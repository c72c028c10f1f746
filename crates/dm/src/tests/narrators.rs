//! Narrators that misbehave on purpose. Whatever they propose, the files stay lawful and the player is told by the kernel.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Game;

/// What one proposal comes to: the reports, and the output.
fn told(proposal: Value) -> (Vec<String>, String, Game) {
    let mut game = Game::new();
    let output = game.propose("[ASK]{Jun about the boats}", proposal).unwrap();
    game.lawful();
    let session = game.files[&game.session()].clone();
    let reports = session.lines().filter_map(|line| line.strip_prefix("- Narrator: ")).map(str::to_owned).collect();
    (reports, output, game)
}

#[test]
fn each_field_is_taken_or_replaced_and_reported() {
    for (why, proposal, report) in [
        (
            "speaks for the PC",
            json!({"prose": "You decide to weep. The quay is wet."}),
            "prose: \"You decide\" decides or speaks for the player's character",
        ),
        (
            "invents somebody",
            json!({"prose": "Behind the nets stands Baron Vultan."}),
            "prose: unfiled_npc: Baron, Vultan has no page",
        ),
        ("a scene of one sentence", json!({"scene": "Fog."}), "scene: a scene has 2-4 sentences, this one has 1"),
        (
            "rewrites a file",
            json!({"delta": "<!-- ARCHIVE_DELTA\nfiles:\n  - path: STATE_PANEL.json\n    rewrite: |\n      {}\n-->"}),
            "delta: delta line 4: `rewrite` is refused",
        ),
        (
            "writes a panel",
            json!({"delta": "<!-- ARCHIVE_DELTA\nfiles:\n  - path: STATE_PANEL.json\n    patch: |\n      {\"hp\": 99}\n-->"}),
            "delta: STATE_PANEL.json is written by the kernel",
        ),
        (
            "leaves the campaign",
            json!({"delta": "<!-- ARCHIVE_DELTA\nfiles:\n  - path: ../x.md\n    append: |\n      x\n-->"}),
            "delta: `../x.md` leads out",
        ),
        (
            "ends a quest",
            json!({"consequences": ["quest @dark_lamp done"]}),
            "consequences: `quest @dark_lamp done` is not a narrator's to decide",
        ),
        ("moves the PC", json!({"consequences": ["move @lamp_room"]}), "consequences: `move @lamp_room` is not"),
        ("conjures a thing", json!({"consequences": ["take @lily_oil"]}), "consequences: `take @lily_oil` is not"),
        (
            "changes without a reason",
            json!({"consequences": ["Heat+1"]}),
            "consequences: the change `Heat+1` of an indicator needs a reason",
        ),
        ("an unknown indicator", json!({"consequences": ["Luck+1 (a coin)"]}), "consequences: unknown indicator Luck"),
        (
            "too few options",
            json!({"options": ["[ACT]{wait}", "[LOOK]{the sky}"]}),
            "options: 3-5 are asked for, 2 came",
        ),
        (
            "an option that does not parse",
            json!({"options": ["dance", "[ACT]{wait}", "[LOOK]{around}"]}),
            "options: \"dance\" the input must begin",
        ),
        ("a wrong type", json!({"roll": "yes"}), "roll: of the wrong type"),
        ("an unknown field", json!({"files": {"a": "b"}}), "files: no such field"),
        ("no object at all", json!("I am a story"), "the proposal is not an object"),
        ("too much luck", json!({"situational": 20}), "situational: a situation gives +2, 0 or -2, not 20"),
    ] {
        let (reports, output, _) = told(proposal);
        assert!(reports.iter().any(|own| own.starts_with(report)), "{why}: {reports:?}");
        assert!(output.contains("[Scene]") && output.contains("5. "), "{why}");
        assert!(!output.contains("Vultan") && !output.contains("weep"), "{why}");
    }
}

#[test]
fn what_is_lawful_is_taken() {
    let proposal = json!({
        "scene": "Rain begins. The nets drip.",
        "prose": {"success": "Jun turns a page.", "failure": "Jun shuts the book."},
        "consequences": ["Rumor+1 (two fishermen listen)"],
        "options": ["[ASK]{Jun about the keeper}", "[LOOK]{the notice}", "[ACT]{climb the tower from outside} --risk high"],
        "delta": "<!-- ARCHIVE_DELTA\nfiles:\n  - path: characters/NPCs_active/mira.md\n    append: |\n      # Mira\n      a fisher who listens\n-->",
    });
    let (reports, output, game) = told(proposal);
    assert_eq!(reports, Vec::<String>::new());
    assert!(output.contains("Rain begins. The nets drip.") && output.contains("Jun turns a page."), "{output}");
    assert!(output.contains("Rumor 0 -> 1 (two fishermen listen)"));
    assert!(output.contains("1. [ASK]{Jun about the keeper}"));
    assert_eq!(game.files["characters/NPCs_active/mira.md"], "# Mira\na fisher who listens\n");
}

#[test]
fn a_narrator_that_forgets_everything_is_no_worse_than_none() {
    let (mut one, mut other) = (Game::new(), Game::new());
    let inputs = ["[LOOK]{around}", "[ASK]{Jun}", "[ACT]{go to the inn}"];
    for input in inputs {
        one.propose(input, json!({})).unwrap();
        other.play(input).unwrap();
    }
    for path in ["STATE_PANEL.json", "HOT_PACK.json", &one.session()] {
        assert_eq!(one.files[path], other.files[path], "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_proposal_breaks_the_files(prose in "\\PC{0,60}", effect in "[A-Za-z@_+() ;0-9-]{0,30}", delta in "(<!-- ARCHIVE_DELTA\nfiles:\n)?[ a-z:/.|>-]{0,40}") {
        let mut game = Game::new();
        game.propose("[LOOK]{around}", json!({"prose": prose, "scene": effect, "consequences": [effect, prose], "options": [prose], "delta": delta})).unwrap();
        game.lawful();
    }
}
