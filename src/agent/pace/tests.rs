use super::*;

#[test]
fn the_one_that_needs_a_person_most_comes_first() {
    let pace = PaceView { median_ms: Some(2000), last_at_ms: Some(10_000), ..PaceView::default() };
    let working = AgentFacts { running: true, pace, ..AgentFacts::default() };
    for (facts, now, expected) in [
        (AgentFacts { approvals: 1, ..working }, 10_000, Attention::Approval),
        (working, 14_000, Attention::Working),
        (working, 14_001, Attention::Stalled),
        (AgentFacts { pace: PaceView { waiting: true, ..pace }, ..working }, 99_000, Attention::Working),
        (AgentFacts { pace: PaceView { median_ms: None, ..pace }, ..working }, 99_000, Attention::Working),
        (AgentFacts { queued: 1, ..AgentFacts::default() }, 0, Attention::Working),
        (AgentFacts { queued: 1, paused: true, ..AgentFacts::default() }, 0, Attention::Blocked),
        (AgentFacts { failed: Some(true), ..AgentFacts::default() }, 0, Attention::Blocked),
        (AgentFacts { failed: Some(false), ..AgentFacts::default() }, 0, Attention::Done),
        (AgentFacts::default(), 0, Attention::Idle),
    ] {
        assert_eq!(attention(&facts, now), expected, "{facts:?} at {now}");
    }
    let order = ["approval", "blocked", "stalled", "working", "idle", "done"];
    let mut all = [
        Attention::Done,
        Attention::Idle,
        Attention::Working,
        Attention::Stalled,
        Attention::Blocked,
        Attention::Approval,
    ];
    all.sort();
    assert_eq!(all.map(Attention::name), order);
}

#[test]
fn the_median_is_that_of_the_last_steps() {
    let pace = Pace::default();
    pace.begin(1);
    pace.step(5, 6);
    pace.step(7, 13);
    assert_eq!(pace.view(), PaceView { median_ms: None, last_at_ms: Some(13), ..PaceView::default() });
    pace.step(90, 103);
    pace.set_context(12);
    pace.wait(true, 110);
    assert_eq!(pace.view(), PaceView { median_ms: Some(7), last_at_ms: Some(110), waiting: true, context: Some(12) });
    for _ in 0..STEPS {
        pace.step(1, 200);
    }
    assert_eq!(pace.view().median_ms, Some(1));
    // However short its steps are, a second is no stall.
    assert!(!pace.view().stalls(1200) && pace.view().stalls(1201));
}
