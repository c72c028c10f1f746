//! Every code of the error enum, as a person meets it through the mount.

use std::collections::BTreeSet;

use async_trait::async_trait;
use expect_test::expect;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::test_host::TestHost;
use acheron::contract::Operation;
use acheron::policy::PrincipalCaller;
use acheron::service::{Cx, Service, ServiceInstance, typed};
use acheron_base::{Code, Result};
use acheron_vfs::Caller;

const SPEC: &str = r#"{
    "layout": "acheron-1", "default_agent": "charon",
    "agents": {
        "charon": { "projects": ["here"], "permissions": [
            { "deny": ["invoke"], "path": "/agents/self/mounts/**" },
            { "ask": ["invoke"], "path": "/agents/self/slow/**" }] },
        "poor": { "limits": { "rounds": 1 } },
        "mute": { "model": { "kind": "script", "name": "mute.ndjson" } }
    },
    "projects": { "here": { "binds": { "/": { "path": ".", "read_only": true } } } },
    "recall": { "store": "tiny" }, "approvals": { "expires_seconds": 1 },
    "limits": { "signals_bytes": 1000, "mail_messages": 1 },
    "services": {
        "slow": { "command": ["/bin/sleep", "600"], "about": "Sleeps.", "operations": {
            "nap": { "effect": "read", "timeout_ms": 100 }, "night": { "effect": "read", "timeout_ms": 60000 } } },
        "broken": { "command": ["/bin/false"], "about": "Fails.", "operations": { "try": { "effect": "read" } } }
    }
}"#;

