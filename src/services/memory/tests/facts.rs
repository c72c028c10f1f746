//! Facts that change: the newer one wins, the older one stays.

use serde_json::{Value, json};

use super::sessions::Home;
use super::{MemorySearch, create, found, note, target, words, write};
use crate::policy::PrincipalCaller;
use crate::state::TestStore;
use acheron_base::Code;
use acheron_vfs::Caller;

/// Two hundred facts about things of the same kind, so that words alone do not tell the old value from the new one.
const FACTS: usize = 200;

fn said(thing: usize, place: &str) -> String {
    format!("the key of boat{thing} is kept {place}, and the lamp of boat{thing} is kept there too")
}

async fn first_and_older(home: &Home, query: &str) -> (Value, Value) {
    let hits = home.call("search", json!({"query": query, "limit": 5})).await;
    let older = hits["results"].as_array().into_iter().flatten().find(|hit| hit["was"] == true);
    (hits["results"][0]["memory_path"].clone(), older.map_or(Value::Null, |hit| hit["superseded_by"].clone()))
}

#[tokio::test]
async fn of_two_hundred_changed_facts_the_current_one_is_first_and_the_old_one_readable() {
    let home = Home::new(1_000_000);
    let path = |name: &str| format!("/agents/self/memory/items/{name}");
    for thing in 0..FACTS {
        let old = json!({"kind": "fact", "name": format!("old-{thing}"), "content": said(thing, "under the stern")});
        home.call("create", old).await;
    }
    for thing in 0..FACTS {
        let (old, new) = (path(&format!("old-{thing}")), format!("new-{thing}"));
        // Half of them in words in which the question is not asked.
        let text = match thing % 2 {
            0 => said(thing, "at the mill"),
            _ => format!("boat{thing}: moved, ask the miller"),
        };
        let answer = match thing % 4 {
            3 => {
                home.call("create", json!({"kind": "fact", "name": new, "content": "nothing yet"})).await;
                home.call("mutate", json!({"memory_path": new, "content": text, "supersedes": [old]})).await
            }
            _ => home.call("create", json!({"kind": "fact", "name": new, "content": text, "supersedes": [old]})).await,
        };
        assert_eq!((&answer["supersedes"][0], &answer["was"]), (&json!(old), &json!(false)), "{thing}");
    }
    let home = home.again(1_000_000);
    let (mut current, mut readable) = (0, 0);
    for thing in 0..FACTS {
        let new = json!(path(&format!("new-{thing}")));
        let asked = format!("key of boat{thing} kept stern");
        current += usize::from(first_and_older(&home, &asked).await == (new.clone(), new.clone()));
        let meta: Value =
            serde_json::from_str(&home.cat(&format!("memory/items/old-{thing}/meta.json")).await).unwrap();
        let text = home.cat(&format!("memory/items/old-{thing}/content")).await;
        let loaded = home.call("load", json!({"memory_path": format!("old-{thing}")})).await;
        let is_told = meta["was"] == true && meta["superseded_by"] == new && loaded["superseded_by"] == new;
        readable += usize::from(text == said(thing, "under the stern") && is_told);
    }
    assert_eq!((current, readable), (FACTS, FACTS));
}

#[tokio::test]
async fn a_near_duplicate_is_reported_and_nothing_is_done_about_it() {
    let home = Home::new(10_000);
    home.call("create", json!({"kind": "fact", "name": "a", "content": "the ferry to Acheron leaves at noon"})).await;
    home.call("create", json!({"kind": "fact", "name": "b", "content": "rope and lamps are in the shed"})).await;
    let made =
        home.call("create", json!({"kind": "fact", "name": "c", "content": "the ferry to Acheron leaves at nine"}));
    assert_eq!(made.await["similar"][0]["memory_path"], "/agents/self/memory/items/a");
    let changed = home.call("mutate", json!({"memory_path": "b", "content": "The Acheron ferry leaves at noon"})).await;
    let near: Vec<&Value> = changed["similar"].as_array().unwrap().iter().map(|it| &it["memory_path"]).collect();
    assert_eq!(near, ["/agents/self/memory/items/a", "/agents/self/memory/items/c"]);
    let hits = home.call("search", json!({"query": "ferry"})).await;
    let was = |hit: &Value| hit["was"].clone();
    assert_eq!(hits["results"].as_array().unwrap().iter().map(was).collect::<Vec<_>>(), [false, false, false]);
    // What is superseded on purpose is no duplicate, and neither is what it was.
    let new = json!({"kind": "fact", "content": "the ferry to Acheron leaves at ten", "supersedes": ["a", "b", "c"]});
    assert_eq!(home.call("create", new).await["similar"], json!([]));
    let again = home.call("create", json!({"kind": "fact", "content": "the ferry to Acheron leaves at six"})).await;
    assert_eq!(again["similar"].as_array().unwrap().len(), 1, "{again}");
}

