//! Commands on a real store: what each gives, what the next phase is told, what changed.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::participants::{Participants, SymbolReason};
use super::super::step::Stop;
use super::{CommandEnv, Dispatch, Outcome, perform, refused};
use crate::services::symbols::change::{By, DocumentKind, LedgerAction};
use crate::services::symbols::index::Within;
use crate::services::symbols::sqlite::Sqlite;
use crate::services::symbols::store::{Author, SymbolStore};
use acheron_base::{Error, Result};

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

#[async_trait]
impl Dispatch for Heard {
    async fn dispatch(&self, service: &str, operation: &str, arguments: &Value) -> Result<String> {
        if service == "secret" {
            return Err(Error::forbidden("charon may not use secret"));
        }
        self.0.lock().push(format!("{service} {operation} {arguments}"));
        Ok("job-1".to_owned())
    }
}

struct Fixture {
    _dir: TempDir,
    symbol_store: SymbolStore,
    participants: Participants,
    heard: Heard,
    may_mutate: bool,
}

impl Fixture {
    async fn with(documents: &[(DocumentKind, Value)]) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let symbol_store = SymbolStore::new(Arc::new(Sqlite::new(crate::state::open_in(dir.path()).unwrap())));
        symbol_store.put_many(documents, false, &Author::default()).await.unwrap();
        Fixture {
            _dir: dir,
            symbol_store,
            participants: Participants::default(),
            heard: Heard::default(),
            may_mutate: true,
        }
    }

    async fn does(&mut self, body: Value) -> Outcome {
        let by = By { who: "charon".into(), run: "run-1".into(), phase: "validate_symbols".into() };
        let env = CommandEnv {
            symbol_store: &self.symbol_store,
            dispatch: Some(&self.heard),
            by,
            at_ms: 9,
            allowed: None,
            may_mutate: self.may_mutate,
        };
        perform(&env, &mut self.participants, &body).await
    }

    async fn note(&mut self, body: Value) -> String {
        self.does(body).await.note
    }
}

fn chain() -> Vec<(DocumentKind, Value)> {
    let symbol = |id: &str, links: &[&str]| {
        (DocumentKind::Symbol, json!({"id": id, "name": format!("name {id}"), "linked_patterns": links}))
    };
    vec![
        symbol("a", &["b", "gone"]),
        symbol("b", &["c", "a"]),
        symbol("c", &["d"]),
        symbol("d", &[]),
        (DocumentKind::Symbol, json!({"id":"l","lnk":["s2","missing"]})),
        (DocumentKind::Symbol, json!({"id":"s2"})),
        (DocumentKind::Kit, json!({"kit":"K 1","triad":["P003"],"exec":["c","nothing"],"anchor":"⟐"})),
        (DocumentKind::Agent, json!({"id":"SZ-P003","name":"Doubter"})),
    ]
}

#[tokio::test]
async fn a_symbol_is_stored_only_with_its_mark_and_an_id() {
    let mut fixture = Fixture::with(&[]).await;
    for (symbol, expected) in [
        (json!({"id":"A","status":"VALIDATED","triad":["x","y","z"]}), "A"),
        (json!({"id":"B","traits":["x","Validated"],"triad":"⟐⇌"}), "B"),
    ] {
        let outcome = fixture.does(json!({"action":"store_symbol","symbol":symbol})).await;
        assert_eq!(outcome.result["id"], expected);
    }
    let no_id = fixture.does(json!({"action":"store_symbol","symbol":{"status":"validated"}})).await;
    assert_eq!(no_id.result, json!({"status":"error","reason":"invalid_symbol"}));
    let unmarked = fixture.does(json!({"action":"store_symbol","symbol":{"id":"C"}})).await;
    assert_eq!(unmarked.result, json!({"status":"rejected","reason":"missing_validated_trait"}));
    assert_eq!(fixture.participants.ids(), ["A", "B"], "what a run stores is before its eyes");
    let ledger = fixture.symbol_store.backend().ledger(DocumentKind::Symbol, "A").await.unwrap();
    assert_eq!((ledger[0].by.who.as_str(), ledger[0].by.phase.as_str()), ("charon", "validate_symbols"));
}

