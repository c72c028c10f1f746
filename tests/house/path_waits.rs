//! A wait for any path of a live tree fires when the path changes, or is refused at once with what to wait for instead.

use crate::common::{python, session, until};
use crate::test_host::TestHost;

fn house() -> TestHost {
    let spec = r#"{"agents":{"charon":{}},"recall":{"store":"wiki"},"model":{"kind":"script"}}"#;
    TestHost::prepared(spec, |here| {
        std::fs::create_dir_all(here.join("wiki/semantic")).unwrap();
        std::fs::write(here.join("wiki/semantic/River.md"), "A river of woe.\n").unwrap();
    })
}

/// What the scripts share: `wait` arms a private wait, `fired` reads its event.
const BEGIN: &str = r#"
import json, os, resource, subprocess, time
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
me = "agents/charon/"
def put(path, text):
    with open(path, "w") as file: file.write(text if isinstance(text, str) else json.dumps(text))
def call(service, op, arguments):
    fd = os.open(f"{me}{service}/control/{op}.json", os.O_RDWR)
    os.write(fd, json.dumps(arguments).encode())
    answer = json.loads(os.read(fd, 1 << 20))
    os.close(fd)
    assert answer["ok"], (service, op, answer)
    return answer["result"]
def wait(path):
    fd = os.open(me + "events/control/wait.json", os.O_RDWR)
    try: os.write(fd, json.dumps({"paths": ["/" + path], "timeout_ms": 30000}).encode())
    except OSError:
        os.close(fd)
        with open(me + "events/status.json") as file: return json.load(file)["error"]["message"]
    return fd
def fired(fd): return "timeout" not in json.loads(os.read(fd, 1 << 20))
"#;

/// Nothing is left out: the files are those that the tree lists, and what has changed is found by comparing them.
#[test]
fn every_listed_file_tells_of_its_change_or_is_refused() {
    let house = house();
    let script = r#"
call("memory", "create", {"kind": "note", "name": "river", "content": "wide"})
call("recall", "new", {"conversation": "crossing"})
put(me + "chat/control/input", "Hello!"); open(me + "chat/latest.txt").read()
def shown(path):
    try: fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error: return error.strerror
    try: return os.read(fd, 1 << 20)
    except OSError as error: return error.strerror
    finally: os.close(fd)
files = [os.path.join(at, name) for top in (me, "meta", "nodes") for at, _, names in os.walk(top) for name in sorted(names)]
files = [path for path in files if not os.path.islink(path) and "/jobs/" not in path]
waits = {path: wait(path) for path in files}
refused = {path: said for path, said in waits.items() if isinstance(said, str)}
for path, said in refused.items():
    if "; wait for" not in said and "is not a source: it is" not in said: print("no way out:", path, said)
fixed = {path: shown(path) for path, said in refused.items() if "does not change" in said}
before = {path: shown(path) for path in files if path not in refused}
with open(me + "services/SERVICES.json") as file: services = [it["service_id"] for it in json.load(file) if it["scope"] == "agent_namespace"]
for service in services:
    try: put(f"{me}{service}/control/invoke.json", {"op": "fly"})
    except OSError: pass
put(me + "memory/items/river/content", "deep")
call("memory", "pin", {"memory_path": "/agents/charon/memory/items/river"})
put(me + "recall/nodes/semantic/River.md", "A river of fire.\n")
call("recall", "add", {"conversation": "crossing", "role": "user", "text": "Who rows?"})
put(me + "chat/control/input", "Once more!"); open(me + "chat/latest.txt").read()
for path, was in fixed.items():
    if shown(path) != was: print("refused, and changes:", path)
for path, said in refused.items():
    if path not in fixed and "/control/" not in path and not path.endswith(("events/next.json", "sources/README.md")): print("refused:", path, said)
changed = [path for path, was in before.items() if shown(path) != was]
for path in changed:
    if not fired(waits[path]): print("did not fire:", path)
wanted = [service + name for service in services if service != "chat" for name in ("/result.json", "/status.json")]
wanted += ["memory/items/river/content", "memory/items/river/versions/2", "memory/items/river/meta.json", "recall/nodes/semantic/River.md",
    "recall/conversations/crossing/status.json", "chat/history.ndjson", "events/log.ndjson", "events/status.json"]
print("unchanged:", [name for name in wanted if me + name not in changed and os.path.exists(me + name) and not name.endswith("versions/2")])
print(len(refused) > 50, len(changed) > 30)
"#;
    assert_eq!(python(&house.root(), &format!("{BEGIN}{script}")), "unchanged: []\nTrue True\n");
}

