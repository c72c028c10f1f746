//! Terminals, projects and programs, as a person and as an agent meet them.

use expect_test::expect;

use crate::test_host::TestHost;

pub const WRITABLE: &str = r#"{
    "layout": "acheron-1",
    "agents": { "charon": { "projects": ["p"] }, "styx": {} },
    "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } }, "other": { "binds": { "/": { "path": "." } } } }
}"#;

#[test]
fn a_command_runs_in_the_agents_sandbox() {
    TestHost::new().check(
        r#"
        cd agents/self/terminal
        echo '{"command":"pwd; cat notes.txt; echo oops >&2; exit 3"}' > control/exec.json
        jq -c .result result.json
        sort ../jobs/last/log.txt
        echo '{"argv":["printf","a\\377b"]}' > control/exec.json
        jq -c '[.result.stdout_b64, .result.signal]' result.json
        echo '{"command":"sleep 600","timeout_ms":100}' > control/exec.json
        jq -c '[.ok, .error.code]' result.json
        echo '{"command":"x","argv":["y"]}' > control/exec.json
        jq -r .error.message result.json
        jq -c '[.interactive, .sandboxed]' CAPS.json
        "#,
        expect![[r#"
            {"exit_code":3,"signal":null,"stdout":"/projects/here/fs\na note\n","stderr":"oops\n","truncated":false,"duration_ms":MS}
            /projects/here/fs
            a note
            oops
            ["Yf9i",null]
            [false,"timeout"]
            exactly one of `command` and `argv` is needed
            [true,true]
            ! bash: line 10: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_process_in_there_is_that_agent_and_sees_its_own_and_nothing_else() {
    let house = TestHost::of(WRITABLE);
    house.check(
        r#"
        run() { jq -cn --arg c "$1" '{command: $c}' > agents/charon/terminal/control/exec.json
                jq -r '.result.stdout + .result.stderr' agents/charon/terminal/result.json; }
        run 'ls / /agents; readlink /agents/self; ls /projects'
        run 'ls /agents/self/ | grep -x events; cat /agents/styx/events/status.json'
        run 'echo "{\"event_type\":\"user\",\"parameter\":\"hi\"}" > /agents/self/events/control/signal.json && echo sent'
        run 'echo new > /projects/p/fs/made && cat made'
        cat projects/p/fs/made
        "#,
        expect![[r#"
            /:
            AGENTS.md
            README.md
            agents
            bin
            dev
            etc
            global
            home
            lib
            lib64
            meta
            proc
            projects
            sbin
            tmp
            usr

            /agents:
            charon
            self
            charon
            p

            events
            cat: /agents/styx/events/status.json: No such file or directory

            sent

            new

            new
        "#]],
    );
}

#[test]
fn a_session_is_a_directory() {
    TestHost::new().check(
        r#"
        cd agents/self/terminal
        echo '{"session_id":"work"}' > control/create.json
        jq -c '[.result.session_id, .result.state, .result.cols]' result.json
        ls sessions/work
        echo "cd /tmp; X=kept; echo he''llo" > sessions/work/input
        tail -f sessions/work/output | grep -m1 -o '^hello'
        echo '{"session_id":"work","command":"pwd; echo $X; false"}' > control/exec.json
        jq -c '[.result.stdout, .result.exit_code, .result.session_id]' result.json
        echo '{"session_id":"work","max_bytes":4,"offset":0}' > control/read.json
        jq -c '.result | [.offset, .next_offset, .first_offset, .eof]' result.json
        echo '{"session_id":"work"}' > control/create.json
        jq -r .error.message result.json
        echo '{}' > control/close.json; cat result.json > /dev/null
        jq -c '[.state, .exec_count]' sessions/work/status.json
        echo ls > sessions/work/input || echo closed
        echo '{}' > control/read.json
        jq -r .error.message result.json
        "#,
        expect![[r#"
            ["work","open",80]
            input
            output
            output.1
            status.json
            hello
            ["/tmp\nkept\n",1,"work"]
            [0,4,0,false]
            there is a session `work` already
            ["closed",1]
            closed
            no session is open; open one with create
            ! bash: line 16: sessions/work/input: No such device or address
        "#]],
    );
}

#[test]
fn cancelling_a_command_ends_it() {
    TestHost::new().check(
        r#"
        cd agents/self
        exec 3<>terminal/control/exec.json
        echo '{"command":"echo up; sleep 600"}' >&3
        tail -f jobs/last/log.txt | grep -m1 up
        echo 1 > jobs/last/control/cancel
        jq -c '[.ok, .error.code]' <&3
        "#,
        expect![[r#"
            up
            [false,"cancelled"]
        "#]],
    );
}

/// Puts the shipped examples where a host that is started in `here` finds them.
pub fn examples(here: &std::path::Path) {
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mountspec/examples");
    let to = here.join("mountspec/examples");
    std::fs::create_dir_all(&to).unwrap();
    for name in ["almanac.py", "tally.sh"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn a_program_is_a_service() {
    let house = TestHost::prepared(include_str!("../../mountspec/examples/programs.json"), examples);
    house.check(
        r#"
        cd nodes/local/services/almanac
        ls
        echo '{"text":"2026-11-16"}' > control/day.json
        cat result.json | jq -c .result
        cat /proc/self/cwd/../../../../agents/charon/jobs/last/log.txt
        echo '{"op":"days","arguments":{"first":"2026-12-30","count":3}}' > control/invoke.json
        jq -c '[.result.days[].weekday]' result.json
        jq -c .progress ../../../../agents/charon/jobs/last/progress.json
        echo '{"text":"yesterday"}' > control/day.json
        jq -c .error result.json
        echo '{"txt":"x"}' > control/day.json
        jq -c .error status.json
        cd ../../../../agents/charon/tally
        echo '{}' > control/count.json
        jq -c .result result.json
        echo '{"path":"/nowhere"}' > control/count.json
        jq -c .error result.json
        jq -c '.[] | select(.service_id == "almanac" or .service_id == "tally") | [.service_id, .scope]' ../services/SERVICES.json
        "#,
        expect![[r#"
            CAPS.json
            OPS.json
            PERMISSIONS.json
            README.md
            SCHEMA.json
            control
            result.json
            status.json
            {"date":"2026-11-16","weekday":"Monday","day_of_year":320,"moon":"first quarter"}
            asked for day
            ["Wednesday","Thursday","Friday"]
            {"done":2,"of":3}
            {"code":"invalid_payload","message":"'yesterday' is no day: Invalid isoformat string: 'yesterday'"}
            {"code":"invalid_payload","message":"day: unknown key `txt`; did you mean text?"}
            {"endings":{"py":1,"rs":1,"sh":1,"txt":1}}
            {"code":"not_found","message":"there is no directory /nowhere"}
            ["tally","agent_namespace"]
            ["almanac","node"]
            ! bash: line 12: echo: write error: Invalid argument
        "#]],
    );
}

#[test]
fn a_program_that_breaks_its_promise_is_a_failed_job() {
    let spec = r#"{
        "layout": "acheron-1", "agents": { "a": {} },
        "services": { "odd": { "command": ["sh", "-c", "eval \"$(jq -r .run)\""], "operations": { "run": {
            "effect": "execute", "timeout_ms": 5000, "arguments": { "type": "object", "properties": { "run": { "type": "string" } } },
            "result": { "type": "integer" } } } } }
    }"#;
    TestHost::of(spec).check(
        r#"
        cd agents/a/odd
        run() { jq -cn --arg r "$1" '{run: $r}' > control/run.json; jq -c '.result // .error' result.json; }
        run 'echo 7'
        run 'echo \"seven\"'
        run 'echo no; echo no'
        run 'echo broken >&2; exit 2'
        run 'kill -9 $$'
        run 'env | grep -c ACHERON'
        run 'ls /agents | wc -l'
        "#,
        expect![[r#"
            7
            {"code":"execution_failed","message":"the answer of odd is not what it promised: must be a whole number, not a string"}
            {"code":"execution_failed","message":"odd printed `no\\nno`, which is not one JSON value: expected ident at line 1 column 2"}
            {"code":"execution_failed","message":"odd ended with exit code 2: broken"}
            {"code":"execution_failed","message":"odd was ended by signal 9"}
            3
            2
        "#]],
    );
}

#[test]
fn a_program_has_a_deadline_can_be_cancelled_and_waits_its_turn() {
    let spec = r#"{
        "layout": "acheron-1", "agents": { "a": { "projects": ["p"] } },
        "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } } },
        "services": {
            "slow": { "command": ["sh", "-c", "cat > /dev/null; echo begun >&2; sleep 600"],
                      "operations": { "short": { "timeout_ms": 300 }, "long": {} } },
            "single": { "concurrency": 1, "operations": { "go": {} },
                        "command": ["sh", "-c", "cat > /dev/null; mkdir busy && sleep 0.05 && rmdir busy && echo true"] } }
    }"#;
    TestHost::of(spec).check(
        r#"
        cd agents/a
        echo '{}' > slow/control/short.json; jq -r .error.code slow/result.json
        echo '{"op":"long","correlation_id":"x"}' > slow/control/invoke.json
        until grep -q begun jobs/by/x/log.txt; do :; done
        echo 1 > jobs/by/x/control/cancel; jq -r .error.code jobs/by/x/result.json
        for n in 1 2 3 4 5 6; do echo "{\"op\":\"go\",\"correlation_id\":\"g$n\"}" > single/control/invoke.json; done
        for n in 1 2 3 4 5 6; do jq -c '.result // .error' jobs/by/g$n/result.json; done | uniq -c
        "#,
        expect![[r#"
            timeout
            cancelled
                  6 true
        "#]],
    );
}

#[test]
fn a_session_shows_what_a_person_would_have_seen() {
    TestHost::new().check(
        r#"
        cd agents/self/terminal
        echo '{"session_id":"s","shell":"sh","env":{"PS1":"$ "}}' > control/create.json
        jq -c .ok result.json
        echo '{"session_id":"s","offset":0,"wait_ms":60000}' > control/read.json
        jq -c .result.data result.json
        echo '{"session_id":"s","command":"printf \"a\\377b\\n\"; echo two; false"}' > control/exec.json
        jq -c '.result | [.stdout_b64, .exit_code]' result.json
        echo '{"session_id":"s","command":"cd /tmp; pwd"}' > control/exec.json
        jq -c '.result.stdout' result.json
        tail -f sessions/s/output | grep -a -m1 '^/tmp' > /dev/null
        LC_ALL=C tr -d '\r' < sessions/s/output | head -c 45 | sed 's/\xff/FF/'
        grep -a -c -e __acheron -e "$(printf '\036')" sessions/s/output
        "#,
        expect![[r#"
            true
            "$ "
            ["Yf9iCnR3bwo=",1]
            "/tmp\n"
            $ printf "a\377b\n"; echo two; false
            aFFb
            two
            0
        "#]],
    );
}

#[test]
fn a_shared_service_is_listed_for_those_who_may_use_it() {
    let programs = include_str!("../../mountspec/examples/programs.json");
    let spec = programs.replacen(r#""agents": {"#, r#""agents": { "styx": {},"#, 1);
    let spec = spec.replacen(r#""layout""#, r#""default_agent": "charon", "layout""#, 1);
    TestHost::prepared(&spec, examples).check(
        r#"
        run() { jq -cn --arg c "$2" '{command: $c}' > agents/$1/terminal/control/exec.json
                jq -r '.result.stdout + .result.stderr' agents/$1/terminal/result.json; }
        for agent in charon styx; do
            jq -c '[.[] | select(.scope == "node") | .service_path]' agents/$agent/services/SERVICES.json
            run $agent 'ls /nodes/local/services'
        done
        run charon 'cd /nodes/local/services/almanac; echo "{\"text\":\"2026-11-16\"}" > control/day.json; cat result.json' | jq -c .result.weekday
        "#,
        expect![[r#"
            ["/nodes/local/services/almanac"]
            SERVICES.json
            almanac

            []
            ls: cannot access '/nodes/local/services': No such file or directory

            "Monday"
        "#]],
    );
}

#[test]
fn the_mountspec_says_how_much_a_program_may_use() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": {} },
        "sandbox": { "limits": { "memory_bytes": 134217728, "processes": 24, "cpu_seconds": 77, "open_files": 99 } } }"#;
    TestHost::of(spec).check(
        r#"
        cd agents/a/terminal
        run() { jq -cn --arg c "$1" '{command: $c}' > control/exec.json; jq -r '.result.stdout' result.json; }
        run 'ulimit -t; ulimit -n'
        run 'python3 -c "x = bytearray(1 << 30)" 2> /dev/null || echo too much'
        run 'made=$( (i=0; while [ $i -lt 500 ]; do sleep 60 > /dev/null & i=$((i+1)); echo $i; done) 2> /dev/null | tail -n 1)
             [ "$made" -lt 24 ] && echo bounded'
        "#,
        expect![[r#"
            77
            99

            too much

            bounded

        "#]],
    );
}

#[test]
fn a_program_runs_as_the_operator_only_if_the_mountspec_says_so() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "a": {} }, "services": {
        "in": { "command": ["sh", "-c", "cat > /dev/null; readlink /proc/self/ns/mnt | jq -R ."], "operations": { "look": { "effect": "read" } } },
        "out": { "unconfined": true, "command": ["sh", "-c", "cat > /dev/null; readlink /proc/self/ns/mnt | jq -R ."], "operations": { "look": { "effect": "read" } } } } }"#;
    TestHost::of(spec).check(
        r#"
        cd agents/a
        own=$(readlink /proc/self/ns/mnt)
        for name in in out; do
            echo '{}' > $name/control/look.json
            [ "$(jq -r .result $name/result.json)" = "$own" ] && echo "$name: the operator's" || echo "$name: its own"
            jq -c .unconfined $name/CAPS.json
        done
        "#,
        expect![[r#"
            in: its own
            null
            out: the operator's
            true
        "#]],
    );
}

#[test]
fn a_program_of_ones_own_moves_in() {
    let house = TestHost::of(WRITABLE);
    let acheron = env!("CARGO_BIN_EXE_acheron");
    house.check(
        &format!(
            r#"
        {acheron} exec --root . --agent charon -- sh -c 'pwd; readlink /agents/self; ls /agents; cat notes.txt; exit 3'
        echo $?
        echo over | {acheron} exec --root . --agent charon cat
        {acheron} exec --root . --agent nobody -- true
        echo $?
        {acheron} exec --root . --agent charon -- nosuch
        echo $?
        "#
        ),
        expect![[r#"
            /projects/p/fs
            charon
            charon
            self
            a note
            3
            over
            1
            127
            ! error: there is no agent `nobody` with a terminal
            ! hint: the agents are charon, styx
            ! error: cannot run `nosuch`: No such file or directory
        "#]],
    );
}

#[test]
fn the_node_names_its_isolation_mechanisms() {
    TestHost::new().check(
        r#"
        jq -c '[.sandbox.complete, .binds, (.sandbox.mechanisms | map(.name) | join(" "))]' nodes/local/CAPS.json
        "#,
        expect![[r#"
            [true,"kernel","user pids mounts ipc uts network root processes memory cpu agent_limits privileges landlock system_calls"]
        "#]],
    );
}