#[tokio::test]
async fn an_update_keeps_the_rest_and_needs_the_mark_in_the_whole() {
    let mut fixture =
        Fixture::with(&[(DocumentKind::Symbol, json!({"id":"A","name":"n","macro":"old","status":"validated"}))]).await;
    let done = fixture.does(json!({"action":"update_symbol","symbol":{"id":"A","macro":"new"}})).await;
    assert_eq!(
        (&done.result["name"], &done.result["macro"], &done.result["version"]),
        (&json!("n"), &json!("new"), &json!(2))
    );
    let lost = fixture.does(json!({"action":"update_symbol","symbol":{"id":"A","status":"draft"}})).await;
    assert_eq!(lost.result, json!({"status":"rejected","reason":"missing_validated_trait"}));
    let fresh = fixture.does(json!({"action":"update_symbol","symbol":{"id":"N","status":"validated"}})).await;
    assert_eq!(fresh.result["version"], 1);
    let ledger = fixture.symbol_store.backend().ledger(DocumentKind::Symbol, "A").await.unwrap();
    assert_eq!(ledger[0].body.as_ref().unwrap()["macro"], "old");
}

#[tokio::test]
async fn a_deleted_symbol_is_gone_from_the_store_the_index_and_the_scene() {
    let mut fixture = Fixture::with(&chain()).await;
    fixture.does(json!({"action":"load_symbol","id":"a"})).await;
    assert_eq!(
        fixture.does(json!({"action":"delete_symbol","symbol_id":"a"})).await.result,
        json!({"status":"deleted","id":"a"})
    );
    assert_eq!(
        fixture.does(json!({"action":"delete_symbol","id":"a"})).await.result,
        json!({"status":"not_found","id":"a"})
    );
    assert!(fixture.participants.ids().is_empty());
    assert!(fixture.symbol_store.get(DocumentKind::Symbol, "a").await.unwrap().is_none());
    let hits = fixture.symbol_store.search("name a", 9, &Within::default()).await.unwrap();
    assert!(!hits.iter().any(|(hit, _)| hit.id == "a"));
}

#[tokio::test]
async fn loading_names_what_is_missing_and_what_is_new() {
    let mut fixture = Fixture::with(&chain()).await;
    let loaded = fixture.does(json!({"action":"load_symbol","ids":["a","none"]})).await;
    assert_eq!((&loaded.result["symbols"][0]["id"], &loaded.result["missing"]), (&json!("a"), &json!(["none"])));
    assert_eq!(loaded.note, "load_symbol: added symbols [a]");
    assert_eq!(
        fixture.note(json!({"action":"load_symbol","symbol_id":"a"})).await,
        "load_symbol: no new symbols added"
    );
}

