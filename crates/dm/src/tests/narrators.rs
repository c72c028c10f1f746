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
            "prose: unfiled_npc: Baron, Vultan have no page",
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
fn every_text_of_a_narrator_is_cleaned() {
    let secret = "Jun wrote the Merrow down as lost before she was due";
    for (why, proposal, shown, hidden) in [
        ("prose", json!({"prose": "The nets drip. You agree to weep."}), "The nets drip.", "weep"),
        (
            "tiers",
            json!({"prose": {"success": "Rope creaks. \u{1b}[2Jx", "failure": "Rope creaks. \u{1b}[2Jx", "partial": "Rope creaks. x", "great": "Rope creaks. x"}}),
            "Rope creaks.",
            "\u{1b}",
        ),
        ("scene", json!({"scene": "Fog. Rain.\n\n[HUD]\nHP 99"}), "Fog. Rain.", "HP 99"),
        ("impossible", json!({"impossible": "Baron Vultan forbids it"}), "look at Jun Tallow", "Vultan"),
        ("reason", json!({"consequences": [format!("Rumor+1 ({secret})")]}), "[Scene]", "before she was due"),
        (
            "option",
            json!({"options": ["[ACT]{wait}", "[LOOK]{the sky}", format!("[ASK]{{why {secret}}}")]}),
            "[Scene]",
            "before she was due",
        ),
        (
            "option marks",
            json!({"options": ["[ACT]{wait \u{1b}[31m}", "[LOOK]{the sky}", "[ACT]{rest}"]}),
            "[Scene]",
            "\u{1b}",
        ),
    ] {
        let mut game = Game::new();
        let output = game.propose("[LOOK]{Jun}", proposal).unwrap();
        assert!(output.contains(shown) && !output.contains(hidden), "{why}: {output}");
        assert!(game.files[&game.session()].contains("- Narrator: "), "{why}: what is taken out is reported");
        game.lawful();
    }
}

/// A delta of one item.
fn delta(path: &str, word: &str, text: &str) -> Value {
    let text = text.replace('\n', "\n      ");
    json!({"delta": format!("<!-- ARCHIVE_DELTA\nfiles:\n  - path: {path}\n    {word}: |\n      {text}\n-->")})
}

#[test]
fn a_narrator_writes_people_and_notes_and_nothing_else() {
    let off = "## Preferences\n\n- STYLE=-\n- DIFFICULTY=-\n- RULES=-\n- PACING=-\n- COMBAT_FREQ=-\n- MYSTERY_VS_ACTION=-\n- LINES_VEILS=-";
    for (path, word, text) in [
        ("PLAYER_PROFILE.md", "patch", off),
        ("quests/QUEST_LOG.md", "patch", "## Progress\n\n- all done"),
        ("WORLD_STATE.md", "patch", "## Indicators\n\n- Heat: 0"),
        ("index.md", "patch", "## Next goal\n\n- flee"),
        ("GOVERNANCE_PANEL.md", "append", "x"),
        ("characters/NPCs_active/npc_roster.md", "append", "x"),
        ("characters/NPCs_active/a/b.md", "append", "x"),
        ("characters/NPCs_active/x.json", "append", "x"),
        ("notes/../index.md", "append", "x"),
        ("notes/Notes.txt", "append", "x"),
        ("CAMPAIGN.md", "append", "seed: 1"),
        (".DM_BLUEPRINT.md", "append", "x"),
    ] {
        let (reports, _, mut game) = told(delta(path, word, text));
        assert!(reports.iter().any(|own| own.starts_with("delta: ")), "{path}: {reports:?}");
        game.play("[LOOK]{around}").unwrap_or_else(|fault| panic!("{path}: {fault}"));
    }
    let secret = "# Jun\nJun wrote the Merrow down as lost before she was due";
    for (text, why) in [
        (secret, "it tells a secret"),
        ("# Jun\n\u{1b}[2Jx", "characters/NPCs_active/jun.md holds the control character U+001B"),
    ] {
        let (reports, ..) = told(delta("characters/NPCs_active/jun.md", "append", text));
        assert!(reports.iter().any(|own| own.starts_with(&format!("delta: {why}"))), "a page is shown: {reports:?}");
    }
    let (reports, _, game) = told(delta("notes/quay.md", "append", "# Quay\nthe nets are dry"));
    assert_eq!(reports, Vec::<String>::new());
    assert_eq!(game.files["notes/quay.md"], "# Quay\nthe nets are dry\n");
}

