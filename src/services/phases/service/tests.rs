//! The two services without FUSE: what is written to their directories, and what is read.

use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::open::{PhasesParts, open};
use super::super::run::TokenBudget;
use super::super::speaker::{OfflineSpeaker, Question, Speaker, SpokenReply};
use crate::contract::Effect;
use crate::jobs;
use crate::policy::{Principal, PrincipalCaller};
use crate::service::test_access::AllowAll;
use crate::service::test_context::test_context;
use crate::service::{ServiceAccess, ServiceContext, ServiceInstance, directory, typed};
use crate::services::prompts::Library;
use crate::services::symbols::open::open as open_symbols;
use crate::services::symbols::service::Symbols;
use crate::spec;
use acheron_base::{Clock, Error, Random, Result};
use acheron_vfs::{AccessControl, Caller, Listing, Node, Tree};

/// Never answers.
struct Silent;

#[async_trait::async_trait]
impl Speaker for Silent {
    async fn speak(&self, _question: &Question) -> Result<SpokenReply> {
        std::future::pending().await
    }
}

/// Has a service called, and ends.
struct Dispatcher;

#[async_trait::async_trait]
impl Speaker for Dispatcher {
    async fn speak(&self, _question: &Question) -> Result<SpokenReply> {
        let order = |task: &str| format!("⟐CMD {}", json!({"action": "dispatch_task", "task": task, "payload": {}}));
        Ok(format!("{}\n{}", order("symbols.list"), order("complete_inference_session")).into())
    }
}

/// Lets the operator do everything, and agents nothing.
struct OperatorOnly;

