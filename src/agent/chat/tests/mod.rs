//! Conversations without a mount: what is written to the files of an agent, and what is read.

mod budget;
mod cut_off;
mod deviations;
mod ended;
mod native;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::*;
use crate::agent::ask::OpenedModel;
use crate::agent::budget::BudgetLimits;
use crate::agent::ledger::Ledger;
use crate::agent::mail::NoMail;
use crate::agent::runtime::{AgentState, Settings};
use crate::agent::transcript::TurnStore;
use crate::agent::wake;
use crate::contract::Operation;
use crate::events;
use crate::model::Prices;
use crate::model::script::Script;
use crate::policy::PrincipalCaller;
use crate::service::test_access::AllowAll;
use crate::service::test_context::test_context;
use crate::service::{Cx, Service, ServiceContext, ServiceInstance, directory, typed};
use crate::spec::Wake;
use crate::state::TestStore;
use acheron_base::{Clock, ConfinedDir};
use acheron_vfs::{Caller, Listing, Node, Open, Tree};

/// A service with an effect that can be counted.
#[derive(Clone, Default)]
struct Counter {
    count: Arc<AtomicUsize>,
    reached: Arc<Notify>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Command {
    /// Counts one.
    Count {},
    /// Never ends.
    Hang {},
}

#[derive(Serialize, JsonSchema)]
struct Counted {
    count: usize,
}

#[async_trait]
impl Service for Counter {
    const NAME: &'static str = "counter";
    const ABOUT: &'static str = "Counts.";
    type Command = Command;
    type Output = Counted;

    fn operations() -> Vec<Operation> {
        vec![Operation::execute("count"), Operation::execute("hang")]
    }

    async fn invoke(&self, _: &Cx, command: Command) -> Result<Counted> {
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.reached.notify_one();
        match command {
            Command::Count {} => Ok(Counted { count }),
            Command::Hang {} => std::future::pending().await,
        }
    }
}

/// A host with one agent, `ada`, whose state is in a directory.
pub(super) struct World {
    pub tree: Tree,
    pub chat: Chat,
    pub context: Arc<ServiceContext>,
    counter: Counter,
    store: Arc<TestStore>,
}

impl World {
    pub fn new(dir: &std::path::Path, settings: Settings) -> World {
        World::at(dir, settings, Clock::real())
    }

    pub fn at(dir: &std::path::Path, settings: Settings, clock: Clock) -> World {
        World::with(dir, settings, clock, Arc::new(TestStore::new()))
    }

    /// With the state that an earlier run of the host left.
    fn with(dir: &std::path::Path, settings: Settings, clock: Clock, store: Arc<TestStore>) -> World {
        let context = test_context(&store, clock, Arc::new(AllowAll));
        let (jobs, event_logs) = (context.jobs.clone(), context.event_logs.clone());
        let place = Arc::new(ConfinedDir::open(dir).unwrap());
        let (core, remember) = (
            Arc::new(|id: &str, _: crate::model::ModelProtocol| format!("You are {id}.")),
            Arc::new(|| -> super::super::runtime::Remembering { Box::pin(async { Vec::new() }) }),
        );
        let ledger = Ledger::open((**store).clone(), context.clock.clone()).unwrap();
        let state =
            AgentState { dir: place, turns: TurnStore::new((**store).clone(), "ada"), ledger, mail: Arc::new(NoMail) };
        let agent_runtime = AgentRuntime::open("ada", context.clone(), state, core, remember, settings).unwrap();
        let chat = Chat::new(Arc::new(agent_runtime), Arc::new(CallQueue::new(64, 64)));
        let counter = Counter::default();
        let desk = ServiceInstance::of(&context, "ada", typed(counter.clone()).unwrap());
        let event_log = event_logs.of("ada").unwrap();
        let reach = Arc::new(|_: &Caller, _: &str| Err(Error::forbidden("nobody else is here")));
        let ada = Listing::default()
            .dir("chat", chat.directory())
            .dir("thoughts", chat.agent_runtime().thoughts.directory())
            .dir("counter", directory(&desk))
            .dir("events", events::files::directory(&event_log, &jobs, reach, Arc::new(|_: &Caller, _: &str| Ok(()))))
            .with("jobs", Node::dir(jobs::files::directory(&jobs, "ada")));
        struct This;
        impl acheron_vfs::Link for This {
            fn target(&self, _: &Caller) -> Result<String> {
                Ok("ada".to_owned())
            }
        }
        let agents = Listing::default().dir("ada", ada).link("self", This);
        let tree = Tree::new(Arc::new(Listing::default().dir("agents", agents)), Arc::new(AllowAll));
        context.set_tree(&tree);
        World { tree, chat, context, counter, store }
    }

