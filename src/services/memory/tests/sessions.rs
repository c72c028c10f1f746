//! Memory as it is used: files and operations of the service, without FUSE.

use std::sync::Arc;

use async_trait::async_trait;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::super::{Memory, MemoryStore, Summarize};
use crate::events::EventLogs;
use crate::policy::PrincipalCaller;
use crate::service::test_access::AllowAll;
use crate::service::test_context::test_context;
use crate::service::{self, directory, typed};
use crate::state::TestStore;
use acheron_base::{Clock, Result};
use acheron_vfs::{Answer, Caller, Listing, Node, Open, Tree};

struct Echo;

#[async_trait]
impl Summarize for Echo {
    async fn summarize(&self, agent: &str, memories: &[(String, String)]) -> Result<String> {
        Ok(format!("{agent} has {} of them", memories.len()))
    }
}

/// One agent's memory in a tree.
pub struct Home {
    store: TestStore,
    tree: Tree,
    event_logs: Arc<EventLogs>,
    clock: Clock,
}

impl Home {
    pub fn new(budget: u64) -> Home {
        Home::on(TestStore::new(), Clock::at(1000), budget)
    }

    fn on(store: TestStore, clock: Clock, budget: u64) -> Home {
        let context = test_context(&store, clock.clone(), Arc::new(AllowAll));
        let event_logs = context.event_logs.clone();
        let memory = MemoryStore::open(store.clone(), event_logs.of("charon").unwrap(), clock.clone(), budget).unwrap();
        let serve = typed(Memory::new(memory, Some(Arc::new(Echo)))).unwrap();
        let root =
            Listing::default().dir("memory", directory(&service::ServiceInstance::of(&context, "charon", serve)));
        Home { store, tree: Tree::new(Arc::new(root), Arc::new(AllowAll)), event_logs, clock }
    }

    /// The host ends and starts again.
    pub fn again(self, budget: u64) -> Home {
        let Home { store, tree, event_logs, clock } = self;
        drop((tree, event_logs));
        Home::on(store.again(), clock, budget)
    }

