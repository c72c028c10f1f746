//! Faults of a mountspec on this machine: `check` and `doctor` report them, and so does the health of a mounted host.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::{session, until};
use crate::test_host::TestHost;

fn file(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A mountspec with programs that cannot run and a project that is not there.
fn wrong() -> Value {
    let go = |command: &[&str]| json!({"command": command, "operations": {"go": {"effect": "read"}}});
    json!({
        "layout": "acheron-1",
        "agents": {"charon": {"projects": ["gone", "file"]}},
        "projects": {
            "gone": {"binds": {"/": {"path": "nowhere"}}},
            "file": {"binds": {"/a": {"path": "plain.py"}}},
        },
        "services": {
            "missing": go(&["./none.py"]),
            "plain": go(&["./plain.py"]),
            "lost": go(&["./lost.py"]),
            "lost_env": go(&["./lost_env.py"]),
            "unknown": go(&["no-such-program"]),
            "script": go(&["python3", "./none.py"]),
            "sound": go(&["./sound.sh"]),
        },
    })
}

fn programs(here: &Path) {
    file(&here.join("plain.py"), "#!/usr/bin/python3\n", 0o644);
    file(&here.join("lost.py"), "#!/usr/bin/no-such-python\n", 0o755);
    file(&here.join("lost_env.py"), "#!/usr/bin/env no-such-python\n", 0o755);
    file(&here.join("sound.sh"), "#!/bin/sh\necho 1\n", 0o755);
}

#[test]
fn check_names_programs_and_directories_that_are_missing() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    programs(&here);
    fs::write(here.join("spec.json"), wrong().to_string()).unwrap();
    let said = |script: &str| {
        let script = script.replace("acheron", env!("CARGO_BIN_EXE_acheron"));
        session(&here, &script).replace(&here.display().to_string(), "HERE")
    };
    expect![[r#"
        spec.json: projects.file.binds["/a"].path: HERE/plain.py is not a directory
        spec.json: projects.gone.binds["/"].path: there is no directory HERE/nowhere (relative paths start in HERE)
        spec.json: services.lost.command[0]: the interpreter of HERE/lost.py is missing: /usr/bin/no-such-python
        spec.json: services.lost_env.command[0]: the interpreter of HERE/lost_env.py is missing: no-such-python is not in /usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
        spec.json: services.missing.command[0]: there is no program HERE/none.py (relative paths start in HERE)
        spec.json: services.plain.command[0]: HERE/plain.py is not executable: chmod +x HERE/plain.py
        spec.json: services.script.command[1]: there is no file HERE/none.py (relative paths start in HERE)
        spec.json: services.unknown.command[0]: there is no program no-such-program in /usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
        = 1
    "#]]
    .assert_eq(&said("acheron check spec.json; echo = $?"));
    // Together with the faults of the text.
    let mut both = wrong();
    both["agents"]["charon"]["limits"] = json!({"rounds": 0});
    fs::write(here.join("both.json"), both.to_string()).unwrap();
    let both = said("acheron check both.json");
    assert!(
        both.contains("rounds: must be at least 1") && both.contains("there is no directory HERE/nowhere"),
        "{both}"
    );
    let doctor = said("acheron doctor --spec spec.json --state state | grep -A3 'mountspec:'");
    assert!(doctor.starts_with("BAD   mountspec: ") && doctor.contains("HERE/plain.py is not a directory"), "{doctor}");
}

fn health(house: &TestHost) -> Value {
    serde_json::from_slice(&fs::read(house.root().join("meta/health.json")).unwrap()).unwrap()
}

#[test]
fn health_is_not_ok_while_a_program_or_a_directory_is_missing() {
    let house = TestHost::prepared(&wrong().to_string(), programs);
    let found = health(&house);
    assert_eq!(found["ok"], false, "{found:#}");
    let faults = found["faults"].to_string();
    for said in
        ["here/nowhere", "services.missing.command[0]", "services.plain.command[0]: ", "services.lost.command[0]"]
    {
        assert!(faults.contains(said), "{said}: {faults}");
    }
    house.check(
        r#"
        jq -c '.ok' nodes/local/STATUS.json
        for it in plain missing lost; do
            echo '{}' > agents/self/$it/control/go.json; jq -c '.error' agents/self/$it/result.json
        done
        "#,
        expect![[r#"
            false
            {"code":"forbidden","message":"cannot run `/service/plain.py`: Permission denied"}
            {"code":"not_found","message":"cannot run `./none.py`: No such file or directory"}
            {"code":"not_found","message":"cannot run `/service/lost.py`: No such file or directory; the interpreter in its first line is missing here"}
        "#]],
    );
    // An edit that mends everything: a part that is mended without one is looked at again, too.
    let mut mended = wrong();
    for name in ["missing", "lost", "lost_env", "unknown", "script"] {
        mended["services"].as_object_mut().unwrap().remove(name);
    }
    mended["projects"] = json!({"file": {"binds": {"/a": {"path": "."}}}, "gone": {"binds": {"/": {"path": "."}}}});
    house.edit(&mended.to_string());
    until("the edit is noticed", || health(&house)["faults"].as_array().is_some_and(|faults| faults.len() == 1));
    assert_eq!(health(&house)["ok"], false);
    file(&house.here().join("plain.py"), "#!/usr/bin/python3\n", 0o755);
    until("it is executable", || health(&house)["ok"] == true);
    assert_eq!(health(&house)["faults"], json!([]));
}

#[test]
fn health_is_not_ok_after_a_faulty_edit() {
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {}}});
    let house = TestHost::of(&spec.to_string());
    assert_eq!(health(&house)["ok"], true);
    for faulty in [
        json!({"agnets": {}}),
        json!({"services": {"x": {"command": ["true"], "operations": {"go": {"arguments": {"type": "objekt"}}}}}}),
    ] {
        house.edit(&faulty.to_string());
        until("the edit is refused", || health(&house)["ok"] == false);
        let error = health(&house)["mountspec"]["error"].to_string();
        assert!(error.contains("cannot be mounted"), "{error}");
        house.edit(&spec.to_string());
        until("the edit is mended", || health(&house)["ok"] == true);
    }
}

#[test]
fn health_is_not_ok_while_redis_does_not_answer() {
    // A server that is away, and later one that answers.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {}},
        "symbols": {"backend": "redis", "url": format!("redis://127.0.0.1:{port}/0")}});
    let house = TestHost::of(&spec.to_string());
    until("the outage is known", || health(&house)["ok"] == false);
    let faults = health(&house)["faults"].to_string();
    assert!(faults.contains(&format!("symbols: redis at 127.0.0.1:{port} does not answer")), "{faults}");
    let dir = tempfile::tempdir().unwrap();
    let mut server = std::process::Command::new("redis-server")
        .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1", "--dir"])
        .arg(dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the server is found", || health(&house)["ok"] == true);
    server.kill().unwrap();
    server.wait().unwrap();
    until("the server is missed", || health(&house)["ok"] == false);
}

