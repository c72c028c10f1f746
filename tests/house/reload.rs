//! An edit of the mountspec, while somebody works in the mounted tree.

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::until;
use crate::test_host::TestHost;
use acheron::host::{Host, Options};
use acheron::policy::PrincipalCaller;
use acheron_base::{Clock, Random};
use acheron_vfs::Caller;

/// A mountspec with these services.
fn spec(services: Value) -> String {
    let reach = json!([{"allow": ["read", "invoke"], "path": "/nodes/local/services/**"}]);
    json!({"layout": "acheron-1", "agents": {"charon": {"permissions": reach}}, "services": services}).to_string()
}

/// A program that says `word`.
fn says(word: &str, scope: &str) -> Value {
    let command = ["sh", "-c", &format!("echo '\"{word}\"'")];
    json!({"command": command, "about": word, "scope": scope, "operations": {"say": {"effect": "read"}}})
}

fn hangs() -> Value {
    json!({"command": ["sleep", "600"], "about": "Never ends.", "operations": {"hang": {"timeout_ms": 600_000}}})
}

/// Waits until the host has looked at its edited mountspec.
fn looked(house: &TestHost) {
    until("the edit is noticed", || house.says("jq -c .mountspec meta/health.json") != "null\n");
}

#[test]
fn services_come_change_and_go_with_an_edit() {
    let house = TestHost::of(&spec(json!({"old": says("one", "agent"), "gone": says("two", "agent")})));
    let call = |path: &str| format!("exec 3<>{path}/control/say.json; echo '{{}}' >&3; jq -r .result <&3");
    assert_eq!(house.says(&call("agents/self/old")), "one\n");
    house.says("echo '{\"paths\":[\"/agents/self/services/SERVICES.json\"]}' > agents/self/events/control/wait.json");
    house.edit(&spec(json!({
        "old": says("another", "agent"),
        "new": says("three", "agent"),
        "all": says("four", "node"),
    })));
    // Who waits for a change of the services hears of it.
    assert_eq!(
        house.says("jq -r .source_path agents/self/events/next.json"),
        "/agents/charon/services/SERVICES.json\n"
    );
    looked(&house);
    for (path, said) in
        [("agents/self/old", "another\n"), ("agents/self/new", "three\n"), ("nodes/local/services/all", "four\n")]
    {
        assert_eq!(house.says(&call(path)), said, "{path}");
    }
    house.check(
        r#"
        ls agents/self/gone
        jq -r '.[].service_id' agents/self/services/SERVICES.json | grep -E 'old|new|all|gone'
        jq -c '.mountspec | {services, at_next_mount, error}' meta/health.json
        "#,
        expect![[r#"
            new
            old
            recall
            all
            {"services":["all","gone","new","old"],"at_next_mount":[],"error":null}
            ! ls: cannot access 'agents/self/gone': No such file or directory
        "#]],
    );
}

#[test]
fn who_waits_for_a_service_that_is_removed_gets_an_error() {
    let house = TestHost::of(&spec(json!({"slow": hangs()})));
    house.says("echo '{}' > agents/self/slow/control/hang.json");
    std::thread::scope(|scope| {
        let last = scope.spawn(|| house.says("jq -c '[.ok, .error]' agents/self/slow/result.json"));
        let own = "exec 3<>agents/self/slow/control/hang.json; echo '{}' >&3; jq -c '[.ok, .error]' <&3";
        let own = scope.spawn(|| house.says(own));
        until("both wait", || house.says("jq .parked meta/metrics.json") == "2\n");
        house.edit(&spec(json!({})));
        for waiter in [last, own] {
            expect![[r#"
                [false,{"code":"unavailable","message":"the service slow was removed"}]
            "#]]
            .assert_eq(&waiter.join().unwrap());
        }
    });
}

#[test]
fn a_call_under_way_ends_as_it_began_when_its_service_changes() {
    let waits = |about: &str| {
        let command = ["sh", "-c", "until [ -e /projects/here/fs/go ]; do sleep 0.01; done; echo '\"done\"'"];
        json!({"command": command, "about": about, "unconfined": false, "operations": {"wait": {"effect": "read"}}})
    };
    let with = |about: &str| {
        let mut spec: Value = serde_json::from_str(&spec(json!({"slow": waits(about)}))).unwrap();
        spec["projects"] = json!({"here": {"binds": {"/": {"path": "."}}}});
        spec["agents"]["charon"]["projects"] = json!(["here"]);
        spec.to_string()
    };
    let house = TestHost::of(&with("before"));
    house.says("echo '{}' > agents/self/slow/control/wait.json");
    house.edit(&with("after"));
    until("the change is there", || house.says("grep -c after agents/self/slow/README.md") == "1\n");
    std::fs::write(house.here().join("go"), "").unwrap();
    // The new desk knows the last call of the old one.
    assert_eq!(house.says("jq -r .result agents/self/slow/result.json"), "done\n");
}

#[test]
fn a_file_of_a_changed_service_is_the_new_one_even_if_somebody_holds_the_old_one_open() {
    let house = TestHost::of(&spec(json!({"old": says("one", "agent")})));
    let readme = house.root().join("agents/self/old/README.md");
    let _held = std::fs::File::open(&readme).unwrap();
    let mut other = says("one", "agent");
    other["about"] = json!("Another one.");
    house.edit(&spec(json!({"old": other})));
    looked(&house);
    assert!(std::fs::read_to_string(&readme).unwrap().contains("Another one."));
}

#[test]
fn a_faulty_edit_changes_nothing_and_is_told() {
    let house = TestHost::of(&spec(json!({"old": says("one", "agent")})));
    house.edit("{\"layout\": \"acheron-1\", \"agents\": {\"charon\": {}}, \"services\": {\"old\": {\"comand\": []}}}");
    looked(&house);
    house.check("ls -d agents/self/old; jq -r .mountspec.error meta/health.json | tail -n +2", expect![[r#"
        agents/self/old
          services.old: unknown key `comand`; did you mean command?
          services.old: has no command, and is not a built-in service; built-in services are agents, dm, mail, memory, mounts, phases, prompts, queues, recall, search_code, sub_brains, symbols, terminal, web_search
    "#]]);
}

#[test]
fn agents_and_projects_come_and_go_with_an_edit() {
    let mut house = TestHost::of(&spec(json!({})));
    let with = |agents: Value, projects: Value| {
        let mut spec: Value = serde_json::from_str(&spec(json!({}))).unwrap();
        spec["agents"] = agents;
        spec["projects"] = projects;
        spec.to_string()
    };
    let here = json!({"here": {"binds": {"/": {"path": "."}}}});
    house.edit(&with(json!({"charon": {"projects": ["here"]}, "styx": {}}), here.clone()));
    looked(&house);
    // The project is the directory itself, and who works in it finds it.
    house.check(
        r#"
        ls agents projects/here/fs
        exec 3<>agents/charon/search_code/control/search.json; echo '{"query":"TODO"}' >&3; jq -r '.result.matches[].path' <&3
        echo hello > agents/styx/chat/control/input; grep -c Hello agents/styx/chat/latest.txt
        touch projects/here/fs/x
        jq -c '.mountspec | {agents, projects, error}' meta/health.json
        "#,
        expect![[r#"
            agents:
            charon
            self
            styx

            projects/here/fs:
            main.rs
            notes.txt
            /projects/here/fs/main.rs
            1
            {"agents":["charon","styx"],"projects":["here"],"error":null}
            ! touch: cannot touch 'projects/here/fs/x': Read-only file system
        "#]],
    );
    house.edit(&with(json!({"styx": {}}), json!({})));
    until("charon is gone", || !house.root().join("agents/charon").exists());
    until("the project is gone", || !house.root().join("projects/here").exists());
    house.check(
        "ls agents projects; readlink agents/self; grep -c \"$PWD\" /proc/mounts",
        expect![[r#"
        agents:
        self
        styx

        projects:
        styx
        1
    "#]],
    );
    // What was edited is not undone by a restart, and who went does not come back.
    house.restart();
    house.check(
        "ls agents",
        expect![[r#"
        self
        styx
    "#]],
    );
}

#[test]
fn what_only_counts_at_the_next_mount_is_named() {
    let house = TestHost::of(&spec(json!({})));
    let mut other: Value = serde_json::from_str(&spec(json!({}))).unwrap();
    other["memory"] = json!({"active_tokens": 3});
    house.edit(&other.to_string());
    looked(&house);
    house.check(
        "jq -c .mountspec.at_next_mount meta/health.json",
        expect![[r#"
            ["memory"]
        "#]],
    );
}

#[test]
fn what_is_changed_of_an_agent_holds_until_its_entry_in_the_mountspec_is_edited() {
    let with = |about: &str| {
        let mut spec: Value = serde_json::from_str(&spec(json!({}))).unwrap();
        spec["agents"] = json!({"charon": {"about": about}});
        spec.to_string()
    };
    let mut house = TestHost::of(&with("a ferryman"));
    let shown = "exec 3<>agents/self/agents/control/get.json; echo '{\"agent_id\":\"charon\"}' >&3
        jq -c '.result | [.about, .limits.rounds]' <&3";
    let update = r#"{"agent_id":"charon","about":"a helmsman","limits":{"rounds":7}}"#;
    house
        .says(&format!("echo '{update}' > agents/self/agents/control/update.json; cat agents/self/agents/result.json"));
    assert_eq!(house.says(shown), "[\"a helmsman\",7]\n");
    house.restart();
    assert_eq!(house.says(shown), "[\"a helmsman\",7]\n");
    house.edit(&with("a rower"));
    until("the mountspec has the last word", || house.says(shown) == "[\"a rower\",32]\n");
    let dropped = "jq -c 'select(.payload.what == \"update_dropped\") | .payload.agent' agents/self/events/log.ndjson";
    until("it is an event", || house.says(dropped) == "\"charon\"\n");
    house.restart();
    assert_eq!(house.says(shown), "[\"a rower\",32]\n");
}

#[test]
fn an_edit_between_the_start_and_the_watch_counts() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("spec.json");
    let one = |agents: Value| json!({"layout": "acheron-1", "agents": agents}).to_string();
    std::fs::write(&file, one(json!({"charon": {}}))).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let names = runtime.block_on(async {
        let options = Options {
            spec: acheron::spec::Spec::load(&file).unwrap(),
            here: dir.path().to_owned(),
            state: dir.path().join("state"),
            mountpoint: None,
            clock: Clock::real(),
            random: Random::real(),
        };
        let mut host = Host::start(options).unwrap();
        std::fs::write(&file, one(json!({"charon": {}, "styx": {}}))).unwrap();
        host.follow(&file);
        let list = || host.tree().list(&Caller::operator(), "/agents").unwrap();
        let names = tokio::task::spawn_blocking({
            let tree = host.tree().clone();
            move || {
                let there = || tree.find(&Caller::operator(), "/agents/styx").is_ok();
                let begun = std::time::Instant::now();
                while !there() && begun.elapsed() < std::time::Duration::from_secs(5) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        })
        .await
        .map(|()| list().into_iter().map(|entry| entry.path).collect::<Vec<_>>());
        host.down().await;
        names.unwrap()
    });
    runtime.shutdown_background();
    assert_eq!(names, ["/agents/charon", "/agents/self", "/agents/styx"]);
}
