//! A right that is taken away while a session is open, and the limits that helpers share.

use serde_json::{Value, json};

use crate::common::until;
use crate::test_host::TestHost;

fn spec(agent: Value, read_only: bool) -> String {
    json!({"layout": "acheron-1", "agents": {"charon": agent},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": read_only}}}}})
    .to_string()
}

fn state(house: &TestHost) -> String {
    house.says("jq -r '.state + \" \" + (.ended_because // \"\")' agents/charon/terminal/sessions/s/status.json")
}

#[test]
fn a_session_ends_when_its_agent_loses_a_right_and_not_when_it_gains_one() {
    let working = json!({"projects": ["here"]});
    let house = TestHost::of(&spec(working.clone(), true));
    house.says("echo '{\"session_id\":\"s\"}' > agents/charon/terminal/control/create.json; cat agents/charon/terminal/result.json");
    assert_eq!(state(&house), "open \n");
    let edits = std::cell::Cell::new(0);
    let edit = |text: String| {
        house.edit(&text);
        let at = || {
            let health = std::fs::read_to_string(house.root().join("meta/health.json")).unwrap();
            serde_json::from_str::<Value>(&health).unwrap()["mountspec"]["at_ms"].as_u64().unwrap_or(0)
        };
        let before = edits.get();
        until("the edit is noticed", || at() > before);
        edits.set(at());
    };
    // A gain: the project may be written.
    edit(spec(working.clone(), false));
    assert_eq!(state(&house), "open \n");
    house.says("echo '{\"session_id\":\"w\"}' > agents/charon/terminal/control/create.json; cat agents/charon/terminal/result.json");
    // A loss for one that was opened when it could be written.
    edit(spec(working, true));
    until("it is closed", || house.says("jq -r .state agents/charon/terminal/sessions/w/status.json") == "closed\n");
    assert_eq!(
        house.says("jq -r .ended_because agents/charon/terminal/sessions/w/status.json"),
        "/projects/here/fs may no longer be written\n"
    );
    assert_eq!(state(&house), "open \n", "the other could not write before");
    // A loss for all.
    let less = json!({"projects": ["here"],
        "permissions": [{"deny": ["read", "write"], "path": "/projects/here/fs/notes.txt/**"}]});
    edit(spec(less, true));
    until("it is closed", || state(&house) == "closed /projects/here/fs/notes.txt may no longer be read\n");
    let said = house.says(
        r#"echo '{"session_id":"s","command":"true"}' > agents/charon/terminal/control/exec.json
           jq -r .error.message agents/charon/terminal/result.json"#,
    );
    assert_eq!(
        said,
        "the session `s` is closed: the host ended it, because /projects/here/fs/notes.txt may no longer be read\n"
    );
}

#[test]
fn bindings_are_bounded_and_one_that_fails_keeps_no_program_from_starting() {
    let house = TestHost::of(&spec(json!({"projects": ["here"]}), false));
    let said = house.says(
        r#"
        cd agents/charon/mounts
        exec 3<>control/bind.json
        for i in $(seq 1 260); do
          echo "{\"bind_path\":\"/projects/here/n$i\",\"target_path\":\"/agents\"}" >&3; jq -rc '.error.message // empty' <&3
        done | sort | uniq -c | sed 's/^ *//'
        cd ../terminal; echo '{"command":"ls /projects/here | wc -l"}' > control/exec.json; jq -r '.result.stdout // .error.message' result.json"#,
    );
    let full = "/projects/here has 256 bindings already, the most that a directory may have; unbind one first";
    assert_eq!(said, format!("4 {full}\n257\n\n"));
}

#[test]
fn a_helper_shares_the_limits_of_its_founder_at_every_depth() {
    let house = TestHost::of(&spec(json!({"projects": ["here"]}), true));
    house.inside(async |host| {
        let profile = |parent: &str| {
            let mut profile = host.state.profiles.get("charon").unwrap();
            profile.parent = Some(parent.to_owned());
            profile
        };
        host.state.profiles.put("one", profile("charon")).unwrap();
        host.state.profiles.put("two", profile("one")).unwrap();
        assert_eq!(host.state.profiles.founder("two"), "charon");
        assert_eq!(host.state.profiles.founder("nobody"), "nobody");
    });
    assert_eq!(house.says("jq -r .together.owner agents/charon/terminal/sandbox.json"), "charon\n");
}
