//! The service without FUSE: what is written to its files, and what is read.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use expect_test::expect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::override_store::OverrideStore;
use super::super::resources::Resource;
use super::super::resources::kinds::MakeResource;
use super::super::{Library, files};
use super::OpenedProject;
use super::{Prompts, PromptsParts};
use crate::agent::test_paid::paid;
use crate::contract::Operation;
use crate::model::script::Script;
use crate::policy::PrincipalCaller;
use crate::service::test_access::AllowAll;
use crate::service::test_context::test_context;
use crate::service::{Cx, Service, ServiceContext, ServiceInstance, directory, typed};
use crate::state::TestStore;
use acheron_base::{Clock, ConfinedDir, Error, Result};
use acheron_prompts::manifest::Need;
use acheron_vfs::{Caller, Listing, Node, Tree};

/// A service that writes into the project and then does as it is told.
struct FileWriter(std::path::PathBuf);

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Command {
    /// Writes.
    Write {
        /// What.
        text: String,
        /// `well`, `badly` or `not at all`.
        ends: String,
    },
}

#[async_trait]
impl Service for FileWriter {
    const NAME: &'static str = "pen";
    const ABOUT: &'static str = "For tests.";
    type Command = Command;
    type Output = Value;

    fn operations() -> Vec<Operation> {
        vec![Operation::execute("write")]
    }

    async fn invoke(&self, _cx: &Cx, command: Command) -> Result<Value> {
        let Command::Write { text, ends } = command;
        std::fs::write(self.0.join("note.txt"), &text).unwrap();
        match ends.as_str() {
            "well" => Ok(json!({"ok": true})),
            "badly" => Ok(json!({"ok": false, "why": "ink"})),
            "not at all" => std::future::pending().await,
            "with exit code 0" => Ok(json!({"ok": true, "exit_code": 0})),
            "with exit code 3" => Ok(json!({"ok": true, "exit_code": 3})),
            _ => Err(Error::failed("the pen broke")),
        }
    }
}

/// A resource that Rust code adds: one file of its own.
struct Counter(std::sync::atomic::AtomicI64);

impl Resource for Counter {
    fn snapshot(&self) -> Result<Option<Value>> {
        Ok(Some(json!(self.0.load(std::sync::atomic::Ordering::SeqCst))))
    }
    fn restore(&self, snapshot: &Value) -> Result<()> {
        self.0.store(snapshot.as_i64().unwrap_or(0), std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }
}

fn counters() -> MakeResource {
    Arc::new(|need: &Need| {
        let first = need.initial.as_ref().and_then(Value::as_i64).unwrap_or(0);
        Ok(Arc::new(Counter(first.into())) as _)
    })
}

struct TestHost {
    tree: Tree,
    context: Arc<ServiceContext>,
    folder: tempfile::TempDir,
    _store: TestStore,
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const WRITE: &str = r#"{
  "ns": "instance", "key": "write",
  "params": {"Task": {"type": "object", "required": ["what"], "properties": {"what": {"type": "string"}}}},
  "resources": {"state": {"kind": "session", "initial": {"mood": "calm"}}},
  "sections": [
    {"key": "task", "title": "Task", "params": "Task", "body": "task.md"},
    {"key": "how", "title": "How", "body": "how.md", "summary": "how.short.md", "visibility": "summary"},
    {"key": "mood", "title": "Mood", "body": "mood.md", "enabled": {"session_eq": {"key": "mood", "value": "wild"}}},
    {"key": "files", "title": "Files", "kind": "workspace", "project": "here", "summary": "how.short.md", "visibility": "summary",
      "tools": [{"name": "pen.write", "description": "Writes a note."}]}
  ],
  "output": {"name": "Done", "schema": {"type": "object", "required": ["pages"], "properties": {"pages": {"type": "integer"}}}}
}"#;

impl TestHost {
    fn new(script: &str) -> TestHost {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "prompts/instance/write/prompt.json", WRITE);
        put(folder.path(), "prompts/instance/write/task.md", "Write $what.");
        put(folder.path(), "prompts/instance/write/how.md", "With care.");
        put(folder.path(), "prompts/instance/write/how.short.md", "In short.");
        put(folder.path(), "prompts/instance/write/mood.md", "Go wild.");
        put(folder.path(), "here/note.txt", "as it was");
        TestHost::at(folder, script)
    }

