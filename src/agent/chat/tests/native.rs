//! Turns in which the model uses its provider's own calls.

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::*;
use super::{World, call, reply, thinking, write};
use crate::agent::ask::OpenedModel;
use crate::agent::budget::BudgetLimits;
use crate::agent::runtime::Settings;
use crate::agent::transcript::TranscriptRecord;
use crate::model::replay::{Recording, Replay};
use crate::model::script::Script;
use crate::model::{AnswerPiece, Model, ModelAnswer, ModelProtocol, ModelRequest, NativeCall, ToolMessage, Usage};

/// Answers from a list, and keeps every request.
#[derive(Default)]
struct ListedAnswers {
    answers: Mutex<Vec<ModelAnswer>>,
    asked: Mutex<Vec<ModelRequest>>,
}

#[async_trait]
impl Model for ListedAnswers {
    fn name(&self) -> String {
        "listed".into()
    }

    async fn answer(&self, ask: &ModelRequest, _: &mut (dyn FnMut(AnswerPiece) + Send)) -> Result<ModelAnswer> {
        self.asked.lock().push(ask.clone());
        match self.answers.lock() {
            answers if answers.is_empty() => Err(Error::provider("there is no answer left")),
            mut answers => Ok(answers.remove(0)),
        }
    }
}

impl ListedAnswers {
    /// The ids of the results in the last message of each request.
    fn results(&self) -> Vec<Vec<String>> {
        let ids = |ask: &ModelRequest| match ask.messages.last()?.tools.as_deref()? {
            ToolMessage::Results(results) => Some(results.iter().map(|result| result.id.clone()).collect()),
            ToolMessage::Calls { .. } => None,
        };
        self.asked.lock().iter().filter_map(ids).collect()
    }
}

fn native(model: Arc<dyn Model>) -> Settings {
    Settings { model: Some(OpenedModel::new(model)), protocol: ModelProtocol::Native, ..Settings::default() }
}

fn listed(answers: Vec<ModelAnswer>) -> (Arc<ListedAnswers>, Settings) {
    let model = Arc::new(ListedAnswers { answers: Mutex::new(answers), ..ListedAnswers::default() });
    (model.clone(), native(model))
}

fn words(text: &str) -> ModelAnswer {
    ModelAnswer { text: text.to_owned(), usage: Usage::new(7, 5), ..ModelAnswer::default() }
}

fn calls(calls: &[(&str, &str, Value)]) -> ModelAnswer {
    let call = |(id, name, arguments): &(&str, &str, Value)| NativeCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned),
    };
    ModelAnswer { calls: calls.iter().map(call).collect(), native_call: true, ..words("") }
}

fn count() -> Value {
    json!({"path": "agents/self/counter/control/count.json", "content": "{}"})
}

#[tokio::test]
async fn several_calls_are_performed_in_order_and_words_are_the_reply() {
    let dir = tempfile::tempdir().unwrap();
    let list = json!({"path": "agents/self/counter"});
    let three = [("a", "file_write", count()), ("b", "file_list", list), ("c", "file_write", count())];
    let first = ModelAnswer { text: "I count.".into(), ..calls(&three) };
    let (model, settings) = listed(vec![first, words("Counted to two.")]);
    let world = World::new(dir.path(), settings);
    assert_eq!(world.say("count").await, "Counted to two.\n");
    assert_eq!(world.counted(), 2);
    assert_eq!(model.results(), [["a", "b", "c"]]);
    assert!(model.asked.lock().iter().all(|ask| ask.schema.is_none()));
    let tools = model.asked.lock()[0].tools.clone().unwrap();
    assert_eq!(tools.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["file_read", "file_write", "file_list"]);
    // Each call that acts is a recorded intent before its outcome.
    let turns = &world.chat.agent_runtime().turns;
    let transcript = turns.transcript(&turns.jobs().unwrap()[0]).unwrap();
    let kinds: Vec<Value> =
        transcript.records().iter().map(|record| serde_json::to_value(record).unwrap()["kind"].clone()).collect();
    assert_eq!(
        Value::from(kinds),
        json!(["began", "said", "intent", "outcome", "outcome", "intent", "outcome", "said", "ended"])
    );
    let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
    assert_eq!((&status["spent"]["rounds"], &status["spent"]["output"]), (&json!(2), &json!(10)));
    assert!(world.read("thoughts/history.ndjson").await.contains("I count."), "words beside calls are a thought");
    assert!(!world.read("chat/history.ndjson").await.contains("I count."), "and no reply");
}