/// One entry that is no id keeps none of the others from being loaded.
#[tokio::test]
async fn a_mixed_list_of_ids_loads_what_there_is_and_reports_the_rest() {
    let mut fixture = Fixture::with(&chain()).await;
    for action in ["load_symbol", "query_symbols"] {
        let loaded = fixture.does(json!({"action":action,"ids":["a", 7, "none", null, {"id":"b"}, "b"]})).await;
        let ids: Vec<&str> =
            loaded.result["symbols"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["a", "b"], "{action}: {}", loaded.result);
        assert_eq!(loaded.result["missing"], json!(["7", "none", "null", r#"{"id":"b"}"#]), "{action}");
    }
    let walked = fixture.does(json!({"action":"recurse_graph","depth":1,"ids":["a", 7]})).await;
    assert_eq!(walked.result["dangling"], json!(["7", "gone"]), "{}", walked.result);
    let none = fixture.does(json!({"action":"load_symbol","ids":[7]})).await;
    assert_eq!(none.result["missing"], json!(["7"]), "{}", none.result);
    let many: Vec<String> = (0..99).map(|number| format!("no-{number}")).chain(["c".into(), "d".into()]).collect();
    let loaded = fixture.does(json!({"action":"load_symbol","ids":many})).await;
    assert_eq!(loaded.result["symbols"].as_array().unwrap().len(), 1, "the first hundred are looked for");
    assert_eq!(loaded.result["missing"].as_array().unwrap().last(), Some(&json!("d")));
}

#[tokio::test]
async fn a_kit_brings_its_symbols_and_its_agents() {
    let mut fixture = Fixture::with(&chain()).await;
    let loaded = fixture.does(json!({"action":"load_kit","kit_id":"K 1"})).await;
    assert_eq!(loaded.result["agents"], json!(["SZ-P003"]));
    assert_eq!(loaded.result["unresolved"], json!(["nothing", "⟐"]));
    assert_eq!(loaded.note, "load_kit: added symbols [c]");
    assert_eq!(fixture.participants.agent_lines()[0].id, "SZ-P003");
    let none = fixture.does(json!({"action":"load_kit","kit":"K 2"})).await;
    assert_eq!(none.result, json!({"status":"not_found","kit_id":"K 2"}));
}

#[tokio::test]
async fn an_agent_joins_once() {
    let mut fixture = Fixture::with(&chain()).await;
    let call = json!({"action":"invoke_agent","agent_id":"SZ-P003"});
    assert_eq!(fixture.note(call.clone()).await, "invoke_agent: SZ-P003 joined the roster");
    assert_eq!(fixture.note(call).await, "invoke_agent: SZ-P003 is on the roster already");
    assert_eq!(fixture.participants.agent_lines().len(), 1);
    let none = fixture.does(json!({"action":"invoke_agent","id":"X"})).await;
    assert_eq!(none.result, json!({"status":"not_found","agent_id":"X"}));
}

#[tokio::test]
async fn a_query_takes_ids_and_words_and_brings_in_what_it_finds() {
    let mut fixture = Fixture::with(&[
        (DocumentKind::Symbol, json!({"id":"T","name":"Trust repair"})),
        (DocumentKind::Symbol, json!({"id":"U","name":"Umbrella"})),
    ])
    .await;
    let found = fixture.does(json!({"action":"query_symbols","query":"repairing trust","ids":["U","V"]})).await;
    assert_eq!(found.result["hits"][0]["id"], "T");
    assert_eq!(found.result["missing"], json!(["V"]));
    assert_eq!(fixture.participants.ids(), ["U", "T"]);
}

#[tokio::test]
async fn a_walk_goes_so_deep_and_names_what_dangles() {
    let mut fixture = Fixture::with(&chain()).await;
    let walked = fixture.does(json!({"action":"recurse_graph","ids":["a"],"depth":2})).await;
    assert_eq!((&walked.result["loaded"], &walked.result["dangling"]), (&json!(["a", "b", "c"]), &json!(["gone"])));
    let mut fixture = Fixture::with(&chain()).await;
    let a = fixture.symbol_store.symbols(&["a".to_owned(), "l".to_owned()]).await.unwrap();
    for symbol in a.into_iter().flatten() {
        fixture.participants.bring(symbol, SymbolReason::Default);
    }
    let note = fixture.note(json!({"action":"recurse_graph","depth":2})).await;
    assert_eq!(note, "recurse_graph: loaded linked symbols [b, s2, c]");
    assert_eq!(
        fixture.note(json!({"action":"recurse_graph","depth":1})).await,
        "recurse_graph: loaded linked symbols [d]",
        "what was met last time is a root this time"
    );
    assert_eq!(fixture.note(json!({"action":"recurse_graph"})).await, "recurse_graph: no linked symbols loaded");
}

#[tokio::test]
async fn feedback_stands_in_the_ledger_of_its_target() {
    let mut fixture = Fixture::with(&chain()).await;
    let feedback = |target: &str| json!({"action":"emit_feedback","type":"drift","target":target,"reason":"too wide"});
    assert_eq!(
        fixture.does(feedback("a")).await.result,
        json!({"status":"ok","type":"drift","target":"a","kind":"symbol","known":true})
    );
    let ledger = fixture.symbol_store.backend().ledger(DocumentKind::Symbol, "a").await.unwrap();
    assert_eq!((ledger[1].act, ledger[1].reason.as_str()), (LedgerAction::Feedback, "[drift] too wide"));
    assert_eq!(fixture.does(feedback("SZ-P003")).await.result["kind"], "agent");
    assert_eq!(fixture.does(feedback("new-one")).await.result["known"], false);
    assert_eq!(fixture.does(feedback("../x")).await.result["status"], "error");
}

#[tokio::test]
async fn a_task_ends_the_session_or_becomes_a_job() {
    let mut fixture = Fixture::with(&[]).await;
    let task = |task: &str| json!({"action":"dispatch_task","task":task,"payload":{"query":"x"}});
    assert_eq!(fixture.does(task("complete_inference_session")).await.ends, Some(Stop::Complete));
    assert_eq!(fixture.does(task("terminate_inference_session")).await.ends, Some(Stop::Terminated));
    let job = fixture.does(task("memory.search")).await;
    assert_eq!(job.result, json!({"status":"dispatched","task":"memory.search","job_id":"job-1"}));
    assert_eq!(*fixture.heard.0.lock(), [r#"memory search {"query":"x"}"#]);
    assert_eq!(fixture.does(task("whatever")).await.result["status"], "unknown_task");
    let denied = fixture.does(task("secret.open")).await.result;
    assert_eq!(denied, json!({"status":"error","reason":"charon may not use secret","code":"forbidden"}));
}

#[tokio::test]
async fn seven_commands_give_seven_results_in_order() {
    let mut fixture = Fixture::with(&chain()).await;
    let mut told = Vec::new();
    for body in [
        json!({"action":"load_symbol","id":"a"}),
        json!({"note":"no action"}),
        json!({"action":"nope"}),
        json!({"action":["list"]}),
        json!({"action":"invoke_agent"}),
        json!({"action":"query_symbols","ids":["b"]}),
        json!({"action":"delete_symbol","id":"none"}),
    ] {
        told.push(fixture.note(body).await);
    }
    assert_eq!(
        told,
        [
            "load_symbol: added symbols [a]",
            r#"missing_action: {"error":"missing_action"}"#,
            r#"nope: {"payload":{"action":"nope"},"status":"unknown_action"}"#,
            r#"missing_action: {"reason":"action must be a string","status":"error"}"#,
            r#"invoke_agent: {"reason":"missing_agent_id","status":"error"}"#,
            "query_symbols: added symbols [b]",
            r#"delete_symbol: {"id":"none","status":"not_found"}"#,
        ]
    );
}

#[tokio::test]
async fn the_last_phase_of_a_strict_run_changes_nothing() {
    let mut fixture = Fixture::with(&chain()).await;
    fixture.may_mutate = false;
    for body in [
        json!({"action":"store_symbol","symbol":{"id":"A","status":"validated"}}),
        json!({"action":"update_symbol","symbol":{"id":"a"}}),
        json!({"action":"delete_symbol","id":"a"}),
    ] {
        let result = fixture.does(body).await.result;
        assert_eq!(result, json!({"status":"refused","reason":"no further symbolic mutation in the last phase"}));
    }
    assert!(fixture.symbol_store.get(DocumentKind::Symbol, "a").await.unwrap().is_some());
    assert_eq!(fixture.note(json!({"action":"load_symbol","id":"a"})).await, "load_symbol: added symbols [a]");
    assert_eq!(refused(&json!({"action":"x"})).note, r#"x: {"reason":"limit","status":"refused"}"#);
}
