//! Whole runs on scripted speakers, with the real prompts, the real store and the real histories.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::history::Histories;
use super::super::record::Run;
use super::super::speaker::{OfflineSpeaker, Question, Speaker, SpokenReply};
use super::super::step::Stop;
use super::{Engine, RunReport, RunRequest, TokenBudget};
use crate::services::prompts::Library;
use crate::services::symbols::catalogue::Defaults;
use crate::services::symbols::change::{By, DocumentKind};
use crate::services::symbols::service::ready;
use crate::services::symbols::sqlite::Sqlite;
use crate::services::symbols::store::SymbolStore;
use acheron_base::{Clock, Code, Error, Result};

/// Gives its answers in order and remembers what it was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<Vec<String>>,
    asked: Mutex<Vec<Question>>,
}

#[async_trait]
impl Speaker for Script {
    async fn speak(&self, question: &Question) -> Result<SpokenReply> {
        self.asked.lock().push(question.clone());
        let mut answers = self.answers.lock();
        if answers.is_empty() {
            return Err(Error::provider("the script is over"));
        }
        Ok(answers.remove(0).into())
    }
}

struct Stage {
    _dir: TempDir,
    engine: Engine,
    script: Arc<Script>,
    told: Arc<Mutex<Vec<String>>>,
}

fn token_budget(prompt: usize, run: usize) -> Box<dyn Fn() -> Result<TokenBudget> + Send + Sync> {
    Box::new(move || Ok(TokenBudget { prompt, run }))
}

impl Stage {
    async fn new(answers: &[&str]) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::state::open_in(&dir.path().join("state")).unwrap();
        let symbol_store = Arc::new(SymbolStore::new(Arc::new(Sqlite::new(store.clone()))));
        ready(&symbol_store).await.unwrap();
        let count = std::sync::atomic::AtomicU8::new(1);
        let random = move |bytes: &mut [u8]| bytes.fill(count.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
        let histories = Histories::open(&dir.path().join("h"), "charon", store, None, Arc::new(random), None).unwrap();
        let script = Arc::new(Script {
            answers: Mutex::new(answers.iter().map(|answer| (*answer).to_owned()).collect()),
            asked: Mutex::default(),
        });
        let defaults = Defaults {
            default_agent_ids: vec!["ACH-P001".into(), "nobody".into()],
            default_symbol_ids: vec!["ACH-Signal-Anchor-001".into(), "nothing".into()],
        };
        let engine = Engine {
            library: Arc::new(Library::built_in()),
            symbol_store,
            histories: Arc::new(histories),
            speaker: script.clone(),
            defaults: Arc::new(move || Ok(defaults.clone())),
            clock: Clock::at(7),
            token_budget: token_budget(8192, 200_000),
        };
        Stage { _dir: dir, engine, script, told: Arc::default() }
    }

    fn record(&self) -> Arc<Run> {
        let told = self.told.clone();
        let tell = move |what: &str, fields: Value| told.lock().push(format!("{what} {fields}"));
        Run::new("run-1", "s", "recursive", Clock::at(7), Box::new(tell))
    }

    async fn run(&self, order: RunRequest) -> (Result<RunReport>, Arc<Run>) {
        let run = self.record();
        let report = self.engine.run(&order, &run, &By::who("charon"), None).await;
        (report, run)
    }

    fn asked(&self) -> Vec<Question> {
        self.script.asked.lock().clone()
    }
}

fn order(query: &str) -> RunRequest {
    RunRequest { query: query.into(), session_id: "s".into(), set: "recursive".into(), ..RunRequest::default() }
}

fn to(phase: &str) -> String {
    json!({"next_phase": phase}).to_string()
}

#[tokio::test]
async fn a_model_that_obeys_its_prompts_walks_all_five_phases() {
    let routes = ["recurse_thought", "synthesize_symbols", "validate", "build-narrative"].map(to);
    let answers: Vec<&str> = routes.iter().map(String::as_str).chain(["the end"]).collect();
    let stage = Stage::new(&answers).await;
    let (report, run) = stage.run(order("mend trust")).await;
    let report = report.unwrap();
    let visited: Vec<String> = stage.asked().into_iter().map(|asked| asked.phase_id).collect();
    assert_eq!(
        visited,
        ["symbolize_input", "recurse_thought", "synthesize_symbols", "validate_symbols", "build_output"]
    );
    assert_eq!((report.reply.as_str(), report.stop_reason), ("the end", Stop::PlainText));
    assert_eq!(report.intermediate_responses.len(), 5);
    let keys: Vec<String> = json!(report).as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "run_id",
            "reply",
            "reply_raw",
            "symbols_used",
            "history_length",
            "commands",
            "intermediate_responses",
            "stop_reason"
        ]
    );
    assert_eq!(run.pages().status.state, "done");
}

