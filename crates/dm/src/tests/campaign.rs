//! The rows of `behaviours.md` that need a campaign.

use serde_json::json;

use super::{AT, Game, answers, brinewick};
use crate::act::{Act, make, whole};
use crate::campaign::fits;
use crate::files::RecordedReads;
use crate::init::Answers;
use crate::shipped::template;
use crate::tools::Call;
use crate::turn::ActContext;
use crate::{boot, hotstart, init, session};

#[test]
fn a_refused_input_changes_nothing() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let before = game.files.clone();
    for (row, input, part) in [
        ("1", "Open the door", "Headers: [ACT] [LOOK]"),
        ("9", "[DANCE]{x}", "unknown header"),
        ("11", "[ASK]\"hi\" [LOOK]{sky}", "one tag per input"),
        ("15", "[ACT]{x} --risk huge", "risk must be"),
        ("41", "[ACT]{@nobody}", "unknown handle"),
        ("38", "[ASK]{N9}", "no code of this turn"),
    ] {
        let refused = game.play(input).unwrap_err().message;
        assert!(refused.contains(part), "row {row}: {refused}");
        assert_eq!(game.files, before, "row {row}");
    }
    let answer = game.play("[OOC] What is the DC?").unwrap();
    assert!(answer.contains("(see engine/mechanics/HOUSE_RULES.md)"), "row 4: {answer}");
    assert_eq!(game.files, before, "row 4: nothing is written");
}

#[test]
fn rows_22_to_30_before_there_is_anything_to_play() {
    let mut game = Game::blank(brinewick());
    let before = game.files.clone();
    assert!(init::questionnaire(&game.world).contains("pc_name"), "row 22");
    for (row, act) in [("29", Act::Load), ("29a", Act::Turn { input: "[LOOK]{x}".into(), proposal: None })] {
        assert!(game.act(&act).unwrap_err().message.contains("send <initialize>"), "row {row}");
    }
    assert_eq!(game.files, before, "row 29");
    let mut begun = Game::new();
    begun.files.insert("PLAYER_PROFILE.md".into(), template()["PLAYER_PROFILE.md"].clone());
    assert!(begun.act(&Act::Load).unwrap_err().message.contains("no preference is set"), "row 30");
}

#[test]
fn rows_131_to_135_initialisation_is_whole_or_nothing() {
    let mut game = Game::blank(brinewick());
    let before = game.files.clone();
    let with = |change: fn(&mut Answers)| {
        let mut own = answers();
        change(&mut own);
        Act::Init { answers: Box::new(own) }
    };
    for (row, act, sentence) in [
        ("131", with(|own| own.pc_name.clear()), "missing PC fields; give pc_name"),
        ("132", with(|own| own.date = "2026-13-01".into()), "invalid date (expected YYYY-MM-DD): 2026-13-01"),
        ("132a", with(|own| own.date = "2025-02-29".into()), "invalid date (expected YYYY-MM-DD): 2025-02-29"),
        ("133", with(|own| own.preset = "Opera".into()), "unknown preset: Opera"),
        ("133a", with(|own| own.preset.clear()), "no preferences provided"),
        ("134", with(|own| own.start_loc = "the moon".into()), "there is no place `the moon`"),
    ] {
        let refused = game.act(&act).unwrap_err().message;
        assert!(refused.starts_with(sentence), "row {row}: {refused}");
        assert_eq!(game.files, before, "row {row}");
    }
    game.act(&with(|own| own.preset = "悬疑调查".into())).unwrap();
    let session = "sessions/session_2026-11-16_ann.md";
    let products = [
        "PLAYER_PROFILE.md",
        "characters/PCs/pc_current.md",
        session,
        "sessions/CURRENT_SESSION.md",
        "STATE_PANEL.json",
    ];
    for path in
        products.into_iter().chain(["HOT_PACK.json", "MAINLINE_PANEL.json", ".DM_BLUEPRINT.md", ".DM_PLANNER.md"])
    {
        assert!(game.files.contains_key(path) && game.files.get(path) != before.get(path), "row 135: {path}");
    }
    assert_eq!(game.session(), session, "row 135");
    let panel = game.json("STATE_PANEL.json");
    assert_eq!((&panel["time"], &panel["location"]), (&json!("day 1, 08:00"), &json!("@lantern_quay")), "row 135");
    assert_eq!(game.json("HOT_PACK.json")["context"]["flags"][0], "STYLE=realistic, suspense", "row 135");
    let spine = game.json("HOT_PACK.json")["spine"].as_array().unwrap().len();
    assert!((4..=6).contains(&spine));
    assert_eq!(
        game.act(&with(|_| ())).unwrap_err().message,
        "the campaign is initialised already; <continue> picks it up"
    );
}

