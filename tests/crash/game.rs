//! A game whose host dies in the middle of moves: all of a turn is there, or none of it.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::life::Life;
use super::load::put;

const KILLS: u64 = 6;

/// The moves of the committed play-through.
fn moves() -> Vec<&'static str> {
    let script = include_str!("../corpus/dm_input/brinewick.play");
    script.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect()
}

/// One call on a handle of its own; returns what it answers.
fn call(dm: &Path, op: &str, arguments: &str) -> String {
    let control = dm.join("control").join(format!("{op}.json"));
    let mut handle = fs::OpenOptions::new().read(true).write(true).open(control).unwrap();
    handle.write_all(arguments.as_bytes()).unwrap();
    let mut said = String::new();
    handle.read_to_string(&mut said).unwrap();
    said
}

fn begin(life: &Life) {
    let dm = life.agent().join("dm");
    call(&dm, "new_campaign", r#"{"id":"c1","seed":7}"#);
    let answers = r#"{"answers":{"preset":"Mystery Investigation","pc_name":"Ann","pc_strengths":"clever, charming","date":"2026-11-16"},"confirm":true}"#;
    call(&dm, "init", answers);
}

/// How many turns the save says were played, looked at from every side.
fn turns(life: &Life) -> usize {
    let campaign = life.agent().join("dm/campaigns/c1");
    let json = |name: &str| -> Value { serde_json::from_slice(&fs::read(campaign.join(name)).unwrap()).unwrap() };
    let played = json("state.json")["turn"].as_u64().unwrap() as usize;
    let check = json("check.json");
    assert_eq!(check["ok"], true, "{check}");
    let session = fs::read_to_string(campaign.join("sessions/session_2026-11-16_ann.md")).unwrap();
    let told = acheron_dm::session::turns(&session).len();
    assert_eq!(told, played + 1, "the session tells of the beginning and of each turn");
    for line in fs::read_to_string(campaign.join("journal.ndjson")).unwrap().lines() {
        serde_json::from_str::<Value>(line).expect("each line of the journal is whole");
    }
    played
}

/// Every file that a player can see of the save, without the time of day at which it was played.
fn save(life: &Life) -> Vec<(&'static str, String)> {
    let campaign = life.agent().join("dm/campaigns/c1");
    let seen = [
        "state.json",
        "indicators.json",
        "clocks.json",
        "hud.json",
        "hot_pack.json",
        "dice.ndjson",
        "map.txt",
        "snapshot.md",
        "sessions/session_2026-11-16_ann.md",
    ];
    let read = |name: &str| fs::read_to_string(campaign.join(name)).unwrap();
    let timeless =
        |text: String| text.lines().filter(|line| !line.starts_with("- Real time:")).collect::<Vec<_>>().join("\n");
    seen.map(|name| (name, timeless(read(name)))).into()
}

#[test]
fn a_game_that_is_killed_in_its_moves_has_all_of_each_turn_or_none() {
    let place = tempfile::tempdir().unwrap();
    let script = moves();
    let mut dice = StdRng::seed_from_u64(9);
    let mut cut_off = 0;
    let mut life = Life::begin(place.path(), &[]);
    begin(&life);
    let mut played = turns(&life);
    for _ in 0..KILLS {
        let input = life.agent().join("dm/campaigns/c1/input");
        let rest: Vec<&str> = script[played..].to_vec();
        let player = thread::spawn(move || rest.iter().take_while(|line| put(&input, line).is_ok()).count());
        // the moment of death, not a wait for anything
        thread::sleep(Duration::from_millis(dice.random_range(50..500)));
        life.kill();
        let heard = player.join().unwrap();
        life = Life::begin(place.path(), &[]);
        let now = turns(&life);
        assert!(
            (played + heard..=played + heard + 1).contains(&now),
            "{played} turns, {heard} more were heard, now {now}"
        );
        cut_off += usize::from(played + heard < script.len());
        played = now;
    }
    assert!(cut_off > 0 && played > 0, "the kills came too late or too soon: {played} turns, {cut_off} cut off");

    let killed = save(&life);
    life.leave();
    let other = tempfile::tempdir().unwrap();
    let life = Life::begin(other.path(), &[]);
    begin(&life);
    for line in &script[..played] {
        put(&life.agent().join("dm/campaigns/c1/input"), line).unwrap();
    }
    for ((name, killed), (_, quiet)) in killed.iter().zip(save(&life)) {
        assert_eq!(*killed, quiet, "{name} differs from that of a game that nobody disturbed");
    }
    life.leave();
}
