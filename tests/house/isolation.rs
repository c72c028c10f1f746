//! A malicious agent: path tricks in every field of every operation, links that change under the host's hands, things in
//! a project that are no files, names that lie.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{ToolCall, perform};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

/// A directory that nobody here has any business in.
struct Canary(TempDir);

const SECRET: &str = "CANARY-4711";

impl Canary {
    fn new() -> Canary {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("secret"), format!("{SECRET}\nfn soak() {{}}\n")).unwrap();
        Canary(dir)
    }

    fn path(&self) -> String {
        self.0.path().join("secret").to_str().unwrap().to_owned()
    }

    /// Nothing was added to it, changed or taken away.
    fn check(&self) {
        let names: Vec<_> = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"], "somebody wrote outside");
        assert!(fs::read_to_string(self.path()).unwrap().starts_with(SECRET), "somebody changed a file outside");
    }

    /// Puts links to itself into a project.
    fn lure(&self, here: &Path) {
        symlink(self.path(), here.join("link")).unwrap();
        symlink(self.0.path(), here.join("dirlink")).unwrap();
    }
}

/// A house whose project can be written to, with `prepare` done to the project.
fn house(prepare: impl FnOnce(&Path)) -> TestHost {
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"projects": ["here"]}}, "sandbox": {"allow_unconfined": true},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}});
    TestHost::prepared(&spec.to_string(), prepare)
}

/// What the agent's own tools answer, without the kernel in between.
fn hands(house: &TestHost, name: &str, arguments: Value) -> Value {
    let tool = ToolCall::read(name, arguments.as_object().unwrap().clone()).ok().unwrap();
    house.inside(async |host| {
        let (tree, caller) = (host.tree().clone(), Caller::agent("charon"));
        let inside = TreeTools { tree, caller, id: Arc::new(|| "h".to_owned()), parked: Arc::new(|_| ()) };
        perform(&inside, &tool).await
    })
}