#[tokio::test]
async fn ids_that_are_missing_or_doubled_are_replaced_in_the_whole_turn() {
    let dir = tempfile::tempdir().unwrap();
    let list = || json!({"path": "agents/self/counter"});
    let one = calls(&[("x", "file_list", list()), ("x", "file_list", list()), ("", "file_list", list())]);
    let two = calls(&[("x", "file_list", list())]);
    let (model, settings) = listed(vec![one, two, words("done")]);
    let world = World::new(dir.path(), settings);
    assert_eq!(world.say("go").await, "done\n");
    let results = model.results();
    assert_eq!(results[0][0], "x");
    let all: Vec<&String> = results.iter().flatten().collect();
    let unique: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), unique.len()), (4, 4), "{all:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_told_and_the_rest_is_performed() {
    let dir = tempfile::tempdir().unwrap();
    let mixed =
        calls(&[("a", "fly", json!({})), ("b", "file_write", json!("{\"path\": \"x")), ("c", "file_write", count())]);
    let cut = ModelAnswer { cut: true, ..calls(&[("d", "file_write", count())]) };
    let (model, settings) = listed(vec![mixed, cut, words(""), words("done")]);
    let world = World::new(dir.path(), settings);
    assert_eq!(world.say("go").await, "done\n");
    assert_eq!(world.counted(), 1, "nothing of an answer that was cut is performed");
    let last: Vec<String> = model.asked.lock().iter().map(ModelRequest::last).collect();
    assert!(last[1].contains("there is no tool `fly`"), "{}", last[1]);
    assert!(last[1].contains("the arguments of file_write are not one JSON object"), "{}", last[1]);
    assert!(last[2].contains("the answer was cut at its token limit, and nothing of it was performed"), "{}", last[2]);
    assert!(last[3].contains("the answer is empty; call a tool, or write your reply"), "{}", last[3]);
}

#[tokio::test]
async fn fifty_calls_in_one_answer_are_performed_and_sixty_five_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let many = |count: usize| calls(&vec![("", "file_write", super::native::count()); count]);
    let (model, settings) = listed(vec![many(50), many(65), words("done")]);
    let world = World::new(dir.path(), settings);
    assert_eq!(world.say("go").await, "done\n");
    assert_eq!(world.counted(), 50);
    assert_eq!(model.results().concat().len(), 50);
    assert!(model.asked.lock()[2].last().contains("the answer has 65 calls, and none was performed"));
}

#[tokio::test]
async fn a_reply_by_a_call_ends_the_turn_before_the_calls_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let answer = json!({"path": "agents/self/chat/control/reply", "content": "first"});
    let both = calls(&[("a", "file_write", answer), ("b", "file_write", count())]);
    let world = World::new(dir.path(), listed(vec![both]).1);
    assert_eq!(world.say("go").await, "first\n");
    assert_eq!(world.counted(), 0);
}

#[tokio::test]
async fn budgets_hold_for_native_turns() {
    let dir = tempfile::tempdir().unwrap();
    let (_, settings) = listed(vec![calls(&[("a", "file_write", count()), ("b", "file_write", count())]), words("no")]);
    let limits = BudgetLimits { rounds: Some(1), ..BudgetLimits::default() };
    let world = World::new(dir.path(), Settings { limits, ..settings });
    assert_eq!(world.say("go").await, "the turn has used up its rounds\n");
    assert_eq!(world.counted(), 2, "calls that were paid for are performed");
}