/// A code, and what provokes it. `told FILE` shows the error that stands in a file.
const PROVOKED: [(Code, &str); 22] = [
    (Code::InvalidPayload, r#"echo '{"qury":"x"}' > search_code/control/search.json; told search_code/status.json"#),
    (Code::UnknownOperation, r#"echo '{"op":"fly"}' > search_code/control/invoke.json; told search_code/status.json"#),
    (
        Code::Forbidden,
        r#"echo '{"command":"echo {} > /agents/self/mounts/control/list.json; jq -r .operations.list.reason /agents/self/mounts/PERMISSIONS.json"}' > terminal/control/exec.json
        jq -r '.result | .stderr + .stdout' terminal/result.json | grep . | sed 's/.*list.json: //'"#,
    ),
    (
        Code::NotFound,
        r#"cat memory/items/gone/content
        echo '{"memory_path":"/agents/self/memory/items/gone"}' > memory/control/load.json; told memory/result.json"#,
    ),
    (
        Code::AlreadyExists,
        r#"echo '{"kind":"note","name":"n","content":"x"}' > memory/control/create.json; cat memory/result.json > /dev/null
        echo '{"kind":"note","name":"n","content":"x"}' > memory/control/create.json; told memory/result.json"#,
    ),
    (
        Code::Conflict,
        r#"echo '{"memory_path":"/agents/self/memory/items/n","content":"y","if_version":7}' > memory/control/mutate.json
        told memory/result.json"#,
    ),
    (
        Code::TooLarge,
        r#"{ printf '{"query":"'; head -c 2000000 /dev/zero | tr '\0' x; } |
            dd bs=4M iflag=fullblock conv=notrunc status=none of=search_code/control/search.json
        told search_code/status.json"#,
    ),
    (
        Code::Busy,
        r#"yes '{}' | head -n 2000 | dd bs=64k iflag=fullblock conv=notrunc status=none of=broken/control/try.json
        told broken/status.json"#,
    ),
    (Code::Timeout, r#"echo '{}' > slow/control/nap.json; told slow/result.json"#),
    (
        Code::Cancelled,
        r#"echo '{"op":"night","correlation_id":"night"}' > slow/control/invoke.json
        until [ "$(jq -r .state jobs/by/night/progress.json)" = running ]; do sleep 0.01; done
        echo 1 > jobs/by/night/control/cancel; told jobs/by/night/result.json"#,
    ),
    (
        // The timer comes again, in case that it came before the read; it must not come while Python goes down.
        Code::Interrupted,
        r#"python3 -c '
import ctypes, os, signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, True)
file = os.open("events/sources/user/never.json", os.O_RDONLY)
libc = ctypes.CDLL(None, use_errno=True)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
got = libc.read(file, ctypes.create_string_buffer(1), 1)
signal.setitimer(signal.ITIMER_REAL, 0)
if got < 0: print("read:", os.strerror(ctypes.get_errno()))'"#,
    ),
    (
        Code::Unavailable,
        r#"echo '{"session_id":"s"}' > terminal/control/create.json; cat terminal/result.json > /dev/null
        echo '{"session_id":"s"}' > terminal/control/close.json; cat terminal/result.json > /dev/null
        echo ls > terminal/sessions/s/input
        echo '{"session_id":"s","command":"ls"}' > terminal/control/write.json; told terminal/result.json"#,
    ),
    (Code::ReadOnly, "echo x > ../../projects/here/fs/notes.txt"),
    (
        // The wiki lies on a disk of 64 KB.
        Code::NoSpace,
        r#"head -c 200000 /dev/zero | tr '\0' x | dd bs=1M iflag=fullblock status=none of=recall/nodes/semantic/Big.md conv=fsync
        printf '{"path":"semantic/Big.md","text":"%s"}' "$(head -c 200000 /dev/zero | tr '\0' x)" > recall/control/write.json
        told recall/result.json"#,
    ),
    (
        Code::BudgetExceeded,
        r#"echo 'what services are there?' > ../poor/chat/control/input; told ../poor/jobs/last/result.json"#,
    ),
    (
        Code::QuotaExceeded,
        r#"{ printf '{"event_type":"user","payload":"'; head -c 2000 /dev/zero | tr '\0' x; echo '"}'; } > events/control/signal.json
        told events/status.json"#,
    ),
    (
        Code::QueueFull,
        r#"for i in 1 2; do echo '{"to":"charon","body":"x"}' > mail/control/send.json; done; told mail/result.json"#,
    ),
    (Code::Fenced, r#"echo '{"lease":"q.gone"}' > queues/control/done.json; told queues/result.json"#),
    (
        Code::ApprovalExpired,
        r#"echo '{"command":"echo {} > /agents/self/slow/control/nap.json; cat /agents/self/slow/result.json"}' > terminal/control/exec.json
        jq -r .result.stdout terminal/result.json | jq -r '.error | "\(.code): \(.message)"'"#,
    ),
    (Code::ProviderError, r#"echo hi > ../mute/chat/control/input; told ../mute/jobs/last/result.json"#),
    (Code::ExecutionFailed, r#"echo '{}' > broken/control/try.json; told broken/result.json"#),
    // Nobody can bring this about from outside: it takes a service with a bug.
    (Code::Internal, "told jobs/$FRAGILE/result.json"),
];

struct Fragile;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
enum Command {
    /// Breaks down.
    Break {},
}

#[async_trait]
impl Service for Fragile {
    const NAME: &'static str = "fragile";
    const ABOUT: &'static str = "Has a bug.";
    type Command = Command;
    type Output = Value;

    fn operations() -> Vec<Operation> {
        vec![Operation::execute("break").example(json!({}))]
    }

    async fn invoke(&self, _cx: &Cx, command: Command) -> Result<Value> {
        match command {
            Command::Break {} => panic!("on purpose"),
        }
    }
}

/// Calls a service with a bug; gives the job.
fn broken_down(house: &TestHost) -> String {
    house.inside(async |host| {
        let context = &host.state.context;
        let instance = ServiceInstance::of(context, "charon", typed(Fragile).unwrap());
        context.register("charon", &instance);
        let job = context.call(&Caller::operator(), "charon", "fragile", "break", json!({})).await.unwrap();
        job.end().await;
        job.id.clone()
    })
}

/// A disk that is soon full, taken away at the end.
struct Tiny(std::path::PathBuf);

impl Tiny {
    fn mount(at: &std::path::Path) {
        std::fs::create_dir(at).unwrap();
        nix::mount::mount(Some("none"), at, Some("tmpfs"), nix::mount::MsFlags::empty(), Some("size=64k")).unwrap();
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH).unwrap();
    }
}

#[test]
fn every_refusal_says_what_and_why() {
    let known: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let provoked = PROVOKED.iter().map(|(code, _)| code.name());
    assert_eq!(provoked.collect::<BTreeSet<_>>(), known, "a code is not provoked");

    let house = TestHost::prepared(SPEC, |here| {
        std::fs::write(here.join("mute.ndjson"), "{\"when\":\"never\",\"answer\":{\"text\":\"no\"}}\n").unwrap();
        Tiny::mount(&here.join("tiny"));
    });
    let _tiny = Tiny(house.here().join("tiny"));
    let fragile = broken_down(&house);
    // Which line of which shell is nobody's concern.
    let shell = regex::Regex::new(r"(?m)^! (bash: line \d+|dd|cat): ").unwrap();
    let mut seen = String::new();
    for (code, script) in PROVOKED {
        let told = r#"told() { jq -r '.error | "\(.code): \(.message)"' "$1"; }; cd agents/self/"#;
        let said = house.says(&format!("FRAGILE={fragile}; {told}\n{script}"));
        let errno = std::io::Error::from_raw_os_error(code.errno()).to_string();
        let errno = errno.split(" (os error").next().unwrap();
        assert!(said.contains(&format!("{}: ", code.name())) || said.contains(errno), "{}: {said}", code.name());
        let said = shell.replace_all(&said, "! ").into_owned();
        seen.push_str(&format!("# {}\n{}", code.name(), said.replace("! ", "  ! ")));
    }
    expect![[r#"
        # invalid_payload
        invalid_payload: search: unknown key `qury`; did you mean query?
          ! echo: write error: Invalid argument
        # unknown_operation
        unknown_operation: search_code has no operation `fly`; operations are search
          ! echo: write error: Operation not supported
        # forbidden
        Permission denied
        a rule denies invoke on /agents/self/mounts/**
        # not_found
        not_found: there is no memory gone
          ! memory/items/gone/content: No such file or directory
        # already_exists
        already_exists: there is a memory n already; mutate it, or choose another name
        # conflict
        conflict: version 7 of n is not the latest: that is version 1
        # too_large
        too_large: a command has at most 1048576 bytes
          ! error writing 'search_code/control/search.json': File too large
        # busy
        busy: 1024 calls are queued already; try again later
          ! error writing 'broken/control/try.json': Resource temporarily unavailable
        # timeout
        timeout: the call took longer than its 100 ms
        # cancelled
        cancelled: the call was cancelled
        # interrupted
        read: Interrupted system call
        # unavailable
        unavailable: the session `s` is closed
          ! terminal/sessions/s/input: No such device or address
        # read_only
          ! ../../projects/here/fs/notes.txt: Read-only file system
        # no_space
        no_space: semantic/Big.md: No space left on device (os error 28)
          ! fsync failed for 'recall/nodes/semantic/Big.md': No space left on device
          ! closing output file 'recall/nodes/semantic/Big.md': No space left on device
        # budget_exceeded
        budget_exceeded: the turn has used up its rounds
        # quota_exceeded
        quota_exceeded: the signals from this sender would have 2069 bytes, and at most 1000 are allowed: send less, or have the operator raise `limits.signals_bytes` in the mountspec
          ! echo: write error: Disk quota exceeded
        # queue_full
        queue_full: the inbox would have 2 messages, and at most 1 are allowed: try again when some are dealt with, or have the operator raise `limits.mail_messages` in the mountspec
        # fenced
        fenced: this lease is not in force any more: its time was up, or it has ended; take an item again
        # approval_expired
        approval_expired: nobody decided within 1 s whether this may be done, so it was not done; that is not a denial: go on with other work, and call again if it is still needed
        # provider_error
        provider_error: the script mute.ndjson has no answer left for this message
        # execution_failed
        execution_failed: broken ended with exit code 1
        # internal
        internal: the service panicked: on purpose
    "#]]
    .assert_eq(&seen);
}

/// Arguments that fit the schema of their operation and are wrong all the same.
const WRONG: &str = r#"
    agents/create {"agent_id":"A B"}
    memory/create {"kind":" ","content":"x"}
    memory/create {"kind":"note","content":"x","tags":[""]}
    memory/create {"kind":"note","content":"x","name":"A B"}
    memory/create {"kind":"note","content":"x","supersedes":["../x"]}
    memory/load {"memory_path":"../x"}
    memory/mutate {"memory_path":"/agents/self/memory/items/a"}
    memory/mutate {"memory_path":"/agents/self/memory/items/a","content":"x","append":"y"}
    memory/versions {"memory_path":"/agents/self/memory/items/a","limit":0}
    memory/search {"query":"x","limit":0}
    memory/search {"query":"x","cursor":"somewhere"}
    memory/summarize {"memory_paths":[]}
    memory/summarize {"memory_paths":["/agents/self/memory/items/a"],"into":"/agents/self/memory/items/a"}
    mounts/bind {"bind_path":"/meta/x","target_path":"/global"}
    phases/run {"query":" ","session_id":"a"}
    phases/run {"query":"q","session_id":"../a"}
    phases/export_session {"session_id":"a/b"}
    phases/repair_session {"session_id":""}
    phases/clear_session {"session_id":"a/b"}
    prompts/render {"prompt":"noslash"}
    prompts/open {"prompt":"review/change","time_limit_ms":0}
    prompts/parse {"reply":"x"}
    prompts/override_upsert {"prompt":"review/change","file":{"version":99,"ns":"review","prompt_key":"change","tag":"latest"}}
    prompts/override_upsert {"prompt":"review/change","file":{"version":2,"ns":"review","prompt_key":"change","tag":"LATEST"}}
    recall/new {"conversation":"a/b"}
    recall/turn {"message":" "}
    recall/turn {"message":"x","conversation":"../a"}
    recall/archive {"conversation":"a/b"}
    recall/read {"name":" "}
    recall/write {"path":"../x.md","text":"x"}
    recall/rename {"name":"x","to":"y"}
    recall/consolidate {"since":"yesterday"}
    recall/apply {"run":"../x"}
    search_code/search {"query":""}
    sub_brains/upsert {"brain":"A B","about":"x"}
    symbols/search {"query":"x","k":0}
    symbols/list {"limit":51}
    symbols/put {"body":{"name":"nobody"}}
    symbols/update {"body":{"id":"x-y-001","macro":5}}
    symbols/undo {"id":"x-y-001","changes":0}
    symbols/undo {"id":"x-y-001","changes":1,"to_version":1}
    symbols/import {}
    symbols/import {"kits":{}}
    symbols/import {"all_or_none":true,"catalogue":{"symbols":[{"id":"x-y-001"},{"name":"nobody"}]}}
    terminal/exec {}
    terminal/exec {"argv":[]}
    terminal/exec {"argv":["ls"],"session_id":"s"}
    terminal/exec {"command":"ls","session_id":"s","cwd":"/"}
    terminal/create {"session_id":"a b"}
    terminal/write {"session_id":"s"}
    terminal/write {"session_id":"s","data_b64":"?"}
    terminal/signal {"session_id":"s","name":"WAVE"}
"#;

/// What is known from the arguments alone fails the write, with its sentence in `status.json`, and no job begins.
#[test]
fn what_the_arguments_alone_tell_fails_the_write() {
    let house = TestHost::of(r#"{"layout": "acheron-1", "agents": {"charon": {}}}"#);
    let said = house.says(&format!(
        r#"cd agents/self
        while read -r call arguments; do
            [ -n "$call" ] || continue
            service=${{call%/*}}; operation=${{call#*/}}
            echo "$arguments" 2> /dev/null > $service/control/$operation.json && echo "$call takes $arguments"
            jq -r 'select(.error.code != "invalid_payload" or .error.message == "") | "\(.operation) is told as \(.error)"' $service/status.json
        done <<'WRONG'
{WRONG}
WRONG
        ls jobs | grep -c ^job-"#
    ));
    assert_eq!(said, "0\n");
}