    fn at(folder: tempfile::TempDir, script: &str) -> TestHost {
        let store = TestStore::new();
        let context = test_context(&store, Clock::real(), Arc::new(AllowAll));
        let model = paid(Arc::new(Script::read("s", script).unwrap()));
        let here = folder.path().join("here");
        let project = here.clone();
        let prompts = Prompts::new(PromptsParts {
            room: Arc::new(acheron_base::Room::new(folder.path(), |_, _| Ok(()))),
            library: Arc::new(Library::open(Some(&folder.path().join("prompts")))),
            overrides: Arc::new(OverrideStore::new(ConfinedDir::create(folder.path().join("overrides")).unwrap())),
            home: folder.path().join("home"),
            agent: "ada".to_owned(),
            context: context.clone(),
            projects: Arc::new(move |name| match name {
                "here" => Ok(OpenedProject { directory: ConfinedDir::open(&project)?, kept: Vec::new() }),
                name => Err(Error::not_found(format!("there is no project `{name}`"))),
            }),
            models: Some(Arc::new(move |_| Ok(model.clone()))),
            kinds: [("counter".to_owned(), counters())].into(),
        })
        .unwrap();
        let mut home = Listing::default();
        for serve in [typed(prompts).unwrap(), typed(FileWriter(here)).unwrap()] {
            let instance = ServiceInstance::of(&context, "ada", serve);
            context.register("ada", &instance);
            home = home.with(instance.name(), Node::dir(directory(&instance)));
        }
        let tree = Tree::new(Arc::new(home), Arc::new(AllowAll));
        context.set_tree(&tree);
        TestHost { tree, context, folder, _store: store }
    }