/// Each kind of path, changed through the mount, through an operation and from outside.
#[test]
fn a_wait_fires_whoever_changed_the_path() {
    let house = house();
    let script = r#"
call("memory", "create", {"kind": "note", "name": "river", "content": "wide"})
call("recall", "new", {"conversation": "crossing"})
page, talk, item = me + "recall/nodes/semantic/River.md", me + "recall/conversations/crossing", me + "memory/items/river"
outside = "../here/wiki/semantic/"
def also(name): return lambda: os.mkdir(me + "recall/conversations/" + name)
tried = [
    (item + "/content", lambda: put(item + "/content", "deep")),
    (item + "/versions", lambda: put(item + "/content", "deeper")),
    (item, lambda: put(item + "/content", "deepest")),
    (item + "/content", lambda: call("memory", "mutate", {"memory_path": "/" + item, "content": "dry"})),
    (item + "/meta.json", lambda: call("memory", "mutate", {"memory_path": "/" + item, "content": "dried up"})),
    (me + "memory/result.json", lambda: call("memory", "load", {"memory_path": "/" + item})),
    (me + "memory/items/new", lambda: call("memory", "create", {"kind": "note", "name": "new", "content": "x"})),
    (page, lambda: put(page, "A river of fire.\n")),
    (page, lambda: call("recall", "write", {"path": "semantic/River.md", "text": "A river of oaths.\n"})),
    (page, lambda: put(outside + "River.md", "A river of tears.\n")),
    (me + "recall/nodes", lambda: put(outside + "Styx.md", "Hateful.\n")),
    (me + "recall/nodes/semantic/Lethe.md", lambda: put(outside + "Lethe.md", "Forgotten.\n")),
    (me + "recall/nodes/semantic/Lethe.md", lambda: os.unlink(outside + "Lethe.md")),
    (me + "recall", lambda: put(page, "A river.\n")),
    (me + "recall/conversations", also("two")),
    (talk, lambda: call("recall", "add", {"conversation": "crossing", "role": "user", "text": "Who rows?"})),
    (talk + "/status.json", lambda: call("recall", "add", {"conversation": "crossing", "role": "user", "text": "Charon."})),
    (me + "chat/latest.txt", lambda: put(me + "chat/control/input", "Hello!")),
    (me + "chat/status.json", lambda: put(me + "chat/control/input", "Hello again!")),
    (me + "events/log.ndjson", lambda: put(me + "events/control/signal.json", {"event_type": "user"})),
    (me + "symbols/items", lambda: call("symbols", "put", {"body": {"id": "my-first-001", "name": "Mine"}})),
    (me + "symbols/items/my-first-001.json", lambda: call("symbols", "update", {"body": {"id": "my-first-001", "macro": "see"}})),
    (me + "symbols/items/my-first-001.json", lambda: call("symbols", "delete", {"id": "my-first-001"})),
]
for path, change in tried:
    fd = wait(path)
    if isinstance(fd, str): print("refused:", path, fd); continue
    change()
    if not fired(fd): print("did not fire:", path)
    os.close(fd)
"#;
    assert_eq!(python(&house.root(), &format!("{BEGIN}{script}")), "");
}

#[test]
fn what_never_changes_or_is_not_there_is_refused_with_a_sentence() {
    let house = house();
    let wait = |path: &str| {
        let bin = env!("CARGO_BIN_EXE_acheron");
        session(&house.root(), &format!("{bin} wait --timeout 30 {path} 2>&1; echo $?"))
    };
    for (path, sentence) in [
        ("agents/self/nosuch/file", "there is no `/agents/charon/nosuch/file` to wait for, nor its directory"),
        ("agents/self/memory/README.md", "does not change while the tree is mounted; wait for"),
        ("agents/self/memory/control/search.json", "never changes; wait for `/agents/charon/memory/result.json`"),
        ("agents/self/chat/control/reply", "never changes; wait for `/agents/charon/chat/latest.txt`"),
        ("agents/self/events/next.json", "wait for those paths themselves"),
    ] {
        let said = wait(path);
        assert!(said.contains(sentence) && said.ends_with("\n1\n"), "{path}: {said}");
    }
}

/// A wait goes on being watched for after a restart, and one that was delivered keeps nobody.
#[test]
fn a_delivered_wait_keeps_no_reader_and_an_empty_one_ends_it() {
    let mut house = house();
    let events = |script: &str| session(&house.root(), &format!("cd agents/self/events; {script}"));
    let armed = r#"echo '{"paths":["/agents/self/events/sources/user.json"]}' > control/wait.json"#;
    let send = r#"echo '{"event_type":"user","payload":7}' > control/signal.json"#;
    assert_eq!(events(&format!("{armed}; {send}; jq -c .signal.payload next.json")), "7\n");
    // A program that copies the tree.
    assert_eq!(
        events("cp next.json /tmp/copy.$$; jq -c '[.configured, .timeout]' /tmp/copy.$$; rm /tmp/copy.$$"),
        "[true,true]\n"
    );
    // Nothing is lost in between: a later event is there at once, and the next arming goes on after it.
    assert_eq!(events(&format!("{send}; jq -c .signal.payload next.json")), "7\n");
    assert_eq!(events(&format!("{send}; {armed}; jq -c .signal.payload next.json")), "7\n");
    assert_eq!(
        events(&format!("{armed}; echo '{{}}' > control/wait.json; jq -c .configured next.json status.json")),
        "false\nfalse\n"
    );

    let path = r#"echo '{"paths":["/agents/self/recall/nodes"]}' > control/wait.json"#;
    assert_eq!(events(path), "");
    house.restart();
    let reader = house.root().join("agents/self/events/next.json");
    let heard = std::thread::spawn(move || std::fs::read_to_string(reader).unwrap());
    let page = house.here().join("wiki/semantic/Lethe.md");
    let mut line = 0;
    until("the change is heard of", || {
        line += 1;
        std::fs::write(&page, format!("{line}\n")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        heard.is_finished()
    });
    assert!(heard.join().unwrap().contains("/recall/nodes"));
}
