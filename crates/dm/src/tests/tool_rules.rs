//! The tools of the game master keep the rules that turns keep.

use serde_json::{Value, json};

use super::Game;
use crate::act::Act;
use crate::tools::Call;

fn call(name: &str, arguments: Value) -> Call {
    Call { name: name.into(), arguments }
}

fn patch(content: &Value) -> Call {
    let content = content.to_string();
    call("update_state_panel", json!({"campaign_path": "campaigns/c1", "mode": "patch", "content": content}))
}

fn run(game: &mut Game, role: &str, calls: Vec<Call>) -> acheron_base::Result<Value> {
    let said = game.act(&Act::Tools { role: role.into(), calls })?;
    Ok(serde_json::from_str(&said).unwrap())
}

#[test]
fn a_patch_of_the_state_panel_keeps_the_rules() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let before = game.files.clone();
    for (content, why) in [
        (json!({"indicators": {"Heat": 99}}), "Heat is 0 to 3"),
        (json!({"indicators": {"Heat": "high"}}), "Heat is 0 to 3"),
        (json!({"indicators": {"Luck": 1}}), "unknown indicator Luck"),
        (json!({"indicators": {"Heat": null}}), "Heat is 0 to 3"),
        (json!({"hp": 500}), "hp is 0 to 12"),
        (json!({"hp": null}), "hp is 0 to 12"),
        (json!({"location": "@moon"}), "unknown place @moon"),
        (json!({"location": "@brass_lantern"}), "unknown place @brass_lantern"),
        (
            json!({"clocks": [{"id": "tide", "segments": -5, "filled": 0, "visible": true}]}),
            "clock tide has 8 segments",
        ),
        (json!({"clocks": []}), "clock tide is missing"),
        (json!({"clocks": [{"id": "doom", "segments": 4, "filled": 0}]}), "unknown clock doom"),
        (json!({"inventory": ["@harbourer_jun"]}), "unknown item @harbourer_jun"),
        (json!({"clues": ["@made_up"]}), "unknown clue @made_up"),
        (json!({"quests": {"@dark_lamp": {"stage": 9, "status": "active"}}}), "@dark_lamp has 4 stages"),
        (json!({"quests": {"@dark_lamp": {"status": "won"}}}), "a quest cannot be `won`"),
        (json!({"statuses": {"@ghost": "active"}}), "unknown handle @ghost"),
        (json!({"seen": ["@moon"]}), "unknown place @moon"),
        (json!({"foes": {"@ghost": 3}}), "unknown person @ghost"),
        (json!({"told": {"@harbourer_jun": 9}}), "@harbourer_jun has 3 secrets"),
        (json!({"fatigue": 9}), "fatigue is 0 to 5"),
        (json!({"turn": 9}), "`turn` is counted by turns"),
        (json!({"hud": {"L1": "loc_x"}}), "`hud` is counted by turns"),
        (json!({"fired": ["x"]}), "`fired` is counted by turns"),
        (json!({"time": "yesterday"}), "time is like `day 2, 08:40`"),
        (json!({"time": "day 1, 00:10"}), "time does not go back"),
        (json!({"notes": ["x".repeat(9000)]}), "STATE_PANEL.json"),
    ] {
        let refused = run(&mut game, "DM", vec![patch(&content)]).expect_err(why).message;
        assert!(refused.contains(why), "{content}: {refused}");
        assert_eq!(game.files, before, "{content}");
    }
    let lawful = json!({"indicators": {"Heat": 3}, "hp": 4, "location": "@gull_inn", "time": "day 2, 09:00", "housing": "a hut",
        "inventory": ["@brass_lantern"], "clues": ["@nine_boats"], "notes": ["the inn is quiet"]});
    run(&mut game, "DM", vec![patch(&lawful)]).unwrap();
    game.play("[LOOK]{around}").unwrap();
    game.lawful();
}

#[test]
fn the_other_panels_keep_kinds_and_sizes() {
    let mut game = Game::new();
    let update = |name: &str, content: Value| {
        call(name, json!({"campaign_path": "campaigns/c1", "mode": "patch", "content": content.to_string()}))
    };
    for (name, content, why) in [
        (
            "update_object_index",
            json!({"npcs": [{"handle": "@brass_lantern", "name": "x"}]}),
            "@brass_lantern is an item",
        ),
        ("update_object_index", json!({"items": [{"handle": "@ghost", "name": "x"}]}), "unknown item @ghost"),
        ("update_object_index", json!({"locations": [{"name": "x"}]}), "unknown place"),
        ("update_hot_pack", json!({"theme": "x".repeat(80_000)}), "at most"),
        ("update_mainline_panel", json!({"next_beat": ["x".repeat(80_000)]}), "at most"),
    ] {
        let refused = run(&mut game, "DM", vec![update(name, content)]).expect_err(why).message;
        assert!(refused.contains(why), "{name}: {refused}");
    }
    let lawful = json!({"npcs": [{"handle": "@harbourer_jun", "name": "Jun Tallow"}]});
    run(&mut game, "DM", vec![update("update_object_index", lawful)]).unwrap();
}