#[tokio::test]
async fn two_phases_are_two_calls_and_the_reply_is_the_second_text() {
    let stage = Stage::new(&[&to("02-synthesize"), "{\"next_phase\": null, \"note\": 1}"]).await;
    let report = stage.run(order("q")).await.0.unwrap();
    assert_eq!((stage.asked().len(), report.reply.as_str()), (2, "{\"next_phase\": null, \"note\": 1}"));
    assert_eq!(report.intermediate_responses[0].next_phase, Some(json!("02-synthesize")));
    assert!(report.intermediate_responses[1].payload.is_some());
}

/// A person reads the narrative; the whole answer is kept beside it.
#[tokio::test]
async fn the_reply_is_what_a_person_reads() {
    let said = |reply: &str| {
        let reply = reply.to_owned();
        async move {
            let stage = Stage::new(&[&reply]).await;
            let (report, run) = stage.run(order("q")).await;
            let report = json!(report.unwrap());
            assert_eq!(report["reply_raw"], reply);
            assert_eq!(json!(run.pages())["reply_raw"], reply);
            let kept = stage.engine.histories.read("s").unwrap();
            assert_eq!(kept.last().unwrap().content, report["reply"].as_str().unwrap(), "the session keeps it too");
            report["reply"].as_str().unwrap().to_owned()
        }
    };
    let object = json!({"narrative": "Say sorry first.", "next_phase": null});
    let command = json!({"action": "load_symbol", "ids": ["x"]});
    assert_eq!(said(&format!("<think>hm</think>\n```json\n{object}\n```\n⟐CMD {command}")).await, "Say sorry first.");
    assert_eq!(said("<think>hm</think>Say sorry.").await, "Say sorry.");
    assert_eq!(said(&format!("Say sorry.\n⟐CMD {command}\n{}", json!({"next_phase": null}))).await, "Say sorry.");
    assert_eq!(said("{\"next_phase\":null,\"note\":1}").await, "{\"next_phase\":null,\"note\":1}");
}

/// What did not fit into any prompt was not used.
#[tokio::test]
async fn the_symbols_used_are_those_that_a_prompt_showed() {
    let mut stage = Stage::new(&["measured", "done"]).await;
    let (report, run) = stage.run(order("mend trust")).await;
    let all = report.unwrap().symbols_used;
    assert!(all.len() > 1, "{all:?}");
    // A window of the size of that prompt holds less of it: a part is kept free.
    let tokens = run.pages().trace[0]["context"]["tokens"].as_u64().unwrap() as usize;
    stage.engine.token_budget = token_budget(tokens, 200_000);
    let (report, run) = stage.run(order("mend trust")).await;
    let shown: Vec<String> = serde_json::from_value(run.pages().trace[0]["context"]["symbols"].clone()).unwrap();
    assert!(shown.len() < all.len(), "the window is too large for this test");
    assert_eq!(report.unwrap().symbols_used, shown);
    assert_eq!(run.pages().symbols, shown);
}

fn set_of(files: &[(&str, &str)]) -> (TempDir, Arc<Library>) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("own")).unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join("own").join(name), text).unwrap();
    }
    let library = Arc::new(Library::open(Some(dir.path())));
    (dir, library)
}

