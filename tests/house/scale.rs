//! A directory of very many files, and very many bytes in open files: they stall and harm nobody else.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use expect_test::expect;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{python, until};
use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{ToolCall, perform};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

/// Made in memory, which takes some ten seconds and a gibibyte.
const MILLION: usize = 1_000_000;

/// A disk in memory with many empty files in its only directory.
struct Disk(TempDir);

impl Disk {
    fn of(count: usize) -> Disk {
        let disk = Disk(TempDir::new().unwrap());
        let options = Some("size=64m,nr_inodes=0");
        nix::mount::mount(Some("many"), disk.0.path(), Some("tmpfs"), nix::mount::MsFlags::empty(), options).unwrap();
        let first = disk.0.path().join("first");
        fs::File::create(&first).unwrap();
        // Names of one file: each costs a name and no file of its own.
        (1..count).for_each(|n| fs::hard_link(&first, disk.0.path().join(format!("f{n}"))).unwrap());
        disk
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        _ = nix::mount::umount2(self.0.path(), nix::mount::MntFlags::MNT_DETACH);
    }
}

/// What the agent's own tools answer, without the kernel in between.
fn hands(house: &TestHost, name: &str, arguments: Value) -> Value {
    let tool = ToolCall::read(name, arguments.as_object().unwrap().clone()).ok().unwrap();
    house.inside(async |host| {
        let (tree, caller) = (host.tree().clone(), Caller::agent("charon"));
        perform(&TreeTools { tree, caller, id: Arc::new(|| "h".to_owned()), parked: Arc::new(|_| ()) }, &tool).await
    })
}

/// Everybody lists a directory of so many files in every way there is, while somebody else goes on with other things.
/// Returns how often that one could, and the longest that it had to wait, for people to look at.
fn listed_by_all() -> (usize, u128) {
    let disk = Disk::of(MILLION);
    let bind = |mirror: bool| json!({"binds": {"/": {"path": disk.0.path(), "mirror": mirror}}});
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"projects": ["bound", "mirrored"]}},
        "projects": {"bound": bind(false), "mirrored": bind(true)}});
    let house = TestHost::of(&spec.to_string());
    let over = AtomicBool::new(false);
    let walk = |project: &str| {
        let script = format!("import os; print(sum(1 for _ in os.scandir('projects/{project}/fs')))");
        assert_eq!(python(&house.root(), &script), format!("{MILLION}\n"), "{project}");
    };
    let first = |project: &str| {
        let listed = hands(&house, "file_list", json!({"path": format!("/projects/{project}/fs"), "max_entries": 10}));
        let names = listed["entries"].as_array().unwrap();
        assert_eq!((names.len(), &listed["truncated"]), (10, &json!(true)), "{listed}");
        assert_eq!(names[0]["path"], format!("/projects/{project}/fs/f1"));
    };
    let other = || {
        let (mut times, mut longest) = (0, 0);
        while !over.load(Ordering::SeqCst) || times < 50 {
            let began = Instant::now();
            assert!(fs::read_to_string(house.root().join("README.md")).unwrap().starts_with("# Acheron"));
            fs::write(house.root().join("agents/charon/memory/control/search.json"), "{\"query\":\"x\"}").unwrap();
            assert!(
                fs::read_to_string(house.root().join("agents/charon/memory/result.json")).unwrap().contains("true")
            );
            longest = longest.max(began.elapsed().as_millis());
            times += 1;
        }
        (times, longest)
    };
    let seen = std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let walks = ["bound", "mirrored"].map(|project| scope.spawn(move || walk(project)));
        ["bound", "mirrored"].into_iter().for_each(first);
        walks.into_iter().for_each(|walk| walk.join().unwrap());
        over.store(true, Ordering::SeqCst);
        other.join().unwrap()
    });
    until("the listings are let go", || house.says("jq .parked meta/metrics.json").trim() == "0");
    // It was not all looked at when the mount answered; from some time on every change is noticed.
    let log = house.root().join("agents/charon/events/log.ndjson");
    let mut looks = 0;
    until("changes are noticed", || {
        if looks % 500 == 0 {
            fs::write(disk.0.path().join(format!("late{looks}")), "x").unwrap();
        }
        looks += 1;
        fs::read_to_string(&log).unwrap().contains("/projects/mirrored/fs/late")
    });
    drop(house);
    seen
}

#[test]
fn a_directory_of_a_million_files_stalls_nobody_else() {
    let (times, longest) = listed_by_all();
    println!("{times} other calls meanwhile, the longest took {longest} ms");
    assert!(times >= 50);
}

/// Almost a whole command, never finished.
fn unfinished(control: &Path) -> (fs::File, std::io::Result<()>) {
    let mut handle = fs::OpenOptions::new().write(true).open(control).unwrap();
    let part = format!("{{\"query\":\"{}", "x".repeat((1 << 20) - 64));
    let written = handle.write_all(part.as_bytes());
    (handle, written)
}

#[test]
fn unfinished_commands_of_one_caller_are_bounded_together() {
    let house = TestHost::of(r#"{"layout": "acheron-1", "agents": {"charon": {}, "styx": {}}}"#);
    let control: PathBuf = house.root().join("agents/charon/memory/control/search.json");
    let mut slow = Vec::new();
    let refused = loop {
        assert!(slow.len() < 200, "nobody refused");
        match unfinished(&control) {
            (handle, Ok(())) => slow.push(handle),
            (_, Err(error)) => break error,
        }
    };
    assert_eq!(refused.raw_os_error(), Some(libc::EDQUOT), "{refused}");
    assert!(slow.len() > 100, "{}", slow.len());
    house.check(
        r#"
        jq -c '[.state, .error.code]' agents/charon/memory/status.json
        jq -c '[.kept_bytes > 100000000, .kept_bytes < 140000000, .over_budget > 0]' meta/metrics.json
        echo '{"query":"x"}' > agents/charon/memory/control/search.json; jq .ok agents/charon/memory/result.json
        "#,
        expect![[r#"
            ["refused","budget_exceeded"]
            [true,true,true]
            true
        "#]],
    );
    // Another principal is not touched: an agent's own tools, without the kernel in between.
    let written = hands(
        &house,
        "file_write",
        json!({"path": "/agents/self/memory/control/search.json",
        "content": format!("{{\"query\":\"{}\"}}", "y".repeat(900_000))}),
    );
    assert!(written["job_id"].is_string() || written["error"]["code"] == "invalid_payload", "{written}");
    drop(slow);
    until("what was closed is free again", || {
        house.says("jq '.kept_bytes < 1000000' meta/metrics.json").trim() == "true"
    });
}
