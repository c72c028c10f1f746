//! The loop, told as replies: each row is a script and how the run went.

use serde_json::json;

use super::super::set::PhaseSet;
use super::super::set::tests::source;
use super::{COMMANDS_PER_PHASE, COMMANDS_PER_RUN, LARGEST_STATE, PhaseLoop, Stop};

fn set(names: &[(&str, Option<u32>)]) -> PhaseSet {
    PhaseSet::new("s", names.iter().map(|(name, visits)| source(name, "", &[], *visits)).collect()).unwrap()
}

/// Plays the replies and tells the phases visited, the stop reason and its sentence.
fn play(mut run: PhaseLoop, replies: &[&str]) -> (PhaseLoop, String) {
    let mut visited = Vec::new();
    let mut replies = replies.iter().cycle();
    while let Some(phase) = run.phase() {
        visited.push(phase.phase_id.clone());
        run.read_reply(replies.next().unwrap());
        run.advance();
    }
    let (stop, why) = run.stopped().unwrap();
    let told = format!("{}: {}: {why}", visited.join(" "), json!(stop).as_str().unwrap());
    (run, told)
}

fn check(strict: bool, replies: &[&str], expected: &str) {
    let run = PhaseLoop::begin(set(&[("00-a", None), ("01-b", None), ("02-c", None)]), strict, None).unwrap();
    assert_eq!(play(run, replies).1, expected);
}

#[test]
fn without_phases_nothing_is_asked() {
    let fault = PhaseLoop::begin(set(&[]), false, None).unwrap_err();
    assert_eq!(fault.message, "there are no phases in the set s");
}