impl AccessControl for OperatorOnly {
    fn check(&self, caller: &Caller, _action: acheron_vfs::Access, _path: &str) -> Result<()> {
        match caller.principal() {
            Principal::Operator => Ok(()),
            _ => Err(Error::forbidden("not for agents")),
        }
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

impl ServiceAccess for OperatorOnly {
    fn permissions(&self, _caller: &Caller, _path: &str, _operations: &[(String, Effect)]) -> Value {
        Value::Null
    }
}

struct TestHost {
    tree: Tree,
    dir: TempDir,
    _office: Arc<ServiceContext>,
}

impl TestHost {
    fn new(speaker: Arc<dyn Speaker>) -> TestHost {
        TestHost::at(tempfile::tempdir().unwrap(), speaker)
    }

    fn at(dir: TempDir, speaker: Arc<dyn Speaker>) -> TestHost {
        TestHost::kept_by(dir, speaker, Arc::new(AllowAll))
    }

    fn kept_by(dir: TempDir, speaker: Arc<dyn Speaker>, access: Arc<dyn ServiceAccess>) -> TestHost {
        let clock = Clock::real();
        let store = crate::state::open_in(&dir.path().join("state")).unwrap();
        let context = test_context(&store, clock.clone(), access);
        let jobs = context.jobs.clone();
        let (symbol_store, filling) = open_symbols(
            &spec::SymbolsSpec::default(),
            &store,
            crate::services::symbols::catalogue::shipped(),
            Arc::default(),
        )
        .unwrap();
        filling.wait().unwrap();
        let library = Arc::new(Library::built_in());
        let token_budget = Box::new(|| Ok(TokenBudget { prompt: 8192, run: 100_000 }));
        let parts = PhasesParts {
            room: Arc::new(acheron_base::Room::new(dir.path(), |_, _| Ok(()))),
            library,
            symbol_store: symbol_store.clone(),
            speaker,
            store,
            clock,
            random: Random::real(),
            token_budget,
            defaults: Arc::new(|| crate::services::symbols::catalogue::defaults_of_library(None)),
        };
        let phases = open(&dir.path().join("home"), "ada", parts).unwrap();
        let mut root = Listing::default().with("jobs", Node::dir(jobs::files::directory(&jobs, "ada")));
        for serve in [typed(phases).unwrap(), typed(Symbols::new(symbol_store)).unwrap()] {
            let instance = ServiceInstance::of(&context, "ada", serve);
            context.register("ada", &instance);
            root = root.dir(instance.name(), directory(&instance));
        }
        TestHost { tree: Tree::new(Arc::new(root), Arc::new(AllowAll)), dir, _office: context }
    }

    async fn read(&self, path: &str) -> String {
        match self.tree.read(&Caller::operator(), path).await {
            Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Err(fault) => format!("! {}: {fault}", fault.code.name()),
        }
    }

    async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path).await).unwrap()
    }

    /// Calls an operation and waits for its result.
    async fn call(&self, service: &str, op: &str, arguments: Value) -> Value {
        let path = format!("{service}/control/{op}.json");
        // A refusal stands in the result, too.
        _ = self.tree.write(&Caller::operator(), &path, arguments.to_string().as_bytes()).await;
        self.json(&format!("{service}/result.json")).await
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = self.tree.list(&Caller::operator(), path).unwrap();
        entries.into_iter().map(|entry| entry.path.rsplit('/').next().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_leaves_its_files() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    let result = host.call("phases", "run", json!({"query": "mend trust", "session_id": "first"})).await;
    assert_eq!((&result["ok"], &result["result"]["stop_reason"]), (&json!(true), &json!("complete")), "{result}");
    let id = result["result"]["run_id"].as_str().unwrap().to_owned();
    assert_eq!(host.names("phases/runs"), std::slice::from_ref(&id));
    let dir = format!("phases/runs/{id}");
    assert_eq!(
        host.names(&dir),
        ["commands.ndjson", "context.md", "reply.raw.txt", "reply.txt", "status.json", "symbols.json", "trace.ndjson"]
    );
    assert_eq!(host.read(&format!("{dir}/reply.txt")).await, result["result"]["reply"].as_str().unwrap());
    assert_eq!(host.json(&format!("{dir}/status.json")).await["state"], "done");
    assert_eq!(host.json(&format!("{dir}/symbols.json")).await, result["result"]["symbols_used"]);
    let commands = host.read(&format!("{dir}/commands.ndjson")).await;
    assert_eq!(commands.lines().count(), result["result"]["commands"].as_array().unwrap().len());
    assert!(host.read(&format!("{dir}/context.md")).await.contains("CURRENT_QUERY: mend trust"));
    assert!(host.read(&format!("{dir}/trace.ndjson")).await.contains("\"stop_reason\":\"complete\""));
    let history = host.read("phases/sessions/first/history.ndjson").await;
    assert!(history.starts_with("{\"role\":\"query\",\"content\":\"mend trust\""), "{history}");
    let job = result["job_id"].as_str().unwrap();
    let log = host.read(&format!("jobs/{job}/log.txt")).await;
    assert!(log.contains("phase ") && !log.contains("mend trust"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_files_of_a_run_are_there_after_a_restart_and_nothing_is_in_clear_on_the_disk() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    let words = "unusual zanzibar words";
    let result = host.call("phases", "run", json!({"query": words, "session_id": "first"})).await;
    let id = result["result"]["run_id"].as_str().unwrap().to_owned();
    let sealed = host.dir.path().join(format!("home/phases/runs/{id}.sealed"));
    let guard = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !sealed.exists() && std::time::Instant::now() < guard {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let text = std::fs::read_to_string(&sealed).unwrap();
    assert!(!text.contains("zanzibar"));
    let history = std::fs::read_to_string(host.dir.path().join("home/phases/first.sealed")).unwrap();
    assert!(!history.contains("zanzibar"));
    let TestHost { tree, dir, _office: context } = host;
    drop((tree, context));
    let mut again = None;
    while again.is_none() {
        // The old house lets its database go when its last task has ended.
        match crate::state::open_in(&dir.path().join("state")) {
            Ok(store) => again = Some(store),
            Err(_) if std::time::Instant::now() < guard => {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            Err(fault) => panic!("{fault}"),
        }
    }
    drop(again);
    let host = TestHost::at(dir, Arc::new(OfflineSpeaker));
    assert!(host.read(&format!("phases/runs/{id}/reply.txt")).await.contains("scripted guide"));
    assert!(host.read("phases/sessions/first/history.ndjson").await.contains(words));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_says_so_and_its_reader_is_let_go() {
    let host = TestHost::new(Arc::new(Silent));
    let order = json!({"op": "run", "arguments": {"query": "q", "session_id": "s"}, "correlation_id": "mine"});
    host.tree.write(&Caller::operator(), "phases/control/invoke.json", order.to_string().as_bytes()).await.unwrap();
    let guard = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while host.names("phases/runs").is_empty() && std::time::Instant::now() < guard {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let id = host.names("phases/runs")[0].clone();
    host.tree.write(&Caller::operator(), "jobs/by/mine/control/cancel", b"x").await.unwrap();
    assert_eq!(host.read(&format!("phases/runs/{id}/reply.txt")).await, "");
    let status = host.json(&format!("phases/runs/{id}/status.json")).await;
    assert_eq!((&status["state"], &status["stop_reason"]), (&json!("failed"), &json!("cancelled")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn phases_are_listed_and_described() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    let sets = host.json("phases/phases.json").await;
    assert_eq!(sets["sets"][0]["phases"][3]["phase_id"], "validate_symbols");
    let described = host.call("phases", "describe", json!({"phase": "Build-Narrative"})).await;
    assert_eq!(
        (&described["result"]["phase_id"], &described["result"]["beacon"]),
        (&json!("build_output"), &json!(true))
    );
    assert_eq!(described["result"]["commands"].as_array().unwrap().len(), 10);
    let none = host.call("phases", "describe", json!({"phase": "nowhere"})).await;
    assert_eq!(none["error"]["code"], "not_found");
    let bad = host.call("phases", "run", json!({"query": "q", "session_id": "../evil"})).await;
    assert_eq!(bad["error"]["code"], "invalid_payload");
    assert!(host.names("phases/runs").is_empty(), "a refused order leaves no run behind");
    assert_eq!(host.call("phases", "rotate_key", json!({})).await["ok"], true);
    let readme = host.read("phases/README.md").await;
    assert!(readme.contains("[ΣTR-⟐⇌🜔⇌⟐]"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn symbols_are_files_and_operations() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    assert!(host.names("symbols/items").len() >= 30);
    assert!(host.names("symbols/kits").contains(&"Repair Kit.json".to_owned()));
    assert!(host.names("symbols/agents").contains(&"ACH-P001.json".to_owned()));
    assert!(host.json("symbols/domains.json").await.as_array().unwrap().contains(&json!("governance")));
    let item = host.json("symbols/items/ACH-Trust-Repair-005.json").await;
    assert_eq!((&item["name"], &item["version"]), (&json!("Trust Repair"), &json!(1)));
    let body = json!({"id": "mine-one-001", "name": "Zeppelin landing"});
    assert_eq!(host.call("symbols", "put", json!({"body": body})).await["result"]["version"], 1);
    let update = json!({"body": {"id": "mine-one-001", "macro": "land"}, "reason": "clearer"});
    assert_eq!(host.call("symbols", "update", update).await["result"]["version"], 2);
    assert_eq!(host.json("symbols/items/mine-one-001.json").await["macro"], "land");
    let found = host.call("symbols", "search", json!({"query": "zeppelins land"})).await;
    assert_eq!(found["result"]["hits"][0]["id"], "mine-one-001");
    let ledger = host.call("symbols", "ledger", json!({"id": "mine-one-001"})).await;
    assert_eq!(ledger["result"]["changes"][1]["reason"], "clearer");
    assert_eq!(ledger["result"]["changes"][1]["by"]["who"], "operator");
    host.call("symbols", "delete", json!({"id": "mine-one-001"})).await;
    assert!(host.read("symbols/items/mine-one-001.json").await.starts_with("! not_found"));
    assert_eq!(host.call("symbols", "undo", json!({"id": "mine-one-001"})).await["result"]["body"]["macro"], "land");
    let missing = host.call("symbols", "get", json!({"ids": ["missing"]})).await;
    assert_eq!(missing["error"]["message"], "there is no symbol missing");
    let many = host.call("symbols", "list", json!({"limit": 51})).await;
    assert_eq!(many["error"]["message"], "limit is 51, over 50");
    let bulk = json!({"catalogue": {"symbols": [{"id": "bulk-one-001"}, {"id": "mine-one-001", "macro": "no"}]}});
    assert_eq!(host.call("symbols", "import", bulk).await["result"], json!({"stored": 1, "kept": 1, "refused": []}));
    let walked = host.call("symbols", "walk", json!({"ids": ["ACH-Trust-Repair-005"]})).await;
    assert_eq!(walked["result"]["symbols"].as_array().unwrap().len(), 3);
    let kit = host.call("symbols", "kit", json!({"id": "Repair Kit"})).await;
    assert_eq!(kit["result"]["agents"][0]["id"], "ACH-P002");
    let out = host.call("symbols", "export", json!({})).await;
    assert_eq!(out["result"]["agents.json"]["personas"][0]["id"], "ACH-P001");
}

/// One faulty symbol does not keep the others out, and it is named; on request nothing is stored then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_faulty_symbol_of_an_import_is_named_and_the_rest_is_stored() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    let symbols = json!([{"id": "imp-one-001"}, {"id": "imp-two-002", "macro": 7}, 5, {"id": "imp-three-003"}]);
    let refused = json!({"catalogue": {"symbols": symbols}, "all_or_none": true});
    let none = host.call("symbols", "import", refused).await;
    assert_eq!(none["error"]["code"], "invalid_payload", "{none}");
    assert!(none["error"]["message"].as_str().unwrap().contains("symbol 1 (imp-two-002)"), "{none}");
    assert!(host.read("symbols/items/imp-one-001.json").await.starts_with("! not_found"));
    let taken = host.call("symbols", "import", json!({"catalogue": {"symbols": symbols}})).await;
    assert_eq!((&taken["result"]["stored"], &taken["result"]["kept"]), (&json!(2), &json!(0)), "{taken}");
    let refused = taken["result"]["refused"].as_array().unwrap();
    let shown: Vec<(&Value, &Value)> = refused.iter().map(|one| (&one["index"], &one["id"])).collect();
    assert_eq!(shown, [(&json!(1), &json!("imp-two-002")), (&json!(2), &Value::Null)]);
    assert!(refused[0]["message"].as_str().unwrap().contains("macro"), "{taken}");
    assert_eq!(host.json("symbols/items/imp-three-003.json").await["id"], "imp-three-003");
    let walked = host.call("symbols", "walk", json!({"ids": ["ACH-Trust-Repair-005", "nothing-here"]})).await;
    assert_eq!(walked["result"]["missing"], json!(["nothing-here"]), "{walked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn undo_goes_back_any_number_of_changes() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    for name in ["one", "two", "three", "four", "five"] {
        host.call("symbols", "put", json!({"body": {"id": "back-001", "name": name}})).await;
    }
    let name = async |arguments: Value| {
        let done = host.call("symbols", "undo", arguments).await;
        (done["result"]["body"]["name"].clone(), done["error"]["message"].clone())
    };
    assert_eq!(name(json!({"id": "back-001"})).await.0, "four");
    assert_eq!(name(json!({"id": "back-001"})).await.0, "three", "a second undo goes on, not forward again");
    assert_eq!(name(json!({"id": "back-001", "changes": 2})).await.0, "one");
    assert_eq!(name(json!({"id": "back-001", "to_version": 5})).await.0, "five", "forward again");
    assert_eq!(name(json!({"id": "back-001"})).await.0, "one");
    let (none, why) = name(json!({"id": "back-001", "changes": 9})).await;
    assert_eq!((none, why), (Value::Null, json!("symbol back-001: 9 changes cannot be undone: there is 1")));
    assert_eq!(name(json!({"id": "back-001", "to_version": 99})).await.1, "symbol back-001: there is no version 99");
    assert_eq!(name(json!({"id": "back-001"})).await, (Value::Null, Value::Null), "before its first change it is gone");
    assert!(host.read("symbols/items/back-001.json").await.starts_with("! not_found"));
}

/// Sessions are exported, repaired at the first damage, and cleared; others are not touched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_exported_repaired_and_cleared() {
    let host = TestHost::new(Arc::new(OfflineSpeaker));
    for session in ["first", "second"] {
        let run = json!({"query": format!("words of {session}"), "session_id": session});
        assert_eq!(host.call("phases", "run", run).await["ok"], true);
    }
    let whole = host.call("phases", "export_session", json!({"session_id": "first"})).await;
    let records = whole["result"]["records"].as_array().unwrap().clone();
    assert!(records.len() > 2, "{whole}");
    assert_eq!((&records[0]["role"], &records[0]["content"]), (&json!("query"), &json!("words of first")));
    let sound = host.call("phases", "repair_session", json!({"session_id": "first"})).await;
    assert_eq!((&sound["result"]["kept"], &sound["result"]["lost"]), (&json!(records.len()), &json!(0)), "{sound}");
    let file = host.dir.path().join("home/phases/first.sealed");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = lines[1].pop().unwrap();
    lines[1].push(if last == 'A' { 'B' } else { 'A' });
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let broken = host.call("phases", "export_session", json!({"session_id": "first"})).await;
    assert_eq!(broken["ok"], false, "{broken}");
    let run = json!({"query": "more", "session_id": "first"});
    assert_eq!(host.call("phases", "run", run.clone()).await["ok"], false, "a damaged session takes nothing");
    let repaired = host.call("phases", "repair_session", json!({"session_id": "first"})).await;
    assert_eq!((&repaired["result"]["kept"], &repaired["result"]["lost"]), (&json!(1), &json!(records.len() - 1)));
    let why = repaired["result"]["damage"].as_str().unwrap();
    assert!(why.starts_with("line 2 of session first"), "{why}");
    let kept = repaired["result"]["copy"].as_str().unwrap();
    let copy = std::fs::read_to_string(host.dir.path().join("home/phases").join(kept)).unwrap();
    assert_eq!(copy, lines.join("\n") + "\n", "what was cut off is kept aside");
    let again = host.call("phases", "export_session", json!({"session_id": "first"})).await;
    assert_eq!(again["result"]["records"], json!([records[0]]));
    assert_eq!(host.call("phases", "run", run).await["ok"], true);
    let cleared = host.call("phases", "clear_session", json!({"session_id": "first"})).await;
    assert_eq!(cleared["result"]["cleared"], true, "{cleared}");
    assert_eq!(host.names("phases/sessions"), ["second"]);
    assert!(!file.exists());
    let anew = host.call("phases", "run", json!({"query": "anew", "session_id": "first"})).await;
    assert_eq!(anew["ok"], true, "a cleared session begins anew: {anew}");
    let nothing = host.call("phases", "clear_session", json!({"session_id": "third"})).await;
    assert_eq!(nothing["result"]["cleared"], false);
    let none = host.call("phases", "export_session", json!({"session_id": "third"})).await;
    assert_eq!(none["error"]["code"], "not_found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_has_done_is_done_with_the_agents_rights_whoever_asked() {
    let mut said = Vec::new();
    for access in [Arc::new(AllowAll) as Arc<dyn ServiceAccess>, Arc::new(OperatorOnly)] {
        let host = TestHost::kept_by(tempfile::tempdir().unwrap(), Arc::new(Dispatcher), access);
        let result = host.call("phases", "run", json!({"query": "q", "session_id": "s"})).await;
        let id = result["result"]["run_id"].as_str().unwrap().to_owned();
        let commands = host.read(&format!("phases/runs/{id}/commands.ndjson")).await;
        let first: Value = serde_json::from_str(commands.lines().next().unwrap()).unwrap();
        assert_eq!(first["payload"]["task"], "symbols.list", "{commands}");
        said.push(first["result"].to_string());
    }
    assert!(said[0].contains("dispatched"), "{said:?}");
    assert!(said[1].contains("not for agents"), "the operator asked, the agent is refused: {said:?}");
}
