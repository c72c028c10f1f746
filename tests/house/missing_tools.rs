//! Machines that lack something: what `doctor` says there, what is refused, and what works nevertheless.

use expect_test::expect;

use crate::common::session;
use crate::posix::{ATTEMPT, TABLE};
use crate::test_host::steady;

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");

/// A session on a machine whose kernel makes no user namespaces: in one, the last that may be made.
fn without_namespaces(spec: &str, script: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("spec.json"), spec).unwrap();
    std::fs::write(dir.path().join("script"), script).unwrap();
    std::fs::write(dir.path().join("first.json"), FIRST).unwrap();
    std::fs::create_dir(dir.path().join("work")).unwrap();
    std::fs::write(dir.path().join("work/note"), "noted\n").unwrap();
    let inner = format!(
        r#"
        unshare -U -r -m bash -c '
            echo 0 > /proc/sys/user/max_user_namespaces
            trap "{ACHERON} unmount ns > /dev/null 2>&1" EXIT
            mkdir ns
            export HERE=$PWD
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
    jq -c "[.sandbox.complete, (.sandbox.mechanisms[] | select(.active | not) | .name)]" ns/nodes/local/CAPS.json
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
              fix: as root: sysctl -w user.max_user_namespaces=15000
        BAD   sandbox: cannot be built here: user (the kernel refuses a namespace (CloneFlags(CLONE_NEWUSER)): No space left on device; try `sysctl user.max_user_namespaces=10000`)
              fix: programs of agents are refused; "sandbox": {"require": "landlock"} in the mountspec confines them by processes, memory, cpu, privileges, landlock, system_calls alone, and then names, sizes, owners and times of files anywhere can be asked for (stat) and watched (inotify); paths are those of the host; modes, owners, times and attributes of files cannot be changed at all; there is no /proc; watches of files (inotify) are counted with those of the host's user alone; a process whose supervisor was killed from outside goes on, and counts as nobody's; {"allow_unconfined": true} runs them without
    "#]]
    .assert_eq(&said);
}

const SECOND: &str = r#"{ "layout": "acheron-1", "agents": { "a": { "projects": ["p"] } }, "sandbox": { "require": "landlock" },
    "projects": { "p": { "binds": { "/": { "path": "work", "read_only": false } } } } }"#;
const FIRST: &str = r#"{ "layout": "acheron-1", "agents": { "a": {} }, "sandbox": { "require": "namespaces" } }"#;