    pub async fn read(&self, path: &str) -> String {
        let (operator, path) = (Caller::operator(), format!("agents/ada/{path}"));
        let read = self.tree.read(&operator, &path);
        match tokio::time::timeout(Duration::from_secs(60), read).await.expect("it answers") {
            Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    pub async fn write(&self, who: &Caller, path: &str, text: &str) -> String {
        match self.tree.write(who, &format!("agents/ada/{path}"), text.as_bytes()).await {
            Ok(()) => String::new(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    /// How often the counter was called.
    pub fn counted(&self) -> usize {
        self.counter.count.load(Ordering::SeqCst)
    }

    pub async fn say(&self, text: &str) -> String {
        self.write(&Caller::operator(), "chat/control/input", text).await + &self.read("chat/latest.txt").await
    }
}

pub(super) fn call(name: &str, arguments: Value) -> String {
    json!({"answer": {"tool_calls": [{"name": name, "arguments": arguments}]}}).to_string()
}

pub(super) fn write(path: &str, content: &str) -> String {
    call("file_write", json!({"path": format!("agents/self/{path}"), "content": content}))
}

pub(super) fn reply(text: &str) -> String {
    write("chat/control/reply", text)
}

pub(super) fn thinking(lines: &[String]) -> Settings {
    let script = Arc::new(Script::read("test", &lines.join("\n")).unwrap());
    Settings { model: Some(OpenedModel::new(script)), ..Settings::default() }
}

#[tokio::test]
async fn a_message_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[reply("hello"), reply("again")]));
    assert_eq!(world.read("chat/latest.txt").await, "");
    assert_eq!(world.say("hi\n").await, "hello\n");
    assert_eq!(world.say("hi").await, "again\n");
    assert_eq!(world.read("jobs/last/result.txt").await, "again\n");
    let history = world.read("chat/history.ndjson").await;
    let lines: Vec<Value> = history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["input"], &lines[0]["reply"], &lines[1]["seq"]), (&json!("hi"), &json!("hello"), &json!(2)));
    assert_eq!(world.say(" \n").await, "! invalid_payload: the message is empty\nagain\n");
    let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
    assert_eq!((&status["model"], &status["spent"]["rounds"]), (&json!("script:test"), &json!(2)));
    assert!(world.read("thoughts/history.ndjson").await.contains(r#""round":1,"source":"text""#));
}

#[tokio::test]
async fn a_handle_hears_the_reply_to_its_own_message() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[reply("one"), reply("two"), reply("three")]));
    let operator = Caller::operator();
    let ask = |text: &'static str| world.tree.ask(&operator, "agents/ada/chat/control/input", text.as_bytes());
    let (a, b, c) = tokio::join!(ask("a"), ask("b"), ask("c"));
    assert_eq!((&a.unwrap()[..], &b.unwrap()[..], &c.unwrap()[..]), (&b"one\n"[..], &b"two\n"[..], &b"three\n"[..]));
}

