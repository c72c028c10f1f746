//! The program as a person types it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::common::{GUARD, until};
use crate::test_host::steady;

/// A directory to type in. Whatever was mounted in it is taken down at the end.
pub struct Desk {
    dir: TempDir,
}

impl Desk {
    pub fn new() -> Desk {
        let dir = TempDir::new().unwrap();
        for name in ["ns", "mountspec"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        // Named, because the built-in one does not bind a home directory.
        std::fs::write(dir.path().join("mountspec/default.json"), acheron::spec::DEFAULT).unwrap();
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
    pub fn check(&self, script: &str, expect: Expect) {
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
            ! hint: script[:FILE], replay:FILE, external, or SERVER:MODEL (openai, anthropic, openrouter, ollama, vllm, llamacpp)
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
            approvals
            global
            mail
            meta
            nodes
            projects
            error: cannot open the state in DIR/.local/state/acheron: another acheron (pid N) uses the state directory DIR/.local/state/acheron: stop it and wait for its end, or choose another directory with --state DIR
            [true,true,["charon"]]
            = 0
            ! error: a file system (fuse.acheron) is already mounted on DIR/ns: unmount it first with `acheron unmount DIR/ns`
        "#]],
    );
}

/// A program that is not on the PATH names itself as it was called.
#[test]
fn the_command_that_unmounts_works_as_it_is_printed() {
    let desk = Desk::new();
    let said = desk.says(&format!(
        r#"PATH=/usr/bin:/bin; said=$('{}' mount ns --daemon); eval "$(echo "$said" | cut -d'`' -f2)""#,
        env!("CARGO_BIN_EXE_acheron")
    ));
    assert_eq!(said, "= 0\n");
}

/// `latest.txt` shows the error of a failed turn where a reply stands otherwise; a script needs more.
#[test]
fn a_script_can_tell_a_failed_turn_from_a_reply() {
    let desk = Desk::new();
    let spec = r#"{"layout":"acheron-1","agents":{"charon":{"budget":{"rounds":1}}}}"#;
    std::fs::write(desk.dir.path().join("spec.json"), spec).unwrap();
    desk.check(
        r#"
        acheron mount ns --daemon --spec spec.json > /dev/null
        acheron chat -m 'Hello' --root ns > /dev/null; echo $?
        jq -c .error ns/agents/self/chat/status.json
        acheron chat -m 'Hello' --root ns; echo $?
        jq -c .error.code ns/agents/self/chat/status.json
        cat ns/agents/self/chat/latest.txt
        "#,
        expect![[r#"
            0
            null
            1
            "budget_exceeded"
            charon has used up its rounds; raise agents.charon.budget in the mountspec, or its budget with agents.update
            = 0
            ! error: charon has used up its rounds; raise agents.charon.budget in the mountspec, or its budget with agents.update
        "#]],
    );
}

/// The help of `tool` shows one call per tool; each of them works, and every argument is named.
#[test]
fn the_calls_in_the_help_of_tool_work() {
    let desk = Desk::new();
    let said = desk.says(
        r#"
        acheron mount ns --daemon > /dev/null
        acheron tool --help | grep '^ *{"name"' > calls; wc -l < calls
        acheron tool --root ns < calls | jq -c 'has("error")'
        acheron tool --help
        "#,
    );
    assert!(said.starts_with("3\nfalse\nfalse\nfalse\n"), "{said}");
    let arguments =
        ["path", "content", "append", "create_parents", "wait_until_ready", "max_bytes", "recursive", "max_entries"];
    for argument in arguments {
        assert!(said.contains(argument), "{argument}: {said}");
    }
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
            approvals
            global
            mail
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
            : > ready
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
{"id":"last","name":"file_list","arguments":{"path":"/agents","max_entries":1}}
CALLS
        "#,
        expect![[r##"
            {"id":1,"path":"/README.md","content":"# Acheron","bytes":9,"truncated":true,"ready":true}
            {"path":"/agents/self/events/sources/user.json","content":"","bytes":0,"truncated":false,"ready":false}
            {"path":"/agents","entries":[{"path":"/agents/charon","type":"directory","size":0},{"path":"/agents/self","type":"link","size":0}],"truncated":false}
            {"error":{"code":"not_found","message":"`/nowhere`: No such file or directory (os error 2)"}}
            {"error":{"code":"forbidden","message":"`/agents/self/search_code/control/fly.json` does not exist and cannot be made"}}
            {"error":{"code":"invalid_payload","message":"not a call: expected ident at line 1 column 2; it is {\"name\":\"file_read\",\"arguments\":{\"path\":\"/README.md\"}}"}}
            {"error":{"code":"unknown_operation","message":"there is no tool `fly`; the tools are file_read, file_write and file_list"}}
            {"id":"last","path":"/agents","entries":[{"path":"/agents/charon","type":"directory","size":0}],"truncated":true}
            = 0
        "##]],
    );
}

/// The sentence of a refusal is in `status.json`; a program that uses the tools need not look for it.
#[test]
fn a_refusal_of_the_tools_has_the_sentence_of_status_json() {
    Desk::new().check(
        r#"
        acheron mount ns --daemon > /dev/null
        acheron tool --root ns <<'CALLS'
{"name":"file_write","arguments":{"path":"/agents/self/search_code/control/search.json","content":"{\"qurey\":\"x\"}"}}
{"name":"file_write","arguments":{"path":"/agents/self/search_code/control/search.json","content":"{\"query\":\"x"}}
{"name":"file_write","arguments":{"path":"/agents/self/search_code/control/search.json","content":"{\"query\":\"(\",\"regex\":true}"}}
{"name":"file_write","arguments":{"path":"/agents/self/search_code/control/invoke.json","content":"{\"op\":\"fly\"}"}}
{"name":"file_write","arguments":{"path":"/agents/self/chat/control/input","content":" "}}
{"name":"file_write","arguments":{"path":"/agents/self/chat/control/reply","content":"nobody asked"}}
CALLS
        "#,
        expect![[r#"
            {"error":{"code":"invalid_payload","message":"search: unknown key `qurey`; did you mean query?"}}
            {"error":{"code":"invalid_payload","message":"the command is incomplete: its JSON object has no end"}}
            {"error":{"code":"invalid_payload","message":"query is not a regular expression: unclosed group; without \"regex\": true it is taken literally"}}
            {"error":{"code":"unknown_operation","message":"search_code has no operation `fly`; operations are search"}}
            {"error":{"code":"invalid_payload","message":"the message is empty"}}
            {"error":{"code":"forbidden","message":"only charon itself may write its reply; write to control/input instead"}}
            = 0
        "#]],
    );
}

/// What the services of an agent have kept, in the tree mounted on `ns`.
const KEPT: &str = r#"
        shown() {
            cat ns/agents/self/memory/items/fare/content; echo
            cat ns/agents/self/recall/nodes/semantic/Styx.md
            cat ns/agents/self/chat/history.ndjson | md5sum
            jq -c .turn ns/agents/self/dm/campaigns/c1/state.json
            cat ns/agents/self/dm/campaigns/c1/{state.json,journal.ndjson,snapshot.md} | md5sum
            cat ns/agents/self/phases/sessions/first/history.ndjson | md5sum
        }
"#;

#[test]
fn a_backup_is_taken_while_it_runs_and_can_be_mounted() {
    let desk = Desk::new();
    desk.check(
        &(KEPT.to_owned()
            + r#"
        acheron mount ns --daemon > /dev/null
        call() { exec 3<>ns/agents/self/$1.json; echo "$2" >&3; jq -c '.ok' <&3; exec 3>&-; }
        call memory/control/create '{"kind":"note","name":"fare","content":"one obol"}'
        printf '# Styx\n\nA river.\n' > ns/agents/self/recall/nodes/semantic/Styx.md
        acheron chat --root ns -m 'hello' > /dev/null
        call dm/control/new_campaign '{"id":"c1","seed":7}'
        call dm/control/init '{"answers":{"preset":"Mystery Investigation","pc_name":"Ann","pc_strengths":"clever, charming","date":"2026-11-16"},"confirm":true}'
        call phases/control/run '{"query":"How do we mend trust?","session_id":"first"}'
        shown > before
        acheron backup copy.tar --state .local/state/acheron
        acheron backup copy.tar --root ns
        stat -c '%a %F' copy.tar; ls -A | grep acheron-
        tar tf copy.tar | grep -E '^acheron[.](db-|lock|pid|log)'
        acheron unmount ns
        acheron restore copy.tar --state restored
        acheron restore copy.tar --state restored
        find restored -type d ! -perm 700 -o -type f ! -perm 600
        acheron mount ns --daemon --state restored > /dev/null
        shown > after; cmp before after && grep -v ' -$' after
        jq -c .ok ns/meta/health.json
        "#),
        expect![[r#"
            true
            true
            true
            true
            copy.tar is a backup of .local/state/acheron
            600 regular file
            restored has the state of copy.tar
            one obol
            # Styx

            A river.
            0
            true
            = 0
            ! error: copy.tar exists; name another file
            ! error: restored is not empty; name another directory
        "#]],
    );
}

#[test]
fn a_backup_of_several_mounts_asks_which() {
    Desk::new().check(
        r#"
        mkdir other
        acheron mount ns --daemon --state one > /dev/null
        acheron mount other --daemon --state two > /dev/null
        acheron backup copy.tar 2>&1 | sed 's/mounts: .*/mounts/'
        acheron backup copy.tar --root other
        mkdir full empty; touch full/x nothing
        acheron backup full --root ns
        acheron backup nowhere/copy.tar --root ns
        acheron backup nothing --root ns
        acheron backup copy2.tar --state empty
        acheron backup one/copy.tar --root ns
        ls -A | grep acheron-
        "#,
        expect![[r#"
            error: there are several mounts
            hint: choose one with --root DIR or --state DIR
            copy.tar is a backup of DIR/two
            nothing is a backup of DIR/one
            = 1
            ! error: full is a directory; name a file
            ! error: nowhere: No such file or directory (os error 2)
            ! error: there is no database in empty
            ! error: one/copy.tar lies in the state directory itself; name a file elsewhere
        "#]],
    );
}

#[test]
fn a_restore_takes_nothing_but_a_backup() {
    let desk = Desk::new();
    desk.says("acheron mount ns --daemon > /dev/null; acheron backup good.tar --root ns; acheron unmount ns");
    desk.check(
        r#"
        echo text > text.tar; acheron restore text.tar --state out
        tar cf plain.tar text.tar; acheron restore plain.tar --state out
        head -c 200000 good.tar > half.tar; acheron restore half.tar --state out
        evil() { python3 - "$1" "$2" <<'PY'
import io, sys, tarfile
name, kind = sys.argv[1], sys.argv[2]
with tarfile.open("good.tar") as old, tarfile.open("evil.tar", "w", format=tarfile.GNU_FORMAT) as new:
    # As an earlier version wrote them, without checksums.
    manifest = b'{"format": 1}'
    for member in old:
        content = old.extractfile(member) if member.isfile() else None
        if member.name == "acheron-backup.sums": continue
        if member.name == "acheron-backup.json": member.size, content = len(manifest), io.BytesIO(manifest)
        new.addfile(member, content)
    member = tarfile.TarInfo(name)
    member.type = {"file": tarfile.REGTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "fifo": tarfile.FIFOTYPE}[kind]
    member.linkname = "/etc/passwd"
    new.addfile(member, io.BytesIO(b""))
PY
        acheron restore evil.tar --state out; }
        evil ../escaped file; evil /tmp/escaped file; evil a/../../escaped file
        evil agents/link link; evil agents/hard hard; evil agents/fifo fifo; evil acheron.db file
        ls -A | grep -vE '^(ns|mountspec|text|plain|half|good|evil|\.local)'
        mkdir out; acheron restore good.tar --state out
        acheron restore good.tar --state out/below/two; ls out/below
        "#,
        expect![[r#"
            out has the state of good.tar
            out/below/two has the state of good.tar
            two
            = 0
            ! error: text.tar: is not a backup of acheron
            ! error: plain.tar: is not a backup of acheron
            ! error: half.tar: is damaged: acheron.db has no end
            ! error: evil.tar: ../escaped leads out of the directory
            ! error: evil.tar: /tmp/escaped leads out of the directory
            ! error: evil.tar: a/../../escaped leads out of the directory
            ! error: evil.tar: agents/link is neither a plain file nor a directory
            ! error: evil.tar: agents/hard is neither a plain file nor a directory
            ! error: evil.tar: agents/fifo is neither a plain file nor a directory
            ! error: evil.tar: acheron.db: File exists (os error 17)
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
                  fix: stop acheron, move the directory aside, and restore a backup: acheron restore FILE --state DIR
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

#[test]
fn a_mount_from_the_home_directory_or_above_binds_nothing_and_says_so() {
    Desk::new().check(
        r#"
        rm -r mountspec; mkdir work; desk=$PWD
        look() { exec 3<>ns/agents/self/agents/control/list.json; echo '{}' >&3; jq -c '.result.agents[0].projects' <&3; exec 3>&-; ls ns/projects; }
        try() { (cd "$1"; acheron mount "$desk/ns" --daemon $2 2>&1); look; acheron unmount ns; }
        try .; try /; try work
        echo '{"projects":{"all":{"binds":{"/":{"path":"work"}}}},"agents":{"a":{"projects":["all"]}}}' > spec.json
        try . '--spec spec.json'
        "#,
        expect![[r#"
            note: no directory is bound, because DIR is your home directory: mount from the directory of a project, or name one in a mountspec
            mounted on DIR/ns; `acheron unmount DIR/ns` unmounts it
            []
            note: no directory is bound, because / is above your home directory: mount from the directory of a project, or name one in a mountspec
            mounted on DIR/ns; `acheron unmount DIR/ns` unmounts it
            []
            mounted on DIR/ns; `acheron unmount DIR/ns` unmounts it
            ["here"]
            here
            mounted on DIR/ns; `acheron unmount DIR/ns` unmounts it
            ["all"]
            all
            = 0
        "#]],
    );
}

/// Names that somebody who works in a project leaves for the operator's tools.
#[test]
fn no_name_in_a_project_makes_the_tools_wait_for_ever() {
    let desk = Desk::new();
    desk.check(
        r#"
        sed -i 's/"read_only": true/"read_only": false/' mountspec/default.json
        acheron mount ns --daemon > /dev/null
        go=agents/charon/events/sources/user/go.json
        ln -s "$PWD/ns/$go" absolute; ln -s ../../../$go upward; ln -s ns/$go below; ln -s ns around; mkfifo pipe
        for name in absolute upward below around/$go pipe; do
            for call in file_read file_write file_list; do
                jq -nc --arg path "/projects/here/fs/$name" --arg name $call \
                    '{name: $name, arguments: ({path: $path} + if $name == "file_write" then {content: "x"} else {} end)}'
            done
        done | timeout 30 acheron tool --root ns | jq -c '.error.code // .'
        "#,
        expect![[r#"
            "forbidden"
            "forbidden"
            "forbidden"
            "forbidden"
            "forbidden"
            "forbidden"
            "not_found"
            "not_found"
            "not_found"
            "not_found"
            "not_found"
            "not_found"
            "invalid_payload"
            "invalid_payload"
            "not_a_directory"
            = 0
        "#]],
    );
}
