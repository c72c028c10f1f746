//! A service without FUSE: what is written to its directory, and what is read.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use expect_test::{Expect, expect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::test_access::AllowAll;
use super::test_context::test_context;
use super::*;
use crate::contract::Effect;
use crate::jobs;
use crate::policy::PrincipalCaller;
use crate::state::TestStore;
use acheron_base::Clock;
use acheron_vfs::{AccessControl, Caller, Listing, Node, Open, Tree};

struct TestService;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Command {
    /// Says it back.
    Echo {
        /// What to say.
        text: String,
    },
    /// Never ends by itself.
    Hang {},
    /// Breaks down.
    Break {},
}

#[derive(Serialize, JsonSchema)]
struct Output {
    text: String,
}

#[async_trait]
impl Service for TestService {
    const NAME: &'static str = "bench";
    const ABOUT: &'static str = "For tests.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![
            Operation::read("echo").example(json!({"text": "hi"})),
            Operation::execute("hang").deadline(Duration::from_secs(3600)),
            Operation::write("break"),
        ]
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        match command {
            Command::Echo { text } => {
                cx.log(&text);
                Ok(Output { text })
            }
            Command::Hang {} => std::future::pending().await,
            Command::Break {} => panic!("it is an operation of effect `write`"),
        }
    }

    fn write(&self, _cx: &WriteCx<'_>, _command: Command) -> Result<Output> {
        panic!("on purpose")
    }
}

/// Forbids to break.
struct NoBreak;

