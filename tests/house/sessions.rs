//! What a person types first, and sees.

use expect_test::expect;

use crate::common::python;
use crate::test_host::TestHost;

#[test]
fn the_tree_lists_without_an_error() {
    TestHost::new().check(
        r#"
        ls
        ls agents agents/self/ meta
        readlink agents/self
        find . > /dev/null && du -s . > /dev/null && ls -lR > /dev/null && echo fine
        stat -f -c %T . > /dev/null && echo statfs
        "#,
        expect![[r#"
            AGENTS.md
            README.md
            agents
            approvals
            global
            mail
            meta
            nodes
            projects
            agents:
            charon
            self

            agents/self/:
            agents
            chat
            dm
            events
            jobs
            mail
            memory
            model
            mounts
            permissions
            phases
            prompts
            queues
            recall
            search_code
            services
            sub_brains
            symbols
            terminal
            thoughts
            timeline.ndjson
            timeline.ndjson.1
            web_search

            meta:
            agents.json
            audit.ndjson
            events.ndjson
            events.ndjson.1
            health.json
            jobs.json
            metrics.json
            ns
            protocol.json
            charon
            fine
            statfs
        "#]],
    );
}

#[test]
fn a_signal_wakes_the_one_who_waits() {
    TestHost::new().check(
        r#"
        cd agents/self/events
        cat next.json
        echo '{"paths":["/agents/self/events/sources/user/go.json"],"timeout_ms":60000}' > control/wait.json
        (until [ "$(jq .parked ../../../meta/metrics.json)" = 1 ]; do :; done
         echo '{"event_type":"user","parameter":"go","payload":{"n":1}}' > control/signal.json) &
        jq -c .signal.payload next.json
        wait
        echo '{"paths":["/agents/self/events/sources/user/go.json"],"timeout_ms":0}' > control/wait.json
        jq -c 'del(.waited_ms)' next.json
        echo '{"paths":["/agents/self/events/sources/dog.json"]}' > control/wait.json
        jq -r .error.message status.json
        "#,
        expect![[r#"
            {"configured":false,"waiting":false,"error":"wait_not_configured"}
            {"n":1}
            {"configured":true,"waiting":true,"timeout":true}
            sources/dog.json is not a source: it is agent.json, hook.json, user.json, mail.json, or a file below agent, hook, user or time
            ! bash: line 11: echo: write error: Invalid argument
        "#]],
    );
}

/// A reader that stays: each read from the start acknowledges the event before; a close acknowledges the last one.
#[test]
fn a_reader_of_next_json_keeps_its_handle_polls_and_reads_on() {
    let script = r#"
import json, os, select
os.chdir("agents/self/events")
def put(path, value):
    with open(path, "w") as f: f.write(json.dumps(value))
def send(n): put("control/signal.json", {"event_type": "user", "payload": n})
names = {}
def heard(fd):
    event = json.loads(os.pread(fd, 4096, 0))
    return names.setdefault(event["event_id"], event["signal"]["payload"])
def acknowledged():
    with open("status.json") as f: return names.get(json.load(f)["cursor"])
put("control/wait.json", {"paths": ["/agents/self/events/sources/user.json"], "timeout_ms": 60000})
fd = os.open("next.json", os.O_RDONLY)
poll = select.poll(); poll.register(fd, select.POLLIN)
def ready(ms): return poll.poll(ms) != []
print(ready(0))
send(1)
print(ready(60000), heard(fd), acknowledged(), ready(0))
send(2)
print(ready(60000), heard(fd), acknowledged(), ready(0))
os.close(os.dup(fd))
print(acknowledged())
send(3)
other = os.open("next.json", os.O_RDONLY)
print(heard(other), acknowledged())
os.close(other)
print(acknowledged())
"#;
    let host = TestHost::new();
    let expected = expect![[r#"
        False
        True 1 None False
        True 2 1 False
        2
        3 2
        3
    "#]];
    expected.assert_eq(&python(&host.root(), script));
}

#[test]
fn what_the_tree_does_not_allow_is_not_permitted() {
    TestHost::new().check(
        r#"
        touch agents/self/x
        mkdir agents/self/x
        rm README.md
        mv README.md agents
        echo x > README.md
        echo x > agents/self/events/log.ndjson
        ln -s a b
        printf '\377' > agents/self/events/control/signal.json
        head -c 1100000 /dev/zero | tr '\0' ' ' > agents/self/events/control/signal.json
        "#,
        expect![[r#"
            ! touch: cannot touch 'agents/self/x': Permission denied
            ! mkdir: cannot create directory 'agents/self/x': Permission denied
            ! rm: cannot remove 'README.md': Operation not permitted
            ! mv: cannot move 'README.md' to 'agents/README.md': Operation not permitted
            ! bash: line 6: README.md: Permission denied
            ! bash: line 7: agents/self/events/log.ndjson: Permission denied
            ! ln: failed to create symbolic link 'b': Permission denied
            ! bash: line 9: printf: write error: Invalid argument
            ! tr: write error: File too large
            ! tr: write error
        "#]],
    );
}

/// The first session that anybody sees: a call, a refusal with its reason, and a job by its correlation id.
#[test]
fn a_search_a_refusal_and_a_job_of_ones_own() {
    TestHost::new().check(
        r#"
        echo '{"query":"fn main"}' > agents/self/search_code/control/search.json
        jq -c '.result.matches[0]' agents/self/search_code/result.json
        echo '{"op":"fly"}' > agents/self/search_code/control/invoke.json
        jq -r '.error.code, .error.message' agents/self/search_code/status.json
        exec 3<>agents/self/search_code/control/search.json; echo '{"query":"TODO"}' >&3; jq -r .job_id <&3
        echo '{"op":"search","arguments":{"query":"x"},"correlation_id":"mine"}' > agents/self/search_code/control/invoke.json
        jq -r .state agents/self/jobs/by/mine/status.json
        "#,
        expect![[r#"
            {"path":"/projects/here/fs/main.rs","line":1,"column":1,"text":"fn main() {","before":[],"after":[]}
            unknown_operation
            search_code has no operation `fly`; operations are search
            JOB
            done
            ! bash: line 4: echo: write error: Operation not supported
        "#]],
    );
}
