use serde_json::json;

use super::*;

fn decision(turn: u64) -> Decision {
    Decision {
        turn,
        title: format!("step {turn}"),
        input: "[ACT]{walk}".into(),
        resolution: format!("went on {turn}"),
        indicators: vec![format!("Heat {} -> {turn} (steps)", turn - 1)],
        state: json!({"turn": turn, "indicators": {"Heat": turn}}),
        panel: "x".into(),
        ..Decision::default()
    }
}

fn session(turns: u64) -> String {
    (1..=turns).fold("# Session\n".to_owned(), |text, turn| format!("{text}\n{}", decision(turn).render()))
}

#[test]
fn rows_110_to_112_two_turns_stay_and_the_rest_is_digested() {
    assert_eq!((turns(&snapshot(&session(1))).len(), compressed(&session(1))), (1, COMPRESSED.to_owned()), "row 110");
    let (five, text) = (session(5), session(5));
    let kept = snapshot(&five);
    assert!(
        kept.contains(decision(4).render().trim_end()) && kept.contains(decision(5).render().trim_end()),
        "row 111"
    );
    assert!(!kept.contains("0003"), "row 111");
    let digest = compressed(&five);
    assert!(["0001", "0002", "0003"].iter().all(|turn| digest.contains(turn)) && !digest.contains("0004"), "row 111");
    assert!(digest.contains("Heat 2 -> 3") && !digest.contains("State:"), "changes are kept");
    assert_eq!((snapshot(&text), compressed(&text)), (kept, digest), "row 112");
}

#[test]
fn one_turn_more_is_one_digest_more() {
    for count in 2..6 {
        let (before, after) = (session(count), session(count + 1));
        let snapshot = snapshot(&before);
        let leaving = turns(&snapshot)[0];
        assert_eq!(compressed(&after), compressed(&before) + &digest(leaving));
    }
}

#[test]
fn a_panel_is_the_sum_of_its_decisions() {
    assert_eq!(fold([session(3).as_str()]).unwrap(), Some(json!({"turn": 3, "indicators": {"Heat": 3}})));
    let told = conflicts(
        &json!({"turn": 3, "indicators": {"Heat": 9}, "housing": 1}),
        &json!({"turn": 3, "indicators": {"Heat": 3}}),
    );
    assert_eq!(told, [r#"STATE_PANEL said indicators {"Heat":9}, the sessions say {"Heat":3}"#]);
}
