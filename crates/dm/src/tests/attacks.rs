//! A hostile narrator's script: one line per attack, with the report that it must come to and the words that no player may read.

use serde::Deserialize;
use serde_json::Value;

use super::Game;

const SCRIPT: &str = include_str!("texts/hostile.ndjson");

/// One line of the script.
#[derive(Deserialize)]
pub(super) struct Attack {
    attack: String,
    input: String,
    pub proposal: Value,
    /// How the report about it begins.
    report: String,
    /// What must not be shown.
    #[serde(default)]
    never: String,
}

pub(super) fn script() -> Vec<Attack> {
    SCRIPT.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{line}: {fault}"))).collect()
}

/// What one attack came to, where it came to something else than it must.
fn fault(attack: &Attack) -> Option<String> {
    let mut game = Game::new();
    let output = match game.propose(&attack.input, attack.proposal.clone()) {
        Ok(output) => output,
        Err(fault) => return Some(format!("{}: the turn is refused: {fault}", attack.attack)),
    };
    game.lawful();
    game.replayed();
    let session = &game.files[&game.session()];
    let told = |line: &'static str| session.lines().filter_map(move |own| own.strip_prefix(line));
    let reports: Vec<&str> = told("- Narrator: ").chain(told("- Set aside: ")).collect();
    if !reports.iter().any(|own| own.starts_with(&attack.report)) {
        return Some(format!("{}: reported as {reports:?}", attack.attack));
    }
    let told = session.lines().find_map(|line| line.strip_prefix("- Told: ")).unwrap_or_default();
    let shown = !attack.never.is_empty() && (output.contains(&attack.never) || told.contains(&attack.never));
    if shown {
        return Some(format!("{}: the player reads {:?}", attack.attack, attack.never));
    }
    game.play("[LOOK]{around}").err().map(|fault| format!("{}: no turn after it: {fault}", attack.attack))
}

#[test]
fn each_attack_of_a_hostile_narrator_is_reported_and_shown_to_nobody() {
    let script = script();
    assert!(script.len() > 50, "{}", script.len());
    let faults: Vec<String> = script.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
