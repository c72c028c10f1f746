use super::*;
use crate::{Chain, Record, digest};

fn shown(records: &[Record]) -> Vec<Option<String>> {
    let mut chain = Chain::default();
    let lines: Vec<String> = records.iter().map(|record| chain.append(record)).collect();
    lines.iter().map(|line| timeline_line(line).map(|it| format!("{} {} {}", it.agent, it.kind, it.shown))).collect()
}

#[test]
fn a_line_is_about_the_agent_that_it_names_that_pays_or_that_asks() {
    let call = Record::new(5, "call").with("principal", "operator").with("agent", "eve").with("job", "job-1");
    let lines = shown(&[
        call.with("arguments", digest(b"secret")).with("outcome", "done"),
        Record::new(6, "denied").with("principal", "agent eve").with("path", "/x"),
        Record::new(7, "model").with("payer", "eve").with("money", 0.5),
        Record::new(8, "promote").with("agent", "eve").with("view", "/projects/p/views/v"),
        Record::new(9, "start").with("pid", 7),
        Record::new(9, "denied").with("principal", "operator"),
    ]);
    let text: String = lines.iter().map(|line| format!("{}\n", line.as_deref().unwrap_or("-"))).collect();
    assert_eq!(
        text,
        r#"eve call {"seq":1,"at_ms":5,"kind":"call","principal":"operator","agent":"eve","job":"job-1","outcome":"done","link":"/agents/eve/jobs/job-1"}
eve denied {"seq":2,"at_ms":6,"kind":"denied","principal":"agent eve","path":"/x","agent":"eve"}
eve model {"seq":3,"at_ms":7,"kind":"model","payer":"eve","money":0.5,"agent":"eve"}
eve promote {"seq":4,"at_ms":8,"kind":"promote","agent":"eve","view":"/projects/p/views/v"}
-
-
"#
    );
}

#[test]
fn what_an_agent_writes_does_not_become_a_field() {
    let forged = r#"x","agent":"bob","job":"job-9"#;
    let lines = shown(&[Record::new(1, "denied").with("path", forged).with("principal", "agent eve")]);
    assert!(lines[0].as_deref().is_some_and(|line| line.starts_with("eve ") && !line.contains("link")), "{lines:?}");
    for broken in
        ["", "{}", r#"{"seq":1,"#, r#"{"seq":1,"prev":"x","at_ms":1}"#, r#"{"seq":x,"prev":"","kind":"a","agent":"e"}"#]
    {
        assert_eq!(timeline_line(broken), None, "{broken}");
    }
}