    pub async fn cat(&self, path: &str) -> String {
        match self.tree.read(&Caller::operator(), path).await {
            Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    pub async fn echo(&self, text: &str, path: &str) -> String {
        match self.tree.write(&Caller::operator(), path, text.as_bytes()).await {
            Ok(()) => String::new(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    /// Calls an operation and shows its result, or its error.
    pub async fn call(&self, op: &str, arguments: Value) -> Value {
        let file = format!("memory/control/{op}.json");
        let asked = self.tree.ask(&Caller::operator(), &file, arguments.to_string().as_bytes()).await;
        let answer: Value = match asked {
            Ok(answer) => serde_json::from_slice(&answer).unwrap(),
            Err(error) => return json!(error),
        };
        if answer["ok"] == true { answer["result"].clone() } else { answer["error"].clone() }
    }

    /// The payloads of all changes that were told of.
    pub async fn changes(&self) -> Vec<Value> {
        let events = self.event_logs.of("charon").unwrap().after(0).wait().await.unwrap();
        events.into_iter().filter(|event| event.kind == "change").map(|event| event.payload).collect()
    }

    fn ls(&self, path: &str) -> String {
        match self.tree.find(&Caller::operator(), path) {
            Ok((_, Node::Dir(dir))) => dir.list().into_iter().map(|(name, _)| name + "\n").collect(),
            Ok(_) => "! not a directory\n".into(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    pub fn items(&self) -> Arc<dyn acheron_vfs::Dir> {
        match self.tree.find(&Caller::operator(), "memory/items").unwrap().1 {
            Node::Dir(dir) => dir,
            _ => panic!("items is no directory"),
        }
    }
}

fn check(said: impl std::fmt::Display, expected: Expect) {
    expected.assert_eq(&said.to_string());
}

#[tokio::test]
async fn remember_change_look_back_search_restart_still_there() {
    let home = Home::new(1000);
    let mut said = String::new();
    let created = home.call("create", json!({"kind": "plan", "name": "plan", "content": "cross the river\n"})).await;
    said += &format!("{created}\n");
    said += &home.echo("cross the river by night\n", "memory/items/plan/content").await;
    said += &home.cat("memory/items/plan/content").await;
    said += &home.cat("memory/items/plan/versions/1").await;
    said += &home.ls("memory/items/plan");
    said += &home.ls("memory/items/plan/versions");
    said += &home.cat("memory/items/plan/meta.json").await;
    let home = home.again(1000);
    said += &home.cat("memory/items/plan/content").await;
    let found = home.call("search", json!({"query": "night"})).await;
    said += found["results"][0]["snippet"].as_str().unwrap();
    check(
        said,
        expect![[r#"
            {"memory_path":"/agents/self/memory/items/plan","version":1,"write_protected":false,"unevictable":false,"pinned":false,"active":true,"tokens":6,"evicted":[],"was":false,"superseded_by":null,"supersedes":[],"similar":[]}
            cross the river by night
            cross the river
            content
            meta.json
            versions
            1
            2
            {
              "memory_path": "/agents/self/memory/items/plan",
              "version": 2,
              "kind": "plan",
              "tags": [],
              "sources": [],
              "form": "text",
              "bytes": 25,
              "tokens": 8,
              "write_protected": false,
              "unevictable": false,
              "pinned": false,
              "active": true,
              "tombstone": null,
              "was": false,
              "superseded_by": null,
              "supersedes": [],
              "written_at_ms": 1000
            }
            cross the river by night
            cross the river by night"#]],
    );
}

/// Whoever makes a directory holds a thread of the kernel's side, which must not wait for a disk.
#[tokio::test]
async fn making_and_removing_a_memory_is_answered_when_the_disk_has_it() {
    let (home, caller) = (Home::new(1000), Caller::operator());
    for removes in [false, true] {
        let (open, closed) = std::sync::mpsc::channel::<()>();
        let held = home.store.write(move |_| {
            _ = closed.recv_timeout(std::time::Duration::from_secs(60));
            Ok(())
        });
        let changed = match removes {
            false => home.items().make_dir(&caller, "idea").map(drop).poll_once(),
            true => home.items().remove_dir(&caller, "idea").poll_once(),
        };
        assert!(matches!(changed, Answer::Soon(_)), "it waits, and the caller need not");
        assert_eq!(home.ls("memory/items").contains("idea"), removes, "and what is not kept is not shown");
        open.send(()).unwrap();
        held.await.unwrap();
        changed.wait().await.unwrap();
        assert_eq!(home.ls("memory/items").contains("idea"), !removes);
    }
}

#[tokio::test]
async fn a_directory_is_a_note_and_removing_it_deletes() {
    let home = Home::new(1000);
    let caller = Caller::operator();
    home.items().make_dir(&caller, "idea").wait().await.unwrap();
    assert_eq!(home.items().make_dir(&caller, "idea").wait().await.err().unwrap().errno(), libc::EEXIST);
    assert_eq!(home.items().make_dir(&caller, "Not A Name").wait().await.err().unwrap().errno(), libc::EINVAL);
    let mut said = home.cat("memory/items/idea/content").await;
    said += &home.echo("fly", "memory/items/idea/content").await;
    let Node::Dir(inside) = home.items().lookup("idea").unwrap() else { panic!() };
    for refused in [inside.remove(&caller, "content"), inside.remove_dir(&caller, "versions")] {
        assert_eq!(refused.wait().await.unwrap_err().errno(), libc::EPERM);
    }
    home.items().remove_dir(&caller, "idea").wait().await.unwrap();
    said += &home.ls("memory/items");
    said += &home.cat("memory/items/idea/content").await;
    said += &format!("{}\n", home.call("load", json!({"memory_path": "idea"})).await);
    said += &format!("{}\n", home.call("restore", json!({"memory_path": "idea", "version": 2})).await["version"]);
    said += &home.cat("memory/items/idea/content").await;
    assert_eq!(home.items().remove_dir(&caller, "nothing").wait().await.unwrap_err().errno(), libc::ENOENT);
    check(
        said,
        expect![[r#"
            ! not_found: there is no `/memory/items/idea`
            {"code":"not_found","message":"the memory idea was deleted by its version 3; `restore` brings an earlier one back"}
            4
            fly"#]],
    );
}

#[tokio::test]
async fn the_file_refuses_what_the_operations_refuse() {
    let home = Home::new(1000);
    home.call("create", json!({"kind": "law", "name": "law", "content": "x", "write_protected": true})).await;
    home.call("create", json!({"kind": "note", "name": "open", "content": {"a": 1}})).await;
    let mut said = home.echo("y", "memory/items/law/content").await;
    said += &home.echo(&"x".repeat((1 << 20) + 1), "memory/items/open/content").await;
    let bytes = home.tree.write(&Caller::operator(), "memory/items/open/content", b"\xff").await.unwrap_err();
    said += &format!("! {}: {bytes}\n", bytes.code.name());
    said += &home.echo("y", "memory/items/open/versions/1").await;
    said += &home.cat("memory/items/open/content").await;
    for (op, arguments) in [
        ("create", json!({"kind": "note", "name": "open", "content": 1})),
        ("create", json!({"kind": "note", "content": "x".repeat((1 << 20) - 20)})),
        ("mutate", json!({"memory_path": "open"})),
        ("mutate", json!({"memory_path": "open", "content": 1, "append": 2})),
        ("mutate", json!({"memory_path": "open", "append": 2})),
        ("mutate", json!({"memory_path": "open", "content": 1, "if_version": 7})),
        ("mutate", json!({"memory_path": "law", "content": 1})),
        ("load", json!({"memory_path": "/agents/styx/memory/items/open"})),
        ("load", json!({"memory_path": "nobody"})),
        ("versions", json!({"memory_path": "open", "limit": 0})),
        ("search", json!({"query": "x", "cursor": "?"})),
        ("restore", json!({"memory_path": "open", "version": 9})),
        ("summarize", json!({"memory_paths": []})),
        ("summarize", json!({"memory_paths": ["open"], "into": "open", "text": "x"})),
    ] {
        let mut answer = home.call(op, arguments).await;
        if answer["code"].is_null() {
            answer = json!(answer["memory_path"]);
        }
        said += &format!("{op} {answer}\n");
    }
    check(
        said,
        expect![[r#"
            ! forbidden: the memory law is write-protected
            ! too_large: an item has at most 1048576 bytes
            ! invalid_payload: a memory is UTF-8 text; byte 0 is not
            ! forbidden: `/memory/items/open/versions/1` cannot be written
            {"a":1}
            create {"code":"already_exists","message":"there is a memory open already; mutate it, or choose another name"}
            create {"code":"too_large","message":"a command has at most 1048576 bytes"}
            mutate {"code":"invalid_payload","message":"mutate: give one of content, patch and append"}
            mutate {"code":"invalid_payload","message":"mutate: give one of content, patch and append"}
            mutate {"code":"invalid_payload","message":"one can append to a text or to a JSON array: give `content` or `patch`"}
            mutate {"code":"conflict","message":"version 7 of open is not the latest: that is version 1"}
            mutate {"code":"forbidden","message":"the memory law is write-protected"}
            load {"code":"forbidden","message":"/agents/styx/memory/items/open: the memory of styx is not yours"}
            load {"code":"not_found","message":"there is no memory nobody"}
            versions {"code":"invalid_payload","message":"limit is 1 to 200"}
            search {"code":"invalid_payload","message":"the cursor is not valid: give the one from the last answer"}
            restore {"code":"not_found","message":"the memory open has no version 9; its latest is 1"}
            summarize {"code":"invalid_payload","message":"name 1 to 64 memories to sum up"}
            summarize {"code":"invalid_payload","message":"open cannot be summed up into itself"}
        "#]],
    );
}

#[tokio::test]
async fn null_is_a_content_and_a_patch_removes() {
    let home = Home::new(1000);
    home.call("create", json!({"kind": "state", "name": "s", "content": {"a": 1, "b": 2}})).await;
    home.call("mutate", json!({"memory_path": "s", "patch": {"a": null, "c": [3]}})).await;
    let mut said = home.cat("memory/items/s/content").await;
    home.call("mutate", json!({"memory_path": "s", "content": null})).await;
    said += &home.cat("memory/items/s/content").await;
    check(
        said,
        expect![[r#"
        {"b":2,"c":[3]}
        null
    "#]],
    );
}

#[tokio::test]
async fn above_the_budget_the_oldest_leave_and_an_event_says_so() {
    let home = Home::new(30);
    let text = "ten words cost about ten tokens in any such text";
    for name in ["a", "b", "c"] {
        home.clock.advance(1);
        home.call("create", json!({"kind": "note", "name": name, "content": text})).await;
    }
    let pinned = home.call("pin", json!({"memory_path": "b"})).await;
    home.clock.advance(1);
    let loaded = home.call("load", json!({"memory_path": "a"})).await;
    let home = home.again(30);
    let active: Value = serde_json::from_str(&home.cat("memory/active.json").await).unwrap();
    let names = |list: &Value| -> Vec<String> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|it| it["memory_path"].as_str().unwrap().replace("/agents/self/memory/items/", ""))
            .collect()
    };
    let event_log = home.event_logs.of("charon").unwrap();
    let events = event_log.after(0).wait().await.unwrap();
    let evicted: Vec<_> = events.iter().filter(|event| event.payload["memory"] == "evicted").collect();
    let mut said = format!("active {:?} {}\n", names(&active["items"]), active["tokens"]);
    said += &format!("left {:?} {}\n", names(&active["left"]), active["left"][0]["tombstone"]);
    said += &format!("pinned {} {}\n", pinned["pinned"], pinned["evicted"]);
    said += &format!("loaded {}\n", loaded["evicted"]);
    for event in evicted {
        said += &format!("{} {}\n", event.path, event.payload);
    }
    check(
        said,
        expect![[r#"
        active ["b", "a"] 26
        left ["c"] "note, 13 tokens: ten words cost about ten tokens in any such text"
        pinned true []
        loaded ["/agents/self/memory/items/c"]
        /agents/charon/memory/items/a {"memory":"evicted","version":1,"tombstone":"note, 13 tokens: ten words cost about ten tokens in any such text"}
        /agents/charon/memory/items/c {"memory":"evicted","version":1,"tombstone":"note, 13 tokens: ten words cost about ten tokens in any such text"}
    "#]],
    );
}

#[tokio::test]
async fn a_summary_takes_the_place_of_its_sources() {
    let home = Home::new(1000);
    for (name, unevictable) in [("a", false), ("b", false), ("core", true)] {
        let new = json!({"kind": "note", "name": name, "content": name, "unevictable": unevictable});
        home.call("create", new).await;
    }
    let mut said = String::new();
    let sum = home.call("summarize", json!({"memory_paths": ["a", "core"], "into": "sum", "text": "short"})).await;
    said += &format!("{sum}\n");
    let sum = home.call("summarize", json!({"memory_paths": ["a", "b"]})).await;
    said += &format!("{sum}\n");
    said += &home.cat("memory/items/summary-5/content").await;
    let active: Value = serde_json::from_str(&home.cat("memory/active.json").await).unwrap();
    said += &format!("\n{}\n", active["left"]);
    check(
        said,
        expect![[r#"
        {"memory_path":"/agents/self/memory/items/sum","version":1,"tokens":4,"sources":["/agents/self/memory/items/a/versions/1","/agents/self/memory/items/core/versions/1"],"evicted":["/agents/self/memory/items/a"],"kept":["/agents/self/memory/items/core"]}
        {"memory_path":"/agents/self/memory/items/summary-5","version":1,"tokens":12,"sources":["/agents/self/memory/items/a/versions/1","/agents/self/memory/items/b/versions/1"],"evicted":["/agents/self/memory/items/b"],"kept":[]}
        charon has 2 of them
        [{"memory_path":"/agents/self/memory/items/b","version":1,"tombstone":"note, 3 tokens: see /agents/self/memory/items/summary-5","left_at_ms":1000},{"memory_path":"/agents/self/memory/items/a","version":1,"tombstone":"note, 3 tokens: see /agents/self/memory/items/sum","left_at_ms":1000}]
    "#]],
    );
}

#[tokio::test]
async fn a_reader_and_a_writer_of_one_item_do_not_mix() {
    let home = Home::new(1000);
    home.call("create", json!({"kind": "note", "name": "n", "content": "first"})).await;
    let caller = Caller::operator();
    let reader = home.tree.open_path(&caller, "memory/items/n/content", Open::READ).unwrap();
    assert_eq!(reader.read(0, 2).wait().await.unwrap(), "fi");
    home.echo("SECOND", "memory/items/n/content").await;
    assert_eq!(reader.read(2, 99).wait().await.unwrap(), "rst", "one pass shows one version");
    assert_eq!(reader.read(0, 99).wait().await.unwrap(), "SECOND");
    let append = home.tree.open_path(&caller, "memory/items/n/content", Open::APPEND).unwrap();
    append.write(0, b" THIRD").wait().await.unwrap();
    append.sync().wait().await.unwrap();
    assert_eq!(home.cat("memory/items/n/content").await, "SECOND THIRD");
    append.flush(true).wait().await.unwrap();
    append.closed();
    assert_eq!(home.ls("memory/items/n/versions"), "1\n2\n3\n", "a flush without a change makes no version");
}