#[tokio::test]
async fn only_the_agent_replies_and_only_others_speak_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[]));
    let ada = Caller::agent("ada");
    let refused = [
        world.write(&Caller::operator(), "chat/control/reply", "x").await,
        world.write(&ada, "chat/control/input", "x").await,
        world.write(&ada, "chat/control/reply", "x").await,
        world.write(&Caller::agent("bob"), "chat/control/progress", "x").await,
    ];
    expect![[r#"
        ! forbidden: only ada itself may write its reply; write to control/input instead
        ! forbidden: input takes messages from others; write your answer to control/reply
        ! conflict: ada has no running turn that this could belong to
        ! forbidden: only ada itself may write its progress; write to control/input instead
    "#]]
    .assert_eq(&refused.concat());
    assert!(world.read("chat/status.json").await.contains("only ada itself may write its progress"));
}

#[tokio::test]
async fn a_turn_works_waits_and_says_how_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &str| call("file_read", json!({"path": path}));
    let after = json!({"when": r#""job_id":"(job-[^"]+)""#, "answer": {"tool_calls": [
        {"name": "file_read", "arguments": {"path": "agents/self/jobs/$1/result.json"}}]}});
    let lines = [
        write("chat/control/progress", "working"),
        write("counter/control/count.json", "{}"),
        after.to_string(),
        read("agents/self/events/sources/user/go.json"),
        reply("done"),
    ];
    let world = World::new(dir.path(), thinking(&lines));
    world.write(&Caller::operator(), "chat/control/input", "go").await;
    // The turn parks on the signal, and says so.
    let job = world.read("jobs/last/progress.json").await;
    let job = serde_json::from_str::<Value>(&job).unwrap()["job_id"].as_str().unwrap().to_owned();
    let progress = loop {
        tokio::task::yield_now().await;
        let progress = world.read(&format!("jobs/{job}/progress.json")).await;
        let progress: Value = serde_json::from_str(&progress).unwrap();
        let path = "agents/self/events/sources/user/go.json"; // it waits for its own call, too
        if progress["progress"]["waiting"] == true && progress["progress"]["path"] == path {
            break progress;
        }
    };
    assert_eq!(progress["progress"]["said"], "working");
    assert_eq!(world.read("chat/control/progress").await, "working\n");
    assert_eq!(world.read("chat/control/input").await, "go\n");
    let signal = r#"{"event_type":"user","parameter":"go"}"#;
    world.write(&Caller::operator(), "events/control/signal.json", signal).await;
    assert_eq!(world.read("chat/latest.txt").await, "done\n");
    assert_eq!(world.counter.count.load(Ordering::SeqCst), 1);
    assert!(world.read(&format!("jobs/{job}/log.txt")).await.contains("says: working"));
}

#[tokio::test]
async fn a_cancelled_turn_ends_and_the_next_one_begins() {
    let dir = tempfile::tempdir().unwrap();
    let wait = call("file_read", json!({"path": "agents/self/events/sources/user/never.json"}));
    let world = World::new(dir.path(), thinking(&[wait, reply("next")]));
    let job = |text: &str| {
        let message = ChatMessage { source: TurnSource::Chat, text: text.to_owned(), from: Principal::Operator };
        let job = world.chat.say(message);
        async move { job.wait().await.unwrap() }
    };
    let (first, second, third) = (job("one").await, job("two").await, job("three").await);
    while first.now().progress.is_none_or(|progress| progress["waiting"] != true) {
        tokio::task::yield_now().await;
    }
    third.cancel.cancel();
    assert_eq!(third.end().await.state, jobs::JobState::Cancelled);
    assert!(!second.settled());
    first.cancel.cancel();
    assert_eq!(first.end().await.state, jobs::JobState::Cancelled);
    assert_eq!(world.read(&format!("jobs/{}/result.txt", second.id)).await, "next\n");
    world.read("chat/latest.txt").await;
    let history = world.read("chat/history.ndjson").await;
    assert_eq!(history.lines().count(), 3);
    assert_eq!(history.matches("\"cancelled\"").count(), 2);
}

#[tokio::test]
async fn faults_failures_and_budgets_end_a_turn_with_their_reasons() {
    let missing = || call("file_read", json!({"path": "agents/self/nothing"}));
    let few = |mut settings: Settings, limits| {
        settings.limits = limits;
        settings.prices = Prices { input_per_mtok: 1e6, output_per_mtok: 0.0, ..Prices::default() };
        settings
    };
    let free = BudgetLimits::default();
    let list = || call("file_list", json!({}));
    for (settings, wanted) in [
        (
            thinking(&["\"hm\"".into(), "\"hm\"".into(), "\"hm\"".into()]),
            "the model broke the protocol 3 times in a row",
        ),
        (thinking(&[missing(), missing(), missing()]), "the same file_read failed 3 times in a row"),
        (thinking(&[]), "the script test has no answer left"),
        (few(thinking(&[list(), list()]), BudgetLimits { rounds: Some(1), ..free }), "the turn has used up its rounds"),
        (few(thinking(&[list(), list()]), BudgetLimits { tokens: Some(2), ..free }), "the turn has used up its tokens"),
        (few(thinking(&[list(), list()]), BudgetLimits { money: Some(0.5), ..free }), "the turn has used up its money"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(dir.path(), settings);
        let said = world.say("go").await;
        assert!(said.starts_with(wanted), "{said}");
    }
}

#[tokio::test]
async fn an_agent_without_a_model_is_served_from_outside() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), Settings::default());
    let events = world.tree.open_path(&Caller::operator(), "agents/ada/events/control/wait.json", Open::BOTH).unwrap();
    let wait = br#"{"paths":["/agents/ada/chat/control/input"],"timeout_ms":60000}"#;
    events.write(0, wait).wait().await.unwrap();
    world.write(&Caller::operator(), "chat/control/input", "what is two and two?").await;
    let event = events.read(wait.len() as u64, 4096).wait().await.unwrap();
    let event: Value = serde_json::from_slice(&event).unwrap();
    assert_eq!(event["chat"]["input"], "what is two and two?");
    while world.chat.current().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.write(&Caller::operator(), "chat/control/reply", "four").await, "");
    assert_eq!(world.read("chat/latest.txt").await, "four\n");
}