#[test]
fn a_run_goes_where_the_payload_says() {
    check(
        false,
        &[r#"{"next_phase":"c"}"#, r#"{"next_phase":"B"}"#, "{}"],
        "a c b: complete: no next phase was asked for",
    );
}

#[test]
fn a_run_is_complete_when_no_phase_is_asked_for() {
    for reply in ["{}", r#"{"next_phase":null}"#, r#"{"next_phase":""}"#] {
        check(false, &[reply], "a: complete: no next phase was asked for");
    }
}

#[test]
fn a_reply_that_the_model_could_not_end_is_told_as_cut() {
    let cut = |reply: &str| {
        let mut run = PhaseLoop::begin(set(&[("00-a", None), ("01-b", None)]), false, None).unwrap();
        run.read_reply(reply);
        run.was_cut();
        run.advance();
        let diagnostics = run.entries[0].diagnostics.clone();
        assert_eq!(diagnostics.last().unwrap().message, "the reply was cut at the token limit of the model", "{reply}");
        run.stopped().map(|(stop, _)| stop)
    };
    for reply in
        ["It began", "", "<think>long", r#"{"next_phase":"b""#, r#"{"next_phase":null,"narrative":"x"} and th"#]
    {
        assert_eq!(cut(reply), Some(Stop::Cut), "{reply}");
    }
    assert_eq!(cut(r#"{"next_phase":"b"} and th"#), None, "what it has said is enough to go on");
}

#[test]
fn the_reason_tells_why_there_was_no_payload() {
    for (reply, expected) in [
        ("", "empty: the reply is empty"),
        ("<think>only thoughts</think>\n", "empty: the reply is empty"),
        ("plain text", "plain_text: the reply is plain text"),
        ("words in {braces} [1]", "plain_text: the reply is plain text"),
        (r#"{"next_phase":"b","x":{"a":1}"#, "cut: the reply ends in the middle of an object"),
        ("```json\n{\"next_phase\":\"b\",", "cut: the reply ends in the middle of an object"),
        ("<think>never ends", "cut: the reply ends in the middle of a thought"),
        (r#"{"next_phase":"b",}"#, "no_payload: the object is no JSON: trailing comma at line 1 column 19"),
        (r#"[{"next_phase":"b"}]"#, "no_payload: the reply has no object"),
        (r#"⟐CMD {"action":"x"}"#, "no_payload: the reply has commands and no payload"),
    ] {
        check(false, &[reply], &format!("a: {expected}"));
    }
}

/// The conditions of a payload that all hold end the run; one that does not hold is not passed over in silence.
#[test]
fn termination_conditions_are_obeyed() {
    let hold = r#"{"next_phase":"b","termination_conditions":{"narrative_ready":true}}"#;
    check(false, &[hold], "a: complete: the termination conditions hold: narrative_ready");
    let some = r#"{"next_phase":"b","termination_conditions":{"ready":true,"validated":false}}"#;
    check(false, &[some, "{}"], "a b: complete: no next phase was asked for");
    let open = r#"{"next_phase":null,"termination_conditions":{"ready":true,"validated":false}}"#;
    check(false, &[open], "a: unfinished: no next phase was asked for, but validated does not hold");
    let listed = r#"{"next_phase":"b","context_state":{"ready":true},"termination_conditions":["ready"]}"#;
    check(false, &[listed], "a: complete: the termination conditions hold: ready");
    let words = r#"{"next_phase":"b","termination_conditions":["all is said"]}"#;
    check(false, &[words, "{}"], "a b: complete: no next phase was asked for");
}

#[test]
fn an_unknown_phase_ends_it() {
    check(false, &[r#"{"next_phase":"nowhere"}"#], "a: unknown_phase: there is no phase `nowhere`");
    check(false, &[r#"{"next_phase":["b"]}"#], r#"a: unknown_phase: next_phase is no name: ["b"]"#);
    check(false, &[r#"{"next_phase":{"b":1}}"#], r#"a: unknown_phase: next_phase is no name: {"b":1}"#);
}

#[test]
fn a_phase_that_was_visited_ends_it() {
    check(
        false,
        &[r#"{"next_phase":"b"}"#, r#"{"next_phase":"a"}"#],
        "a b: cycle: phase a was visited 1 times already",
    );
    check(false, &[r#"{"next_phase":"a"}"#], "a: cycle: phase a was visited 1 times already");
}

#[test]
fn a_phase_may_declare_more_visits_up_to_three_rounds_in_all() {
    let ping = [r#"{"next_phase":"b"}"#, r#"{"next_phase":"a"}"#];
    let both = || set(&[("a", Some(99)), ("b", Some(99))]);
    let (_, told) = play(PhaseLoop::begin(both(), false, None).unwrap(), &ping);
    assert_eq!(told, "a b a b a b: limit: the limit of 6 iterations is reached");
    let (_, told) = play(PhaseLoop::begin(both(), false, Some(3)).unwrap(), &ping);
    assert_eq!(told, "a b a: limit: the limit of 3 iterations is reached");
    let (_, told) = play(PhaseLoop::begin(both(), false, Some(1000)).unwrap(), &ping);
    assert_eq!(told, "a b a b a b: limit: the limit of 6 iterations is reached");
    let (_, told) = play(PhaseLoop::begin(set(&[("a", Some(2)), ("b", None)]), false, None).unwrap(), &ping);
    assert_eq!(told, "a b a: cycle: phase b was visited 1 times already");
}

#[test]
fn routes_bind_a_strict_run_and_warn_a_lenient_one() {
    let reply = r#"{"next_phase":"c","valid_routes":["B"]}"#;
    check(true, &[reply], "a: route_refused: `c` is not among the valid routes of the payload");
    check(false, &[reply, "{}"], "a c: complete: no next phase was asked for");
    check(true, &[r#"{"next_phase":"b","valid_routes":["B"]}"#, "{}"], "a b: complete: no next phase was asked for");
    let mut run = PhaseLoop::begin(set(&[("a", None), ("b", None), ("c", None)]), false, None).unwrap();
    run.read_reply(reply);
    assert_eq!(run.advance().unwrap(), "`c` is not among the valid routes of the payload");
}

#[test]
fn an_entry_has_a_payload_only_if_there_was_one() {
    let run = PhaseLoop::begin(set(&[("phase1", None), ("phase2", None)]), false, None).unwrap();
    let (run, _) = play(run, &[r#"{"phase_id":"phase1","next_phase":"phase2"}"#, "bye"]);
    assert_eq!(
        json!(run.entries),
        json!([
            {"phase_id":"phase1","response":"{\"phase_id\":\"phase1\",\"next_phase\":\"phase2\"}",
             "payload":{"phase_id":"phase1","next_phase":"phase2"},"next_phase":"phase2"},
            {"phase_id":"phase2","response":"bye"}
        ])
    );
}

#[test]
fn commands_beyond_the_cap_are_refused() {
    let mut run = PhaseLoop::begin(set(&[("a", Some(9))]), false, None).unwrap();
    let many: String = (0..40).map(|n| format!("⟐CMD {{\"action\":\"x\",\"n\":{n}}}\n")).collect();
    let heard = run.read_reply(&many);
    assert_eq!((heard.commands.len(), heard.refused.len()), (COMMANDS_PER_PHASE, 8));
    let counts: Vec<usize> = (0..5).map(|_| run.read_reply(&many).commands.len()).collect();
    assert_eq!(counts.iter().sum::<usize>() + COMMANDS_PER_PHASE, COMMANDS_PER_RUN);
}

#[test]
fn the_context_state_is_carried_and_merged() {
    let mut run = PhaseLoop::begin(set(&[("a", Some(9))]), false, None).unwrap();
    run.read_reply(r#"{"context_state":{"depth":1,"seen":["A"]}}"#);
    run.read_reply(r#"{"context_state":{"depth":2}}"#);
    assert_eq!(json!(run.state), json!({"depth":2,"seen":["A"]}));
    run.read_reply(r#"{"context_state":7}"#);
    run.read_reply(&json!({"context_state":{"big":"x".repeat(LARGEST_STATE)}}).to_string());
    assert_eq!(json!(run.state), json!({"depth":2,"seen":["A"]}));
    assert!(run.entries[2].diagnostics[0].message.contains("not an object"));
    assert!(run.entries[3].diagnostics[0].message.contains("over 4096"));
}

#[test]
fn the_last_phase_of_a_strict_run_may_not_change_symbols() {
    for (strict, expected) in [(true, [true, false]), (false, [true, true])] {
        let mut run = PhaseLoop::begin(set(&[("a", None), ("b", None)]), strict, None).unwrap();
        let first = run.may_mutate();
        run.read_reply(r#"{"next_phase":"b"}"#);
        run.advance();
        assert_eq!([first, run.may_mutate()], expected);
    }
}

#[test]
fn the_first_reason_to_stop_stays() {
    let mut run = PhaseLoop::begin(set(&[("a", None)]), false, None).unwrap();
    run.stop(Stop::Cancelled, "by hand");
    run.stop(Stop::Limit, "later");
    assert_eq!(run.stopped(), Some((Stop::Cancelled, "by hand")));
    assert!(run.phase().is_none());
}

proptest::proptest! {
    #[test]
    fn any_replies_end(replies in proptest::collection::vec("\\{\"next_phase\":\"[abc]\"\\}|[ab]{0,3}", 1..4)) {
        let run = PhaseLoop::begin(set(&[("a", Some(50)), ("b", Some(50)), ("c", None)]), false, None).unwrap();
        let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
        let (run, _) = play(run, &replies);
        proptest::prop_assert!(run.entries.len() <= 9);
    }
}
