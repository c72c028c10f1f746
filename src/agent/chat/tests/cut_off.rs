//! Turns that a crash has cut off, and what a turn in its midst may not wait for.

use serde_json::{Value, json};

use super::super::*;
use super::{World, call, reply, thinking, write};
use crate::agent::budget::BudgetLimits;
use crate::agent::protocol::parse;
use crate::agent::runtime::Settings;
use crate::agent::transcript::TranscriptRecord;
use crate::jobs::Job;
use crate::model::{ModelAnswer, Prices};
use crate::policy::PrincipalCaller;
use acheron_vfs::Open;

/// The turn `job-1` as an earlier run of the host left it: with the intent of a call, and no outcome.
fn intended(world: &World, line: &str) -> Arc<Job> {
    let answer = serde_json::from_str::<Value>(line).unwrap()["answer"].to_string();
    let mut transcript = world.chat.agent_runtime().turns.transcript("job-1").unwrap();
    let (limits, prices) = (BudgetLimits::default(), Prices::default());
    let (job_id, source, input) = ("job-1".to_owned(), TurnSource::Chat, "go".to_owned());
    transcript
        .append(vec![
            TranscriptRecord::Began {
                at_ms: 1,
                job_id,
                source,
                input,
                limits,
                prices,
                strict: false,
                protocol: Default::default(),
            },
            TranscriptRecord::Said {
                at_ms: 1,
                ms: 0,
                seq: 1,
                said: ModelAnswer { text: answer.clone(), ..ModelAnswer::default() },
            },
            TranscriptRecord::Intent { at_ms: 1, call: parse(&answer).unwrap() },
        ])
        .unwrap()
        .wait()
        .unwrap();
    left(world)
}

/// The job of that turn.
pub(super) fn left(world: &World) -> Arc<Job> {
    let call = jobs::Call {
        agent: "ada".into(),
        service: SERVICE.into(),
        operation: "turn".into(),
        effect: Effect::Execute,
        idempotent: true,
        private: false,
        correlation_id: None,
        principal: Principal::Operator,
        arguments: json!({"source": "chat", "input": "go"}),
        asks: false,
    };
    world.context.jobs.restore(Job::new("job-1".into(), call, 1, &acheron_base::Clock::at(1)))
}

/// The outcome of each call according to the transcripts.
fn results(world: &World) -> Vec<Value> {
    let turns = &world.chat.agent_runtime().turns;
    let transcripts = turns.jobs().unwrap().into_iter().map(|job| turns.transcript(&job).unwrap());
    let outcome = |record: &TranscriptRecord| match record {
        TranscriptRecord::Outcome { result, .. } => Some(result.clone()),
        _ => None,
    };
    transcripts.flat_map(|transcript| transcript.records().iter().filter_map(outcome).collect::<Vec<_>>()).collect()
}

#[tokio::test]
async fn an_intent_without_an_outcome_is_interrupted_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let answer = &serde_json::from_str::<Value>(&reply("I was told")).unwrap()["answer"];
    let world = World::new(dir.path(), thinking(&[json!({"when": "interrupted", "answer": answer}).to_string()]));
    world.chat.resume(intended(&world, &write("counter/control/count.json", "{}")));
    assert_eq!(world.read("chat/latest.txt").await, "I was told\n");
    assert_eq!(world.counted(), 0);
}

#[tokio::test]
async fn a_reply_that_was_cut_off_is_the_reply_once() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), thinking(&[]));
    world.chat.resume(intended(&world, &reply("as I was saying")));
    assert_eq!(world.read("chat/latest.txt").await, "as I was saying\n");
    assert_eq!(world.read("chat/history.ndjson").await.lines().count(), 1);
    assert_eq!(
        results(&world),
        [json!({"path": "agents/self/chat/control/reply", "bytes_written": 15, "ready": true})]
    );
}

#[tokio::test]
async fn a_reply_from_outside_is_kept_before_it_is_acknowledged_and_outlives_the_host() {
    for settings in [Settings::default(), thinking(&[])] {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(dir.path(), settings);
        world.chat.agent_runtime().keep_reply("job-1", "four").unwrap();
        world.chat.resume(left(&world));
        assert_eq!(world.read("chat/latest.txt").await, "four\n");
        assert_eq!(world.read("chat/history.ndjson").await.lines().count(), 1);
        assert_eq!(world.chat.agent_runtime().kept_reply("job-1").unwrap(), None, "the transcript has it now");
    }
}

#[tokio::test]
async fn a_turn_is_refused_at_once_what_only_its_own_end_could_tell() {
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &str, wait: bool| {
        call("file_read", json!({"path": format!("agents/self/{path}"), "wait_until_ready": wait}))
    };
    let world = World::new(
        dir.path(),
        thinking(&[
            read("events/sources/user/go.json", true),
            read("jobs/last/status.json", true),
            read("jobs/last/result.txt", true),
            read("jobs/last/result.json", true),
            read("chat/latest.txt", true),
            read("jobs/last/status.json", false),
            read("chat/latest.txt", false),
            reply("one"),
            read("jobs/last/status.json", true),
            reply("two"),
        ]),
    );
    let message = |text: &str| ChatMessage { source: TurnSource::Chat, text: text.into(), from: Principal::Operator };
    let first = world.chat.say(message("go")).wait().await.unwrap();
    while first.now().progress.is_none_or(|progress| progress["waiting"] != true) {
        tokio::task::yield_now().await;
    }
    // Another message waits behind this turn, and is the last job from now on.
    world.chat.say(message("and then?")).wait().await.unwrap();
    // A program that the agent has started may wait: the turn can end without it.
    let program = world.tree.open_path(&Caller::agent("ada"), "agents/ada/chat/latest.txt", Open::READ).unwrap();
    let waits = program.read(0, 99).poll_once();
    assert!(matches!(waits, Answer::Later(_)));
    let signal = r#"{"event_type":"user","parameter":"go"}"#;
    world.write(&Caller::operator(), "events/control/signal.json", signal).await;
    let heard = tokio::time::timeout(Duration::from_secs(60), waits.wait()).await.expect("the turns end");
    assert_eq!(heard.unwrap(), "two\n");
    let results = results(&world);
    for (number, result) in results.iter().enumerate() {
        match number {
            1..=4 | 8 => {
                let said = result["error"]["message"].as_str().unwrap_or_default();
                assert!(said.contains("a turn cannot wait for itself"), "{number}: {result}");
            }
            5 | 6 => assert_eq!(result["ready"], false, "{number}: {result}"),
            _ => assert_eq!(result["ready"], true, "{number}: {result}"),
        }
    }
    assert_eq!(results.len(), 10);
}