#[test]
fn a_check_of_a_tool_is_thrown_once_and_logged() {
    let mut game = Game::new();
    let roll = || call("roll_check", json!({"dc": 12, "advantage": "normal", "stat": "int"}));
    let mut thrown = Vec::new();
    for _ in 0..6 {
        let said = run(&mut game, "DM", vec![roll(), roll()]).unwrap();
        for result in said["tool_results"].as_array().unwrap() {
            thrown.push(result["result"]["rolls"][0].as_u64().unwrap());
        }
    }
    assert_eq!(thrown.len(), 12);
    assert!(thrown.iter().any(|value| *value != thrown[0]), "the same die every time: {thrown:?}");
    let log: Vec<u64> = game.files[".kernel/dice.ndjson"]
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["value"].as_u64().unwrap())
        .collect();
    assert_eq!(log, thrown, "every throw is logged");
    let mut other = Game::new();
    other.play("[ACT]{leap} --risk mid").unwrap();
    game.play("[ACT]{leap} --risk mid").unwrap();
    let last = |game: &Game| game.files[".kernel/dice.ndjson"].lines().last().unwrap().to_owned();
    assert_eq!(last(&game), last(&other), "the dice of a turn do not know of it");
}

#[test]
fn a_check_with_a_name_is_thrown_once_in_a_turn() {
    let mut game = Game::new();
    let roll =
        |what: &str, dc: u64| call("roll_check", json!({"dc": dc, "advantage": "normal", "stat": "int", "what": what}));
    let said =
        run(&mut game, "DM", vec![roll("climb the wall", 12), roll("Climb the wall!", 8), roll("swim", 12)]).unwrap();
    let again = run(&mut game, "DM", vec![roll("climb the wall", 12)]).unwrap();
    let die = |said: &Value, at: usize| said["tool_results"][at]["result"]["rolls"].clone();
    assert_eq!((die(&said, 0), die(&said, 0)), (die(&said, 1), die(&again, 0)), "another DC is no other throw");
    let log = game.files[".kernel/dice.ndjson"].matches("climb the wall").count();
    assert_eq!(log, 1, "{}", game.files[".kernel/dice.ndjson"]);
    game.play("[LOOK]{around}").unwrap();
    run(&mut game, "DM", vec![roll("climb the wall", 12)]).unwrap();
    assert_eq!(game.files[".kernel/dice.ndjson"].matches("climb the wall").count(), 2, "another turn, another throw");
    game.replayed();
}

#[test]
fn a_note_goes_into_the_session_and_a_patch_is_told_once() {
    let mut game = Game::new();
    game.play("[LOOK]{around}").unwrap();
    let note = |path: &str| call("append_session", json!({"session_path": path, "content": "a note"}));
    for path in ["sessions/CURRENT_SESSION.md", "campaigns/c1/sessions/CURRENT_SESSION.md", "sessions/SESSION_INDEX.md"]
    {
        let refused = run(&mut game, "DM", vec![note(path)]).unwrap_err().message;
        assert!(refused.contains("is not the current session, which is sessions/session_"), "{refused}");
    }
    let session = game.session();
    run(&mut game, "DM", vec![note(&session)]).unwrap();
    for _ in 0..2 {
        run(&mut game, "DM", vec![patch(&json!({"indicators": {"Heat": 2}}))]).unwrap();
    }
    assert_eq!(game.files[&session].matches("## Decision: a patch by the game master").count(), 1);
    game.lawful();
}

#[test]
fn a_page_is_patched_within_limits_and_the_campaign_keeps_its_seed() {
    let mut game = Game::new();
    let before = game.files.clone();
    let page = |path: &str, mode: &str, content: &str, pattern: &str| {
        call("write_patch", json!({"path": path, "mode": mode, "content": content, "pattern": pattern}))
    };
    let off = (1..=9).map(|n| format!("- KEY{n}=x\n")).collect::<String>();
    for (call, why) in [
        (page("CAMPAIGN.md", "replace", "seed: 8", "seed: 7"), "CAMPAIGN.md is written once"),
        (page("campaigns/c1/CAMPAIGN.md", "append", "seed: 8", ""), "CAMPAIGN.md is written once"),
        (page("sessions/CURRENT_SESSION.md", "prepend", "sessions/session_0000_bootstrap.md", ""), "changed by turns"),
        (page("WORLD_STATE.md", "append", &"x".repeat(9000), ""), "at most"),
        (page("PLAYER_PROFILE.md", "append", &off, ""), "at most 8 preferences"),
        (page("PLAYER_PROFILE.md", "replace", "STYLE=-", "STYLE=.*"), "ok"),
    ] {
        let said = run(&mut game, "SAVE_READ", vec![call.clone()]);
        match said {
            Err(fault) => assert!(fault.message.contains(why), "{}: {fault}", call.arguments),
            Ok(_) => assert_eq!(why, "ok", "{}", call.arguments),
        }
    }
    for key in ["DIFFICULTY", "RULES", "PACING", "COMBAT_FREQ"] {
        run(
            &mut game,
            "SAVE_READ",
            vec![page("PLAYER_PROFILE.md", "replace", &format!("{key}=-"), &format!("{key}=.*"))],
        )
        .unwrap();
    }
    let last = page("PLAYER_PROFILE.md", "replace", "MYSTERY_VS_ACTION=-", "MYSTERY_VS_ACTION=.*");
    let refused = run(&mut game, "SAVE_READ", vec![last]).unwrap_err().message;
    assert!(refused.contains("not initialised"), "{refused}");
    assert_eq!(game.files["CAMPAIGN.md"], before["CAMPAIGN.md"]);
    game.play("[LOOK]{around}").unwrap();
}

