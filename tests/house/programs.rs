//! Programs of services that lie where agents write: an unconfined one is refused, a confined one is not changed, and has
//! neither its variables nor the network where it could be.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::{session, until};
use crate::test_host::TestHost;

/// A program, made executable.
fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Prints whether it is the one that the operator wrote, and what it was given.
const TELLS: &str = "#!/bin/sh\ncat > /dev/null\necho \"\\\"the operator's, key ${KEY:-none}\\\"\"\n";

/// A mountspec with one service and projects, each a directory that agents may write or only read.
fn spec(service: Value, projects: &[(&str, &str, bool)]) -> Value {
    let projects: serde_json::Map<String, Value> = projects
        .iter()
        .map(|(id, path, read_only)| {
            ((*id).to_owned(), json!({"binds": {"/": {"path": path, "read_only": read_only}}}))
        })
        .collect();
    let ids: Vec<&String> = projects.keys().collect();
    json!({"layout": "acheron-1", "agents": {"charon": {"projects": ids}}, "projects": projects, "services": {"svc": service}})
}

fn runs(command: &[&str], unconfined: bool) -> Value {
    json!({"command": command, "unconfined": unconfined, "env": {"KEY": "secret"}, "operations": {"go": {"effect": "read"}}})
}

/// Programs of every sort, in `work`, which agents write, and in `safe`, which they do not.
fn programs(here: &Path) {
    program(&here.join("work/tools/svc.sh"), TELLS);
    program(&here.join("work/top.sh"), TELLS);
    program(&here.join("work/venv/bin/python"), TELLS);
    program(&here.join("safe/svc.sh"), TELLS);
    program(&here.join("safe/x.py"), "print(1)");
    program(
        &here.join("safe/interpreted.sh"),
        &format!("#!{}/work/tools/svc.sh\n", here.canonicalize().unwrap().display()),
    );
    symlink("../work/tools/svc.sh", here.join("safe/led")).unwrap();
    fs::create_dir_all(here.join("work/links")).unwrap();
    symlink("../../safe", here.join("work/links/safe")).unwrap();
    program(&here.join("safe/twice.sh"), TELLS);
    fs::hard_link(here.join("safe/twice.sh"), here.join("work/tools/again.sh")).unwrap();
}