#[test]
fn a_page_of_a_narrator_has_a_size_limit() {
    let (reports, ..) = told(delta("notes/long.md", "append", &"x".repeat(20_000)));
    assert!(reports[0].contains("at most"), "{reports:?}");
    let mut game = Game::new();
    for _ in 0..12 {
        game.propose("[LOOK]{around}", delta("notes/long.md", "append", &"y".repeat(1500))).unwrap();
    }
    assert!(game.files["notes/long.md"].len() <= 8 << 10, "{}", game.files["notes/long.md"].len());
    for n in 0..80 {
        game.propose("[LOOK]{around}", delta(&format!("notes/n{n}.md"), "append", "z")).unwrap();
    }
    let pages = game.files.keys().filter(|path| path.starts_with("notes/")).count();
    assert!(pages <= 64, "{pages}");
}

#[test]
fn caps_count_per_turn() {
    let (why, before) = ("three fishermen saw it", Game::new());
    let level = |game: &Game, name: &str| game.json("STATE_PANEL.json")["indicators"][name].as_i64().unwrap();
    for (all, taken, refused) in [
        (
            format!("Debt+1 ({why}); Debt+1 ({why}, too); Debt+2 ({why})"),
            format!("Debt+1 ({why})"),
            "`Debt+1 (three fishermen saw it, too)`",
        ),
        ("time 60; time 60; time 480".into(), "time 60".into(), "`time 480`"),
        ("hp-2; hp-1; hp-4".into(), "hp-2".into(), "`hp-4`"),
        (format!("clock tide+1 ({why}); clock tide+1 ({why})"), format!("clock tide+1 ({why})"), "`clock tide+1"),
        (
            format!("hp-1; time 5; Rumor+1 ({why}); Debt+1 ({why})"),
            format!("hp-1; time 5; Rumor+1 ({why})"),
            "`Debt+1 (three fishermen saw it)`",
        ),
    ] {
        let (mut one, mut two) = (Game::new(), Game::new());
        one.propose("[LOOK]{around}", json!({"consequences": [all]})).unwrap();
        two.propose("[LOOK]{around}", json!({"consequences": [taken]})).unwrap();
        for key in ["time", "hp", "clocks", "indicators"] {
            assert_eq!(one.json("STATE_PANEL.json")[key], two.json("STATE_PANEL.json")[key], "{refused}: {key}");
        }
        let session = &one.files[&one.session()];
        assert!(session.contains(&format!("- Narrator: consequences: {refused}")), "{refused}: {session}");
    }
    assert_eq!(level(&before, "Debt"), 1);
}

#[test]
fn nothing_follows_from_a_move_that_was_not_done() {
    let effects = json!({"consequences": ["Grace-1 (a bell was heard)", "hp-1", "time 30", "clock tide+1 (the sea has risen)"], "prose": "Nothing moves."});
    for input in
        ["[MANAGE]{status}", "[MANAGE]{inventory}", "[ACT]{blorp}", "[ACT]{take the moon}", "[ACT]{fly to the moon}"]
    {
        let (mut with, mut without) = (Game::new(), Game::new());
        with.propose(input, effects.clone()).unwrap();
        without.propose(input, json!({"prose": "Nothing moves."})).unwrap();
        for key in ["time", "hp", "clocks", "indicators"] {
            assert_eq!(with.json("STATE_PANEL.json")[key], without.json("STATE_PANEL.json")[key], "{input}: {key}");
        }
        let session = &with.files[&with.session()];
        assert!(session.contains("- Set aside: consequences: `hp-1` is not taken: "), "{input}: {session}");
    }
}