/// A phase says which commands it allows and which phases may follow; both bind every run.
#[tokio::test]
async fn a_phase_allows_only_its_commands_and_routes() {
    let (_dir, library) = set_of(&[
        ("00-a.txt", "---\nphase_id: a\ncommands: [load_symbol]\nroutes: [b]\n---\nA"),
        ("01-b.txt", "---\nphase_id: b\ncommands: []\nroutes: []\n---\nB"),
        ("02-c.txt", "---\nphase_id: c\n---\nC"),
        ("notes.md", "only notes"),
    ]);
    let emit = |next: Value| {
        json!({"control_signature": {"emit": [{"action": "load_symbol", "ids": ["x"]},
            {"action": "delete_symbol", "id": "ACH-Trust-Repair-005"}]}, "next_phase": next})
        .to_string()
    };
    let mut stage = Stage::new(&[&emit(json!("b")), &emit(json!("c")), &to("c")]).await;
    stage.engine.library = library;
    let own = || RunRequest { set: "own".into(), ..order("q") };
    let report = stage.run(own()).await.0.unwrap();
    let told: Vec<String> = report.commands.iter().map(|one| one["result"].to_string()).collect();
    assert_eq!(told.len(), 4);
    assert!(told[0].contains("missing"), "{told:?}");
    assert_eq!(told[1], r#"{"status":"refused","reason":"phase a allows load_symbol, not delete_symbol"}"#);
    assert_eq!(told[2], r#"{"status":"refused","reason":"phase b allows no commands"}"#);
    assert_eq!(json!(report.stop_reason), "route_refused", "b may go nowhere");
    assert!(stage.engine.symbol_store.get(DocumentKind::Symbol, "ACH-Trust-Repair-005").await.unwrap().is_some());
    let (report, run) = stage.run(own()).await;
    assert_eq!(json!(report.unwrap().stop_reason), "route_refused");
    assert_eq!(run.pages().status.message, "phase a may be followed by b, not by `c`");
}

/// A file that is no phase is none; one that is broken is listed with its fault and the others go on.
#[tokio::test]
async fn a_broken_phase_is_listed_with_its_fault() {
    let (_dir, library) = set_of(&[
        ("00-a.txt", "---\nphase_id: a\n---\nA"),
        ("01-b.txt", "---\nphase_id: b\nmax_visits: none\n---\nB"),
        ("02-c.txt", "---\nphase_id: c\ncommands: [fly]\n---\nC"),
        ("03-d.txt", "---\nphase_id: d\nroutes: [nowhere]\n---\nD"),
        ("04-e.txt", "a phase by its number"),
        ("notes.md", "only notes"),
    ]);
    let set = super::super::library::set(&library, "own").unwrap();
    let ids: Vec<&str> = set.phases.iter().map(|phase| phase.phase_id.as_str()).collect();
    assert_eq!(ids, ["a", "e"]);
    let faults: Vec<String> = set.faults.iter().map(|fault| format!("{}: {}", fault.file, fault.message)).collect();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].contains("01-b") && faults[0].contains("max_visits is a whole number"), "{faults:?}");
    assert!(faults[1].contains("02-c") && faults[1].contains("`fly`"), "{faults:?}");
    assert!(faults[2].contains("03-d") && faults[2].contains("`nowhere`"), "{faults:?}");
}

#[tokio::test]
async fn what_a_command_loads_reaches_the_next_prompt() {
    let first = format!(
        "⟐CMD {{\"action\":\"load_symbol\",\"ids\":[\"ACH-Deadline-Guard-036\",\"none\"]}}\n{}",
        json!({"context_state": {"depth": 3}, "next_phase": "recurse_thought"})
    );
    let stage = Stage::new(&[&first, "done"]).await;
    let report = stage.run(order("mend trust")).await.0.unwrap();
    let second = &stage.asked()[1].prompt;
    assert!(second.contains("ACH-Deadline-Guard-036 | Deadline Guard"));
    assert!(second.contains("SYSTEM: [command] load_symbol: added symbols [ACH-Deadline-Guard-036]"));
    assert!(second.contains("context_state carried from the last phase: {\"depth\":3}"));
    assert!(second.contains("CURRENT_QUERY: mend trust"));
    let used = report.symbols_used;
    assert_eq!(used[0], "ACH-Signal-Anchor-001", "defaults first");
    assert!(used.iter().any(|id| id == "ACH-Trust-Repair-005"), "then neighbours");
    assert_eq!(used.last().unwrap(), "ACH-Deadline-Guard-036", "then what was loaded");
    let unique: std::collections::HashSet<&String> = used.iter().collect();
    assert_eq!(unique.len(), used.len());
}

