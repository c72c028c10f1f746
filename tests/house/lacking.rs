//! Machines that lack something: what `doctor` says there, what is refused, and what works nevertheless.

use expect_test::expect;

use crate::common::session;
use crate::house::steady;

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");

/// A session on a machine whose kernel makes no user namespaces: in one, the last that may be made.
fn without_namespaces(spec: &str, script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("spec.json"), spec).unwrap();
    std::fs::write(dir.path().join("script"), script).unwrap();
    let inner = format!(
        r#"
        unshare -U -r -m bash -c '
            echo 0 > /proc/sys/user/max_user_namespaces
            trap "{ACHERON} unmount ns > /dev/null 2>&1" EXIT
            mkdir ns
            {ACHERON} mount ns --spec spec.json --state state --daemon > /dev/null || exit
            . ./script
        '
        "#
    );
    steady(&session(dir.path(), &inner), dir.path())
}

const PLAIN: &str = r#"{ "layout": "acheron-1", "agents": { "a": {} } }"#;
const KNOWINGLY: &str = r#"{ "layout": "acheron-1", "agents": { "a": {} }, "sandbox": { "allow_unconfined": true } }"#;

/// Runs a command as the agent, and looks at what the node says of itself.
const RUN: &str = r#"
    jq -c "[.sandbox.complete, (.sandbox.walls[] | select(.stands | not) | .name)]" ns/nodes/local/CAPS.json
    echo "{\"command\":\"echo ran\"}" > ns/agents/a/terminal/control/exec.json
    jq -c ".result.stdout // [.error.code, (.error.message | split(\":\")[:2])]" ns/agents/a/terminal/result.json
"#;

#[test]
fn where_a_wall_is_missing_programs_are_refused_unless_the_mountspec_allows_it() {
    expect![[r#"
        [false,"user"]
        ["unavailable",["the sandbox cannot be built on this machine"," user"]]
    "#]]
    .assert_eq(&without_namespaces(PLAIN, RUN));
    expect![[r#"
        [false,"user"]
        "ran\n"
    "#]]
    .assert_eq(&without_namespaces(KNOWINGLY, RUN));
}

#[test]
fn doctor_says_which_part_of_the_kernel_is_missing_and_what_to_do() {
    let said = without_namespaces(PLAIN, &format!("{ACHERON} doctor --state state | grep -A1 BAD"));
    expect![[r#"
        BAD   user namespaces: are switched off: no sandbox can be built
              to mend: as root: sysctl -w user.max_user_namespaces=15000
        BAD   sandbox: cannot be built here: user (the kernel refuses a namespace (CloneFlags(CLONE_NEWUSER)): No space left on device; try 'sysctl user.max_user_namespaces=10000')
              to mend: programs of agents are refused; "sandbox": {"allow_unconfined": true} in the mountspec runs them without
    "#]]
    .assert_eq(&said);
}
