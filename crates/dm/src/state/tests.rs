use super::*;
use crate::rule::effects;
use crate::world::{ClockSpec, Gate, Indicator, Object, Trigger};

fn world() -> Cartridge {
    let level = |name: &str, max| Indicator { name: name.into(), min: 0, max, start: 0 };
    let place = Object {
        kind: ObjectKind::Loc,
        handle: "@road".into(),
        name: "the road".into(),
        summary: String::new(),
        status: "active".into(),
        aliases: vec![],
        path: None,
        fields: BTreeMap::new(),
        easy_secrets: vec![],
        hard_secrets: vec![],
        facts: Vec::new(),
        topics: Vec::new(),
    };
    Cartridge {
        indicators: vec![level("Rumor", 3), level("RouteClear", 99)],
        triggers: vec![Trigger {
            when: Condition::parse("Rumor>=2").unwrap(),
            shown: "Rumor>=2".into(),
            once: true,
            event: "investigation intervenes".into(),
            effects: vec![],
        }],
        gates: vec![Gate {
            name: "LeavePonyvilleGate".into(),
            open_when: Condition::parse("RouteClear>=1").unwrap(),
            shown: "RouteClear>=1".into(),
            reason: String::new(),
            places: vec!["@road".into()],
        }],
        clocks: vec![ClockSpec {
            id: "tide".into(),
            segments: 6,
            visible: true,
            every: Some(60),
            event: "the flood".into(),
            effects: vec![],
            again: false,
            until: Condition::default(),
        }],
        objects: vec![place],
        ..Cartridge::default()
    }
}

fn state(rumor: Value, filled: i64) -> State {
    let clocks = json!([{"id": "tide", "segments": 6, "filled": filled}]);
    State::read(&json!({"time": "day 1, 08:00", "indicators": {"Rumor": rumor}, "clocks": clocks}), &world())
}

/// Lets effects happen, then fires; says all that was told.
fn told(state: &mut State, text: &str) -> String {
    let world = world();
    let mut lines = Vec::new();
    for effect in effects(text).unwrap() {
        match state.apply(&effect, &world) {
            Ok(told) => lines.extend(told.into_iter().map(|told| format!("{told:?}"))),
            Err(fault) => lines.push(fault.message),
        }
    }
    lines.extend(state.fire(&world).unwrap().into_iter().map(|told| format!("{told:?}")));
    lines.join(" | ")
}

#[test]
fn rows_77_to_85_indicators_and_clocks() {
    let mut full = state(json!(3), 0);
    full.fired.push("Rumor>=2".into());
    assert_eq!(
        told(&mut full, "Rumor+1 (bragging)"),
        r#"Indicator("Rumor stays at 3 (bragging; it cannot rise, 1 is lost)")"#,
        "row 77"
    );

    let mut one = state(json!(1), 0);
    let crossed = told(&mut one, "Rumor+1 (a public lie)");
    assert_eq!(crossed, r#"Indicator("Rumor 1 -> 2 (a public lie)") | Event("investigation intervenes")"#, "row 79");
    assert!(!told(&mut one, "Rumor+1 (again)").contains("intervenes"), "row 79: once");

    assert!(told(&mut one, "Luck+1 (a coin)").starts_with("unknown indicator Luck"), "row 80");

    let mut late = state(json!(0), 5);
    let filled = told(&mut late, "clock tide+2 (dawdling)");
    assert_eq!(filled, r#"Clock("tide 5/6 -> 6/6 (dawdling)") | Event("the flood")"#, "row 82");
    assert_eq!(told(&mut late, "clock tide+1"), "", "row 82: once");

    let mut gate = state(json!(0), 0);
    assert_eq!(gate.shut("@road", &world()).unwrap().name, "LeavePonyvilleGate", "row 84");
    told(&mut gate, "RouteClear+1 (a promise kept)");
    assert!(gate.shut("@road", &world()).is_none(), "row 84");

    let mut blank = state(json!("-"), 0);
    assert_eq!(told(&mut blank, "Rumor+1 (a song)"), r#"Indicator("Rumor 0 -> 1 (a song)")"#, "row 85");
    assert_eq!(blank.write(&json!({}))["indicators"]["Rumor"], json!(1), "row 85: a number now");
}

#[test]
fn a_clock_of_its_own_ticks_with_the_hours() {
    let mut state = state(json!(0), 0);
    assert_eq!(told(&mut state, "time 130"), r#"Clock("tide 0/6 -> 2/6 (time passes)")"#);
    assert_eq!(state.time.to_string(), "day 1, 10:10");
}

#[test]
fn a_panel_of_another_hand_keeps_what_we_do_not_know() {
    let panel = json!({"time": "spring", "location": "@x", "indicators": {"Mood": "-"}, "housing": {"rent": 3}});
    let written = State::read(&panel, &world()).write(&panel);
    assert_eq!(written["housing"], json!({"rent": 3}));
    assert_eq!(written["indicators"]["Mood"], json!("-"));
    assert_eq!(State::read(&written, &world()).write(&written), written);
}
