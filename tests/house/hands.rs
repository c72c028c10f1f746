//! Terminals, projects and programs, as a person and as an agent meet them.

use expect_test::expect;

use crate::house::House;

const WRITABLE: &str = r#"{
    "layout": "acheron-1",
    "agents": { "charon": { "projects": ["p"] }, "styx": {} },
    "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } }, "other": { "binds": { "/": { "path": "." } } } }
}"#;

#[test]
fn a_command_runs_in_the_agents_sandbox() {
    House::new().check(
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
        "#]],
    );
}

#[test]
fn a_process_in_there_is_that_agent_and_sees_its_own_and_nothing_else() {
    let house = House::of(WRITABLE);
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
            agents
            bin
            dev
            etc
            global
            home
            lib
            lib64
            meta
            opt
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
    House::new().check(
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
        echo '{}' > control/close.json
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
            there is a session 'work' already
            ["closed",1]
            closed
            no session is open; open one with create
            ! bash: line 16: sessions/work/input: No such device or address
        "#]],
    );
}

#[test]
fn cancelling_a_command_ends_it() {
    House::new().check(
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

#[test]
fn a_project_is_the_directory_itself() {
    let house = House::of(WRITABLE);
    std::os::unix::fs::symlink("/etc/hostname", house.here().join("out")).unwrap();
    house.check(
        r#"
        cd projects
        cat p/fs/notes.txt
        echo two > p/fs/new && mv p/fs/new p/fs/moved && ln -s moved p/fs/link && chmod 600 p/fs/moved && cat p/fs/link
        stat -c '%a %s' p/fs/moved
        readlink p/fs/out
        touch other/fs/x
        rm other/fs/notes.txt
        findmnt -rn -o FSTYPE,OPTIONS p/fs | cut -d' ' -f1 | grep -v fuse > /dev/null && echo native
        jq -c .binds p/meta.json
        "#,
        expect![[r#"
            a note
            two
            600 4
            /etc/hostname
            native
            [{"bind_path":"/","target_path":".","read_only":false,"shown_by":"kernel"}]
            ! touch: cannot touch 'other/fs/x': Read-only file system
            ! rm: cannot remove 'other/fs/notes.txt': Read-only file system
        "#]],
    );
    let root = house.root();
    drop(house);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&root.display().to_string()), "something stayed mounted");
}

#[test]
fn the_hosts_own_file_tools_see_the_project_too() {
    let house = House::of(WRITABLE);
    let read = house.inside(async |host| {
        let caller = acheron::vfs::Caller::agent("charon");
        let handle = host.tree().open_path(&caller, "/projects/p/fs/notes.txt", acheron::vfs::Open::READ).unwrap();
        handle.read(0, 100).wait().await.unwrap()
    });
    assert_eq!(read, "a note\n");
}

/// Puts the shipped examples where a host that is started in `here` finds them.
fn examples(here: &std::path::Path) {
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("mountspec/examples");
    let to = here.join("mountspec/examples");
    std::fs::create_dir_all(&to).unwrap();
    for name in ["almanac.py", "tally.sh"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn a_program_is_a_service() {
    let house = House::prepared(include_str!("../../mountspec/examples/programs.json"), examples);
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
            {"code":"invalid_payload","message":"day: unknown key \"txt\"; did you mean text?"}
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
    House::of(spec).check(
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
            {"code":"execution_failed","message":"the answer of odd is not one JSON value: expected ident at line 1 column 2"}
            {"code":"execution_failed","message":"odd ended with exit code 2: broken"}
            {"code":"execution_failed","message":"odd was ended by signal 9"}
            3
            2
        "#]],
    );
}

#[test]
fn a_name_of_ones_own_leads_elsewhere() {
    let mut house = House::of(WRITABLE);
    house.check(
        r#"
        cd agents/charon/mounts
        echo '{"bind_path":"/agents/self/work","target_path":"/projects/p/fs"}' > control/bind.json
        jq -c .result result.json
        cat ../work/notes.txt
        ls .. | grep work
        echo '{"path":"/agents/self/work/notes.txt"}' > control/resolve.json
        jq -c .result result.json
        for b in /agents/styx/x:/global /agents/self/memory:/global /agents/self/x:/agents/styx /agents/self/x:/agents/self; do
            jq -cn --arg b "$b" '($b / ":") as [$p, $t] | {bind_path: $p, target_path: $t}' > control/bind.json
            jq -c '[.error.code, .error.message]' result.json
        done
        cat ../../../meta/ns
        "#,
        expect![[r#"
            {"binds":[{"bind_path":"/agents/charon/work","target_path":"/projects/p/fs"}]}
            a note
            work
            {"path":"/agents/charon/work/notes.txt","resolved_path":"/projects/p/fs/notes.txt","matched":true}
            ["invalid_payload","`/agents/styx/x` cannot be bound: a bind_path is a new name in your own directory, /agents/self/<name>"]
            ["already_exists","/agents/charon/memory is there already, and not a binding"]
            ["not_found","there is no `/agents/styx`"]
            ["invalid_payload","`/agents/charon/x` lies in `/agents/charon`: a walk there would never end"]
            {"op":"bind","arguments":{"bind_path":"/agents/charon/work","target_path":"/projects/p/fs"}}
        "#]],
    );
    house.restart();
    house.check(
        r#"
        cat agents/charon/work/notes.txt
        echo '{"bind_path":"/agents/self/work"}' > agents/charon/mounts/control/unbind.json
        jq -c .result agents/charon/mounts/result.json
        ls agents/charon | grep -c work
        "#,
        expect![[r#"
            a note
            {"binds":[]}
            0
        "#]],
    );
}

#[test]
fn a_change_from_outside_is_an_event() {
    let house = House::of(WRITABLE);
    let here = house.here();
    house.check(
        &format!(
            r#"
        cd agents/charon/events
        echo '{{"paths":["/projects/p/fs/new.txt"],"timeout_ms":60000}}' > control/wait.json
        echo x > {}/new.txt
        jq -c '[.event_path, .change.what]' next.json
        "#,
            here.display()
        ),
        expect![[r#"
            ["/projects/p/fs/new.txt","created"]
        "#]],
    );
}

#[test]
fn a_program_of_ones_own_moves_in() {
    let house = House::of(WRITABLE);
    let acheron = env!("CARGO_BIN_EXE_acheron");
    house.check(
        &format!(
            r#"
        {acheron} exec --root . --agent charon -- sh -c 'pwd; readlink /agents/self; ls /agents; cat notes.txt; exit 3'
        echo $?
        echo over | {acheron} exec --root . --agent charon cat
        {acheron} exec --root . --agent nobody -- true
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
            ! error: there is no agent 'nobody' with a terminal
            ! hint: the agents are charon, styx
        "#]],
    );
}

#[test]
fn the_node_tells_which_walls_stand() {
    House::new().check(
        r#"
        jq -c '[.sandbox.complete, .binds, (.sandbox.walls | map(.name) | join(" "))]' nodes/local/CAPS.json
        "#,
        expect![[r#"
            [true,"kernel","user pids mounts ipc uts network root processes memory cpu privileges landlock calls"]
        "#]],
    );
}