#[test]
fn a_tool_forges_no_decision() {
    let mut game = Game::new();
    let path = format!("campaigns/c1/{}", game.session());
    for text in ["## Decision: 0099 · x\n\n- State: {\"hp\": 500}", "- Panel: 00", "## Turn 0099\n- Resolution: x"] {
        let forged = call("append_session", json!({"session_path": path, "content": text}));
        let refused = run(&mut game, "DM", vec![forged]).expect_err(text).message;
        assert!(refused.contains("written by turns"), "{text}: {refused}");
    }
    let note = call("append_session", json!({"session_path": path, "content": "### Note\n\nthe player is tired"}));
    run(&mut game, "DM", vec![note]).unwrap();
    let long = call("append_session", json!({"session_path": path, "content": "x".repeat(9000)}));
    assert!(run(&mut game, "DM", vec![long]).is_err());
    game.play("[LOOK]{around}").unwrap();
    game.lawful();
}

#[test]
fn a_handle_belongs_to_one_kind() {
    let files = crate::shipped::cartridge("brinewick").unwrap();
    let register = |handle: &str, index: &str| {
        let arguments =
            json!({"cartridge_path": "cartridges/brinewick", "index_path": index, "handle": handle, "aliases": []});
        crate::tools::run::author(&files, &call("register_handle", arguments), "brinewick").map(|_| ())
    };
    let roster = "characters/NPCs/npc_roster.md";
    assert!(register("@brass_lantern", roster).unwrap_err().message.contains("@brass_lantern is an item"));
    assert!(register("@harbourer_jun", "items/ITEM_INDEX.md").unwrap_err().message.contains("is a person"));
    assert!(register("@new_one", "lore/INDEX.md").unwrap_err().message.contains("no index of handles"));
    register("@new_one", roster).unwrap();
}

#[test]
fn a_mood_is_one_that_the_rules_know_and_time_moves_by_days_and_not_by_ages() {
    let mut game = Game::new();
    let before = game.files.clone();
    for (content, why) in [
        (json!({"moods": {"@harbourer_jun": "furious"}}), "`furious` is not a mood"),
        (json!({"moods": {"@brass_lantern": "wary"}}), "unknown person @brass_lantern"),
        (json!({"time": "day 999999, 23:59"}), "at most 30 days"),
    ] {
        let refused = run(&mut game, "DM", vec![patch(&content)]).expect_err(why).message;
        assert!(refused.contains(why), "{content}: {refused}");
        assert_eq!(game.files, before, "{content}");
    }
    run(&mut game, "DM", vec![patch(&json!({"moods": {"@harbourer_jun": "wary"}}))]).unwrap();
}

#[test]
fn no_door_takes_what_a_terminal_would_obey() {
    let mut game = Game::new();
    let before = game.files.clone();
    let refused = game.play("[LOOK]{around \u{1b}[2J}").unwrap_err();
    assert!(refused.message.contains("control character U+001B"), "{refused}");
    let page = json!({"path": "campaigns/c1/characters/PCs/pc_current.md", "mode": "append", "content": "| Name | \u{1b}[2J |"});
    let refused = run(&mut game, "BUILDER", vec![call("write_patch", page)]).unwrap_err();
    assert!(refused.message.contains("control character U+001B"), "{refused}");
    let note = json!({"session_path": game.session(), "content": "a \u{7} bell"});
    let refused = run(&mut game, "DM", vec![call("append_session", note)]).unwrap_err();
    assert!(refused.message.contains("control character U+0007"), "{refused}");
    assert_eq!(game.files, before);
    let mut fresh = Game::blank(super::brinewick());
    for (name, why) in [
        ("A\u{1b}[2Jnn", "control character U+001B"),
        ("[HUD]", "a name has no"),
        ("Ann | x |", "a name has no"),
        (&"x".repeat(61), "at most 60 characters"),
    ] {
        let answers = crate::init::Answers { pc_name: name.to_owned(), ..super::answers() };
        let refused = fresh.act(&Act::Init { answers: Box::new(answers) }).unwrap_err();
        assert!(refused.message.contains(why), "{name}: {refused}");
    }
    let answers = crate::init::Answers { lines_veils: "no \u{1b}c".into(), ..super::answers() };
    assert!(fresh.act(&Act::Init { answers: Box::new(answers) }).is_err());
    let answers = crate::init::Answers { pc_name: "Zoë O'Hara-Smith 7".into(), ..super::answers() };
    fresh.act(&Act::Init { answers: Box::new(answers) }).unwrap();
}