#[test]
fn a_narrator_never_takes_the_last_step_to_an_ending() {
    let mut game = Game::new();
    game.set(json!({"indicators": {"Grace": 1}, "hp": 2}));
    let effects = json!({"consequences": ["Grace-1 (a bell was heard on the way)", "hp-2"], "prose": "Fog."});
    for place in ["the Salt Market", "Lantern Quay"].iter().cycle().take(6) {
        let output = game.propose(&format!("[ACT]{{go to {place}}}"), effects.clone()).unwrap();
        assert!(!output.contains("Epilogue"), "{output}");
    }
    let panel = game.json("STATE_PANEL.json");
    assert_eq!((&panel["indicators"]["Grace"], &panel["hp"], &panel["ended"]), (&json!(1), &json!(2), &json!("")));
    let session = &game.files[&game.session()];
    assert!(session.contains("is not taken: the last step to an ending is the kernel's"), "{session}");
    assert!(session.contains("is not taken: the last hit point is the kernel's"), "{session}");
}

#[test]
fn what_was_asked_is_told_whatever_the_narrator_says() {
    let mut game = Game::new();
    let output = game.propose("[ASK]{Jun about the boats}", json!({"prose": "Jun turns a page."})).unwrap();
    assert!(output.contains("[Result]\nJun turns a page.\n\nJun Tallow: \"Nine boats"), "{output}");
    assert!(game.files[&game.session()].contains("- Told: ") && game.files[&game.session()].contains("Nine boats"));
    let output = game.propose("[MANAGE]{inventory}", json!({"prose": "Wind."})).unwrap();
    assert!(output.contains("Wind.\n\nThe pack is opened.") && output.contains("| The dagger | "), "{output}");
    let fact = game.world.object("@lantern_quay").unwrap().facts[0].text.clone();
    let output = game.propose("[LOOK]{the boat}", json!({"prose": "Wind."})).unwrap();
    assert!(output.contains(fact.trim_end_matches('.')), "{output}");
    let said = format!("Wind. {fact}");
    let output = game.propose("[LOOK]{the boat}", json!({"prose": said})).unwrap();
    let result = output.split("[Result]").nth(1).unwrap();
    assert_eq!(
        result.matches(fact.trim_end_matches('.')).count(),
        1,
        "what the prose tells is not told twice: {output}"
    );
}

#[test]
fn a_person_whom_a_narrator_brings_in_can_be_spoken_to_there() {
    let page = delta("characters/NPCs_active/zelda.md", "append", "# Zelda\na woman who mends nets");
    let mut game = Game::new();
    game.propose("[LOOK]{around}", page).unwrap();
    let output = game.play("[ASK]{Zelda about gold}").unwrap();
    assert!(output.contains("| talk to Zelda | nothing to say |") && !output.contains("Jun Tallow:"), "{output}");
    let output = game.propose("[ASK]{Zelda about gold}", json!({"prose": "Zelda shrugs at the nets."})).unwrap();
    assert!(output.contains("| talk to Zelda | answered |") && output.contains("Zelda shrugs"), "{output}");
    game.play("[ACT]{go to the Salt Market}").unwrap();
    let output = game.play("[ASK]{Zelda about gold}").unwrap();
    assert!(output.contains("Zelda is not here"), "{output}");
    game.lawful();
    game.replayed();
}

#[test]
fn a_clue_is_the_kernels() {
    let (reports, _, game) = told(json!({"consequences": ["clue @made_up", "clue @nine_boats"]}));
    assert_eq!(
        reports,
        ["consequences: unknown clue @made_up", "consequences: `clue @nine_boats` is not a narrator's to decide"]
    );
    assert_eq!(game.json("STATE_PANEL.json")["clues"], json!([]));
}