#[tokio::test]
async fn a_pause_holds_turns_back_and_a_stop_ends_them() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[reply("late")]));
    world.chat.pause(true);
    world.write(&Caller::operator(), "chat/control/input", "hi").await;
    assert!(world.read("chat/status.json").await.contains("\"queued\""));
    world.chat.pause(false);
    assert_eq!(world.read("chat/latest.txt").await, "late\n");
    world.chat.pause(true);
    world.write(&Caller::operator(), "chat/control/input", "hi").await;
    world.chat.stop();
    assert!(world.read("chat/latest.txt").await.contains("was cancelled"));
}

#[tokio::test]
async fn what_happens_wakes_an_agent() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[reply("awake"), reply("awake again")]));
    let rules = [Wake { on: "/agents/self/events/sources/user/go.json".into(), say: "look".into(), call: None }];
    let _wake_rules = wake::set(&world.chat, &rules).unwrap();
    for wanted in ["awake", "awake again"] {
        let signal = r#"{"event_type":"user","parameter":"go"}"#;
        world.write(&Caller::operator(), "events/control/signal.json", signal).await;
        while world.chat.agent_runtime().history.last().is_none_or(|entry| entry.reply.as_deref() != Some(wanted)) {
            tokio::task::yield_now().await;
        }
    }
    let last = world.chat.agent_runtime().history.last().unwrap();
    assert!(matches!(last.source, TurnSource::Wake(_)) && last.input.starts_with("look"));
    assert!(wake::set(&world.chat, &[Wake { on: "/nowhere/\0".into(), say: String::new(), call: None }]).is_err());
}

/// A turn is interrupted during a call; the next run of the host continues it.
#[test]
fn a_turn_goes_on_after_a_crash_and_nothing_is_done_twice() {
    let dir = tempfile::tempdir().unwrap();
    let lines = [
        write("counter/control/count.json", "{}"),
        call("file_read", json!({"path": "agents/self/events/sources/user/never.json"})),
        reply("went on"),
    ];
    let life = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = life();
    let (job, store) = first.block_on(async {
        let world = World::new(dir.path(), thinking(&lines));
        let message = ChatMessage { source: TurnSource::Chat, text: "go".into(), from: Principal::Operator };
        let job = world.chat.say(message).wait().await.unwrap();
        while job.now().progress.is_none_or(|progress| progress["waiting"] != true) {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.counter.count.load(Ordering::SeqCst), 1);
        (job, world.store.clone())
    });
    first.shutdown_background();
    // The signal that was waited for never came; the model is asked nothing again, the read is made again.
    life().block_on(async {
        let world = World::with(dir.path(), thinking(&lines), Clock::real(), store);
        let again = world.context.jobs.restore(Job::new(job.id.clone(), job.call.clone(), 1, &Clock::at(1)));
        world.chat.resume(again.clone());
        while again.now().progress.is_none_or(|progress| progress["waiting"] != true) {
            tokio::task::yield_now().await;
        }
        let signal = r#"{"event_type":"user","parameter":"never"}"#;
        world.write(&Caller::operator(), "events/control/signal.json", signal).await;
        assert_eq!(world.read("chat/latest.txt").await, "went on\n");
        assert_eq!(world.counter.count.load(Ordering::SeqCst), 0, "not done again");
        assert_eq!(world.chat.agent_runtime().history.last().unwrap().spent.rounds, 3);
    });
}
