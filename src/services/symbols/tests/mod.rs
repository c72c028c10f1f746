//! What every backend must do, run on each of them: the same shelf, the same questions, the same answers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::backend::{Backend, Filter};
use super::bulk::BulkResult;
use super::catalogue;
use super::change::{By, DocumentKind, Edit, LedgerAction, LedgerEntry};
use super::index::Within;
use super::sqlite::Sqlite;
use super::store::{Author, SymbolStore};
use acheron_base::Code;

#[cfg(feature = "redis")]
mod redis_server;

fn author() -> Author {
    Author::new(By::who("test"), 1_000).because("to see")
}

fn symbol(id: &str, more: Value) -> Value {
    super::symbol::merged(&json!({"id": id, "status": "validated"}), &more)
}

/// Everything that is asked of a backend, in one go, since starting a server costs more than the questions. What happens
/// in the middle must not be noticed.
async fn all_of_it(backend: Arc<dyn Backend>, in_the_middle: impl AsyncFnOnce()) {
    what_is_stored_comes_back(&SymbolStore::new(backend.clone())).await;
    versions_count_and_can_be_undone(&SymbolStore::new(backend.clone())).await;
    domains_come_and_go(&SymbolStore::new(backend.clone())).await;
    pages_are_in_order(&SymbolStore::new(backend.clone())).await;
    in_the_middle().await;
    let ids = ["get-1", "p-a"].map(str::to_owned);
    assert!(
        backend.get(DocumentKind::Symbol, &ids).await.unwrap().iter().all(Option::is_some),
        "what was stored is gone"
    );
    changes_are_made_together_or_not_at_all(&*backend).await;
    the_index_follows(backend.clone()).await;
    many_writers_lose_nothing(backend.clone()).await;
    remarks_stand_in_the_ledger(&SymbolStore::new(backend.clone())).await;
    the_catalogue_is_loaded_once(&SymbolStore::new(backend)).await;
}

async fn what_is_stored_comes_back(symbol_store: &SymbolStore) {
    let stored = symbol_store
        .put(DocumentKind::Symbol, &symbol("get-1", json!({"macro":"m","mood":[1]})), &author())
        .await
        .unwrap();
    assert_eq!(stored.version, 1);
    let ids = ["none".to_owned(), "get-1".to_owned()];
    let found = symbol_store.symbols(&ids).await.unwrap();
    assert!(found[0].is_none(), "the order of the question is kept");
    assert_eq!(found[1].as_ref().unwrap().more["mood"], json!([1]));
    let kit = json!({"kit":"a kit","exec":["get-1","gone"],"triad":["P9"]});
    symbol_store.put(DocumentKind::Kit, &kit, &author()).await.unwrap();
    symbol_store.put(DocumentKind::Agent, &json!({"id":"X-P9"}), &author()).await.unwrap();
    let resolved = symbol_store.kit("a kit").await.unwrap().unwrap();
    assert_eq!(resolved.symbols[0].id, "get-1");
    assert_eq!(resolved.agents[0].id, "X-P9");
    assert_eq!(resolved.unresolved, ["gone"]);
    assert!(symbol_store.kit("no kit").await.unwrap().is_none());
}

