//! The host's own paths and descriptors, which no program of an agent reaches.

use expect_test::{Expect, expect};

use crate::common::session;

const ACHERON: &str = env!("CARGO_BIN_EXE_acheron");
const NOBODY: u32 = 65534;

/// Runs a script as root, and then as a user without any right in a namespace where nothing that is mounted may be uncovered;
/// compares what both say.
///
/// In it `exec_as_agent CWD COMMAND` runs a command as the agent `a`, and `start` mounts `spec.json` on `ns`.
#[track_caller]
fn check(make: impl Fn() -> tempfile::TempDir, spec: &str, script: &str, expected: &Expect) {
    let helpers = r#"
        exec 2>&1
        start() { mkdir -p ns; ./acheron mount ns --spec spec.json --state state --daemon > /dev/null; }
        exec_as_agent() {
            jq -n --arg cwd "$1" --arg command "$2" '{$command} + if $cwd == "" then {} else {$cwd} end' \
                > ns/agents/a/terminal/control/exec.json
            jq -r 'if .result then .result.stdout + .result.stderr else .error.message end' ns/agents/a/terminal/result.json
        }
        trap './acheron unmount ns > /dev/null' EXIT
    "#;
    for (user, within) in [(0, ""), (NOBODY, "unshare -U -r -m")] {
        let dir = make();
        std::fs::write(dir.path().join("spec.json"), spec).unwrap();
        std::fs::write(dir.path().join("script"), format!("{helpers}\n{script}")).unwrap();
        std::fs::copy(ACHERON, dir.path().join("acheron")).unwrap();
        for path in [dir.path(), &dir.path().join("spec.json")] {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
        // A device of its own: not every machine lets users open the one that is there.
        let outer = format!(
            "unshare -m bash -c 'mknod -m 666 device c 10 229 && mount --bind device /dev/fuse &&
             exec setpriv --reuid {user} --regid {user} --clear-groups {within} bash ./script'"
        );
        let said = session(dir.path(), &outer).replace(dir.path().to_str().unwrap(), "DIR");
        expected.assert_eq(&said);
    }
}

#[test]
fn what_the_starter_left_open_does_not_reach_the_daemon_or_a_program() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": { "projects": ["p"] } },
                    "projects": { "p": { "binds": { "/": { "path": "p", "read_only": false } } } },
                    "services": { "where": { "command": ["/bin/sh", "-c", "ls /proc/self/fd | jq -sc"],
                                             "unconfined": true, "operations": { "now": {} } } } }"#;
    let script = r#"
        mkdir p secret; echo key > secret/key; ln -s /proc/self/fd/9 p/way
        exec 9< secret
        start || exit
        ls -l /proc/$(cat state/acheron.pid)/fd | grep -c "$PWD/secret"
        exec_as_agent /proc/self/fd/9 'cat key'
        exec_as_agent /proc/self/fd/9/.. 'cat secret/key'
        exec_as_agent /projects/p/fs/way 'cat key'
        exec_as_agent /proc/self/cwd 'cat secret/key'
        exec_as_agent '' 'cd /proc/self/fd/9 && cat key; ls /proc/self/fd | tr "\n" " "'
        ./acheron exec --root ns --agent a -- sh -c 'cat /proc/self/fd/9/key; ls /proc/self/fd | tr "\n" " "'
        ./acheron exec --root ns --agent a -- sh -c 'cd /proc/self/fd/0 && cat key' < secret
        echo '{}' > ns/agents/a/where/control/now.json
        jq -c '.result // .error' ns/agents/a/where/result.json
    "#;
    let expected = expect![[r#"
        0
        the working directory `/proc/self/fd/9`: No such file or directory (os error 2)
        the working directory `/proc/self/fd/9/..`: No such file or directory (os error 2)
        the working directory `/projects/p/fs/way`: No such file or directory (os error 2)
        the working directory `/proc/self/cwd` leads through a link that does not stay inside; name the directory itself
        0 1 2 3 sh: 1: cd: can't cd to /proc/self/fd/9

        cat: /proc/self/fd/9/key: No such file or directory
        0 1 2 3 error: standard input is a directory, which would lead out of the sandbox; give a file or a pipe
        [0,1,2,3]
    "#]];
    check(|| tempfile::tempdir().unwrap(), spec, script, &expected);
}

#[test]
fn what_is_the_hosts_own_or_a_project_does_not_show_in_the_system() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": { "projects": ["p"] }, "b": { "projects": ["q"] } },
                    "projects": { "p": { "binds": { "/": { "path": "p" } } }, "q": { "binds": { "/": { "path": "q" } } } },
                    "library": "library",
                    "services": { "look": { "command": ["./look.sh"], "operations": { "now": {} } } } }"#;
    let script = r#"
        mkdir -p p q other state twice memory library/topics free
        echo key | tee p/key q/key state/key free/key library/topics/key.md > /dev/null
        mount --bind q other 2>/dev/null; mount --bind state twice; mount -t tmpfs memory memory; echo key > memory/key
        echo 'ls -A state ns library spec.json 2>/dev/null | jq -Rsc' > look.sh; sed -i '1i #!/bin/sh' look.sh; chmod +x look.sh
        start || exit
        count="for f in $PWD/[b-z]*; do case \$f in */script|*/device|*/look.sh) continue; esac"
        exec_as_agent '' "$count; echo \${f##*/} \$(cat \$f \$f/* \$f/topics/* 2>/dev/null | wc -c); done"
        exec_as_agent '' 'cat /projects/p/fs/key; ls -d /opt'
        echo '{}' > ns/agents/a/look/control/now.json
        jq -c '.result // .error' ns/agents/a/look/result.json
        umount other twice memory
    "#;
    let expected = expect![[r#"
        free 4
        library 0
        memory 0
        ns 0
        other 0
        p 0
        q 0
        spec.json 0
        state 0
        twice 0

        key
        ls: cannot access '/opt': No such file or directory

        "spec.json\n\nlibrary:\n\nns:\n\nstate:\n"
    "#]];
    check(|| tempfile::tempdir_in("/usr/src").unwrap(), spec, script, &expected);
}

#[test]
fn a_directory_that_the_mountspec_names_shows_at_once_without_what_is_the_hosts_own() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": {} }, "sandbox": { "system": [] } }"#;
    let script = r#"
        mkdir tools; echo '#!/bin/sh' > tools/program; echo 'echo ran' >> tools/program; chmod +x tools/program
        start || exit
        edit() {
            jq -c --arg named "$1" '.sandbox.system = [$named]' spec.json > edited; cat edited > spec.json
            until jq -e --arg named "$1" '.system == [$named]' ns/agents/a/terminal/sandbox.json > /dev/null 2>&1 ||
                ! cat ns/agents/a/terminal/sandbox.json > /dev/null 2>&1; do sleep 0.01; done
        }
        exec_as_agent /tmp "$PWD/tools/program 2> /dev/null || echo absent"
        edit "$PWD"
        exec_as_agent /tmp "$PWD/tools/program; ls -A $PWD/state $PWD/ns | grep -c ."
        edit "$PWD/state/agents"
        exec_as_agent /tmp 'true'
    "#;
    let expected = expect![[r#"
        absent

        ran
        2

        sandbox.system of the mountspec names DIR/state/agents, which is a part of the host's own state or settings; name another directory, or none
    "#]];
    check(|| tempfile::tempdir_in("/var/tmp").unwrap(), spec, script, &expected);
}

#[test]
fn the_state_does_not_show_in_a_project_that_is_another_name_for_its_directory() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": { "projects": ["p"] } },
                    "projects": { "p": { "binds": { "/": { "path": "alias" } } } } }"#;
    let script = r#"
        mkdir -p w/state alias; echo key > w/state/key; echo free > w/free
        mount --bind w alias
        mkdir ns; ./acheron mount ns --spec spec.json --state w/state --daemon > /dev/null || exit
        exec_as_agent '' 'cat free state/key; ls -A state | wc -l'
        umount -l alias
    "#;
    let expected = expect![[r#"
        free
        0
        cat: state/key: No such file or directory

    "#]];
    check(|| tempfile::tempdir_in("/var/tmp").unwrap(), spec, script, &expected);
}

#[test]
fn an_agent_reads_no_path_of_the_host_in_the_plan_of_its_sandbox() {
    let house = crate::test_host::TestHost::new();
    let said = house.says(
        r#"
        echo '{"command":"cat /agents/self/terminal/sandbox.json"}' > agents/self/terminal/control/exec.json
        jq -r .result.stdout agents/self/terminal/result.json
        "#,
    );
    assert!(said.contains(r#""level": "namespaces""#) && said.contains(r#""target": "/agents/charon""#), "{said}");
    assert!(!said.contains("source") && !said.contains("DIR") && !said.contains("/tmp"), "{said}");
    assert!(house.says("cat agents/self/terminal/sandbox.json").contains("\"source\""), "the operator reads all");
}

#[test]
fn an_agent_reads_no_path_of_the_host_in_the_facts_of_a_project_in_errors_or_in_its_control_group() {
    use acheron::policy::PrincipalCaller;
    use acheron_vfs::Caller;
    let spec = r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["p", "q"] } }, "projects": {
        "p": { "binds": { "/": { "path": "." } } }, "q": { "binds": { "/": { "path": "/usr/share/doc" } } } } }"#;
    let house = crate::test_host::TestHost::prepared(spec, |here| {
        std::os::unix::fs::symlink("../..", here.join("out")).unwrap();
    });
    let meta = |caller: Caller| {
        house.inside(async |host| host.tree().read(&caller, "/projects/q/meta.json").await.map(|text| text.to_vec()))
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let by_agent = text(meta(Caller::agent("charon")).unwrap());
    assert!(by_agent.contains("\"bind_path\": \"/\"") && !by_agent.contains("/usr/share"), "{by_agent}");
    assert!(text(meta(Caller::operator()).unwrap()).contains("\"target_path\": \"/usr/share/doc\""));
    let said = house.says(
        r#"cd agents/charon
        echo '{"query":"x","path":"/projects/p/fs/out"}' > search_code/control/search.json; jq -r .error.message search_code/result.json
        echo '{"command":"cut -d: -f3 /proc/self/cgroup | sort -u"}' > terminal/control/exec.json; jq -r .result.stdout terminal/result.json"#,
    );
    assert_eq!(said, "out leads out of its directory\n/\n\n");
}
