use super::*;
use crate::act;
use crate::campaign::replay;
use crate::tests::{AT, brinewick};

/// A campaign of 31 acts, recorded by the first rules.
const RECORDED: &str = include_str!("rules_1.json");

fn journal(files: &Files) -> Vec<JournalEntry> {
    files[JOURNAL].lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_campaign_of_older_rules_goes_on_and_replays_from_where_it_changed() {
    let (world, mut files) = (brinewick(), serde_json::from_str::<Files>(RECORDED).unwrap());
    let refused = replay("c1", &world, &journal(&files)).unwrap_err().message;
    assert!(refused.contains("recorded with rules 1") && refused.contains("play on"), "{refused}");
    let count = journal(&files).len() as u64;
    for (turn, input) in ["[LOOK]{around}", "[MANAGE]{status}"].into_iter().enumerate() {
        let context = ActContext { world: &world, files: &files, campaign: "c1", seed: 7, at: AT };
        let act = Act::Turn { input: input.into(), proposal: None };
        let (_, changes) = act::whole(context, &act, count + turn as u64 * 2).unwrap();
        act::make(&mut files, &changes);
    }
    let own = journal(&files);
    assert_eq!(own.len() as u64, count + 3, "one entry for the rules, two for the turns");
    assert_eq!(replay("c1", &world, &own).unwrap(), files);
}