/// Writes a command, and reads what it is answered with; nothing if it was refused at once.
fn called(control: &Path, payload: &Value) -> Option<String> {
    let mut handle = fs::OpenOptions::new().read(true).write(true).open(control).ok()?;
    handle.write_all(payload.to_string().as_bytes()).ok()?;
    let mut said = Vec::new();
    handle.read_to_end(&mut said).ok()?;
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// The operations of a service with a payload that works, and every field of each that takes text.
fn operations(service: &Path) -> Vec<(PathBuf, Value, Vec<String>)> {
    let json = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let schema = json(&service.join("SCHEMA.json"));
    let mut all = Vec::new();
    for entry in fs::read_dir(service.join("control")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(op) = name.strip_suffix(".json").filter(|op| *op != "invoke") else { continue };
        let control = service.join("control").join(&name);
        let properties = schema["$defs"][format!("{op}.arguments")]["properties"].clone();
        let text = |field: &Value| {
            let kind = field.to_string();
            kind.contains("\"string\"") || kind.contains("$ref")
        };
        let fields =
            properties.as_object().into_iter().flatten().filter(|(_, field)| text(field)).map(|(key, _)| key.clone());
        all.push((control.clone(), json(&control), fields.collect()));
    }
    all
}

/// A program may do what it likes in its sandbox: what it is told to run is no path of the host.
const PROGRAMS: [&str; 5] = ["command", "argv", "shell", "stdin", "env"];

#[test]
fn no_field_of_any_operation_leads_out() {
    let canary = Canary::new();
    let house = house(|here| canary.lure(here));
    let up = "../".repeat(14);
    let tricks = [
        canary.path(),
        format!("{up}{}", &canary.path()[1..]),
        format!("/projects/here/fs/{up}{}", &canary.path()[1..]),
        "link".to_owned(),
        "/projects/here/fs/link".to_owned(),
        "/projects/here/fs/dirlink/secret".to_owned(),
        "dirlink/new".to_owned(),
        "a\0b\n\u{202e}c".to_owned(),
    ];
    let agent = house.root().join("agents/charon");
    let mut tried = 0;
    for entry in fs::read_dir(&agent).unwrap() {
        let service = entry.unwrap().path();
        if !service.join("SCHEMA.json").is_file() {
            continue;
        }
        for (control, example, fields) in operations(&service) {
            for field in fields.iter().filter(|field| !PROGRAMS.contains(&field.as_str())) {
                for trick in &tricks {
                    let mut payload = example.clone();
                    // a list of paths takes a list
                    payload[field] = if example[field].is_array() { json!([trick]) } else { json!(trick) };
                    let said = called(&control, &payload).unwrap_or_default();
                    assert!(!said.contains(SECRET), "{} {payload}: {said}", control.display());
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 400, "only {tried} tricks were tried");
    for path in
        ["/projects/here/fs/link", "/projects/here/fs/dirlink/secret", "/projects/here/fs/../../../../etc/passwd"]
    {
        for (name, arguments) in
            [("file_read", json!({"path": path})), ("file_list", json!({"path": path, "recursive": true}))]
        {
            let said = hands(&house, name, arguments).to_string();
            assert!(!said.contains(SECRET) && !said.contains("root:"), "{name} {path}: {said}");
        }
        hands(&house, "file_write", json!({"path": path, "content": "overwritten"}));
    }
    canary.check();
    house.check("jq .ok meta/health.json", expect![["true\n"]]);
}

#[test]
fn a_link_that_changes_while_it_is_followed_leads_nowhere() {
    let canary = Canary::new();
    let house = house(|here| {
        fs::create_dir(here.join("inside")).unwrap();
        fs::write(here.join("inside/secret"), "nothing\n").unwrap();
        symlink("inside", here.join("race")).unwrap();
    });
    let over = Arc::new(AtomicBool::new(false));
    let flipping = std::thread::spawn({
        let (here, outside, over) = (house.here(), canary.0.path().to_owned(), over.clone());
        move || {
            let mut flips = 0u32;
            while !over.load(Ordering::SeqCst) {
                let to = if flips.is_multiple_of(2) { outside.as_path() } else { Path::new("inside") };
                symlink(to, here.join("next")).unwrap();
                fs::rename(here.join("next"), here.join("race")).unwrap();
                flips += 1;
            }
            flips
        }
    });
    for n in 0..300 {
        let said = hands(&house, "file_read", json!({"path": "/projects/here/fs/race/secret"})).to_string();
        assert!(!said.contains(SECRET), "{said}");
        hands(&house, "file_write", json!({"path": "/projects/here/fs/race/new", "content": n.to_string()}));
    }
    let search = house.root().join("agents/charon/search_code/control/search.json");
    for _ in 0..20 {
        let said = called(&search, &json!({"query": "CANARY", "path": "/projects/here/fs/race"})).unwrap_or_default();
        assert!(!said.contains(SECRET), "{said}");
    }
    over.store(true, Ordering::SeqCst);
    assert!(flipping.join().unwrap() > 10, "the link hardly changed");
    canary.check();
}

#[test]
fn what_is_no_file_in_a_project_holds_nobody_up() {
    let house = house(|here| {
        let made = std::process::Command::new("sh")
            .args(["-c", "mkfifo fifo; mknod zero c 1 5; mknod disk b 1 0; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'"])
            .current_dir(here)
            .status();
        assert!(made.unwrap().success());
    });
    for name in ["fifo", "zero", "disk", "socket"] {
        let said = hands(&house, "file_read", json!({"path": format!("/projects/here/fs/{name}")}));
        assert!(said["error"].is_object(), "{name}: {said}");
        let said = hands(&house, "file_write", json!({"path": format!("/projects/here/fs/{name}"), "content": "x"}));
        assert!(said["error"].is_object(), "{name}: {said}");
    }
    let listed = hands(&house, "file_list", json!({"path": "/projects/here/fs"}));
    assert!(listed["entries"].as_array().unwrap().len() >= 2, "{listed}");
    let search = house.root().join("agents/charon/search_code/control/search.json");
    let said = called(&search, &json!({"query": "TODO"})).unwrap();
    assert!(said.contains("main.rs"), "{said}");
}

#[test]
fn names_that_lie_are_shown_as_they_are() {
    let odd = ["two\nlines", "\u{202e}gpj.exe", "tab\there", " ", "quote\"'\\", "-rf", "é\u{301}", "\u{1b}[31mred"];
    let house = house(|here| odd.iter().for_each(|name| fs::write(here.join(name), "TODO odd\n").unwrap()));
    let listed = hands(&house, "file_list", json!({"path": "/projects/here/fs"}));
    let paths: Vec<&str> =
        listed["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    let search = house.root().join("agents/charon/search_code/control/search.json");
    let found = called(&search, &json!({"query": "TODO odd"})).unwrap();
    serde_json::from_str::<Value>(&found).expect("one JSON object, whatever the names are");
    for name in odd {
        assert!(paths.iter().any(|path| path.ends_with(name)), "{name:?} is not in {paths:?}");
        let read = hands(&house, "file_read", json!({"path": format!("/projects/here/fs/{name}")}));
        assert_eq!(read["content"], "TODO odd\n", "{name:?}: {read}");
        // names of our own are plainer
        for dir in ["memory/items", "agents/control"] {
            assert!(fs::create_dir(house.root().join("agents/charon").join(dir).join(name)).is_err(), "{dir}/{name:?}");
        }
    }
    let id = called(&house.root().join("agents/charon/agents/control/create.json"), &json!({"agent_id": odd[0]}));
    assert!(id.is_none_or(|said| said.contains("\"ok\":false")));
}

#[test]
fn huge_and_deep_json_is_refused_or_taken_and_nobody_waits_for_it() {
    let house = TestHost::new();
    let deep = |open: &str, close: &str, times: usize| format!("{}{}", open.repeat(times), close.repeat(times));
    let payloads = [
        deep("[", "]", 400_000),
        format!("{{\"query\":{}}}", deep("[", "]", 200_000)),
        format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)),
        format!("{{\"query\":\"{}\"}}", "x".repeat((1 << 20) + 1)),
        format!("{{{}}}", (0..60_000).map(|n| format!("\"k{n}\":1")).collect::<Vec<_>>().join(",")),
        format!("{{\"limit\":{}}}", "9".repeat(500_000)),
        format!("{{\"query\":\"{}\"}}", "\\ud800".repeat(100_000)),
        format!("{{\"query\":\"{}\"}}", "x".repeat(900_000)),
    ];
    for service in ["memory", "search_code"] {
        let control = house.root().join("agents/self").join(service).join("control/search.json");
        for payload in &payloads {
            let mut handle = fs::OpenOptions::new().write(true).open(&control).unwrap();
            _ = handle.write_all(payload.as_bytes()); // refused or not
        }
    }
    house.check(
        r#"echo '{"query":"main"}' > agents/self/search_code/control/search.json; jq .ok agents/self/search_code/result.json"#,
        expect![["true\n"]],
    );
}
