use super::*;
use crate::events::SignalType;

fn armed(selectors: Vec<Selector>) -> Armed {
    Armed {
        selectors: selectors.into(),
        cursor: 0,
        armed_at_ms: 100,
        fired: BTreeSet::new(),
        turn: 0,
        watched: Default::default(),
    }
}

fn signal(seq: u64, kind: &str, parameter: Option<&str>) -> Event {
    let payload = json!({ "event_type": kind, "parameter": parameter });
    Event { seq, kind: "signal".into(), path: "/agents/a/events/sources/user.json".into(), at_ms: 1, payload }
}

fn seen(armed: &Armed, events: &[Event], now_ms: u64) -> String {
    match find_match(armed, "a", events, |id| (id == "over").then(|| json!({"state": "done"})), now_ms) {
        WaitOutcome::Match(found) => format!("{} {:?}", found.selector, found.seq),
        WaitOutcome::Pending { until_ms } => format!("nothing {until_ms:?}"),
    }
}

#[test]
fn a_job_that_is_over_is_heard_once_per_arming() {
    let mut armed = armed(vec![Selector::Job("runs".into()), Selector::Job("over".into())]);
    assert_eq!(seen(&armed, &[], 0), "1 None");
    let WaitOutcome::Match(found) = find_match(&armed, "a", &[], |_| Some(json!({})), 0) else { panic!() };
    armed.acknowledge(&WaitMatch { selector: 1, ..found });
    assert_eq!(seen(&armed, &[], 0), "nothing None");
}

#[test]
fn timers_count_from_the_arming_or_name_a_moment() {
    let mut armed = armed(vec![Selector::After(50), Selector::At(120)]);
    assert_eq!(seen(&armed, &[], 110), "nothing Some(120)");
    assert_eq!(seen(&armed, &[], 120), "1 None");
    armed.fired.insert(1);
    assert_eq!(seen(&armed, &[], 120), "nothing Some(150)");
    assert_eq!(seen(&armed, &[], 150), "0 None");
}

#[test]
fn signals_are_heard_in_order_after_the_cursor() {
    let events = [signal(1, "user", None), signal(2, "hook", None), signal(3, "user", Some("go"))];
    let mut any = armed(vec![Selector::Signal(SignalType::User, None)]);
    assert_eq!(seen(&any, &events, 0), "0 Some(1)");
    any.cursor = 1;
    assert_eq!(seen(&any, &events, 0), "0 Some(3)");
    let go = armed(vec![Selector::Signal(SignalType::User, Some("go".into()))]);
    assert_eq!(seen(&go, &events, 0), "0 Some(3)");
    assert_eq!(seen(&armed(vec![Selector::Signal(SignalType::Agent, None)]), &events, 0), "nothing None");
}

#[test]
fn a_path_hears_of_itself_and_what_is_below() {
    let change = |path: &str| Event { seq: 1, kind: "change".into(), path: path.into(), at_ms: 1, payload: json!({}) };
    for (path, expected) in
        [("/p/a", "0 Some(1)"), ("/p/a/b", "0 Some(1)"), ("/p/ab", "nothing None"), ("/p", "nothing None")]
    {
        assert_eq!(seen(&armed(vec![Selector::Path("/p/a".into())]), &[change(path)], 0), expected, "{path}");
    }
}

#[test]
fn the_message_that_began_the_turn_is_not_news() {
    let chat = Event {
        seq: 5,
        kind: "chat".into(),
        path: "/agents/a/chat/control/input".into(),
        at_ms: 1,
        payload: json!({}),
    };
    let mut armed = armed(vec![Selector::Chat]);
    armed.turn = 5;
    assert_eq!(seen(&armed, std::slice::from_ref(&chat), 0), "nothing None");
    armed.turn = 4;
    assert_eq!(seen(&armed, &[chat], 0), "0 Some(5)");
}