#[test]
fn rows_31_to_34_and_115_a_load_restates_and_shows_the_guide_once() {
    let mut game = Game::new();
    let first = game.act(&Act::Load).unwrap();
    assert!(first.contains("[Guide]") && first.contains("Load Summary"), "row 31");
    assert_eq!(game.json("HOT_PACK.json")["context"]["guide_shown"], 1, "the guide was shown once");
    let before = game.files.clone();
    let second = game.act(&Act::Load).unwrap();
    assert!(second.starts_with("Load Summary"), "row 34: {second}");
    assert_eq!(game.files, before, "row 31: the story does not move");
    let noted = RecordedReads::new(&game.files);
    hotstart::load(&noted).unwrap();
    let opened = noted.opened();
    assert_eq!(
        opened,
        ["sessions/CURRENT_SESSION.md", "sessions/session_2026-11-16_ann_snapshot.md", "HOT_PACK.json"],
        "row 115"
    );
    let mut fresh = Game::new();
    assert!(fresh.play("[LOOK]{around}").unwrap().contains("[Guide]"));
    assert!(!fresh.play("[LOOK]{around}").unwrap().contains("[Guide]"));
}

#[test]
fn rows_42_44_71_105_110_to_114_and_122_what_a_turn_leaves() {
    let mut game = Game::new();
    let inputs = [
        "[LOOK]{around}",
        "[ASK]{Jun about boats}",
        "[ACT]{go to the inn}",
        "[ACT]{climb the beams} --risk mid",
        "[ACT]{inner: doubt}",
    ];
    let mut outputs = Vec::new();
    for input in inputs {
        outputs.push(game.play(input).unwrap());
    }
    let hud = outputs[0].split("[HUD]\n").nth(1).unwrap();
    assert!(hud.lines().count() <= 10, "row 42");
    let letters: String = hud.lines().skip(2).filter_map(|line| line.chars().next()).collect();
    assert_eq!(letters, "LNIQF", "row 44");
    let entries = game.json(".kernel/hud.json");
    assert!(entries.as_array().unwrap().iter().all(|entry| entry["id"].as_str().unwrap().contains('_')), "stable ids");
    let risky = &outputs[3];
    assert!(risky.contains("risk mid · DC 13 · d20("), "row 71: {risky}");
    let rolls = session::field(session::turns(&game.files[&game.session()]).remove(4), "Rolls").unwrap().to_owned();
    assert!(rolls.starts_with("d20(") && risky.contains(rolls.split(" (").next().unwrap()), "row 71: {rolls}");
    let index = game.json("OBJECT_INDEX.json");
    assert_eq!(index["locations"][0]["handle"], "@gull_inn", "row 105");
    let snapshot = &game.files["sessions/session_2026-11-16_ann_snapshot.md"];
    assert_eq!(session::turns(snapshot).len(), 2, "row 111");
    assert!(snapshot.contains("0004") && snapshot.contains("0005") && !snapshot.contains("0003"), "row 111");
    let index = &game.files["sessions/SESSION_INDEX.md"];
    assert_eq!(index.matches("session_").count(), 1, "row 114");
    assert!(game.files[".kernel/boot.md"].lines().count() <= 12, "row 122");
    assert!(outputs[4].contains("Inner voice: doubt: "), "row 12");
    game.lawful();
}

