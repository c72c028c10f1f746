use serde_json::{Value, json};

use super::*;
use crate::events::commit;
use crate::state::TestStore;
use acheron_approvals::{AskingRule, GivenAnswer, Request, State, SubjectFacts};
use acheron_base::{Code, Random};

fn request(agent: &str, name: &str) -> Request {
    let subject = Subject::Invoke {
        path: format!("/agents/{agent}/memory/control/create.json"),
        service: "memory".to_owned(),
        operation: "create".to_owned(),
        effect: "write".to_owned(),
        arguments: json!({ "name": name }),
        runs: Value::Null,
    };
    let rule = AskingRule { hash: "r".to_owned(), rule: json!({"ask": ["invoke"]}), always: true };
    Request { agent: agent.to_owned(), subject, facts: SubjectFacts::default(), rule, stated_reason: None }
}

fn answer(text: &str) -> GivenAnswer {
    GivenAnswer::parse(text).unwrap()
}

/// What a run of the host has; the ids of two runs differ.
fn opened(store: &Store, clock: &Clock, run: u64) -> Arc<Approvals> {
    let event_logs = Arc::new(EventLogs::new(store.clone(), clock.clone()));
    let ids = Ids::new(clock.clone(), Random::seeded(run));
    Approvals::new(store.clone(), event_logs, ids, tokio::runtime::Handle::current())
}

struct World {
    approvals: Arc<Approvals>,
    clock: Clock,
    _store: TestStore,
}

fn world() -> World {
    let (store, clock) = (TestStore::new(), Clock::at(1_700_000_000_000));
    World { approvals: opened(&store, &clock, 1), clock, _store: store }
}

impl World {
    async fn asked(&self, agent: &str, name: &str, job: &str) -> Arc<Approval> {
        let ticket = self.approvals.ask(request(agent, name), false).unwrap();
        let job = job.to_owned();
        commit(&self.approvals.store, move |commit| ticket.keep(commit, &job, "/x")).await.unwrap()
    }

    async fn decide(&self, approval: &Approval, text: &str) -> Result<()> {
        self.approvals.decide(&approval.id, answer(text), "operator")?.await
    }
}

#[tokio::test]
async fn of_many_answers_at_once_exactly_one_counts() {
    let world = world();
    let approval = world.asked("ada", "a", "job-1").await;
    let answers = ["allow", "deny", "allow always", "allow for 10m", "deny: no"];
    let all = answers.map(|text| world.approvals.decide(&approval.id, answer(text), "operator").unwrap());
    let (mut counted, mut refused) = (0, 0);
    for given in all {
        match given.await {
            Ok(()) => counted += 1,
            Err(error) => {
                assert_eq!(error.code, Code::AlreadyExists);
                refused += 1;
            }
        }
    }
    assert_eq!((counted, refused), (1, 4));
    assert_eq!(approval.status().state, State::Allowed, "the first of them");
    assert!(world.approvals.exceptions.read().is_empty(), "nothing is left of the others");
}

#[tokio::test]
async fn a_request_that_could_not_be_stored_leaves_nothing_and_room_for_others() {
    let world = world();
    drop(world.approvals.ask(request("ada", "a"), false).unwrap());
    let tickets: Vec<_> = (0..8).map(|n| world.approvals.ask(request("ada", &n.to_string()), false).unwrap()).collect();
    assert_eq!(world.approvals.ask(request("ada", "8"), false).err().map(|error| error.code), Some(Code::Busy));
    assert!(world.approvals.ask(request("bob", "8"), false).is_ok(), "another agent has room");
    assert!(world.approvals.all().is_empty(), "none is shown before it is stored");
    drop(tickets);
    assert!(world.approvals.ask(request("ada", "8"), false).is_ok());
}

#[tokio::test]
async fn an_answer_after_the_time_counts_for_nothing_and_time_can_be_over_after_a_restart() {
    let world = world();
    let approval = world.asked("ada", "a", "job-1").await;
    world.clock.advance(EXPIRES_MS);
    assert_eq!(world.decide(&approval, "allow").await.unwrap_err().code, Code::ApprovalExpired);
    let later = opened(&world.approvals.store, &world.clock, 2);
    later.restore().unwrap();
    let again = later.get(&approval.id).unwrap();
    assert_eq!(again.settled().await.state, State::Expired);
    assert!(again.request == approval.request);
}

#[tokio::test]
async fn an_exception_is_there_after_a_restart_until_it_is_revoked() {
    let world = world();
    let approval = world.asked("ada", "a", "job-1").await;
    world.decide(&approval, "allow always").await.unwrap();
    let lets =
        |approvals: &Approvals, agent: &str, rule: &str| approvals.lets(agent, rule, &request(agent, "b").subject);
    assert!(lets(&world.approvals, "ada", "r"));
    assert!(!lets(&world.approvals, "ada", "changed") && !lets(&world.approvals, "bob", "r"));
    let later = opened(&world.approvals.store, &world.clock, 2);
    later.restore().unwrap();
    assert!(lets(&later, "ada", "r"));
    let id = later.exceptions.read()[0].id.clone();
    later.revoke("ada", vec![id], "operator").await.unwrap();
    assert!(!lets(&later, "ada", "r"));
}

#[tokio::test]
async fn an_agent_that_asks_and_gives_up_again_and_again_fills_nothing() {
    let world = world();
    let kept = world.asked("ada", "kept", "job-1").await;
    for number in 0..40 {
        let approval = world.asked("ada", &number.to_string(), "job-2").await;
        world.approvals.leave(&approval, "job-2", "cancelled").await.unwrap();
    }
    let all = world.approvals.all();
    assert_eq!(all.len(), 17, "what waits, and the last that were given up");
    assert!(all.iter().any(|approval| approval.id == kept.id));
    assert_eq!(world.approvals.store.look(rows::all).unwrap().len(), 1);
}
