use super::*;
use crate::host::overview::AgentOverview;
use crate::jobs::JobState;

pub fn job(id: &str) -> JobOverview {
    JobOverview {
        job_id: id.to_owned(),
        agent: "eve".into(),
        service: "terminal".into(),
        operation: "exec".into(),
        state: JobState::Running,
        principal: "agent eve".into(),
        created_at_ms: 1000,
        started_at_ms: Some(2000),
        ended_at_ms: None,
        error: None,
    }
}

pub fn seen(now_ms: u64, calls: u64, jobs: &[&str], approvals: &[&str]) -> TopSnapshot {
    let agent = AgentOverview {
        agent_id: "eve".into(),
        about: "a tester".into(),
        parent: None,
        state: "running".into(),
        model: "script:x".into(),
        spent: Default::default(),
        running: jobs.len(),
        queued: 0,
    };
    let host = HostOverview {
        pid: 7,
        mountpoint: Some("/ns".into()),
        started_at_ms: 0,
        now_ms,
        calls,
        agents: vec![agent],
        jobs: jobs.iter().map(|id| job(id)).collect(),
        more_jobs: 0,
    };
    let approval =
        |id: &&str| PendingApproval { id: (*id).to_owned(), agent: "eve".into(), summary: "make deploy".into() };
    TopSnapshot { host, approvals: approvals.iter().map(approval).collect(), lines: Vec::new() }
}

#[test]
fn a_job_is_cancelled_by_two_keys_and_the_chosen_one_stays_chosen() {
    let mut screen = TopScreen::default();
    assert_eq!((screen.press(KeyPress::Letter('c')), screen.footer().as_str()), (TopAction::None, "no job is chosen"));
    screen.update(seen(1000, 10, &["job-1", "job-2", "job-3"], &[]));
    screen.press(KeyPress::Down);
    // What was above it has ended.
    screen.update(seen(3000, 16, &["job-2", "job-3"], &[]));
    assert_eq!((screen.row(), screen.calls_per_second), (Some(0), 3.0));
    assert_eq!(screen.press(KeyPress::Letter('c')), TopAction::None);
    assert_eq!(screen.footer(), "cancel terminal.exec of eve? (y/n)");
    assert_eq!(screen.press(KeyPress::Letter('n')), TopAction::None);
    screen.press(KeyPress::Letter('c'));
    let path = PathBuf::from("/ns/agents/eve/jobs/job-2/control/cancel");
    let (text, said) = ("\n".to_owned(), "job-2 is cancelled".to_owned());
    assert_eq!(screen.press(KeyPress::Letter('y')), TopAction::Write { path, text, said });
    assert_eq!(screen.press(KeyPress::Quit), TopAction::Quit);
}

#[test]
fn approvals_come_to_the_front_and_are_answered_by_their_name() {
    let mut screen = TopScreen::default();
    screen.update(seen(1000, 0, &["job-1"], &[]));
    screen.update(seen(2000, 0, &["job-1"], &["ap-1", "ap-2"]));
    assert_eq!(screen.list, TopList::Approvals);
    screen.press(KeyPress::Down);
    screen.press(KeyPress::Letter('d'));
    assert_eq!(screen.footer(), "deny: eve make deploy? (y/n)");
    // The question stands even if the list changes meanwhile.
    screen.update(seen(3000, 0, &["job-1"], &["ap-2"]));
    let path = PathBuf::from("/ns/approvals/ap-2/decision");
    let (text, said) = ("deny: the operator said no\n".to_owned(), "ap-2 denied".to_owned());
    assert_eq!(screen.press(KeyPress::Letter('y')), TopAction::Write { path, text, said });
    screen.update(seen(4000, 0, &["job-1"], &[]));
    assert_eq!(screen.list, TopList::Jobs);
    screen.press(KeyPress::Letter('a'));
    assert_eq!(screen.footer(), "no approval is chosen; Tab goes to their list");
}

#[test]
fn moving_never_leaves_the_list() {
    let mut screen = TopScreen::default();
    for key in [KeyPress::Up, KeyPress::Down, KeyPress::Switch] {
        assert_eq!(screen.press(key), TopAction::None);
    }
    screen.update(seen(1, 0, &["job-1", "job-2"], &[]));
    for _ in 0..5 {
        screen.press(KeyPress::Down);
    }
    assert_eq!(screen.row(), Some(1));
    screen.update(seen(2, 0, &[], &[]));
    assert_eq!(screen.row(), None);
}