#[tokio::test]
async fn the_session_keeps_the_query_the_commands_and_the_last_reply() {
    let first = json!({"control_signature":{"emit":[{"action":"load_kit","kit_id":"Repair Kit"}]},"next_phase":"x"});
    let stage = Stage::new(&[&first.to_string(), "second run"]).await;
    let report = stage.run(order("one")).await.0.unwrap();
    assert_eq!((report.stop_reason, report.history_length), (Stop::UnknownPhase, 2));
    let kept = stage.engine.histories.read("s").unwrap();
    let roles: Vec<&str> = kept.iter().map(|record| record.role.as_str()).collect();
    assert_eq!(roles, ["query", "command", "assistant"]);
    assert_eq!((kept[0].content.as_str(), kept[2].content.as_str()), ("one", first.to_string().as_str()));
    let again = stage.run(order("two")).await.0.unwrap();
    assert_eq!(again.history_length, 4);
    assert!(stage.asked()[1].prompt.contains("USER: one"), "the next run of the session is shown it");
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_trace_of_what_it_did_before() {
    let stage = Stage::new(&[&to("recurse_thought")]).await;
    let (report, run) = stage.run(order("q")).await;
    let fault = report.unwrap_err();
    assert_eq!(
        (fault.code, fault.message.as_str()),
        (Code::ProviderError, "phase recurse_thought: the script is over")
    );
    let pages = run.pages();
    assert_eq!((pages.status.state.as_str(), pages.status.stop_reason), ("failed", Some(Stop::ModelError)));
    assert!(pages.trace.iter().any(|line| line["entry"]["phase_id"] == "symbolize_input"));
    assert!(stage.engine.histories.read("s").unwrap().is_empty());
}

#[tokio::test]
async fn the_end_can_be_dispatched() {
    for (task, stop) in
        [("complete_inference_session", Stop::Complete), ("terminate_inference_session", Stop::Terminated)]
    {
        let reply = format!("⟐CMD {} {}", json!({"action":"dispatch_task","task":task}), to("recurse_thought"));
        let stage = Stage::new(&[&reply]).await;
        assert_eq!(stage.run(order("q")).await.0.unwrap().stop_reason, stop);
        assert_eq!(stage.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_query_or_a_set_that_cannot_be_run_is_refused_before_the_model_is_asked() {
    let stage = Stage::new(&["never"]).await;
    for (bad, expected) in [
        (order(" "), "the query is empty"),
        (RunRequest { session_id: "../evil".into(), ..order("q") }, "session_id"),
        (RunRequest { set: "nowhere".into(), ..order("q") }, "there are no phases in the set `nowhere`"),
        (order(&"x".repeat(65_537)), "a query of 65537 bytes is over 65536"),
    ] {
        let fault = stage.run(bad).await.0.unwrap_err();
        assert!(fault.message.starts_with(expected), "{fault}");
    }
    assert!(stage.asked().is_empty());
}

#[tokio::test]
async fn a_run_that_has_no_room_ends_by_its_budget() {
    let mut stage = Stage::new(&["measured", &to("recurse_thought"), "x"]).await;
    let measured = stage.run(order("q")).await.1.pages().trace[0]["context"]["tokens"].as_u64().unwrap() as usize;
    stage.engine.token_budget = token_budget(8192, measured + measured / 2);
    let report = stage.run(order("q")).await.0.unwrap();
    assert_eq!((report.stop_reason, report.intermediate_responses.len()), (Stop::Budget, 1));
    stage.engine.token_budget = token_budget(100, 200_000);
    let (report, run) = stage.run(order("q")).await;
    assert_eq!(report.unwrap_err().code, Code::BudgetExceeded);
    assert_eq!(run.pages().status.stop_reason, Some(Stop::Budget));
}

#[tokio::test]
async fn what_is_told_and_logged_holds_nothing_that_was_said() {
    let secret = "a most particular secret";
    let reply = json!({"context_state":{"s":secret},"control_signature":{"emit":[{"action":secret},
        {"action":"emit_feedback","type":"x","target":"ACH-Trust-Repair-005","reason":secret}]},"narrative":secret});
    let stage = Stage::new(&[&reply.to_string()]).await;
    stage.run(order(secret)).await.0.unwrap();
    let told = stage.told.lock().join("\n");
    assert!(told.contains("command") && told.contains("phase") && told.contains("context"));
    assert!(!told.contains("secret"), "{told}");
    let ledger =
        stage.engine.symbol_store.backend().ledger(DocumentKind::Symbol, "ACH-Trust-Repair-005").await.unwrap();
    assert_eq!(ledger.last().unwrap().by.phase, "symbolize_input");
}

#[tokio::test]
async fn the_guide_walks_through_everything_and_says_what_it_is() {
    let mut stage = Stage::new(&[]).await;
    stage.engine.speaker = Arc::new(OfflineSpeaker);
    let report = stage.run(order("how do we mend trust?")).await.0.unwrap();
    assert_eq!((report.stop_reason, report.intermediate_responses.len()), (Stop::Complete, 5));
    assert!(report.reply.contains("I am a scripted guide, not a language model"));
    assert!(report.commands.iter().all(|command| command["result"]["status"] != "error"), "{:?}", report.commands);
}
