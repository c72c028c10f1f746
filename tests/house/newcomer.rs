//! Somebody who knows only `cat`, `ls` and `echo` and does what AGENTS.md says, to the letter.

use std::cell::Cell;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::common::session;
use crate::test_host::TestHost;
use acheron::agent::tools::{self, MountTools, ToolCall};

/// Reads, lists and writes, and counts what it had to read.
struct Follower {
    root: PathBuf,
    bytes: Cell<usize>,
}

impl Follower {
    fn run(&self, script: &str) -> String {
        let said = session(&self.root, script);
        assert!(!said.lines().any(|line| line.starts_with("! ")), "{script}\n{said}");
        self.bytes.set(self.bytes.get() + said.len());
        said
    }

    fn cat(&self, path: &str) -> String {
        self.run(&format!("cat {path}"))
    }

    fn ls(&self, path: &str) -> Vec<String> {
        self.run(&format!("ls {path}/")).lines().map(str::to_owned).collect()
    }

    fn echo(&self, text: &str, path: &str) {
        self.run(&format!("echo '{text}' > {path}"));
    }
}

/// The words in backquotes of each numbered step.
fn steps(text: &str) -> Vec<Vec<String>> {
    let numbered = (1..).map_while(|number| text.split(&format!("\n{number}. **")).nth(1).map(str::to_owned));
    let quoted = |step: String| {
        let next = step.split("\n\n").next().unwrap_or_default().to_owned();
        next.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    numbered.map(quoted).collect()
}

/// The default agent, served by whoever writes its reply, with a hundred programs beside its own services.
fn crowded() -> String {
    let program = json!({"command": ["/bin/cat"], "about": "Gives back what it is given.",
        "operations": {"echo": {"effect": "read", "about": "Says it again.", "example": {}}}});
    let services: Map<String, Value> = (0..100).map(|n| (format!("program-{n:02}"), program.clone())).collect();
    json!({"layout": "acheron-1", "model": {"kind": "external"}, "agents": {"charon": {"projects": ["here"]}},
        "projects": {"here": {"binds": {"/": {"path": "."}}}}, "services": services})
    .to_string()
}

#[test]
fn agents_md_alone_is_enough_to_find_a_service_call_it_wait_and_reply() {
    let house = TestHost::of(&crowded());
    let me = Follower { root: house.root(), bytes: Cell::new(0) };
    let steps = steps(&me.cat("AGENTS.md"));
    let [find, call, wait, anything, answer] = &steps[..] else { panic!("{steps:?}") };

    let names = me.ls(&find[0]);
    assert!(names.len() > 110, "{names:?}");
    let service = names.iter().find(|name| name.contains("search_code")).unwrap();
    let named = |path: &str| path.replace("<service>", service);
    let readme = me.cat(&named(&find[1]));
    // The first example, as it is pasted: echo '{…}' > control/<operation>.json
    let example = readme.lines().find(|line| line.starts_with("echo '")).unwrap();
    let (payload, control) = example["echo '".len()..].split_once("' > control/").unwrap();
    let operation = control.trim_end_matches(".json");

    me.echo(payload, &named(&call[0]).replace("<operation>", operation));
    let bytes = me.bytes.get();
    let result: Value = serde_json::from_str(&me.cat(&named(&wait[0]))).unwrap();
    assert_eq!(result["ok"], true, "{result}");
    assert_eq!(result["result"]["matches"][0]["line"], 1, "{result}");
    println!("{bytes} bytes read before the first call, with {} names in {}", names.len(), find[0]);
    assert!(bytes < 8192, "{bytes} bytes had to be read before the first call");

    me.echo(&anything[0], &anything[1]);
    session(&house.root(), r#"echo '{"event_type":"user","payload":7}' > agents/self/events/control/signal.json"#);
    let event: Value = serde_json::from_str(&me.cat(&anything[2])).unwrap();
    assert_eq!(event["signal"]["payload"], 7, "{event}");

    session(&house.root(), "echo 'Well?' > agents/self/chat/control/input");
    let status = || std::fs::read_to_string(house.root().join("agents/self/chat/status.json")).unwrap();
    crate::common::until("the turn has begun", || status().contains("running"));
    me.echo("It is in main.rs.", &answer[0]);
    assert_eq!(me.cat("agents/self/chat/latest.txt").trim_end(), "It is in main.rs.");
}

/// A model that knows nothing and does what AGENTS.md says: what it reads, in tokens.
#[test]
fn the_first_call_among_a_hundred_services_costs_a_thousand_tokens_and_each_further_one_a_quarter() {
    let house = TestHost::of(&crowded());
    let tools = MountTools::new(house.root(), std::sync::Arc::new(|| "mine".to_owned()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let read = |name: &str, arguments: Value| {
        let call = ToolCall::read(name, arguments.as_object().unwrap().clone()).unwrap();
        let result = runtime.block_on(tools::perform(&tools, &call));
        assert_eq!(result.get("error"), None, "{arguments}");
        let told = json!({"tool_result": {"name": name, "result": tools::shown(&result)}}).to_string();
        (acheron_base::tokens::count(&told), told)
    };
    let call = |service: &str| {
        let path = |file: &str| json!({"path": format!("agents/self/{service}/{file}")});
        let (readme, page) = read("file_read", path("README.md"));
        assert!(page.contains("control/echo.json"), "{page}");
        let mut write = path("control/echo.json");
        write["content"] = "{}".into();
        let (wrote, _) = read("file_write", write);
        let (result, done) = read("file_read", path("result.json"));
        assert!(done.contains(r#"\"ok\":true"#), "{done}");
        readme + wrote + result
    };
    let (agents, _) = read("file_read", json!({"path": "AGENTS.md"}));
    let (names, listed) = read("file_list", json!({"path": "agents/self"}));
    assert!(listed.contains("program-07") && listed.contains("search_code"), "{listed}");
    let first = agents + names + call("program-07");
    assert!(first <= 1000, "{first} tokens for the first call: AGENTS.md {agents}, names {names}");
    for service in ["program-00", "program-99"] {
        let further = call(service);
        assert!(further <= 250, "{further} tokens for {service}");
    }
    let services = read("file_read", json!({"path": "agents/self/services/SERVICES.json"})).1;
    assert!(services.len() > 10_000, "the way through SERVICES.json is the long one");
}

#[test]
fn a_line_of_services_json_is_a_service() {
    let house = TestHost::new();
    let text = std::fs::read_to_string(house.root().join("agents/self/services/SERVICES.json")).unwrap();
    let line = text.lines().find(|line| line.contains(r#""service_id":"search_code""#)).unwrap();
    let entry: Value = serde_json::from_str(line.trim_end_matches(',')).unwrap();
    assert_eq!(entry["has_invoke"], true);
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(text.lines().count(), all.len() + 2, "one entry per line between the brackets");
    for key in ["node_id", "service_id", "service_path", "invoke_path", "has_invoke", "scope"] {
        assert!(all.iter().all(|entry| entry.get(key).is_some()), "{key}");
    }
}