async fn versions_count_and_can_be_undone(symbol_store: &SymbolStore) {
    let body = async || symbol_store.get(DocumentKind::Symbol, "ver-1").await.unwrap().map(|record| record.body);
    symbol_store
        .put(DocumentKind::Symbol, &symbol("ver-1", json!({"macro":"one","name":"n"})), &author())
        .await
        .unwrap();
    let update = json!({"id":"ver-1","macro":"two"});
    let second = symbol_store.update(DocumentKind::Symbol, &update, &author(), |_| Ok(())).await.unwrap();
    assert_eq!((second.version, &second.body["name"]), (2, &json!("n")));
    assert!(symbol_store.delete(DocumentKind::Symbol, "ver-1", &author()).await.unwrap());
    assert!(!symbol_store.delete(DocumentKind::Symbol, "ver-1", &author()).await.unwrap());
    assert_eq!(body().await, None);
    symbol_store.undo(DocumentKind::Symbol, "ver-1", 1, &author()).await.unwrap();
    assert_eq!(body().await.unwrap()["macro"], "two");
    assert_eq!(body().await.unwrap()["version"], 4);
    let ledger = symbol_store.backend().ledger(DocumentKind::Symbol, "ver-1").await.unwrap();
    let acts: Vec<(u64, LedgerAction)> = ledger.iter().map(|change| (change.version, change.act)).collect();
    assert_eq!(
        acts,
        [(1, LedgerAction::Put), (2, LedgerAction::Put), (3, LedgerAction::Delete), (4, LedgerAction::Undo)]
    );
    assert_eq!((ledger[1].by.who.as_str(), ledger[1].at_ms, ledger[1].reason.as_str()), ("test", 1_000, "to see"));
    assert_eq!(ledger[0].body.as_ref().unwrap()["macro"], "one", "the old value is kept");
    symbol_store.delete(DocumentKind::Symbol, "ver-1", &author()).await.unwrap();
    let anew = symbol_store.put(DocumentKind::Symbol, &symbol("ver-1", json!({})), &author()).await.unwrap();
    assert_eq!(anew.version, 6, "a number is never used twice");
    let nothing = symbol_store.undo(DocumentKind::Symbol, "never", 1, &author()).await.unwrap_err();
    assert_eq!((nothing.code, nothing.message.as_str()), (Code::NotFound, "symbol never: there is nothing to undo"));
}

async fn domains_come_and_go(symbol_store: &SymbolStore) {
    let has = async |domain: &str| symbol_store.backend().domains().await.unwrap().iter().any(|other| other == domain);
    for id in ["dom-1", "dom-2"] {
        symbol_store.put(DocumentKind::Symbol, &symbol(id, json!({"symbol_domain":"moon"})), &author()).await.unwrap();
    }
    assert!(has("moon").await);
    symbol_store.delete(DocumentKind::Symbol, "dom-1", &author()).await.unwrap();
    assert!(has("moon").await);
    symbol_store.put(DocumentKind::Symbol, &symbol("dom-2", json!({"symbol_domain":"sun"})), &author()).await.unwrap();
    assert!(!has("moon").await, "a domain goes with its last symbol");
    assert!(has("sun").await);
}