#[test]
fn a_narrator_cannot_take_away_what_the_story_needs() {
    let mut game = Game::new();
    game.plays(&["[ACT]{take the lantern}", "[ACT]{go to the inn}", "[ACT]{buy bread}"]);
    game.set(json!({"inventory": ["@brass_lantern", "@salt_loaf", "@lily_oil", "@false_weight", "@tide_notice"]}));
    let taken = ["lose @lily_oil", "lose @false_weight", "lose @salt_loaf"];
    game.propose("[ACT]{go to Lantern Quay}", json!({"consequences": taken})).unwrap();
    let panel = game.json("STATE_PANEL.json");
    let kept = ["@brass_lantern", "@lily_oil", "@false_weight", "@tide_notice"];
    assert_eq!(panel["inventory"], json!(kept), "bread may go");
    let session = &game.files[&game.session()];
    assert!(
        session.contains("- Narrator: consequences: `lose @lily_oil` would take away what the story needs"),
        "{session}"
    );
}

#[test]
fn what_is_lawful_is_taken() {
    let proposal = json!({
        "scene": "Rain begins. The nets drip.",
        "prose": {"success": "Jun turns a page.", "failure": "Jun shuts the book."},
        "consequences": ["Rumor+1 (two fishermen listen to Jun)"],
        "options": ["[ASK]{Jun about the keeper}", "[LOOK]{the notice}", "[ACT]{climb the tower from outside} --risk high"],
        "delta": "<!-- ARCHIVE_DELTA\nfiles:\n  - path: characters/NPCs_active/mira.md\n    append: |\n      # Mira\n      a fisher who listens\n-->",
    });
    let (reports, output, game) = told(proposal);
    assert_eq!(reports, Vec::<String>::new());
    assert!(output.contains("Rain begins. The nets drip.") && output.contains("Jun turns a page."), "{output}");
    assert!(output.contains("Rumor 0 -> 1 (two fishermen listen to Jun)"));
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

/// The fresh player's finding 5: what narrators took step by step, by moves that did nothing.
#[test]
fn finding_5_effects_follow_only_from_a_move_that_changed_something() {
    let debt = |game: &Game| game.json("STATE_PANEL.json")["indicators"]["Debt"].clone();
    let mut game = Game::new();
    game.plays(&[
        "[ACT]{go to the Salt Market}",
        "[LOOK]{around}",
        "[LOOK]{around}",
        "[LOOK]{around}",
        "[LOOK]{around}",
    ]);
    let owed =
        json!({"prose": "Canvas flaps.", "consequences": ["Debt+1 (a debt is owed for the scales at the market)"]});
    let before = debt(&game);
    for input in [
        "[LOOK]{around}",
        "[ACT]{give the dagger to Pell}",
        "[ASK]{Pell about bread}",
        "[ASK]{Pell about bread}",
        "[ACT]{wait 10 minutes}",
        "[ACT]{wait 10 minutes}",
    ] {
        game.propose(input, owed.clone()).unwrap();
        assert_eq!(debt(&game), before, "{input}");
    }
    let session = &game.files[&game.session()];
    assert!(session.contains("- Set aside: consequences: `Debt+1"), "{session}");
    let idle = json!({"consequences": ["Debt+1 (aaa bbb ccc)"]});
    game.propose("[ACT]{go to the Reeve's Hall}", idle).unwrap();
    assert_eq!(debt(&game), before, "a reason has to do with the move");
    assert!(game.files[&game.session()].contains("its reason has nothing to do with the move"));
    // A step per move that counts, and two on one day.
    let mut steps = 0;
    for place in ["the Salt Market", "Lantern Quay", "the Drowned Gull", "Lantern Quay"] {
        let owed = json!({"consequences": [format!("Debt+1 (they talk of the way to {place})")]});
        let was = debt(&game);
        game.propose(&format!("[ACT]{{go to {place}}}"), owed).unwrap();
        steps += debt(&game).as_i64().unwrap() - was.as_i64().unwrap();
    }
    assert_eq!(steps, 2, "a day has a limit");
    game.lawful();
    game.replayed();
}
