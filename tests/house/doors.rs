//! One tree, many doors: each shows the same names, the same bytes, the same refusals, the same waits, and hides the same.

use std::collections::BTreeSet;

use serde_json::json;

use crate::common::{session, until};
use crate::served::{Served, token};
use crate::test_doors::{HttpDoor, InsideDoor, MountDoor, TestDoor, ToolDoor};
use crate::test_host::TestHost;
use crate::test_more_doors::{McpDoor, NinepDoor};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

fn house() -> TestHost {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "external"}, "default_agent": "charon",
        "agents": {"charon": {"projects": ["here"]}, "ada": {}},
        "projects": {"here": {"binds": {"/": {"path": "."}}}, "other": {"binds": {"/": {"path": "."}}}}});
    let house = TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("a b%ä.txt"), "odd\n").unwrap();
    });
    house.says(
        r#"cd agents/self; echo '{"kind":"note","name":"ford","content":"At the willow."}' > memory/control/create.json
        echo '{"query":"TODO"}' > search_code/control/search.json; cat search_code/result.json
        ls recall/nodes; until jq -e '.progress.index == "ready"' recall/status.json; do sleep 0.05; done"#,
    );
    house
}

/// Does something with every door through which the operator comes.
fn with_operator_doors(house: &TestHost, work: impl FnOnce(&[&dyn TestDoor])) {
    let served = Served::begin(house, &["--fs"]);
    let http = HttpDoor { served: &served, token: token(house, &["create", "--operator"]) };
    let (mount, tool) = (MountDoor(house.root()), ToolDoor::new(house));
    let inside = InsideDoor::new(house, Caller::operator());
    let (mcp, ninep) = (McpDoor::new(house, None), NinepDoor::new(house, None));
    work(&[&inside, &mount, &tool, &http, &mcp, &ninep]);
}

/// Every path below `/` as a door lists it, directories and links marked.
fn walk(door: &dyn TestDoor) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![String::new()]);
    while let Some(dir) = open.pop() {
        let names = door.list(if dir.is_empty() { "/" } else { &dir });
        for name in names.unwrap_or_else(|refusal| panic!("{}: {dir}: {refusal:?}", door.name())) {
            let path = format!("{dir}/{name}");
            if let Some(below) = path.strip_suffix('/') {
                open.push(below.to_owned());
            }
            found.insert(path);
        }
    }
    found
}

#[test]
fn every_door_shows_the_same_names_and_the_same_bytes() {
    let house = house();
    with_operator_doors(&house, |doors| {
        let names = walk(doors[0]);
        assert!(names.len() > 300, "only {} names", names.len());
        for door in &doors[1..] {
            let others = walk(*door);
            let differ: Vec<_> = names.symmetric_difference(&others).collect();
            assert!(differ.is_empty(), "{} and {} differ: {differ:?}", doors[0].name(), door.name());
        }
        let mut stable = 0;
        for path in names.iter().filter(|path| !path.ends_with(['/', '@'])) {
            let read: Vec<_> = doors.iter().map(|door| door.read(path, false).map_err(|why| why.errno)).collect();
            // What changes by itself, such as a time, cannot be compared.
            if doors[0].read(path, false).map_err(|why| why.errno) != read[0] {
                continue;
            }
            stable += 1;
            for (door, text) in doors.iter().zip(&read) {
                assert_eq!(*text, read[0], "{path} by {} and by {}", door.name(), doors[0].name());
            }
        }
        assert!(stable > 250, "only {stable} files could be compared");
    });
}

