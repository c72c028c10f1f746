use super::*;
use crate::state::events::Event;

fn audit(line: &str) -> String {
    LogLine::of_audit(line).map_or_else(|| "-".to_owned(), |line| line.text())
}

fn event(kind: &str, payload: Value) -> LogLine {
    let event = Event { seq: 1, kind: kind.into(), path: "/agents/eve/x".into(), at_ms: 0, payload };
    LogLine::of_event(PlacedEvent { place: 9, agent: "eve".into(), event })
}

#[test]
fn each_thing_is_one_readable_line() {
    let lines = [
        audit(r#"{"seq":1,"prev":"00","at_ms":0,"kind":"call","principal":"operator","agent":"eve","service":"memory","operation":"create","effect":"write","job":"job-1","arguments":{"sha256":"ab","bytes":2},"outcome":"done"}"#),
        audit(r#"{"seq":2,"prev":"00","at_ms":0,"kind":"call","principal":"agent eve","agent":"eve","service":"chat","operation":"turn","job":"job-2","outcome":"accepted"}"#),
        audit(r#"{"seq":3,"prev":"00","at_ms":0,"kind":"ended","agent":"eve","service":"terminal","operation":"exec","job":"job-3","outcome":"failed"}"#),
        audit(r#"{"seq":4,"prev":"00","at_ms":0,"kind":"denied","principal":"agent eve","pid":1,"action":"read","path":"/x\ny","reason":"no rule"}"#),
        audit(r#"{"seq":5,"prev":"00","at_ms":0,"kind":"model","payer":"eve","input":10,"output":2,"money":0.25}"#),
        audit(r#"{"seq":6,"prev":"00","at_ms":0,"kind":"promote","agent":"eve","view":"/projects/p/views/v","files":2}"#),
        audit(r#"{"seq":7,"prev":"00","at_ms":0,"kind":"start","pid":7}"#),
        event("signal", json!({"payload": "x".repeat(300)})).text(),
        event("chat", json!({"input": "hello\nthere", "job_id": "job-4"})).text(),
        event("job", json!({"job_id": "job-5", "state": "failed", "service": "search_code", "operation": "search", "error": {"message": "no"}})).text(),
    ];
    expect_test::expect![[r#"
        1970-01-01 00:00:00 eve        call     memory.create done job-1 by operator
        1970-01-01 00:00:00 eve        turn     begins job-2
        1970-01-01 00:00:00 eve        ended    terminal.exec failed job-3
        1970-01-01 00:00:00 eve        denied   read /x\ny: no rule
        1970-01-01 00:00:00 eve        model    10 tokens in, 2 out, 0.2500
        1970-01-01 00:00:00 eve        promote  view=/projects/p/views/v files=2
        1970-01-01 00:00:00 -          start    pid=7
        1970-01-01 00:00:00 eve        signal   /agents/eve/x {"payload":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        1970-01-01 00:00:00 eve        chat     chat "hello\nthere"
        1970-01-01 00:00:00 eve        job      search_code.search failed job-5: no"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!(audit("no line"), "-");
}

#[test]
fn the_end_of_a_job_is_known_from_the_line_and_from_the_event() {
    let ended = |line: &str| LogLine::of_audit(line).and_then(|line| line.ended_job().map(str::to_owned));
    assert_eq!(
        ended(r#"{"seq":1,"prev":"","at_ms":0,"kind":"ended","agent":"e","job":"job-1"}"#).as_deref(),
        Some("job-1")
    );
    assert_eq!(
        ended(r#"{"seq":1,"prev":"","at_ms":0,"kind":"call","agent":"e","job":"job-1","outcome":"accepted"}"#),
        None
    );
    assert_eq!(event("job", json!({"job_id": "job-1"})).ended_job(), Some("job-1"));
    assert_eq!(event("signal", json!({"job_id": "job-1"})).ended_job(), None);
}
