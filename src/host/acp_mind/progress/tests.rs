use super::*;

#[test]
fn the_words_after_the_last_call_are_the_reply() {
    let call = crate::jobs::Call {
        agent: "a".to_owned(),
        service: crate::jobs::TURN_SERVICE.to_owned(),
        operation: "turn".to_owned(),
        effect: crate::contract::Effect::Execute,
        idempotent: true,
        private: false,
        correlation_id: None,
        principal: crate::policy::Principal::Operator,
        arguments: json!({}),
        asks: false,
    };
    let job = Job::new("job-1".to_owned(), call, 1, &acheron_base::Clock::at(1));
    let mut progress = MindProgress::default();
    let call = |id: &str, status: &str| {
        let (id, status) = (id.to_owned(), status.to_owned());
        ReceivedUpdate::Call(ReceivedCall { id, status, title: "ls".to_owned(), ..ReceivedCall::default() })
    };
    for update in [
        ReceivedUpdate::Message("Let me look. ".to_owned()),
        call("1", "pending"),
        call("1", "completed"),
        call("2", "failed"),
        ReceivedUpdate::Thought("hm".to_owned()),
        ReceivedUpdate::Message("Two ".to_owned()),
        ReceivedUpdate::Message("files.".to_owned()),
    ] {
        progress.add(&update, &job);
    }
    assert_eq!(progress.reply(), "Two files.");
    let steps = job.steps().unwrap().after(0);
    let kinds: Vec<String> = String::from_utf8(steps.to_vec())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["step"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["text", "call", "outcome", "call", "outcome", "thought", "text", "text"]);
}