/// The script of the other protocol, and what it leaves behind.
#[tokio::test]
async fn a_script_with_one_call_per_answer_means_the_same_in_both_protocols() {
    let lines = [
        write("counter/control/count.json", "{}"),
        call("file_read", json!({"path": "agents/self/counter/result.json"})),
        json!({"when": "count.{1,4}:1\\D", "answer": serde_json::from_str::<Value>(&write("counter/control/count.json", "{}")).unwrap()["answer"]})
            .to_string(),
        call("file_read", json!({"path": "agents/self/nothing"})),
        reply("counted"),
    ];
    let mut seen = Vec::new();
    for protocol in [ModelProtocol::Json, ModelProtocol::Native] {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(dir.path(), Settings { protocol, ..thinking(&lines) });
        assert_eq!(world.say("go").await, "counted\n");
        let status: Value = serde_json::from_str(&world.read("chat/status.json").await).unwrap();
        let log = world.read(&format!("jobs/{}/log.txt", status["job_id"].as_str().unwrap())).await;
        let rounds: Vec<String> = log
            .lines()
            .filter(|line| line.contains("round "))
            .map(|line| line[line.find("round ").unwrap()..].to_owned())
            .collect();
        seen.push((world.counted(), rounds, world.read("chat/history.ndjson").await.lines().count()));
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!((seen[0].0, seen[0].1.len()), (2, 5));
}

#[tokio::test]
async fn a_recording_of_native_calls_is_replayed_in_its_own_protocol_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.ndjson");
    let recording = Arc::new(Recording::default());
    recording.begin(&file).unwrap();
    let two = calls(&[("a", "file_write", count()), ("b", "file_write", count())]);
    let (model, _) = listed(vec![two, words("done")]);
    let home = tempfile::tempdir().unwrap();
    let world = World::new(home.path(), native(recording.of("ada", model)));
    assert_eq!(world.say("go").await, "done\n");

    let text = std::fs::read_to_string(&file).unwrap();
    let replay = || Arc::new(Replay::read("run", &text, Some("ada")).unwrap());
    let home = tempfile::tempdir().unwrap();
    let world = World::new(home.path(), native(replay()));
    assert_eq!(world.say("go").await, "done\n");
    assert_eq!(world.counted(), 2);
    let home = tempfile::tempdir().unwrap();
    let world = World::new(home.path(), Settings { protocol: ModelProtocol::Json, ..native(replay()) });
    let said = world.say("go").await;
    assert_eq!(said, "the recording run was made with the other protocol: replay it with `\"protocol\": \"native\"`\n");
}

/// Two calls have ended and the third was under way when the host died.
#[tokio::test]
async fn a_turn_goes_on_in_the_middle_of_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let script = "{\"when\": \"interrupted\", \"answer\": \"told\"}\n\"not told\"";
    let world = World::new(dir.path(), native(Arc::new(Script::read("s", script).unwrap())));
    let mut said = calls(&[("", "file_list", json!({})), ("", "file_list", json!({})), ("", "file_write", count())]);
    said.name_calls(Default::default());
    let intent = crate::agent::native::read_call(&said.calls[2]).unwrap();
    let outcome = || TranscriptRecord::Outcome { at_ms: 1, ms: 0, parked_ms: 0, result: json!({"ready": true}) };
    let mut transcript = world.chat.agent_runtime().turns.transcript("job-1").unwrap();
    let began = TranscriptRecord::Began {
        at_ms: 1,
        job_id: "job-1".to_owned(),
        source: TurnSource::Chat,
        input: "go".to_owned(),
        limits: BudgetLimits::default(),
        prices: Default::default(),
        strict: false,
        protocol: ModelProtocol::Native,
    };
    let said = TranscriptRecord::Said { at_ms: 1, ms: 0, seq: 1, said };
    let records = vec![began, said, outcome(), outcome(), TranscriptRecord::Intent { at_ms: 1, call: intent }];
    transcript.append(records).unwrap().wait().unwrap();
    world.chat.resume(super::cut_off::left(&world));
    assert_eq!(world.read("chat/latest.txt").await, "told\n");
    assert_eq!(world.counted(), 0, "an effect that may have happened is not repeated");
}
