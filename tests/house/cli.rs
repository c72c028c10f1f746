//! The program as a person types it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::common::{GUARD, until};
use crate::test_host::steady;

/// A directory to type in. Whatever was mounted in it is taken down at the end.
struct Desk {
    dir: TempDir,
}

impl Desk {
    fn new() -> Desk {
        let dir = TempDir::new().unwrap();
        std::fs::create_dir(dir.path().join("ns")).unwrap();
        Desk { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("ns")
    }

    /// Runs a bash session in which `acheron` is the program; says what it printed and how it ended.
    fn says(&self, script: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_acheron"));
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("timeout")
            .args(["--kill-after=5", &GUARD.as_secs().to_string(), "bash", "-c", &format!("{script}\necho \"= $?\"")])
            .current_dir(self.dir.path())
            .env_clear()
            .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
            .env("HOME", self.dir.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            said += &format!("! {line}\n");
        }
        steady(&said, self.dir.path())
    }

    #[track_caller]
    fn check(&self, script: &str, expect: Expect) {
        expect.assert_eq(&self.says(script));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.says("acheron unmount ns; acheron unmount other");
    }
}

#[test]
fn a_mount_that_cannot_be_is_refused_with_advice() {
    Desk::new().check(
        r#"
        acheron mount nowhere
        touch ns/x; acheron mount ns; rm ns/x
        echo '{"agnets":{}}' > bad.json; acheron mount ns --spec bad.json
        acheron mount ns --model fly
        acheron mount ns --state ns/state
        ls ns
        acheron unmount ns
        acheron fly 2> /dev/null
        "#,
        expect![[r#"
            = 2
            ! error: there is no directory DIR/nowhere: make it with `mkdir -p DIR/nowhere`
            ! error: DIR/ns is not empty, and a mount would hide its files: choose an empty directory
            ! error: bad.json cannot be mounted:
            !   unknown key `agnets`; did you mean agents?
            ! error: unknown model kind `fly`
            ! hint: script[:FILE], replay:FILE, openai:MODEL, anthropic:MODEL or external
            ! error: the state directory DIR/ns/state is inside the mount point
            ! hint: choose another with --state DIR
            ! error: no namespace is mounted on DIR/ns
            ! hint: `acheron status` shows what is mounted
        "#]],
    );
}

#[test]
fn a_daemon_answers_when_its_command_returns_and_is_gone_after_unmount() {
    let desk = Desk::new();
    desk.check(
        r#"
        acheron mount ns --daemon
        ls ns
        acheron mount ns --daemon
        mkdir other; acheron mount other --daemon 2>&1 | sed 's/pid [0-9]*/pid N/'
        acheron status --json | jq -c "select(.mountpoint == \"$HOME/ns\") | [.answers, .health.ok, .health.agents]"
        acheron unmount ns
        acheron status --json | jq -c "select(.mountpoint == \"$HOME/ns\")"
        ls ns
        "#,
        expect![[r#"
            mounted on ns; `acheron unmount ns` unmounts it
            AGENTS.md
            README.md
            agents
            global
            meta
            nodes
            projects
            error: cannot open the state in DIR/.local/state/acheron: another acheron (pid N) uses the state directory DIR/.local/state/acheron: stop it and wait for its end, or choose another directory
            hint: its log is DIR/.local/state/acheron/acheron.log
            [true,true,["charon"]]
            = 0
            ! error: a file system (fuse.acheron) is already mounted on DIR/ns: unmount it first with `acheron unmount DIR/ns`
            ! hint: its log is DIR/.local/state/acheron/acheron.log
        "#]],
    );
}

#[test]
fn a_dead_mount_is_recovered_also_with_a_shell_inside() {
    let desk = Desk::new();
    desk.check(
        r#"
        acheron mount ns --daemon
        cd ns
        kill -9 $(cat ../.local/state/acheron/acheron.pid)
        until ! ls $HOME/ns > /dev/null 2>&1; do sleep 0.02; done
        (cd $HOME; acheron mount ns --daemon; ls ns)
        "#,
        expect![[r#"
            mounted on ns; `acheron unmount ns` unmounts it
            mounted on ns; `acheron unmount ns` unmounts it
            AGENTS.md
            README.md
            agents
            global
            meta
            nodes
            projects
            = 0
        "#]],
    );
    let daemon = std::fs::read_to_string(desk.dir.path().join(".local/state/acheron/acheron.pid")).unwrap();
    assert!(Path::new("/proc").join(daemon.trim()).exists());
}

#[test]
fn who_could_not_tell_its_callers_apart_does_not_mount() {
    let desk = Desk::new();
    desk.check(
        "unshare --pid --fork acheron mount ns --state state",
        expect![[r#"
            = 1
            ! error: /proc belongs to another pid namespace, so callers cannot be identified: mount one of this namespace, as `unshare --pid --fork --mount-proc` does
        "#]],
    );
}

#[test]
fn signals_take_the_foreground_mount_down() {
    for signal in ["TERM", "INT", "HUP", "QUIT"] {
        let desk = Desk::new();
        let said = desk.says(&format!(
            "acheron mount ns > said & pid=$!; until grep -q mounted said; do sleep 0.02; done
             (cat ns/agents/self/events/sources/user.json; echo waiter $?) &
             until [ \"$(jq .parked ns/meta/metrics.json)\" = 1 ]; do :; done
             kill -{signal} $pid; wait $pid; echo ended $?; wait; ls -A ns"
        ));
        assert!(said.contains("ended 0"), "{signal}: {said}");
        assert!(said.contains("waiter 1"), "{signal}: {said}");
        until("it is unmounted", || std::fs::read_dir(desk.root()).unwrap().next().is_none());
    }
}

#[test]
fn a_chat_whose_messages_fail_ends_with_an_error() {
    Desk::new().check(
        r#"
        acheron mount ns --daemon --model external > /dev/null
        acheron chat --root ns -m ''
        head -c 2M /dev/zero | tr '\0' x | acheron chat --root ns | grep -o "File too large"; echo "${PIPESTATUS[2]}"
        echo /help | acheron chat --root ns > /dev/null; echo $?
        kill -9 $(cat .local/state/acheron/acheron.pid)
        until ! ls ns > /dev/null 2>&1; do sleep 0.02; done
        acheron chat --root ns -m hi
        acheron exec --root ns --agent charon true
        "#,
        expect![[r#"
            File too large
            1
            0
            = 1
            ! error: the message is empty
            ! error: the mount on DIR/ns is dead: its host has ended
            ! hint: `acheron unmount DIR/ns` detaches it
            ! error: the mount on DIR/ns is dead: its host has ended
            ! hint: `acheron unmount DIR/ns` detaches it
        "#]],
    );
}

#[test]
fn a_program_in_a_sandbox_ends_with_its_host() {
    Desk::new().check(
        r#"
        for end in 'kill -9 PID' 'acheron unmount ns'; do
            rm -f ready
            acheron mount ns --daemon > /dev/null
            acheron exec --root ns --agent charon sh -c 'echo ready; while :; do sleep 600; done' > ready & pid=$!
            until grep -q ready ready; do sleep 0.02; done
            ${end/PID/$(cat .local/state/acheron/acheron.pid)}
            wait $pid; echo $?
            acheron unmount ns > /dev/null 2>&1
        done
        "#,
        expect![[r#"
            1
            1
            = 1
            ! error: the host has ended, and the program with it
            ! error: the host has ended, and the program with it
        "#]],
    );
}

#[test]
fn a_tool_that_waits_hears_of_the_end_of_the_host() {
    Desk::new().check(
        r#"
        acheron mount ns --daemon > /dev/null
        jq -r '.errors[].code' ns/meta/protocol.json > codes
        mkfifo calls; acheron tool --root ns < calls > answer & exec 5> calls
        echo '{"name":"file_read","arguments":{"path":"/agents/self/events/sources/user.json"}}' >&5
        until [ "$(jq .parked ns/meta/metrics.json)" = 1 ]; do :; done
        kill -9 $(cat .local/state/acheron/acheron.pid)
        until [ -s answer ]; do sleep 0.02; done
        jq -r .error.code answer
        grep -cx "$(jq -r .error.code answer)" codes
        exec 5>&-; wait
        "#,
        expect![[r#"
            unavailable
            1
            = 0
        "#]],
    );
}

#[test]
fn the_three_tools_over_standard_input() {
    Desk::new().check(
        r#"
        acheron mount ns --daemon > /dev/null
        acheron tool --root ns <<'CALLS'
{"id":1,"name":"file_read","arguments":{"path":"/README.md","max_bytes":9}}
{"name":"file_read","arguments":{"path":"/agents/self/events/sources/user.json","wait_until_ready":false}}
{"name":"file_list","arguments":{"path":"/agents"}}
{"name":"file_read","arguments":{"path":"/nowhere"}}
{"name":"file_write","arguments":{"path":"/agents/self/search_code/control/fly.json","content":"{}"}}
nonsense
{"name":"fly"}
{"id":"last","name":"file_list","arguments":{"path":"/meta","max_entries":1}}
CALLS
        "#,
        expect![[r##"
            {"id":1,"path":"/README.md","content":"# Acheron","bytes":9,"truncated":true,"ready":true}
            {"path":"/agents/self/events/sources/user.json","content":"","bytes":0,"truncated":false,"ready":false}
            {"path":"/agents","entries":[{"path":"/agents/charon","type":"directory","size":0},{"path":"/agents/self","type":"link","size":0}],"truncated":false}
            {"error":{"code":"not_found","message":"`/nowhere`: No such file or directory (os error 2)"}}
            {"error":{"code":"not_found","message":"`/agents/self/search_code/control/fly.json`: No such file or directory (os error 2)"}}
            {"error":{"code":"invalid_payload","message":"not a call: expected ident at line 1 column 2; it is {\"name\":\"file_read\",\"arguments\":{\"path\":\"/README.md\"}}"}}
            {"error":{"code":"unknown_operation","message":"there is no tool `fly`; the tools are file_read, file_write and file_list"}}
            {"id":"last","path":"/meta","entries":[{"path":"/meta/health.json","type":"file","size":0}],"truncated":true}
            = 0
        "##]],
    );
}

#[test]
fn a_backup_is_taken_while_it_runs_and_can_be_mounted() {
    Desk::new().check(
        r#"
        acheron mount ns --daemon > /dev/null
        echo '{"kind":"note","name":"fare","content":"one obol"}' > ns/agents/self/memory/control/create.json
        jq -c .ok ns/agents/self/memory/result.json
        acheron backup copy.db --state .local/state/acheron
        acheron backup copy.db --state .local/state/acheron
        acheron unmount ns
        mkdir -p restored && cp copy.db restored/acheron.db
        acheron mount ns --daemon --state restored > /dev/null
        cat ns/agents/self/memory/items/fare/content; echo
        "#,
        expect![[r#"
            true
            copy.db is a copy of .local/state/acheron
            copy.db is a copy of .local/state/acheron
            one obol
            = 0
        "#]],
    );
}

#[test]
fn a_spec_is_checked_with_every_fault_named() {
    Desk::new().check(
        r#"
        echo '{"layout":"acheron-1","defualt_agent":"x","agents":{"a":{"projects":["p"],"limits":{"rounds":0}}}}' > bad.json
        acheron check bad.json
        echo '{"layout":"acheron-1","agents":{"a":{}}}' > good.json
        acheron check good.json
        acheron check nowhere.json
        "#,
        expect![[r#"
            bad.json: unknown key `defualt_agent`; did you mean default_agent?
            bad.json: agents.a.limits.rounds: must be at least 1, not 0
            bad.json: agents.a.projects[0]: there is no project `p`; projects are here
            good.json: ok: 1 agent, 1 project, 0 services
            = 1
            ! error: nowhere.json: No such file or directory (os error 2)
        "#]],
    );
}

#[test]
fn a_recorded_run_is_given_again() {
    Desk::new().check(
        r#"
        say() { acheron chat --root ns -m "$1"; }
        acheron mount ns --daemon --record run.ndjson > /dev/null
        say 'remember that the ferry leaves at nine' > first; say 'what do you know about the ferry?' >> first
        acheron unmount ns
        jq -c '[.by, (.asked | length), (.said.text | type)]' run.ndjson | sort -u
        stat -c %a run.ndjson
        acheron mount ns --daemon --state again --model replay:run.ndjson > /dev/null
        say 'remember that the ferry leaves at nine' > second; say 'what do you know about the ferry?' >> second
        cmp first second && tail -1 second
        say 'and now?'
        acheron unmount ns
        acheron mount ns --record run.ndjson
        "#,
        expect![[r#"
            ["charon",16,"string"]
            600
            (agents/self/memory/items/fact-1)
            = 1
            ! error: the recording run.ndjson is at its end
            ! error: cannot record to run.ndjson: File exists (os error 17)
        "#]],
    );
}

#[test]
fn the_doctor_ends_with_whether_it_can_work_and_has_a_fix_for_each_lack() {
    let desk = Desk::new();
    desk.says("acheron doctor --json > found; echo $? > code");
    let found = std::fs::read_to_string(desk.dir.path().join("found")).unwrap();
    let found: Vec<serde_json::Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(found.len() >= 11, "{found:?}");
    for finding in &found {
        assert_eq!(finding["fix"].is_string(), finding["health"] != "ok", "{finding}");
    }
    let bad = found.iter().any(|finding| finding["health"] == "bad");
    let code = std::fs::read_to_string(desk.dir.path().join("code")).unwrap();
    assert_eq!(code.trim(), if bad { "1" } else { "0" });
    desk.check(
        r#"
        mkdir broken; echo 'no database, whatever it says' > broken/acheron.db
        echo '{"agnets":{}}' > bad.json
        echo '{"symbols":{"backend":"redis","url":"redis://127.0.0.1:1/0"},"agents":{"a":{}}}' > far.json
        acheron doctor --state broken | grep -A1 'BAD   database' | sed 's/ (file.*//'; echo "${PIPESTATUS[0]}"
        acheron doctor --spec bad.json | grep -A2 'BAD   mountspec'; echo "${PIPESTATUS[0]}"
        acheron doctor --spec far.json | grep -A1 'BAD   symbols' | sed 's/does not answer: .*/does not answer/'; echo "${PIPESTATUS[0]}"
        "#,
        expect![[r#"
            BAD   database: DIR/broken is damaged (1): the database is damaged
                  fix: stop acheron, keep a copy of the directory, and put a backup (acheron backup FILE) in its place
            1
            BAD   mountspec: bad.json cannot be mounted:
              unknown key `agnets`; did you mean agents?
                  fix: acheron check FILE names every fault with its place
            1
            BAD   symbols: are in redis at 127.0.0.1:1: redis at 127.0.0.1:1 does not answer
                  fix: start that server, fix symbols.url in the mountspec, or use "backend": "sqlite"
            1
            = 0
        "#]],
    );
}