#[tokio::test]
async fn a_memory_takes_the_place_of_another_without_other_words() {
    let home = Home::new(10_000);
    home.call("create", json!({"kind": "fact", "name": "a", "content": "the ferry leaves at noon"})).await;
    home.call("create", json!({"kind": "fact", "name": "b", "content": "the ferry leaves at nine"})).await;
    let changed = home.call("mutate", json!({"memory_path": "b", "supersedes": ["a"]})).await;
    assert_eq!((&changed["version"], &changed["supersedes"][0]), (&json!(2), &json!("/agents/self/memory/items/a")));
    let hits = home.call("search", json!({"query": "ferry"})).await;
    let told: Vec<_> = hits["results"].as_array().unwrap().iter().map(|hit| (&hit["snippet"], &hit["was"])).collect();
    let (nine, noon) = (json!("the ferry leaves at nine"), json!("the ferry leaves at noon"));
    assert_eq!(told, [(&nine, &json!(false)), (&noon, &json!(true))]);
    let refused = home.call("mutate", json!({"memory_path": "b"})).await;
    assert_eq!(refused["message"], "mutate: give one of content, patch and append");
}

#[tokio::test]
async fn the_file_reports_a_near_duplicate_in_its_event_and_the_older_one_has_an_event() {
    let home = Home::new(10_000);
    home.call("create", json!({"kind": "fact", "name": "a", "content": "the ferry leaves at noon"})).await;
    home.items().make_dir(&Caller::operator(), "b").wait().await.unwrap();
    assert_eq!(home.echo("the ferry leaves at nine", "memory/items/b/content").await, "");
    home.call("mutate", json!({"memory_path": "b", "append": "!", "supersedes": ["a"]})).await;
    let told = home.changes().await;
    let near = told.iter().find(|it| it["similar"].is_array()).expect("an event");
    assert_eq!(near["similar"][0]["memory_path"], "/agents/self/memory/items/a");
    assert!(
        told.iter().any(|it| it["memory"] == "superseded" && it["by"] == "/agents/charon/memory/items/b"),
        "{told:?}"
    );
}

#[test]
fn a_chain_of_facts_has_one_current_memory_and_a_deletion_goes_back() {
    let store = TestStore::new();
    for (name, older) in [("one", vec![]), ("two", vec!["one"]), ("three", vec!["two"])] {
        supersede(&store, name, &older).unwrap();
    }
    let asked = || found(&store, words("ferry"));
    assert_eq!(asked()[0], "three@1");
    assert_eq!(found(&store, words("\"of one\"")), ["three@1", "one@1"], "the current one is not found by these words");
    let second = MemorySearch { limit: 1, cursor: Some("all-1".into()), ..words("\"of one\"") };
    assert_eq!(found(&store, second), ["one@1"], "and takes a place of its own");
    let notes = MemorySearch { kind: Some("plan".into()), ..words("\"of one\"") };
    assert!(found(&store, notes).is_empty(), "a filter holds for it too");
    let history = MemorySearch { history: true, ..words("\"of one\"") };
    assert_eq!(found(&store, history), ["three@1", "one@1"]);
    write(&store, |tx| tx.delete(&target("three"), None)).unwrap();
    assert_eq!(asked()[0], "two@1");
    write(&store, |tx| tx.restore(&target("three"), 1)).unwrap();
    assert_eq!(asked()[0], "three@3");
}

#[test]
fn what_cannot_be_superseded_is_refused_with_a_sentence() {
    let store = TestStore::new();
    for (name, older) in [("one", vec![]), ("two", vec!["one"]), ("other", vec![])] {
        supersede(&store, name, &older).unwrap();
    }
    create(&store, super::NewMemory { write_protected: true, ..note("law", "x") });
    for (older, code, sentence) in [
        ("nothing", Code::NotFound, "there is no memory nothing"),
        ("law", Code::Forbidden, "write-protected"),
        ("two/versions/7", Code::Conflict, "not the latest"),
    ] {
        let refused = supersede(&store, "new", &[older]).unwrap_err();
        assert_eq!((refused.code, refused.message.contains(sentence)), (code, true), "{refused}");
    }
    let by_itself = take_place(&store, "one", &["one"]).unwrap_err();
    assert_eq!(by_itself.code, Code::InvalidPayload);
    let stale = take_place(&store, "one", &["other"]).unwrap_err();
    assert_eq!((stale.code, stale.message.contains("superseded by two")), (Code::Conflict, true));
    take_place(&store, "one", &["two", "other"]).unwrap();
    assert_eq!(found(&store, words("ferry"))[0], "one@1", "an old fact is true again");
    // A name that is taken again says another fact.
    write(&store, |tx| tx.delete(&target("two"), None)).unwrap();
    assert_eq!(create(&store, note("two", "new")).head.superseded_by, None);
}

fn supersede(store: &TestStore, name: &str, older: &[&str]) -> acheron_base::Result<()> {
    let new = note(name, &format!("the ferry of {name}"));
    let older: Vec<_> = older.iter().map(|path| target(path)).collect();
    write(store, move |tx| {
        let mut memory = tx.create(new)?;
        tx.supersede(&mut memory.head, &older).map(drop)
    })
}

fn take_place(store: &TestStore, name: &'static str, older: &[&str]) -> acheron_base::Result<()> {
    let older: Vec<_> = older.iter().map(|path| target(path)).collect();
    write(store, move |tx| {
        let mut memory = tx.reader().find(&target(name))?;
        tx.supersede(&mut memory.head, &older).map(drop)
    })
}