    async fn cat(&self, path: &str) -> String {
        match self.tree.read(&Caller::operator(), &format!("prompts/{path}")).await {
            Ok(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    async fn write(&self, path: &str, text: &str) -> String {
        match self.tree.write(&Caller::operator(), &format!("prompts/{path}"), text.as_bytes()).await {
            Ok(()) => String::new(),
            Err(error) => format!("! {}: {error}\n", error.code.name()),
        }
    }

    async fn call(&self, op: &str, arguments: Value) -> Result<Value> {
        let job = self.context.call(&Caller::operator(), "ada", "prompts", op, arguments).await?;
        job.end().await.outcome.as_deref().unwrap().clone()
    }

    async fn open(&self) {
        let asked = json!({"prompt": "instance/write", "id": "w", "params": {"Task": {"what": "a poem"}}});
        self.call("open", asked).await.unwrap();
    }

    fn note(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("here/note.txt")).unwrap()
    }
}

#[tokio::test]
async fn a_prompt_is_opened_filled_in_read_answered_and_understood_by_files_alone() {
    let host = TestHost::new("");
    let opened = host.call("open", json!({"prompt": "instance/write"})).await.unwrap();
    assert_eq!(opened, json!({"open_id": "p1", "path": "/agents/ada/prompts/open/p1"}));
    let mut said = host.cat("open/p1/text").await;
    said += &host.write("open/p1/params/Task.json", r#"{"what": 3}"#).await;
    said += &host.write("open/p1/params/Task.json", r#"{"what": "a poem"}"#).await;
    said += &host.cat("open/p1/text").await;
    said += "--- how\n";
    said += &host.cat("open/p1/sections/how/full").await;
    said += &host.cat("open/p1/sections/how/visibility").await;
    said += &host.write("open/p1/sections/how/visibility", "loud").await;
    said += &host.write("open/p1/sections/how/visibility", "full\n").await;
    said += &host.write("open/p1/sections/task/visibility", "summary\n").await;
    said += &host.write("open/p1/session.json", r#"{"mood": "wild"}"#).await;
    said += "--- again\n";
    said += &host.cat("open/p1/text").await;
    said += "--- reply\n";
    said += &host.cat("open/p1/output.json").await;
    said += &host.write("open/p1/reply", "```json\n{\"pages\": 1.5}\n```").await;
    said += &host.cat("open/p1/output.json").await;
    said += &host.cat("open/p1/error.json").await;
    said += &host.write("open/p1/reply", "```json\n{\"pages\": 2}\n```").await;
    said += &host.cat("open/p1/output.json").await;
    expect![[r#"
        ! invalid_payload: missing parameters for section (section task, params Task, placeholder what)
        ! invalid_payload: params do not fit: what: expected string, not integer (params Task, placeholder what)
        ## 1. Task

        Write a poem.

        ## 2. How

        In short.

        ---
        [This section is shown in short: call `read_section` with key "how" to read it.]

        ## 4. Files

        In short.

        ---
        [This section is shown in short: call `open_sections` with key "files" to open it together with its tools.]
        --- how
        ## 2. How

        With care.
        summary
        ! invalid_payload: section how: visibility is `full` or `summary`, not "loud"
        ! invalid_payload: summary visibility requested for section `task` but no summary is defined (section task)
        --- again
        ## 1. Task

        Write a poem.

        ## 2. How

        With care.

        ## 3. Mood

        Go wild.

        ## 4. Files

        In short.

        ---
        [This section is shown in short: call `open_sections` with key "files" to open it together with its tools.]
        --- reply
        ! not_found: nothing was written to reply yet
        ! invalid_payload: the reply has no output; see error.json
        {
          "kind": "output_parse",
          "code": "invalid_payload",
          "message": "expected integer, not a number with a fraction",
          "path": "pages",
          "output_type": "Done",
          "raw": "```json\n{\"pages\": 1.5}\n```",
          "tried": [
            {
              "from": "fence",
              "start": 8,
              "path": "pages",
              "message": "expected integer, not a number with a fraction"
            }
          ]
        }
        {
          "pages": 2
        }
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn an_open_prompt_outlives_the_host_and_is_gone_when_it_is_closed() {
    let host = TestHost::new("");
    host.open().await;
    host.write("open/w/sections/how/visibility", "full").await;
    host.write("open/w/reply", "{\"pages\": 7}").await;
    let before = host.cat("open/w/text").await;
    let host = TestHost::at(host.folder, "");
    assert_eq!(host.cat("open/w/text").await, before);
    assert_eq!(host.cat("open/w/output.json").await, "{\n  \"pages\": 7\n}\n");
    let again = host.call("open", json!({"prompt": "instance/write", "id": "w"})).await.unwrap_err();
    assert_eq!(again.message, "a prompt is open as `w` already");
    host.call("close", json!({"open_id": "w"})).await.unwrap();
    assert!(host.cat("open/w/text").await.starts_with("! not_found"));
    let again = host.call("close", json!({"open_id": "w"})).await.unwrap();
    assert_eq!(again, json!({"closed": "w", "was_open": false, "errors": []}), "closing what is not open is nothing");
    let host = TestHost::at(host.folder, "");
    assert_eq!(host.call("list", json!({})).await.unwrap()["open"], json!([]));
}

#[tokio::test]
async fn a_tool_that_fails_leaves_files_and_session_as_they_were() {
    let host = TestHost::new("");
    host.open().await;
    let tool = |ends: &str| json!({"open_id": "w", "tool": "pen.write", "arguments": {"text": ends, "ends": ends}});
    let hidden = host.call("call_tool", tool("well")).await.unwrap_err();
    assert!(hidden.message.starts_with("this prompt does not offer `pen.write` now; it offers: "), "{hidden}");
    host.call("expand", json!({"open_id": "w", "section_keys": ["files"]})).await.unwrap();
    let wrong = json!({"open_id": "w", "tool": "pen.write", "arguments": {"text": "x"}});
    assert!(host.call("call_tool", wrong).await.is_err());
    assert_eq!(host.note(), "as it was");
    let badly = host.call("call_tool", tool("badly")).await.unwrap();
    assert_eq!((&badly["ok"], &badly["rolled_back"], host.note().as_str()), (&json!(false), &json!(true), "as it was"));
    let broke = host.call("call_tool", tool("in pieces")).await.unwrap_err();
    assert_eq!(broke.message, "pen.write: the pen broke; all resources are as they were");
    assert_eq!(host.note(), "as it was");
    let well = host.call("call_tool", tool("well")).await.unwrap();
    assert_eq!((&well["ok"], host.note().as_str()), (&json!(true), "well"));
    assert_eq!(std::fs::read_dir(host.folder.path().join("home/copies")).unwrap().count(), 0, "no copy is left behind");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_tool_is_taken_back_before_the_next_one_begins() {
    let host = TestHost::new("");
    host.open().await;
    host.call("expand", json!({"open_id": "w", "section_keys": ["files"]})).await.unwrap();
    let tool = |ends: &str| json!({"open_id": "w", "tool": "pen.write", "arguments": {"text": ends, "ends": ends}});
    let job = host.context.call(&Caller::operator(), "ada", "prompts", "call_tool", tool("not at all")).await.unwrap();
    while host.note() != "not at all" {
        tokio::task::yield_now().await;
    }
    job.cancel.cancel();
    job.end().await;
    let next = host.call("call_tool", tool("badly")).await.unwrap();
    assert_eq!((&next["rolled_back"], host.note().as_str()), (&json!(true), "as it was"));
}

/// A prompt whose files live as long as a call, or are made for each use: both are taken back with the rest.
fn scoped(scope: &str, tool: Value) -> String {
    json!({"ns": "instance", "key": scope, "resources": {"files": {"kind": "filesystem", "project": "here", "scope": scope}},
        "sections": [{"key": "files", "title": "Files", "tools": [tool]}]})
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_of_any_scope_is_taken_back() {
    for scope in ["singleton", "tool_call", "prototype"] {
        let host = TestHost::new("");
        let tool = json!({"name": "pen.write", "description": "Writes a note."});
        put(host.folder.path(), &format!("prompts/instance/{scope}/prompt.json"), &scoped(scope, tool));
        host.call("reload", json!({})).await.unwrap();
        host.call("open", json!({"prompt": format!("instance/{scope}"), "id": "w"})).await.unwrap();
        let tool = |ends: &str| json!({"open_id": "w", "tool": "pen.write", "arguments": {"text": ends, "ends": ends}});
        let broke = host.call("call_tool", tool("in pieces")).await.unwrap_err();
        assert_eq!(broke.message, "pen.write: the pen broke; all resources are as they were");
        assert_eq!(host.note(), "as it was", "{scope}");
        let job =
            host.context.call(&Caller::operator(), "ada", "prompts", "call_tool", tool("not at all")).await.unwrap();
        while host.note() != "not at all" {
            tokio::task::yield_now().await;
        }
        job.cancel.cancel();
        job.end().await;
        let next = host.call("call_tool", tool("badly")).await.unwrap();
        assert_eq!((&next["rolled_back"], host.note().as_str()), (&json!(true), "as it was"), "{scope}");
        let well = host.call("call_tool", tool("well")).await.unwrap();
        assert_eq!((&well["ok"], host.note().as_str()), (&json!(true), "well"), "{scope}");
        let left = std::fs::read_dir(host.folder.path().join("home/copies")).unwrap().count();
        assert_eq!(left, 0, "{scope}: no copy is left behind");
    }
}

/// What a section calls a failure is one, also where the service says that the call went well.
#[tokio::test]
async fn a_failure_that_the_section_names_is_taken_back() {
    let host = TestHost::new("");
    let tool = json!({"name": "pen.write", "description": "Writes a note.", "fails_unless": {"exit_code": 0}});
    put(host.folder.path(), "prompts/instance/singleton/prompt.json", &scoped("singleton", tool));
    host.call("reload", json!({})).await.unwrap();
    host.call("open", json!({"prompt": "instance/singleton", "id": "w"})).await.unwrap();
    let tool = |ends: &str| json!({"open_id": "w", "tool": "pen.write", "arguments": {"text": ends, "ends": ends}});
    let failed = host.call("call_tool", tool("with exit code 3")).await.unwrap();
    assert_eq!((&failed["ok"], &failed["rolled_back"]), (&json!(false), &json!(true)), "{failed}");
    assert_eq!(host.note(), "as it was");
    let done = host.call("call_tool", tool("with exit code 0")).await.unwrap();
    assert_eq!((&done["ok"], host.note().as_str()), (&json!(true), "with exit code 0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_limit_of_a_prompt_ends_an_evaluation() {
    let host = TestHost::new(
        &json!(
            json!({"tool_calls": [{"name": "pen.write", "arguments": {"text": "x", "ends": "not at all"}}]})
                .to_string()
        )
        .to_string(),
    );
    let limited = scoped("singleton", json!({"name": "pen.write", "description": "Writes a note."})).replacen(
        '{',
        "{\"time_limit_ms\": 50, ",
        1,
    );
    put(host.folder.path(), "prompts/instance/singleton/prompt.json", &limited);
    host.call("reload", json!({})).await.unwrap();
    host.call("open", json!({"prompt": "instance/singleton", "id": "w"})).await.unwrap();
    let over = host.call("evaluate", json!({"open_id": "w"})).await.unwrap_err();
    assert_eq!(over.code.name(), "timeout", "{over}");
    let why = "the prompt allows an evaluation 50 ms; what a tool under way had changed is as it was";
    assert_eq!((over.message.as_str(), host.note().as_str()), (why, "as it was"), "taken back before it is said");
}

#[tokio::test]
async fn a_bind_takes_resources() {
    let host = TestHost::new("");
    host.open().await;
    let bound = json!({"open_id": "w", "resources": {"other": {"kind": "session", "initial": {"mood": "wild"}}}});
    let done = host.call("bind", bound).await.unwrap();
    assert_eq!(done["resources"], json!(["filesystem", "other", "state"]), "{done}");
    let snapshot = host.call("snapshot", json!({"open_id": "w"})).await.unwrap();
    assert!(snapshot["made"].as_array().unwrap().contains(&json!("other")), "{snapshot}");
    let count = json!({"open_id": "w", "resources": {"count": {"kind": "counter", "initial": 7}}});
    host.call("bind", count).await.unwrap();
    let snapshot = host.call("snapshot", json!({"open_id": "w"})).await.unwrap();
    assert_eq!(snapshot["resources"]["count"], 7, "a kind that Rust code registered: {snapshot}");
    let wrong = json!({"open_id": "w", "resources": {"odd": {"kind": "nothing"}}});
    let refused = host.call("bind", wrong).await.unwrap_err();
    assert!(refused.message.contains("resource `odd` is of kind `nothing`; there are "), "{refused}");
    let snapshot = host.call("snapshot", json!({"open_id": "w"})).await.unwrap();
    assert!(!snapshot["made"].as_array().unwrap().contains(&json!("odd")));
    let host = TestHost::at(host.folder, "");
    let snapshot = host.call("snapshot", json!({"open_id": "w"})).await.unwrap();
    assert!(snapshot["made"].as_array().unwrap().contains(&json!("other")), "it is kept over a restart");
}

#[tokio::test]
async fn an_override_file_of_another_version_is_refused() {
    let host = TestHost::new("");
    let mut seeded = host.call("override_seed", json!({"prompt": "instance/write", "tag": "v1"})).await.unwrap();
    for (field, value) in [("version", json!(9)), ("ns", json!("other")), ("prompt_key", json!("other"))] {
        let good = std::mem::replace(&mut seeded[field], value);
        let refused = host.call("override_upsert", json!({"prompt": "instance/write", "file": seeded})).await;
        assert!(refused.is_err(), "{field} is accepted");
        seeded[field] = good;
    }
    let asked = json!({"prompt": "instance/write", "params": {"Task": {"what": "it"}}, "tag": "v1"});
    host.call("render", asked).await.unwrap();
}

#[tokio::test]
async fn a_snapshot_is_taken_and_gone_back_to() {
    let host = TestHost::new("");
    host.open().await;
    let snapshot = host.call("snapshot", json!({"open_id": "w", "tag": "before"})).await.unwrap();
    assert_eq!(snapshot["made"], json!(["state", "filesystem"]));
    put(host.folder.path(), "here/note.txt", "other");
    host.write("open/w/session.json", r#"{"mood": "wild"}"#).await;
    let restored = host.call("restore", json!({"open_id": "w", "snapshot": "before"})).await.unwrap();
    assert_eq!(restored["resources"], json!(["filesystem", "state"]));
    assert_eq!(
        (host.note().as_str(), host.cat("open/w/session.json").await.as_str()),
        ("as it was", "{\n  \"mood\": \"calm\"\n}\n")
    );
    let none = host.call("restore", json!({"open_id": "w", "snapshot": "after"})).await.unwrap_err();
    assert_eq!(none.message, "there is no snapshot `after` of this prompt");
}

#[tokio::test]
async fn a_model_is_asked_until_it_answers() {
    let call = |name: &str, arguments: Value| {
        json!(json!({"tool_calls": [{"name": name, "arguments": arguments}]}).to_string())
    };
    let script = [
        call("read_section", json!({"section_key": "how"})),
        call("pen.write", json!({"text": "x", "ends": "well"})),
        call("open_sections", json!({"section_keys": ["files"], "reason": "to write"})),
        call("open_sections", json!({"section_keys": ["files"], "reason": "again"})),
        call("pen.write", json!({"text": "a poem", "ends": "well"})),
        json!("<think>done?</think>\nYes.\n```json\n{\"pages\": \"3\"}\n```"),
    ];
    let host = TestHost::new(&script.map(|line| line.to_string()).join("\n"));
    host.open().await;
    let evaluated = host.call("evaluate", json!({"open_id": "w"})).await.unwrap();
    assert_eq!(evaluated["output"], json!({"pages": 3}));
    assert_eq!(evaluated["opened"], json!(["files"]));
    assert_eq!(evaluated["rounds"], 6);
    assert_eq!(evaluated["repairs"][0]["path"], "pages");
    assert_eq!(host.note(), "a poem");
    assert_eq!(host.cat("open/w/output.json").await, "{\n  \"pages\": 3\n}\n");
}

#[tokio::test]
async fn an_answer_without_output_fails_and_is_kept() {
    let host = TestHost::new("\"I would rather not.\"");
    host.open().await;
    let refused = host.call("evaluate", json!({"open_id": "w"})).await.unwrap_err();
    assert_eq!(refused.message, "the reply has no Done: no JSON object or array found in the reply");
    assert_eq!(host.cat("open/w/reply").await, "I would rather not.");
}

#[tokio::test]
async fn overrides_are_stored_seen_and_taken_away_by_calls() {
    let host = TestHost::new("");
    let render = || host.call("render", json!({"prompt": "instance/write", "params": {"Task": {"what": "it"}}}));
    let change = json!({"target": "section", "path": "task", "body": "Please write $what."});
    host.call("override_store", json!({"prompt": "instance/write", "change": change})).await.unwrap();
    let rendered = render().await.unwrap();
    assert!(rendered["text"].as_str().unwrap().contains("Please write it."));
    assert!(rendered["deadline"].as_u64().is_some());
    let listed = host.call("override_list", json!({})).await.unwrap();
    assert_eq!((&listed[0]["prompt"], &listed[0]["sections"]), (&json!("instance/write"), &json!(1)));
    put(host.folder.path(), "prompts/instance/write/task.md", "Write $what now.");
    host.call("reload", json!({})).await.unwrap();
    let resolved = host.call("override_resolve", json!({"prompt": "instance/write"})).await.unwrap();
    assert_eq!((&resolved["sections"], &resolved["stale"][0]["target"]), (&json!([]), &json!("task")));
    assert!(render().await.unwrap()["text"].as_str().unwrap().contains("Write it now."));
    let deleted = || host.call("override_delete", json!({"prompt": "instance/write"}));
    assert_eq!(deleted().await.unwrap(), json!({"deleted": true}));
    assert_eq!(deleted().await.unwrap(), json!({"deleted": false}));
    let seeded = host.call("override_seed", json!({"prompt": "instance/write", "tag": "v1"})).await.unwrap();
    host.call("override_upsert", json!({"prompt": "instance/write", "file": seeded})).await.unwrap();
}

#[tokio::test]
async fn what_there_is_can_be_looked_at() {
    let host = TestHost::new("");
    let entries = host.tree.list(&Caller::operator(), "prompts/templates/instance/write").unwrap();
    let names: Vec<String> =
        entries.into_iter().map(|entry| entry.path.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["README.md", "descriptor.json", "schema.json", "sections.json"]);
    expect![[r#"
        # instance/write

        Sections:

        - 1 Task (`task`)
        - 2 How (`how`)
        - 3 Mood (`mood`)
        - 4 Files (`files`)

        Params `Task`: `what`

        Tools: `pen.write`

        The answer is `Done`; `schema.json` has the types.

        Open it: `echo '{"prompt": "instance/write"}' > ../../../control/open.json`
    "#]]
    .assert_eq(&host.cat("templates/instance/write/README.md").await);
    assert!(host.cat("templates/instance/write/sections.json").await.contains("\"path\": \"files\""));
    assert_eq!(host.cat("faults.json").await, "[]\n");
    put(host.folder.path(), "prompts/instance/write/how.md", "$broken");
    host.call("reload", json!({})).await.unwrap();
    assert!(host.cat("faults.json").await.contains("\"line\": 1"));
    let parsed = host.call("parse", json!({"prompt": "instance/write", "reply": "{\"pages\": 1}"})).await.unwrap();
    assert_eq!(parsed, json!({"value": {"pages": 1}, "from": "message"}));
    // Row 86.
    let undeclared = host.call("parse", json!({"prompt": "evaluate/protocol", "reply": "{}"})).await.unwrap_err();
    assert_eq!(undeclared.message, "this prompt does not declare structured output");
}

#[test]
fn what_a_prompt_wants_to_say_about_itself_is_said() {
    for (template, _) in Library::built_in().list() {
        assert!(files::readme(&template).contains(&template.id()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_writes_no_words_into_the_prompts_of_others() {
    let host = TestHost::new("");
    for (op, arguments) in [
        (
            "override_store",
            json!({"prompt": "instance/write", "change": {"target": "section", "path": "x", "body": "mine"}}),
        ),
        ("override_seed", json!({"prompt": "instance/write", "tag": "draft"})),
        ("override_delete", json!({"prompt": "instance/write", "tag": "latest"})),
    ] {
        let job = host.context.call(&Caller::agent("ada"), "ada", "prompts", op, arguments).await.unwrap();
        let error = job.end().await.outcome.as_deref().unwrap().clone().unwrap_err();
        assert!(error.message.contains("only the operator writes them"), "{op}: {error}");
    }
}
