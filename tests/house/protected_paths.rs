//! What is the host's own, in a project that an agent may write: neither seen nor changed, whichever way.

use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::session;
use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{ToolCall, perform};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

/// The project holds the mountspec, the state, the prompts and the library of its own host. Bound by the kernel, or mirrored.
fn spec(mirror: bool) -> String {
    json!({"layout": "acheron-1", "prompts": "prompts", "agents": {"charon": {"projects": ["all"]}},
        "projects": {"all": {"binds": {"/": {"path": "..", "read_only": false, "mirror": mirror}}}}})
    .to_string()
}

/// What the agent's own tools answer: the content, or the code of the refusal.
fn tool(house: &TestHost, name: &str, arguments: Value) -> String {
    let tool = ToolCall::read(name, arguments.as_object().unwrap().clone()).ok().unwrap();
    let said = house.inside(async |host| {
        let (tree, caller) = (host.tree().clone(), Caller::agent("charon"));
        perform(&TreeTools { tree, caller, id: Arc::new(|| "h".to_owned()), parked: Arc::new(|_| ()) }, &tool).await
    });
    let name = |entry: &Value| entry["path"].as_str().unwrap().replace("/projects/all/fs/", "");
    match (&said["error"]["code"], said["entries"].as_array()) {
        (Value::String(code), _) => code.clone(),
        (_, Some(entries)) => entries.iter().map(name).collect::<Vec<_>>().join(" "),
        _ => "done".to_owned(),
    }
}

/// Tries it with a program in the sandbox.
const RUN: &str = r#"
    run() { jq -cn --arg c "$1" '{command: $c}' > agents/charon/terminal/control/exec.json
            jq -r '.result.stdout // .error.message' agents/charon/terminal/result.json; }
    run 'exec 2> /dev/null
         ls state | wc -l; cat state/acheron.db | wc -c
         tried() { ("$@") > /dev/null 2>&1 && echo "done: $*" || echo "refused: $*"; }
         tried mv state elsewhere; tried rm -rf state; tried touch state/x; tried ln state/acheron.db copy
         tried tee spec.json < /dev/null; tried rm spec.json; tried mv spec.json x; tried ln spec.json x
         tried tee here/prompts/new < /dev/null; tried mv here/prompts here/p; tried mv here there
         tried tee here/notes.txt < /dev/null; tried tee here/mine < /dev/null'
"#;

#[test]
fn an_agent_neither_sees_nor_changes_what_is_the_hosts_own() {
    for mirror in [false, true] {
        let house = TestHost::prepared(&spec(mirror), |here| {
            std::fs::create_dir(here.join("prompts")).unwrap();
            std::fs::write(here.join("prompts/kept"), "kept").unwrap();
        });
        let before = std::fs::read_to_string(house.root().join("../spec.json")).unwrap();
        let at = |path: &str| format!("/projects/all/fs/{path}");
        let write = |path: &str| tool(&house, "file_write", json!({"path": at(path), "content": "x"}));
        let read = |path: &str| tool(&house, "file_read", json!({"path": at(path)}));
        assert_eq!(read("state/acheron.db"), "not_found", "{mirror}");
        assert_eq!(read("spec.json"), "done");
        for path in ["state/x", "spec.json", "here/prompts/kept", "here/prompts/new"] {
            let said = write(path);
            assert!(["forbidden", "not_found"].contains(&said.as_str()), "{mirror} {path}: {said}");
        }
        assert_eq!(write("here/tried"), "done");
        assert_eq!(tool(&house, "file_list", json!({"path": at("")})), "here ns spec.json");
        let expected = expect![[r#"
            0
            0
            refused: mv state elsewhere
            refused: rm -rf state
            refused: touch state/x
            refused: ln state/acheron.db copy
            refused: tee spec.json
            refused: rm spec.json
            refused: mv spec.json x
            refused: ln spec.json x
            refused: tee here/prompts/new
            refused: mv here/prompts here/p
            refused: mv here there
            done: tee here/notes.txt
            done: tee here/mine

        "#]];
        house.check(RUN, expected);
        assert_eq!(std::fs::read_to_string(house.root().join("../spec.json")).unwrap(), before);
        assert_eq!(std::fs::read_to_string(house.here().join("prompts/kept")).unwrap(), "kept");
        assert!(house.state().join("acheron.db").is_file() && house.here().join("mine").is_file());
    }
}

/// A session beside a mountspec that lets an agent write there.
fn beside(script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let acheron = env!("CARGO_BIN_EXE_acheron");
    let spec = json!({"layout": "acheron-1", "agents": {"a": {"projects": ["p"]}},
        "projects": {"p": {"binds": {"/": {"path": ".", "read_only": false}}}}});
    std::fs::create_dir(dir.path().join("here")).unwrap();
    std::fs::write(dir.path().join("mine.json"), spec.to_string()).unwrap();
    let said = session(
        &dir.path().join("here"),
        &format!(
            r#"
        mkdir ../ns
        acheron() {{ {acheron} "$@"; }}
        up() {{ acheron mount ../ns --state ../state --daemon "$@" > ../said 2>&1 || cat ../said; }}
        down() {{ acheron unmount ../ns > /dev/null; }}
        trap 'down 2> /dev/null' EXIT
        run() {{ jq -cn --arg c "$1" '{{command: $c}}' > ../ns/agents/a/terminal/control/exec.json
                jq -r '.result.stdout // .error.message' ../ns/agents/a/terminal/result.json; }}
        {script}"#
        ),
    );
    said.replace(&dir.path().canonicalize().unwrap().display().to_string(), "DIR")
}

#[test]
fn what_an_agent_could_have_made_beside_the_host_is_read_only_by_who_names_it() {
    expect![[r#"
        made
        error: DIR/here/mountspec/default.json is not read: it came while agents could write in that directory; look at it, and name it if it is yours
        hint: acheron mount DIR --spec mountspec/default.json
        # The library
        evil
    "#]]
    .assert_eq(&beside(
        r#"
        up --spec ../mine.json
        run 'mkdir mountspec global-library; cp /dev/null mountspec/default.json; echo evil > global-library/Index.md; echo made' | head -n 1
        down
        up
        up --spec ../mine.json; head -n 1 ../ns/global/library/Index.md; down
        jq '.library = "global-library"' ../mine.json > ../named.json
        up --spec ../named.json; head -n 1 ../ns/global/library/Index.md; down
        "#,
    ));
}

#[test]
fn the_state_and_the_log_are_their_owners_alone() {
    let said = beside(
        r#"
        umask 000
        up --spec ../mine.json
        run 'true'
        cd ../state
        find . -type d -printf '%m\n' | sort -u
        ls acheron.db acheron.log acheron.pid
        find . -maxdepth 1 -name 'acheron*' ! -perm 600
        down
        "#,
    );
    expect![[r#"

        700
        acheron.db
        acheron.log
        acheron.pid
    "#]]
    .assert_eq(&said);
}