#[test]
fn a_panel_that_was_tampered_with_is_corrected_and_the_note_is_kept() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let mut panel = game.json("STATE_PANEL.json");
    panel["indicators"]["Heat"] = json!(3);
    panel["housing"] = json!("a hut");
    game.files.insert("STATE_PANEL.json".into(), crate::json::render(&panel));
    let output = game.play("[LOOK]{around}").unwrap();
    assert!(output.contains("Correction:") && output.contains("the sessions say"), "{output}");
    let after = game.json("STATE_PANEL.json");
    assert_eq!((&after["indicators"]["Heat"], &after["housing"]), (&json!(0), &json!("a hut")));
    assert!(game.files[&game.session()].contains("- Correction: STATE_PANEL said indicators"));
    game.lawful();
    let panel = after.clone();
    game.files.insert("STATE_PANEL.json".into(), "{\"time\": \"lost\"}".into());
    game.act(&Act::Rebuild).unwrap();
    let mut rebuilt = game.json("STATE_PANEL.json");
    rebuilt["housing"] = json!("a hut");
    assert_eq!(rebuilt, panel);
}

#[test]
fn fiction_and_blueprint_are_never_a_source() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let mut other = Game::new();
    for path in ["Writing/Fiction_index.md", ".DM_BLUEPRINT.md", ".DM_PLANNER.md", ".DM_SECRETS.md"] {
        other.files.insert(path.into(), "the reeve is dead and Heat is 3".into());
    }
    let noted = RecordedReads::new(&other.files);
    let context = ActContext { world: &other.world, files: &noted, campaign: "c1", seed: 7, at: AT };
    let (_, changes) = whole(context, &Act::Turn { input: "[LOOK]{around}".into(), proposal: None }, 2).unwrap();
    let opened = noted.opened();
    assert!(!opened.iter().any(|path| path.contains("Writing") || path.contains(".DM_")), "{opened:?}");
    make(&mut other.files, &changes);
    assert_eq!(other.files["STATE_PANEL.json"], game.files["STATE_PANEL.json"]);
}

#[test]
fn the_last_turn_can_be_undone_once() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let before = game.files.clone();
    game.play("[ACT]{go to the inn}").unwrap();
    game.act(&Act::Undo).unwrap();
    for (path, text) in &before {
        if !path.starts_with(".kernel/undo") && !path.starts_with(".kernel/journal") {
            assert_eq!(game.files.get(path), Some(text), "{path}");
        }
    }
    assert!(game.act(&Act::Undo).unwrap_err().message.contains("no turn to undo"));
    game.play("[ACT]{go to the inn}").unwrap();
    game.lawful();
}

#[test]
fn the_tools_of_the_game_master_change_all_or_nothing() {
    let mut game = Game::new();
    let call = |name: &str, arguments: serde_json::Value| Call { name: name.into(), arguments };
    let heat = call(
        "update_state_panel",
        json!({"campaign_path": "campaigns/c1", "mode": "patch", "content": "{\"indicators\":{\"Heat\":2}}"}),
    );
    let bad = call(
        "update_hot_pack",
        json!({"campaign_path": "campaigns/c1", "mode": "patch", "content": "{\"spine\":null}"}),
    );
    let before = game.files.clone();
    let both = Act::Tools { role: "DM".into(), calls: vec![heat.clone(), bad] };
    assert!(game.act(&both).unwrap_err().message.contains("would lack `spine`"), "row 95");
    assert_eq!(game.files, before);
    game.act(&Act::Tools { role: "DM".into(), calls: vec![heat] }).unwrap();
    assert_eq!(game.json("STATE_PANEL.json")["indicators"]["Heat"], 2);
    game.play("[LOOK]{around}").unwrap();
    assert_eq!(game.json("STATE_PANEL.json")["indicators"]["Heat"], 2, "the patch is a Decision, so it stays");
    game.lawful();
    let rewrite = call(
        "write_patch",
        json!({"path": "WORLD_STATE.md", "mode": "replace", "content": "x", "pattern": "[\\s\\S]*"}),
    );
    game.files.insert("WORLD_STATE.md".into(), "line\n".repeat(100));
    let refused = game.act(&Act::Tools { role: "SAVE_READ".into(), calls: vec![rewrite] }).unwrap_err();
    assert!(refused.message.contains("not rewritten"), "{refused}");
}