#[test]
fn check_refuses_an_unconfined_program_that_agents_could_change() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    programs(&here);
    let said = |command: &[&str], unconfined: bool, env: Value, projects: &[(&str, &str, bool)]| {
        let mut service = runs(command, unconfined);
        service["env"] = env;
        fs::write(here.join("spec.json"), spec(service, projects).to_string()).unwrap();
        let said = session(&here, &format!("{} check spec.json; echo $?", env!("CARGO_BIN_EXE_acheron")));
        said.replace(&here.display().to_string(), "HERE")
    };
    let work = [("w", "work", false)];
    let absolute = here.join("work/tools/svc.sh").display().to_string();
    for (command, projects) in [
        (&["work/tools/svc.sh"][..], &work[..]),
        (&["./work/tools/../tools/svc.sh"], &work),
        (&[&absolute], &work),
        (&["python3", "./work/tools/svc.sh"], &work),
        (&["work/venv/bin/python", "safe/x.py"], &work),
        (&["sh", "-c", "exec work/tools/svc.sh --now"], &work),
        (&["sh", "-c", &format!("PYTHONPATH={absolute} python3 -")], &work),
        // Through links, either way, and by another name of the same file.
        (&["safe/led"], &work),
        (&["work/links/safe/svc.sh"], &work),
        (&["safe/twice.sh"], &work),
        (&["safe/interpreted.sh"], &work),
        // Not there yet: an agent could make it.
        (&["work/none/svc.sh"], &work),
        (&["python3", "work/none.py"], &work),
        // In another project's bind, in one on the directory above, and in one that reaches it by two binds.
        (&["safe/svc.sh"], &[("a", "work", true), ("b", "safe", false)]),
        (&["safe/svc.sh"], &[("all", ".", false)]),
        (&["python3", "spec.json"], &[("all", ".", false)]),
    ] {
        let said = said(command, true, json!({}), projects);
        assert!(said.contains("services.svc.command[") && said.ends_with("1\n"), "{command:?}: {said}");
    }
    for env in
        [json!({"PYTHONPATH": "/nowhere:work/tools"}), json!({"PATH": format!("{}/work:/usr/bin", here.display())})]
    {
        let said = said(&["python3", "safe/x.py"], true, env.clone(), &work);
        assert!(said.contains("services.svc.env.") && said.ends_with("1\n"), "{env}: {said}");
    }
    for (command, unconfined, projects) in [
        (&["safe/svc.sh"][..], true, &work[..]),
        (&["python3", "safe/x.py", "text/html", "https://example.org/work"], true, &work),
        (&["sh", "-c", "echo work"], true, &work),
        (&["work/tools/svc.sh"], true, &[("w", "work", true)]),
        (&["work/tools/svc.sh"], true, &[("d", "work/links", false)]),
        (&["work/tools/svc.sh"], false, &work),
    ] {
        let said = said(command, unconfined, json!({}), projects);
        assert!(said.contains("ok: ") && said.ends_with("0\n"), "{command:?}: {said}");
    }
    expect![[r#"
        spec.json: services.svc.command[0]: HERE/work/tools/svc.sh lies in HERE/work, which agents may write: they could make it a program that runs as the operator; move it, or bind that directory read_only
        1
    "#]]
    .assert_eq(&said(&["work/tools/svc.sh"], true, json!({}), &work));
    expect![[r#"
        spec.json: services.svc.command[0]: HERE/work/none/svc.sh is not there, and agents may write HERE/work: they could make it; make it first
        1
    "#]]
    .assert_eq(&said(&["work/none/svc.sh"], false, json!({}), &work));
    expect![[r#"
        spec.json: ok: 1 agent, 1 project, 1 service
        spec.json: note: services.svc runs without its env and network: agents may write HERE/work, where its program lies; give it a directory of its own
        0
    "#]]
    .assert_eq(&said(&["work/top.sh"], false, json!({}), &work));
}

#[test]
fn a_mount_refuses_an_unconfined_program_that_agents_could_change() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    programs(&here);
    fs::create_dir(here.join("ns")).unwrap();
    fs::write(here.join("spec.json"), spec(runs(&["work/tools/svc.sh"], true), &[("w", "work", false)]).to_string())
        .unwrap();
    let acheron = env!("CARGO_BIN_EXE_acheron");
    let said = session(
        &here,
        &format!(
            "{acheron} mount ns --spec spec.json --state state --daemon; echo $?; ls ns; {acheron} unmount ns 2> /dev/null"
        ),
    );
    expect![[r#"
        1
        ! error: the mountspec cannot be mounted:
        !   services.svc.command[0]: HERE/work/tools/svc.sh lies in HERE/work, which agents may write: they could make it a program that runs as the operator; move it, or bind that directory read_only
        ! hint: its log is HERE/state/acheron.log
    "#]]
    .assert_eq(&said.replace(&here.display().to_string(), "HERE"));
}

/// What the service answers, or why not.
const GO: &str =
    "echo '{}' > agents/self/svc/control/go.json; jq -c '.result // .error.message' agents/self/svc/result.json";

/// What became of the last edit.
fn edited(house: &TestHost, spec: &Value) -> String {
    let looked = |house: &TestHost| {
        let health: Value = serde_json::from_slice(&fs::read(house.root().join("meta/health.json")).unwrap()).unwrap();
        health["mountspec"]["at_ms"].clone()
    };
    let before = looked(house);
    house.edit(&spec.to_string());
    until("the edit is noticed", || looked(house) != before);
    house.says("jq -r .mountspec.error meta/health.json")
}

#[test]
fn an_edit_cannot_give_an_unconfined_program_to_agents() {
    let safe = spec(runs(&["work/tools/svc.sh"], true), &[("w", "work", true)]);
    let house = TestHost::prepared(&safe.to_string(), programs);
    assert_eq!(house.says(GO), "\"the operator's, key secret\"\n");
    // A second project makes it writable; a bind loses its read_only; a service becomes unconfined.
    let second = spec(runs(&["work/tools/svc.sh"], true), &[("w", "work", true), ("x", "work/tools", false)]);
    let opened = spec(runs(&["work/tools/svc.sh"], true), &[("w", "work", false)]);
    for wrong in [second, opened] {
        let said = edited(&house, &wrong);
        assert!(
            said.contains("which agents may write: they could make it a program that runs as the operator"),
            "{said}"
        );
        assert_eq!(house.says("ls projects; jq -c '.binds[].read_only' projects/w/meta.json"), "w\ntrue\n");
        assert_eq!(house.says(GO), "\"the operator's, key secret\"\n");
    }
    assert_eq!(edited(&house, &spec(runs(&["work/tools/svc.sh"], false), &[("w", "work", false)])), "null\n");
    assert!(
        edited(&house, &spec(runs(&["work/tools/svc.sh"], true), &[("w", "work", false)])).contains("as the operator")
    );
}

/// Tries to change the program with a program in the sandbox.
const ATTACK: &str = r#"
    run() { jq -cn --arg c "$1" '{command: $c}' > agents/charon/terminal/control/exec.json
            jq -r '.result.stdout // .error.message' agents/charon/terminal/result.json; }
    run 'exec 2> /dev/null
         cd /projects/w/fs
         tried() { ("$@") > /dev/null 2>&1 && echo "done: $*" || echo "refused: $*"; }
         tried cp top.sh tools/svc.sh; tried rm tools/svc.sh; tried mv tools tools2; tried touch tools/json.py
         tried ln tools/svc.sh mine; tried chmod 777 tools/svc.sh; tried cp top.sh venv/lib/x.py
         tried rm venv/pyvenv.cfg; tried touch tools/again.sh; tried touch elsewhere'
"#;

#[test]
fn agents_cannot_change_a_confined_program_in_their_project() {
    for mirror in [false, true] {
        let mut spec = spec(runs(&["work/tools/svc.sh", "work/venv/bin/python"], false), &[("w", "work", false)]);
        spec["projects"]["w"]["binds"]["/"]["mirror"] = mirror.into();
        spec["services"]["two"] = runs(&["work/venv/bin/python"], false);
        spec["services"]["three"] = runs(&["safe/twice.sh"], false);
        let house = TestHost::prepared(&spec.to_string(), |here| {
            programs(here);
            fs::create_dir(here.join("work/venv/lib")).unwrap();
            fs::write(here.join("work/venv/pyvenv.cfg"), "").unwrap();
        });
        house.check(
            ATTACK,
            expect![[r#"
            refused: cp top.sh tools/svc.sh
            refused: rm tools/svc.sh
            refused: mv tools tools2
            refused: touch tools/json.py
            refused: ln tools/svc.sh mine
            refused: chmod 777 tools/svc.sh
            refused: cp top.sh venv/lib/x.py
            refused: rm venv/pyvenv.cfg
            refused: touch tools/again.sh
            done: touch elsewhere

        "#]],
        );
        // What is protected is trusted as before.
        for name in ["svc", "two", "three"] {
            assert_eq!(house.says(&GO.replace("svc", name)), "\"the operator's, key secret\"\n", "{mirror} {name}");
        }
    }
}

#[test]
fn a_program_that_agents_could_change_has_neither_variables_nor_network() {
    for (command, projects, expected) in [
        // At the top of what is bound: another file beside it could be loaded in its place.
        (&["work/top.sh"][..], &[("w", "work", false)][..], "none"),
        // The link that leads to it can be changed.
        (&["work/links/safe/svc.sh"], &[("w", "work", false)], "none"),
        (&["sh", "top.sh"], &[("w", ".", false)], "none"),
        (&["safe/svc.sh"], &[("w", "work", false)], "secret"),
        (&["work/tools/svc.sh"], &[("w", "work", false)], "secret"),
        (&["work/top.sh"], &[("w", "work", true)], "secret"),
    ] {
        let mut service = runs(command, false);
        service["network"] = true.into();
        let house = TestHost::prepared(&spec(service, projects).to_string(), |here| {
            programs(here);
            program(&here.join("top.sh"), TELLS);
        });
        let claimed = if expected == "none" { "0\n" } else { "1\n" };
        assert_eq!(house.says("grep -c network agents/charon/svc/CAPS.json"), claimed, "{command:?} {projects:?}");
        assert_eq!(house.says(GO), format!("\"the operator's, key {expected}\"\n"), "{command:?} {projects:?}");
        let log = house.says("cat agents/charon/jobs/last/log.txt");
        assert_eq!(log.contains("runs without its env and network"), expected == "none", "{log}");
    }
}

#[test]
fn every_directory_that_a_command_names_a_file_of_is_there() {
    let service = runs(&["sh", "safe/svc.sh", "more/data.txt"], false);
    let house = TestHost::prepared(&spec(service, &[]).to_string(), |here| {
        fs::create_dir(here.join("safe")).unwrap();
        fs::create_dir(here.join("more")).unwrap();
        fs::write(here.join("safe/svc.sh"), "cat > /dev/null; cat \"$1\"").unwrap();
        fs::write(here.join("more/data.txt"), "\"of the other directory\"").unwrap();
    });
    assert_eq!(house.says(GO), "\"of the other directory\"\n");
}

#[test]
fn rules_that_keep_every_agent_from_writing_leave_a_program_its_variables() {
    let mut spec = spec(runs(&["work/top.sh"], false), &[("w", "work", false)]);
    spec["agents"]["charon"]["permissions"] = json!([{"deny": ["write"], "path": "/projects/w/**"}]);
    let house = TestHost::prepared(&spec.to_string(), programs);
    assert_eq!(house.says(GO), "\"the operator's, key secret\"\n");
    // Another agent, who may write it, moves in.
    spec["agents"]["styx"] = json!({"projects": ["w"]});
    spec["default_agent"] = "charon".into();
    assert_eq!(edited(&house, &spec), "null\n");
    assert_eq!(house.says(GO), "\"the operator's, key none\"\n");
}

#[test]
fn a_project_that_comes_later_does_not_give_a_confined_program_away() {
    let house =
        TestHost::prepared(&spec(runs(&["work/tools/svc.sh"], false), &[("w", "safe", true)]).to_string(), programs);
    assert_eq!(edited(&house, &spec(runs(&["work/tools/svc.sh"], false), &[("w", "work", false)])), "null\n");
    let said = house.says(
        r#"echo '{"command":"cp top.sh tools/svc.sh || touch tools/json.py"}' > agents/charon/terminal/control/exec.json
           jq .result.exit_code agents/charon/terminal/result.json"#,
    );
    assert_eq!(said, "1\n");
    assert_eq!(house.says(GO), "\"the operator's, key secret\"\n");
}

#[test]
fn an_unconfined_program_that_came_to_agents_after_the_mount_is_not_run() {
    let house = TestHost::prepared(&spec(runs(&["safe/svc.sh"], true), &[("w", "work", false)]).to_string(), programs);
    assert_eq!(house.says(GO), "\"the operator's, key secret\"\n");
    fs::remove_file(house.here().join("safe/svc.sh")).unwrap();
    symlink("../work/top.sh", house.here().join("safe/svc.sh")).unwrap();
    let said = house.says(GO);
    assert!(said.contains("which agents may write: they could make it a program that runs as the operator"), "{said}");
}