#[test]
fn what_a_program_printed_is_kept_in_its_log() {
    let go = |text: &str| json!({"command": ["sh", "-c", text], "operations": {"go": {"effect": "read"}}});
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {}}, "services": {
        "chatty": go("echo 'Traceback: no such town'; echo second; echo warned >&2"),
        "killed": go("echo reading >&2; kill -11 $$"),
    }});
    TestHost::of(&spec.to_string()).check(
        r#"
        for it in chatty killed; do
            echo '{}' > agents/self/$it/control/go.json; jq -r '.error.message' agents/self/$it/result.json
            cat agents/charon/jobs/last/log.txt
        done
        "#,
        expect![[r#"
            chatty printed `Traceback: no such town\nsecond`, which is not one JSON value: expected value at line 1 column 1
            warned
            stdout: Traceback: no such town
            stdout: second
            killed was ended by signal 11
            reading
        "#]],
    );
}

#[test]
fn check_says_that_a_write_of_a_program_is_an_execute_and_so_does_its_contract() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    programs(&here);
    let note = json!({"command": ["./sound.sh"], "operations": {"put": {"effect": "write"}}});
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {}}, "services": {"note": note}});
    fs::write(here.join("spec.json"), spec.to_string()).unwrap();
    let said = session(&here, &format!("{} check spec.json", env!("CARGO_BIN_EXE_acheron")));
    let wanted = "services.note.operations.put.effect: `write` is taken as `execute`";
    assert!(said.contains(wanted), "{said}");
    let house = TestHost::prepared(&spec.to_string(), programs);
    let ops = fs::read(house.root().join("agents/charon/note/OPS.json")).unwrap();
    let ops: Value = serde_json::from_slice(&ops).unwrap();
    assert_eq!(ops["put"]["effect"], "execute");
}