#[test]
fn every_door_refuses_the_same_for_the_same_reason() {
    let house = house();
    let me = "/agents/charon";
    with_operator_doors(&house, |doors| {
        for (path, content, has_sentence) in [
            (format!("{me}/memory/control/create.json"), r#"{"kind":"note"}"#, true),
            (format!("{me}/memory/control/create.json"), "not json", true),
            (format!("{me}/memory/control/create.json"), r#"{"kind":"#, true),
            (format!("{me}/memory/control/invoke.json"), r#"{"op":"fly"}"#, true),
            (format!("{me}/memory/control/fly.json"), "{}", false),
            (format!("{me}/chat/control/input.json"), r#"{"text":"hi"}"#, true),
            (format!("{me}/memory/README.md"), "x", false),
            (format!("{me}/nowhere/x"), "x", false),
            ("/new".to_owned(), "x", false),
        ] {
            let refused: Vec<_> = doors.iter().map(|door| door.write(&path, content)).collect();
            let first = refused[0].clone().expect_err(&path);
            for (door, refusal) in doors.iter().zip(&refused) {
                let refusal = refusal.clone().expect_err(&path);
                assert_eq!(refusal.errno, first.errno, "{path} by {}: {refusal:?}, {first:?}", door.name());
                if has_sentence {
                    assert_eq!(refusal.sentence, first.sentence, "{path} by {}", door.name());
                }
            }
        }
        for path in ["/nowhere", "/README.md/x", &format!("{me}/jobs/by/none/status.json")] {
            let refused: Vec<_> = doors.iter().map(|door| door.read(path, true).expect_err(path).errno).collect();
            assert!(refused.iter().all(|errno| *errno == refused[0]), "{path}: {refused:?}");
        }
    });
}

#[test]
fn a_wait_parks_at_every_door_ends_at_every_door_and_can_be_given_up_at_every_door() {
    let house = house();
    let latest = "/agents/charon/chat/latest.txt";
    with_operator_doors(&house, |doors| {
        doors[0].write("/agents/charon/chat/control/input", "two and two?").unwrap();
        for door in doors {
            let look = door.read(latest, false).expect_err(door.name());
            assert_eq!(look.errno, acheron_base::Code::Busy.errno(), "{}", door.name());
            door.give_up(latest);
        }
        until("no wait is left", || {
            let metrics = doors[0].read("/meta/metrics.json", true).unwrap();
            serde_json::from_str::<serde_json::Value>(&metrics).unwrap()["parked"] == 0
        });
        std::thread::scope(|scope| {
            let waiting: Vec<_> = doors.iter().map(|door| scope.spawn(|| door.read(latest, true))).collect();
            until("the turn runs", || house.says("jq -r .state agents/charon/chat/status.json") == "running\n");
            doors[0].write("/agents/charon/chat/control/reply", "four").unwrap();
            for (door, read) in doors.iter().zip(waiting) {
                assert_eq!(read.join().unwrap().as_deref(), Ok("four\n"), "{}", door.name());
            }
        });
    });
}

#[test]
fn what_an_agent_may_not_see_does_not_exist_at_any_door() {
    let house = house();
    let served = Served::begin(&house, &["--fs"]);
    let http = HttpDoor { served: &served, token: token(&house, &["create", "--agent", "charon"]) };
    let inside = InsideDoor::new(&house, Caller::agent("charon"));
    let (mcp, ninep) = (McpDoor::new(&house, Some("charon")), NinepDoor::new(&house, Some(&http.token)));
    let names = walk(&inside);
    for door in [&http as &dyn TestDoor, &mcp, &ninep] {
        let differ: Vec<_> = names.symmetric_difference(&walk(door)).cloned().collect::<Vec<_>>();
        assert!(differ.is_empty(), "{}: {differ:?}", door.name());
    }
    assert!(names.contains("/agents/charon/") && names.contains("/projects/here/"));
    let program = env!("CARGO_BIN_EXE_acheron");
    let kernel = session(
        &house.root(),
        &format!(
            "{program} exec --root . --agent charon -- find /agents /projects /meta /global -mindepth 1 -printf '%p%y\\n' | sed 's/d$/\\//; s/l$/@/; s/f$//' | sort"
        ),
    );
    let kernel: BTreeSet<String> = kernel.lines().map(str::to_owned).collect();
    let tops = ["/agents/", "/projects/", "/meta/", "/global/"];
    // A sandbox shows the files of a project, and not the pages about it.
    let pages = ["/projects/here/README.md", "/projects/here/meta.json"];
    let wanted: BTreeSet<String> = names
        .iter()
        .filter(|path| !pages.contains(&path.as_str()))
        .filter(|path| tops.iter().any(|top| path.starts_with(top) && path.as_str() != *top))
        .cloned()
        .collect();
    let differ: Vec<_> = wanted.symmetric_difference(&kernel).collect();
    assert!(differ.is_empty(), "the sandbox differs: {differ:?}");
    for hidden in ["/agents/ada/chat/status.json", "/projects/other/meta.json", "/meta/health.json"] {
        for door in [&inside as &dyn TestDoor, &http, &mcp, &ninep] {
            let missing = door.read("/agents/none/x", false).expect_err("there is none");
            let refusal = door.read(hidden, false).expect_err(hidden);
            assert_eq!(refusal.errno, missing.errno, "{hidden} by {}", door.name());
            // Not even by the way in which it is refused to change it.
            let write = door.write(hidden, "x").expect_err(hidden).errno;
            let other =
                door.write(&hidden.replace("ada", "bob").replace("other", "nix").replace("health", "none"), "x");
            assert_eq!(write, other.expect_err(hidden).errno, "{hidden} by {}", door.name());
        }
    }
}