impl AccessControl for NoBreak {
    fn check(&self, _caller: &Caller, _action: acheron_vfs::Access, path: &str) -> Result<()> {
        match path.contains("break") {
            true => Err(Error::forbidden("breaking is forbidden")),
            false => Ok(()),
        }
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

impl ServiceAccess for NoBreak {
    fn permissions(&self, _caller: &Caller, _path: &str, operations: &[(String, Effect)]) -> Value {
        json!(operations.len())
    }
}

fn tree() -> (Tree, Arc<ServiceContext>, TestStore) {
    let store = TestStore::new();
    let context = test_context(&store, Clock::real(), Arc::new(NoBreak));
    let instance = ServiceInstance::of(&context, "ada", typed(TestService).unwrap());
    let root = Listing::default()
        .dir("bench", directory(&instance))
        .with("jobs", Node::dir(jobs::files::directory(&context.jobs, "ada")));
    (Tree::new(Arc::new(root), Arc::new(AllowAll)), context, store)
}

async fn read(tree: &Tree, path: &str) -> String {
    match tree.read(&Caller::operator(), path).await {
        Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Err(error) => format!("! {error}\n"),
    }
}

async fn write(tree: &Tree, path: &str, text: &str) -> String {
    match tree.write(&Caller::operator(), path, text.as_bytes()).await {
        Ok(()) => String::new(),
        Err(error) => format!("! {}: {error}\n", error.code.name()),
    }
}

/// Ids and times differ from run to run.
fn steady(text: &str) -> String {
    let id = regex::Regex::new(r"job-[0-9a-f-]{36}").unwrap();
    let time = regex::Regex::new(r#"_ms":\d+"#).unwrap();
    time.replace_all(&id.replace_all(text, "JOB"), "_ms\":0").replace("still running", "still queued")
}

fn check(said: &str, expect: Expect) {
    expect.assert_eq(&steady(said));
}

#[tokio::test]
async fn a_call_is_answered_where_it_was_asked_and_in_the_directory() {
    let (tree, _context, _store) = tree();
    let mut said = read(&tree, "bench/status.json").await + &read(&tree, "bench/result.json").await;
    said += &write(
        &tree,
        "bench/control/invoke.json",
        r#"{"op":"echo","arguments":{"text":"hi"},"correlation_id":"mine"}"#,
    )
    .await;
    said += &read(&tree, "bench/result.json").await;
    said += &read(&tree, "bench/status.json").await;
    said += &read(&tree, "jobs/by/mine/status.json").await;
    said += &read(&tree, "jobs/last/result.txt").await;
    said += &read(&tree, "jobs/last/log.txt").await;
    let own = tree.ask(&Caller::operator(), "bench/control/echo.json", br#"{"text":"own"}"#).await.unwrap();
    said += std::str::from_utf8(&own).unwrap();
    check(
        &said,
        expect![[r#"
        {"state":"idle","job_id":null,"operation":null,"updated_at_ms":null,"error":null}
        {"ok":false,"operation":null,"job_id":null,"result":null,"error":{"code":"not_found","message":"nothing was called yet"}}
        {"ok":true,"operation":"echo","job_id":"JOB","result":{"text":"hi"},"error":null}
        {"state":"done","job_id":"JOB","operation":"echo","updated_at_ms":0,"error":null}
        {"job_id":"JOB","state":"done","service":"bench","operation":"echo","agent":"ada","correlation_id":"mine","created_at_ms":0,"started_at_ms":0,"updated_at_ms":0,"attempt":1,"error":null}
        {"text":"hi"}
        hi
        {"ok":true,"operation":"echo","job_id":"JOB","result":{"text":"own"},"error":null}
    "#]],
    );
}

#[tokio::test]
async fn the_writer_hears_every_refusal_and_nothing_runs() {
    let (tree, context, _store) = tree();
    let mut said = String::new();
    for (file, text) in [
        ("invoke", r#"{"op":"fly"}"#),
        ("invoke", r#"{"op":"echo"}"#),
        ("echo", r#"{"text":1}"#),
        ("echo", r#"{"txet":"a"}"#),
        ("break", "{}"),
        ("invoke", r#"{"op":"echo","arguments":{"text":"a"}} {"op":"fly"}"#),
        ("echo", "nonsense"),
        ("invoke", "nonsense"),
    ] {
        said += &write(&tree, &format!("bench/control/{file}.json"), text).await;
    }
    said += &read(&tree, "bench/status.json").await;
    said += &write(&tree, "bench/control/echo.json", r#"{"text":"#).await;
    said += &read(&tree, "bench/result.json").await;
    assert_eq!(context.jobs.of("ada").ids(), Vec::<String>::new());
    check(
        &said,
        expect![[r#"
            ! unknown_operation: bench has no operation `fly`; operations are echo, hang, break
            ! invalid_payload: echo: text is missing
            ! invalid_payload: echo: text: must be a string, not a number
            ! invalid_payload: echo: unknown key `txet`; did you mean text?
            ! forbidden: breaking is forbidden
            ! unknown_operation: bench has no operation `fly`; operations are echo, hang, break
            ! invalid_payload: echo.json takes the arguments of echo as one JSON object, such as {"text":"hi"}
            ! invalid_payload: a command is a JSON object, such as {"op": "..."}
            {"state":"refused","job_id":null,"operation":null,"updated_at_ms":0,"error":{"code":"invalid_payload","message":"a command is a JSON object, such as {\"op\": \"...\"}"}}
            ! invalid_payload: the command is incomplete: its JSON object has no end
            {"ok":false,"operation":"echo","job_id":null,"result":null,"error":{"code":"invalid_payload","message":"the command is incomplete: its JSON object has no end"}}
        "#]],
    );
}

#[tokio::test]
async fn a_cancelled_job_ends_and_its_waiters_hear_it() {
    let (tree, context, _store) = tree();
    let mut said = write(&tree, "bench/control/hang.json", r#"{"_meta":{"correlation_id":"h"}}"#).await;
    said += &write(&tree, "bench/control/hang.json", r#"{"_meta":{"correlation_id":"h"}}"#).await;
    let (waiter, waiting) =
        (tree.clone(), tree.open_path(&Caller::operator(), "jobs/by/h/status.json", Open::READ).unwrap());
    assert!(matches!(waiting.readable().poll_once(), acheron_vfs::Answer::Later(_)));
    let heard = tokio::spawn(async move { read(&waiter, "jobs/by/h/result.txt").await });
    while context.jobs.of("ada").unfinished()[0].now().state != jobs::JobState::Running {
        tokio::task::yield_now().await;
    }
    said += &write(&tree, "jobs/by/h/control/cancel", "\n").await;
    said += &heard.await.unwrap();
    said += &read(&tree, "jobs/by/h/status.json").await;
    check(
        &said,
        expect![[r#"
            ! already_exists: the correlation id `h` belongs to JOB, which is still queued
            the call was cancelled
            {"job_id":"JOB","state":"cancelled","service":"bench","operation":"hang","agent":"ada","correlation_id":"h","created_at_ms":0,"started_at_ms":0,"updated_at_ms":0,"attempt":1,"error":{"code":"cancelled","message":"the call was cancelled"}}
        "#]],
    );
}

#[tokio::test]
async fn a_panic_is_a_failed_job() {
    let store = TestStore::new();
    let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
    let instance = ServiceInstance::of(&context, "ada", typed(TestService).unwrap());
    context.register("ada", &instance);
    let job = context.call(&Caller::operator(), "ada", "bench", "break", json!({})).await.unwrap();
    let now = job.end().await;
    assert_eq!(now.state, jobs::JobState::Failed);
    assert_eq!(job.status(&job.now()).error.unwrap().message, "a change of the database panicked: on purpose");
}

#[tokio::test]
async fn what_was_accepted_runs_although_its_caller_is_gone() {
    let store = TestStore::new();
    let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
    let instance = ServiceInstance::of(&context, "ada", typed(TestService).unwrap());
    let call = instance.contract().envelope(json!({"op": "hang", "arguments": {}})).unwrap();
    drop(instance.begin(&Caller::operator(), vec![call]));
    let unfinished = context.jobs.of("ada").unfinished();
    let begun = async {
        while unfinished[0].now().state != jobs::JobState::Running {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.expect("it begins");
    unfinished[0].cancel.cancel();
    unfinished[0].end().await;
}

struct Confidant;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Confided {
    /// Keeps it to itself.
    Tell {
        /// A text that only the caller may read.
        #[serde(default)]
        text: String,
    },
}

#[async_trait]
impl Service for Confidant {
    const NAME: &'static str = "confidant";
    const ABOUT: &'static str = "For secrets.";
    type Command = Confided;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        vec![Operation::execute("tell").private()]
    }

    async fn invoke(&self, _cx: &Cx, command: Confided) -> Result<Output> {
        let Confided::Tell { text } = command;
        Ok(Output { text })
    }
}

/// The journal has only that it was called: what was said was never written down.
#[tokio::test]
async fn a_private_call_that_was_left_queued_is_interrupted_and_never_run_without_its_words() {
    let (_, context, _store) = tree();
    let instance = ServiceInstance::of(&context, "ada", typed(Confidant).unwrap());
    let call = jobs::Call {
        agent: "ada".into(),
        service: "confidant".into(),
        operation: "tell".into(),
        effect: Effect::Execute,
        idempotent: false,
        private: false,
        correlation_id: None,
        principal: crate::policy::Principal::Operator,
        arguments: json!({"withheld": true}),
        asks: false,
    };
    let job = context.jobs.restore(jobs::Job::new("job-1".into(), call, 1, &Clock::at(1)));
    instance.resume(job.clone());
    let ended = job.end().await;
    assert_eq!(ended.state, jobs::JobState::Interrupted);
    let said = ended.outcome.unwrap().as_ref().as_ref().unwrap_err().to_string();
    assert!(said.contains("private arguments were not stored"), "{said}");
}