/// Where only the second level can be held: it is used if the mountspec accepts it, and said by everything that tells of walls.
#[test]
fn a_mountspec_may_accept_the_second_level_and_all_say_which_walls_stand() {
    let script = r#"
        cd $HERE
        jq -c ".sandbox | [.level, .complete, (.not_held | length > 0), [.mechanisms[] | select(.active) | .name]]" ns/nodes/local/CAPS.json
        run() { jq -nc --arg c "$1" "{command: \$c}" > ns/agents/a/terminal/control/exec.json
            jq -r ".result.stdout // .error.message" ns/agents/a/terminal/result.json; }
        run "pwd; cat note; echo new > made; cat made; cat $HERE/spec.json 2>/dev/null || echo unreadable"
        run "jq -c \"[.level, (.not_held | length > 0)]\" \$ACHERON_TREE/agents/a/terminal/sandbox.json"
        run "echo x > .mcp.json || echo reserved"
        jq -c "[.level, .binds[0].target]" ns/agents/a/terminal/sandbox.json
        ACHERON exec --root ns --agent a -- sh -c "cat made; cat /etc/shadow 2>/dev/null || echo unreadable"
        ACHERON doctor --state state --spec spec.json | grep -o "only the level .landlock. stands: [a-z]*"
    "#
    .replace("ACHERON ", &format!("{ACHERON} "));
    expect![[r#"
        ["landlock",false,true,["processes","memory","cpu","privileges","landlock","system_calls"]]
        DIR/work
        noted
        new
        unreadable

        ["landlock",true]

        reserved

        ["landlock","/agents/a"]
        new
        unreadable
        only the level `landlock` stands: processes
    "#]]
    .assert_eq(&without_namespaces(SECOND, &script));
}

/// There is no namespace that ends with its first process: what is left when both processes above it were killed goes on, and
/// must not become the operator by that.
#[test]
fn what_is_left_of_a_sandbox_at_the_second_level_has_no_rights() {
    let script = r#"
        cd $HERE
        cat > work/loop.sh <<"END"
            # Nothing is opened for writing any more when the broker is gone.
            echo $$ > pid; exec 3>> seen
            while :; do
                head -c 0 $ACHERON_TREE/agents/a/terminal/README.md && echo reads
                sleep 0.05
            done >&3 2>&3
END
        echo "{\"command\":\"setsid sh loop.sh & wait\"}" > ns/agents/a/terminal/control/exec.json
        until grep -q reads work/seen; do sleep 0.05; done 2> /dev/null
        pid=$(cat work/pid); above= at=$pid
        while [ "$at" -gt 1 ]; do
            tr "\0" " " < /proc/$at/cmdline | grep -q __sandbox && above="$at $above"
            at=$(grep PPid /proc/$at/status | cut -f2)
        done
        echo $above | wc -w
        kill -STOP $above; kill -KILL $above
        until why=$(tail -n 1 work/seen | grep -v reads); do sleep 0.05; done
        echo "$why" | sed "s/.*: //"
        kill -0 $pid && kill -KILL $pid
    "#;
    expect![[r#"
        2
        Permission denied
    "#]]
    .assert_eq(&without_namespaces(SECOND, script));
}

/// A level that is demanded and cannot be held is refused by check, at mount and at reload, and nothing starts unconfined.
#[test]
fn a_level_that_is_demanded_and_cannot_be_held_is_refused_at_every_door() {
    expect![[r#"
        ! error: the mountspec cannot be mounted:
        !   sandbox.require: this machine refuses namespaces (see `acheron doctor`); `landlock` would confine programs by Landlock alone, which holds less
        ! hint: its log is DIR/state/acheron.log
    "#]].assert_eq(&without_namespaces(FIRST, "echo mounted"));
    let script = format!(
        r#"
        {ACHERON} check first.json
        cp first.json spec.json
        until jq -e .mountspec.error ns/meta/health.json > /dev/null; do sleep 0.05; done
        jq -r .mountspec.error ns/meta/health.json
        echo "{{\"command\":\"echo ran\"}}" > ns/agents/a/terminal/control/exec.json
        jq -c ".result.stdout // .error.code" ns/agents/a/terminal/result.json
        "#
    );
    expect![[r#"
        first.json: sandbox.require: this machine refuses namespaces (see `acheron doctor`); `landlock` would confine programs by Landlock alone, which holds less
        the mountspec cannot be mounted:
          sandbox.require: this machine refuses namespaces (see `acheron doctor`); `landlock` would confine programs by Landlock alone, which holds less
        "unavailable"
    "#]].assert_eq(&without_namespaces(PLAIN, &script));
}

/// Everything as a user without any right: the helper mounts, the projects are mirrored, the sandbox has its own namespaces.
#[test]
fn a_user_without_rights_has_the_same_tree() {
    const NOBODY: u32 = 65534;
    let dir = tempfile::tempdir().unwrap();
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": { "projects": ["p"] } },
                    "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } } },
                    "sandbox": { "agent_limits": { "sandboxes": 2 } } }"#;
    let script = r#"
        exec 2>&1
        mkdir ns native mirrored
        ./acheron mount ns --spec spec.json --state state --daemon > /dev/null || exit
        jq -r '.binds[].shown_by' ns/projects/p/meta.json
        (cd native; python3 ../table.py) > native.txt
        (cd ns/projects/p/fs/mirrored; python3 ../../../../../table.py) > mirrored.txt
        diff native.txt mirrored.txt && grep -c EACCES native.txt
        echo '{"command":"id -u; cat spec.json > copy; ls /agents"}' > ns/agents/a/terminal/control/exec.json
        jq -c '.result.stdout // .error' ns/agents/a/terminal/result.json
        cmp copy spec.json && ls -A ns/projects/p/fs/ns | wc -l
        for n in 1 2 3; do
            echo '{}' > ns/agents/a/terminal/control/create.json
            jq -r '.result.session_id // .error.message' ns/agents/a/terminal/result.json
        done
        ./acheron doctor --state state | grep -A1 binds
        ./acheron unmount ns > /dev/null
        grep -c "$PWD/ns" /proc/self/mountinfo
    "#;
    let table = format!("{ATTEMPT}{TABLE}");
    for (name, text) in [("spec.json", spec), ("script", script), ("table.py", &table)] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    std::fs::copy(ACHERON, dir.path().join("acheron")).unwrap();
    std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    // A device of its own: not every machine lets users open the one that is there.
    let outer = format!(
        "unshare -m bash -c 'mknod -m 666 device c 10 229 && mount --bind device /dev/fuse &&
         exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups bash ./script'"
    );
    expect![[r#"
        mirror
        7
        "65534\na\nself\n"
        0
        term-1
        term-2
        2 programs of this agent are running already, and this machine has no control groups to limit more of them together: wait for one to end, or close a session
        weak  binds: projects are mirrored through FUSE, which is slower: binding needs CAP_SYS_ADMIN
              fix: run acheron as root where that speed matters
        0
    "#]]
    .assert_eq(&session(dir.path(), &outer));
}
