//! Budgets of turns and agents, and the usage that counts.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::super::*;
use super::{World, call, reply, thinking};
use crate::agent::ask::OpenedModel;
use crate::agent::budget::BudgetLimits;
use crate::agent::runtime::{BudgetSource, Settings};
use crate::agent::wake;
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelRequest};
use crate::policy::PrincipalCaller;
use crate::spec::Wake;
use acheron_base::Clock;
use acheron_vfs::Caller;

fn list() -> String {
    call("file_list", json!({}))
}

fn rounds(limit: u64) -> BudgetLimits {
    BudgetLimits { rounds: Some(limit), ..BudgetLimits::default() }
}

async fn budgets(world: &World) -> Vec<Value> {
    let log = world.read("events/log.ndjson").await;
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["kind"] == "budget").map(|event| event["payload"].clone()).collect()
}

async fn signal(world: &World, name: &str) {
    let said = json!({"event_type": "user", "parameter": name}).to_string();
    assert_eq!(world.write(&Caller::operator(), "events/control/signal.json", &said).await, "");
}

/// Begins a turn and waits until it waits for the world.
async fn parked(world: &World) -> Arc<Job> {
    let message = ChatMessage { source: TurnSource::Chat, text: "go".into(), from: Principal::Operator };
    let job = world.chat.say(message).wait().await.unwrap();
    while job.now().progress.is_none_or(|progress| progress["waiting"] != true) {
        tokio::task::yield_now().await;
    }
    job
}

fn wait_for(name: &str) -> String {
    call("file_read", json!({"path": format!("agents/self/events/sources/user/{name}.json")}))
}

#[tokio::test]
async fn a_soft_limit_is_an_event_and_a_hard_one_ends_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..5).map(|_| list()).collect();
    let world = World::new(dir.path(), Settings { limits: rounds(5), ..thinking(&lines) });
    assert_eq!(world.say("go").await, "the turn has used up its rounds\n");
    let events = budgets(&world).await;
    assert_eq!(events.len(), 1, "told once, although it held for two rounds");
    assert_eq!((&events[0]["budget"], &events[0]["of"]), (&json!("rounds"), &json!("turn")));
    assert_eq!((&events[0]["limits"]["rounds"], &events[0]["spent"]["rounds"]), (&json!(5), &json!(4)));
    let last = world.chat.agent_runtime().history.last().unwrap();
    assert_eq!(last.error.unwrap().code, acheron_base::Code::BudgetExceeded);
}

#[tokio::test]
async fn what_an_agent_may_use_up_bounds_all_its_turns_together() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [list(), reply("one"), list(), list(), reply("two"), reply("three")];
    let world = World::new(dir.path(), Settings { total: rounds(5), ..thinking(&lines) });
    assert_eq!(world.say("a").await, "one\n");
    assert!(budgets(&world).await.is_empty());
    assert_eq!(world.say("b").await, "two\n");
    let events = budgets(&world).await;
    assert_eq!((events.len(), &events[0]["of"]), (1, &json!("agent")));
    let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
    assert_eq!((&status["limits"]["agent"]["rounds"], &status["spent"]["rounds"]), (&json!(5), &json!(5)));
    let over = "ada has used up its rounds; raise its budget with agents.update\n";
    assert_eq!(world.say("c").await, over);
    // It outlives the host, and a larger one counts from the next turn on.
    drop(world);
    let world = World::new(dir.path(), Settings { total: rounds(5), ..thinking(&lines[5..]) });
    assert_eq!(world.say("d").await, over);
    world.chat.agent_runtime().change(|settings| settings.total = rounds(6));
    assert_eq!(world.say("e").await, "three\n");
    let in_mountspec = |settings: &mut Settings| settings.budget_source = BudgetSource::Mountspec;
    world.chat.agent_runtime().change(in_mountspec);
    let over =
        "ada has used up its rounds; raise agents.ada.budget in the mountspec, or its budget with agents.update\n";
    assert_eq!(world.say("f").await, over);
}

#[tokio::test]
async fn time_spent_waiting_does_not_use_up_the_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::at(1_000);
    let limits = BudgetLimits { seconds: Some(10), ..BudgetLimits::default() };
    let settings = Settings { limits, ..thinking(&[wait_for("go"), reply("done")]) };
    let world = World::at(dir.path(), settings, clock.clone());
    let job = parked(&world).await;
    clock.advance(3_600_000);
    signal(&world, "go").await;
    assert_eq!(world.read(&format!("jobs/{}/result.txt", job.id)).await, "done\n");
    assert_eq!(world.chat.spent().ms, 0);
}

/// Thinks for eleven seconds.
struct Slow(Clock);

#[async_trait]
impl Model for Slow {
    fn name(&self) -> String {
        "slow".into()
    }

    async fn answer(&self, _: &ModelRequest, _: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        self.0.advance(11_000);
        let text = r#"{"tool_calls":[{"name":"file_list","arguments":{}}]}"#.to_owned();
        Ok(ModelAnswer { text, ..ModelAnswer::default() })
    }
}

#[tokio::test]
async fn time_spent_thinking_does() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::at(1_000);
    let limits = BudgetLimits { seconds: Some(10), ..BudgetLimits::default() };
    let settings =
        Settings { limits, model: Some(OpenedModel::new(Arc::new(Slow(clock.clone())))), ..Settings::default() };
    let world = World::at(dir.path(), settings, clock);
    assert_eq!(world.say("go").await, "the turn has used up its seconds\n");
    assert_eq!(world.chat.spent().ms, 11_000);
}

#[tokio::test]
async fn a_turn_that_was_cut_off_has_cost_what_it_cost() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[list(), wait_for("never")]));
    let job = parked(&world).await;
    assert_eq!(world.chat.spent().rounds, 2, "the turn under way counts");
    job.cancel.cancel();
    world.chat.wait_idle().await;
    let last = world.chat.agent_runtime().history.last().unwrap();
    assert_eq!((last.spent.rounds, last.total.rounds, world.chat.spent().rounds), (2, 2, 2));
}

#[tokio::test]
async fn an_agent_that_has_nothing_left_is_not_woken() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), Settings { total: rounds(1), ..thinking(&[reply("awake"), reply("again")]) });
    let rules = [Wake { on: "/agents/self/events/sources/user/go.json".into(), say: "look".into(), call: None }];
    let _wake_rules = wake::set(&world.chat, &rules).unwrap();
    signal(&world, "go").await;
    while world.chat.agent_runtime().history.last().is_none() || !world.chat.idle() {
        tokio::task::yield_now().await;
    }
    signal(&world, "go").await;
    while !world.read("events/log.ndjson").await.contains("not_woken_by") {
        tokio::task::yield_now().await;
    }
    let last = world.chat.agent_runtime().history.last().unwrap();
    assert_eq!((last.seq, last.reply.as_deref()), (1, Some("awake")));
}

#[tokio::test]
async fn a_change_is_for_the_next_turn() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[wait_for("go"), list(), reply("as it was")]));
    let job = parked(&world).await;
    world
        .chat
        .agent_runtime()
        .change(|settings| *settings = Settings { limits: rounds(1), ..thinking(&[reply("changed")]) });
    signal(&world, "go").await;
    assert_eq!(world.read(&format!("jobs/{}/result.txt", job.id)).await, "as it was\n");
    assert_eq!(world.say("again").await, "changed\n");
}