async fn pages_are_in_order(symbol_store: &SymbolStore) {
    for (id, domain, tag) in [("p-c", "pd", "t1"), ("p-a", "pd", "t1"), ("p-b", "pd", "t2"), ("p-d", "pe", "t1")] {
        let written = symbol(id, json!({"symbol_domain": domain, "symbol_tag": tag}));
        symbol_store.put(DocumentKind::Symbol, &written, &author()).await.unwrap();
    }
    let ids = async |domain: Option<&str>, tag: Option<&str>, after: Option<&str>, limit| {
        let filter = Filter { domain: domain.map(str::to_owned), tag: tag.map(str::to_owned) };
        let page = symbol_store.list(DocumentKind::Symbol, &filter, after, limit).await.unwrap();
        page.into_iter().map(|record| record.id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(Some("pd"), None, None, 9).await, "p-a p-b p-c");
    assert_eq!(ids(Some("pd"), None, Some("p-a"), 1).await, "p-b");
    assert_eq!(ids(Some("pd"), Some("t1"), None, 9).await, "p-a p-c");
    assert_eq!(ids(Some("pd"), Some("t1"), None, 1).await, "p-a");
    assert_eq!(ids(None, Some("t1"), None, 9).await, "p-a p-c p-d");
    assert_eq!(ids(None, None, Some("p-c"), 1).await, "p-d");
    assert_eq!(ids(Some("nowhere"), None, None, 9).await, "");
}

async fn changes_are_made_together_or_not_at_all(backend: &dyn Backend) {
    let edit = |id: &str, expected| Edit {
        expected,
        change: LedgerEntry {
            kind: DocumentKind::Symbol,
            id: id.into(),
            version: expected + 1,
            act: LedgerAction::Put,
            by: By::who("t"),
            at_ms: 1,
            reason: String::new(),
            undone: 0,
            body: Some(json!({"id": id, "version": expected + 1})),
        },
    };
    let (before, _) = backend.since(u64::MAX >> 1).await.unwrap();
    let late = backend.commit(&[edit("tog-1", 0), edit("tog-2", 7)]).await.unwrap_err();
    assert_eq!(
        (late.code, late.message.as_str()),
        (Code::Conflict, "symbol tog-2 is absent, not at version 7 as expected")
    );
    assert_eq!(backend.get(DocumentKind::Symbol, &["tog-1".to_owned()]).await.unwrap(), [None]);
    backend.commit(&[edit("tog-1", 0), edit("tog-2", 0)]).await.unwrap();
    let (after, changed) = backend.since(before).await.unwrap();
    assert_eq!(after, before + 2);
    let changed = changed.unwrap();
    assert_eq!(changed, [(DocumentKind::Symbol, "tog-1".to_owned()), (DocumentKind::Symbol, "tog-2".to_owned())]);
    assert!(backend.commit(&[edit("tog-1", 0)]).await.is_err(), "what is there is not made again");
}

async fn the_index_follows(backend: Arc<dyn Backend>) {
    let (here, elsewhere) = (SymbolStore::new(backend.clone()), SymbolStore::new(backend));
    let found = async |query: &str| {
        let hits = here.search(query, 3, &Within::default()).await.unwrap();
        hits.iter().any(|(hit, _)| hit.id == "idx-1")
    };
    assert!(!found("zebra crossing").await);
    elsewhere.put(DocumentKind::Symbol, &symbol("idx-1", json!({"name":"Zebra crossing"})), &author()).await.unwrap();
    assert!(found("zebra crossing").await, "what another host stores is found");
    here.put(DocumentKind::Symbol, &symbol("idx-1", json!({"name":"Giraffe"})), &author()).await.unwrap();
    assert!(!found("zebra crossing").await);
    assert!(found("giraffe").await);
    elsewhere.delete(DocumentKind::Symbol, "idx-1", &author()).await.unwrap();
    assert!(!found("giraffe").await);
}

async fn many_writers_lose_nothing(backend: Arc<dyn Backend>) {
    let symbol_store = Arc::new(SymbolStore::new(backend));
    symbol_store.put(DocumentKind::Symbol, &symbol("race", json!({})), &author()).await.unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let symbol_store = symbol_store.clone();
            tokio::spawn(async move {
                let update = json!({"id":"race", (format!("by_{writer}")): true});
                symbol_store.update(DocumentKind::Symbol, &update, &author(), |_| Ok(())).await
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    let body = symbol_store.get(DocumentKind::Symbol, "race").await.unwrap().unwrap().body;
    assert_eq!(body["version"], 5);
    assert!((0..4).all(|writer| body[format!("by_{writer}")] == true), "{body}");
}

async fn remarks_stand_in_the_ledger(symbol_store: &SymbolStore) {
    symbol_store.put(DocumentKind::Symbol, &symbol("fb-1", json!({})), &author()).await.unwrap();
    assert!(symbol_store.feedback(DocumentKind::Symbol, "fb-1", &author().because("too vague")).await.unwrap());
    assert!(!symbol_store.feedback(DocumentKind::Symbol, "fb-none", &author().because("unknown")).await.unwrap());
    let ledger = symbol_store.backend().ledger(DocumentKind::Symbol, "fb-1").await.unwrap();
    assert_eq!((ledger[1].act, ledger[1].version, ledger[1].reason.as_str()), (LedgerAction::Feedback, 1, "too vague"));
    symbol_store.undo(DocumentKind::Symbol, "fb-1", 1, &author()).await.unwrap();
    assert!(symbol_store.get(DocumentKind::Symbol, "fb-1").await.unwrap().is_none(), "a remark is not what is undone");
}

async fn the_catalogue_is_loaded_once(symbol_store: &SymbolStore) {
    let documents = catalogue::documents(&catalogue::shipped()).unwrap();
    let mine = symbol("ACH-Trust-Repair-005", json!({"name":"mine"}));
    symbol_store.put(DocumentKind::Symbol, &mine, &author()).await.unwrap();
    let taken = symbol_store.put_many(&documents, true, &author()).await.unwrap();
    assert_eq!(taken, BulkResult { stored: documents.len() - 1, kept: 1 });
    let kept = symbol_store.get(DocumentKind::Symbol, "ACH-Trust-Repair-005").await.unwrap().unwrap();
    assert_eq!(kept.body["name"], "mine", "what is there stays");
    let again = symbol_store.put_many(&documents, true, &author()).await.unwrap();
    assert_eq!(again, BulkResult { stored: 0, kept: documents.len() });
    let domains = symbol_store.backend().domains().await.unwrap();
    assert!(["cognition", "defense", "governance", "root"].iter().all(|domain| domains.iter().any(|d| d == domain)));
    assert!(symbol_store.backend().count(DocumentKind::Agent).await.unwrap() >= 4);
    let over = symbol_store.put_many(&documents[..5], false, &author()).await.unwrap();
    assert_eq!(over, BulkResult { stored: 5, kept: 0 });
}

#[tokio::test]
async fn sqlite_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    all_of_it(Arc::new(Sqlite::new(crate::state::open_in(dir.path()).unwrap())), async || ()).await;
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || SymbolStore::new(Arc::new(Sqlite::new(crate::state::open_in(dir.path()).unwrap())));
    open().put(DocumentKind::Symbol, &symbol("stay", json!({"name":"still here"})), &author()).await.unwrap();
    let symbol_store = open();
    assert_eq!(symbol_store.search("still here", 1, &Within::default()).await.unwrap()[0].1.id, "stay");
}

/// Twenty ways to say what a shipped symbol is about, none of them its name.
#[tokio::test]
async fn paraphrases_find_their_symbol_among_the_first_five() {
    let dir = tempfile::tempdir().unwrap();
    let symbol_store = SymbolStore::new(Arc::new(Sqlite::new(crate::state::open_in(dir.path()).unwrap())));
    symbol_store.put_many(&catalogue::documents(&catalogue::shipped()).unwrap(), true, &author()).await.unwrap();
    let top = async |query: &str| {
        let hits = symbol_store.search(query, 5, &Within::default()).await.unwrap();
        hits.into_iter().map(|(hit, _)| hit.id).collect::<Vec<_>>()
    };
    for (query, id) in [
        ("mend confidence after breaking a promise", "ACH-Trust-Repair-005"),
        ("the reasoning goes round in circles", "ACH-Loop-Breaker-013"),
        ("take back a change that I made", "ACH-Undo-Step-015"),
        ("ask somebody before acting for them", "ACH-Open-Consent-006"),
        ("how to say no clearly with a reason", "ACH-Plain-Refusal-007"),
        ("instructions hidden in quoted text", "ACH-Injection-Screen-011"),
        ("give helpers only the rights they need", "ACH-Least-Authority-017"),
        ("break a big question into smaller ones", "ACH-Question-Split-018"),
        ("a request that can be read in two ways", "ACH-Ambiguity-Flag-019"),
        ("how deep may a thought descend", "ACH-Depth-Limit-020"),
        ("weigh what speaks for and against", "ACH-Evidence-Weight-021"),
        ("several explanations side by side", "ACH-Parallel-Hypotheses-022"),
        ("shorten a long passage", "ACH-Summary-Fold-023"),
        ("how sure are we about it", "ACH-Uncertainty-Label-025"),
        ("find a case where the claim fails", "ACH-Counterexample-Hunt-026"),
        ("connect new knowledge with old memories", "ACH-Memory-Weave-027"),
        ("let go of memories nobody wants", "ACH-Forgetting-Rule-029"),
        ("somebody is upset, slow down", "ACH-Calm-Hold-033"),
        ("what should the next worker know", "ACH-Handover-Note-034"),
        ("time is short, cut the scope", "ACH-Deadline-Guard-036"),
    ] {
        assert!(top(query).await.contains(&id.to_owned()), "{query}: {:?}", top(query).await);
    }
    assert_eq!(top("trust repair").await, top("trust repair!").await);
    assert_eq!(top("trust repair").await[0], "ACH-Trust-Repair-005");
}