#[test]
fn row_137_a_version_fits_its_lock() {
    let verdicts = [("0.1.x", "0.2.0"), ("0.2.0", "0.2.0"), ("0.2.x", "0.2.0"), ("0.2.x", "0.2")]
        .map(|(lock, own)| fits(lock, own));
    assert_eq!(verdicts, [false, true, true, false]);
}

#[test]
fn a_campaign_of_the_origin_is_played_on() {
    let mut game = Game::new();
    let session = "sessions/session_0001_old.md";
    let old = "# Old\n\n## Turn 0001\n- Input: x\n- Resolution: one\n\n## Turn 0002\n- Resolution: two\n\n## Turn 0003\n- Resolution: three\n";
    game.files.retain(|path, _| !path.starts_with("sessions/") && !path.starts_with(".kernel"));
    game.files.insert(session.into(), old.into());
    game.files.insert("sessions/CURRENT_SESSION.md".into(), format!("campaigns/c1/{session}\n"));
    let panel = r#"{"time": "spring", "location": "@lantern_quay", "indicators": {"Heat": "-", "Bond": 2}, "clocks": [], "housing": "x"}"#;
    game.files.insert("STATE_PANEL.json".into(), panel.into());
    game.play("[LOOK]{around}").unwrap();
    let after = game.json("STATE_PANEL.json");
    assert_eq!((&after["housing"], &after["indicators"]["Bond"]), (&json!("x"), &json!(2)));
    assert!(after["time"].as_str().unwrap().starts_with("spring +"));
    let digest = &game.files["sessions/session_0001_old_compressed.md"];
    assert!(digest.contains("one") && digest.contains("two") && !digest.contains("three"), "{digest}");
    assert_eq!(boot::current(&game.files).unwrap(), session);
}

#[test]
fn the_journal_played_again_leaves_the_same_bytes() {
    let mut game = Game::new();
    for input in ["[LOOK]{around}", "[ASK]{Jun}", "[ACT]{leap the gap} --risk high"] {
        game.play(input).unwrap();
    }
    game.act(&Act::Undo).unwrap();
    game.play("[MANAGE]{rest}").unwrap();
    game.replayed(); // row 140
}

#[test]
fn row_57_a_failure_always_costs_something() {
    let mut failures = 0;
    for seed in 0..12 {
        let mut game = Game::new();
        game.seed = seed;
        let output = game.play("[ACT]{swim under the hull} --risk high").unwrap();
        if output.contains("· failure") {
            failures += 1;
            assert!(
                output.contains("cost: 20 minutes") && output.contains("HP 12 -> 10") && output.contains("Heat 0 -> 1"),
                "{output}"
            );
        }
    }
    assert!(failures > 0);
}

#[test]
fn row_66_what_is_impossible_is_not_thrown() {
    let mut game = Game::new();
    game.play("[ACT]{go to the lighthouse}").unwrap();
    let thrown = game.files.get(".kernel/dice.ndjson").cloned();
    let output = game.play("[ACT]{go to the lamp room}").unwrap();
    assert!(output.contains("No throw: it cannot succeed") && output.contains("A costly alternative:"), "{output}");
    assert!(output.contains("the key is not in the lighthouse"), "{output}");
    assert_eq!(game.files.get(".kernel/dice.ndjson").cloned(), thrown);
    let far = game.play("[ASK]{Maud about the ledger}").unwrap();
    assert!(far.contains("nobody of that name is here"), "{far}");
    game.lawful();
}

#[test]
fn row_37_a_code_means_what_the_last_hud_said() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    assert!(game.play("[LOOK]{N1}").unwrap().contains("Jun Tallow: The harbourer"));
    game.play("[ACT]{go to the inn}").unwrap();
    assert!(game.play("[LOOK]{N1}").unwrap().contains("Bertrade: The cook"));
}

#[test]
fn row_47_a_missing_route_is_a_flag_and_no_end() {
    let mut game = Game::new();
    game.world.routes.push((crate::input::Header::Look, vec!["lore/GONE.md".into()]));
    game.play("[LOOK]{around}").unwrap();
    assert!(game.files[".kernel/delta.md"].contains("risk_flag: lore/GONE.md\n"));
}
