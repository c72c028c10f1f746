//! A right that is taken away while programs run, signals to `acheron exec`, and the limits that helpers share.

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

/// Edits the mountspec and waits until that has taken effect.
fn edit(house: &TestHost, text: &str) {
    let at = || {
        let health = std::fs::read_to_string(house.root().join("meta/health.json")).unwrap();
        serde_json::from_str::<Value>(&health).unwrap()["mountspec"]["at_ms"].as_u64().unwrap_or(0)
    };
    let before = at();
    house.edit(text);
    until("the edit is noticed", || at() > before);
}

/// A program that writes to the project for as long as it may.
fn beat(name: &str) -> String {
    format!("while :; do echo x >> /projects/here/fs/{name}; sleep 0.05; done")
}

fn exec(house: &TestHost, script: &str) -> std::process::Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_acheron"))
        .args(["exec", "--agent", "charon", "--root"])
        .arg(house.root())
        .args(["--", "sh", "-c", script])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

/// The exit code and the last line of the errors: the program may have complained when it was ended.
fn last_words(ended: &std::process::Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&ended.stderr).lines().last().map(|line| format!("{line}\n"));
    (ended.status.code(), said.unwrap_or_default())
}

fn with_service(agents: Value, read_only: bool) -> String {
    let program = json!({"command": ["sh", "-c", beat("by_service")], "operations": {"go": {}}});
    json!({"layout": "acheron-1", "agents": agents, "services": {"svc": program},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": read_only}}}, "more": {"binds": {"/": {"path": "."}}}}})
    .to_string()
}

#[test]
fn every_program_ends_when_its_agent_loses_a_right_and_none_when_it_gains_one() {
    let house = TestHost::of(&with_service(json!({"charon": {"projects": ["here"]}}), false));
    let (job, in_session) = (beat("by_job"), beat("by_session"));
    house.says(&format!(
        r#"
        cd agents/charon; echo '{{"session_id":"s"}}' > terminal/control/create.json; cat terminal/result.json > /dev/null
        call() {{ jq -cn --arg id $1 --arg op $2 --argjson arguments "$3" '$ARGS.named | {{op, arguments, correlation_id: .id}}' > $4/control/invoke.json; }}
        call job exec '{{"command":"{job}"}}' terminal
        call session exec '{{"session_id":"s","command":"{in_session}"}}' terminal
        call service go '{{}}' svc"#
    ));
    let mut outside = exec(&house, &beat("by_exec"));
    let beats = ["by_job", "by_session", "by_service", "by_exec"];
    until("all write", || beats.iter().all(|name| house.here().join(name).exists()));
    let states =
        || house.says("for id in job session service; do jq -r .state agents/charon/jobs/by/$id/progress.json; done");
    edit(&house, &with_service(json!({"charon": {"projects": ["here", "more"]}}), false));
    assert_eq!(states(), "running\nrunning\nrunning\n", "a gain leaves them alone");
    assert!(outside.try_wait().unwrap().is_none());
    edit(&house, &with_service(json!({"charon": {"projects": ["here", "more"]}}), true));
    until("the calls end", || states() == "failed\nfailed\nfailed\n");
    let why = "the host ended the program, because /projects/here/fs may no longer be written\n";
    assert_eq!(
        house
            .says("for id in job session service; do jq -r .error.message agents/charon/jobs/by/$id/status.json; done"),
        why.repeat(3)
    );
    let ended = outside.wait_with_output().unwrap();
    assert_eq!(last_words(&ended), (Some(1), format!("error: {why}")));
}

#[test]
fn the_programs_of_an_agent_that_is_deleted_end() {
    let house = TestHost::of(&with_service(json!({"charon": {"projects": ["here"]}, "styx": {}}), false));
    let outside = exec(&house, &beat("by_exec"));
    until("it writes", || house.here().join("by_exec").exists());
    edit(&house, &with_service(json!({"styx": {}}), false));
    let ended = outside.wait_with_output().unwrap();
    let why = "error: the host ended the program, because the agent charon was deleted\n".to_owned();
    assert_eq!(last_words(&ended), (Some(1), why));
}

#[test]
fn a_signal_to_exec_ends_everything_inside_and_is_told_by_the_exit_code() {
    use nix::sys::signal::{Signal, kill};
    use std::os::unix::process::ExitStatusExt;
    let house = TestHost::of(&with_service(json!({"charon": {"projects": ["here"]}}), false));
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGKILL] {
        let mark = format!("mark-{}-{signal}", std::process::id());
        let mut outside = exec(
            &house,
            &format!(
                "trap '' INT QUIT; setsid sh -c 'trap \"\" HUP TERM; while :; do sleep 0.1; done # {mark}' & \
                      echo up > /projects/here/fs/{signal}; while :; do sleep 0.1; done # {mark}"
            ),
        );
        until("it runs", || house.here().join(signal.as_str()).exists());
        kill(nix::unistd::Pid::from_raw(outside.id() as i32), signal).unwrap();
        let status = outside.wait().unwrap();
        let code = status.code().or_else(|| status.signal().map(|number| 128 + number));
        assert_eq!(code, Some(128 + signal as i32));
        until("nothing is left", || {
            let commands = std::fs::read_dir("/proc").unwrap().flatten();
            let commands = commands.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
            commands.into_iter().all(|command| !String::from_utf8_lossy(&command).contains(&mark))
        });
    }
}
