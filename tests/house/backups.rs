//! A backup and its restore as a pair: with something of every service, and while others write.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::Value;

use crate::common::until;
use crate::test_host::TestHost;

const SPEC: &str = r#"{"agents": {"charon": {}, "styx": {}}, "model": {"kind": "script"}}"#;

fn acheron(words: &[&str]) -> (bool, String) {
    let ran = Command::new(env!("CARGO_BIN_EXE_acheron")).args(words).output().unwrap();
    (ran.status.success(), String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap())
}

fn backed_up(host: &TestHost, file: &Path, more: &[&str]) -> Value {
    let state = host.state();
    let words = ["backup", file.to_str().unwrap(), "--state", state.to_str().unwrap(), "--json"];
    let (ok, said) = acheron(&[&words, more].concat());
    assert!(ok, "{said}");
    serde_json::from_str(&said).unwrap()
}

/// A host on the state of a backup.
fn restored(file: &Path) -> TestHost {
    TestHost::prepared(SPEC, |here| {
        let state = here.parent().unwrap().join("state");
        let (ok, said) = acheron(&["restore", file.to_str().unwrap(), "--state", state.to_str().unwrap(), "--json"]);
        assert!(ok, "{said}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["verified"], &said["has_keys"]), (&Value::Bool(true), &Value::Bool(true)));
    })
}

/// Calls a service and returns its answer.
fn call(root: &Path, path: &str, arguments: &str) -> Value {
    let control = root.join("agents").join(path);
    let mut file = std::fs::File::options().read(true).write(true).open(&control).unwrap();
    file.write_all(arguments.as_bytes()).unwrap_or_else(|error| panic!("{path} {arguments}: {error}"));
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["ok"], true, "{path} {arguments}: {answer}");
    answer["result"].clone()
}

/// What each service shows of what was put into it.
const SHOWN: &str = r#"
    cd agents/charon
    ask() { exec 3<>$1.json; echo "$2" >&3; jq -S -c .result <&3; exec 3>&-; }
    echo memory; cat memory/items/river/content; ls memory/items/river/versions
    echo recall; cat recall/nodes/semantic/Styx.md
    echo chat; jq -c '[.input, .reply]' chat/history.ndjson | cut -c1-60
    echo events; jq -c 'select(.kind == "signal") | .payload.payload' events/log.ndjson
    echo jobs; jq -c '[.state, .operation]' jobs/by/mine/status.json
    echo mail; ls ../styx/mail/inbox | wc -l
    echo queues; jq -c .ready queues/names/ferry/status.json
    echo symbols; ask symbols/control/get '{"ids":["my-coin-001"]}' | grep -o '"name":"obol"'
    echo prompts; ask prompts/control/override_list '{}' | jq -c '[.[].prompt]'
    echo sub_brains; ask sub_brains/control/list '{}' | jq -c '[.sub_brains[].brain]'
    echo agents; ls ..
    echo dm; ls dm/campaigns | head -n 1
    echo mounts; cat ../../meta/ns | grep -c /agents/charon/mine
    echo timeline; jq -r 'select(.kind == "call") | .service' timeline.ndjson | sort -u | tr '\n' ' '
"#;

#[test]
fn what_every_service_keeps_is_in_a_backup_and_comes_back_with_it() {
    let host = TestHost::of(SPEC);
    let said = host.says(
        r#"
        cd agents/charon
        ask() { exec 3<>$1.json; echo "$2" >&3; jq -c 'if .ok then empty else . end' <&3; exec 3>&-; }
        ask memory/control/create '{"kind":"note","name":"river","content":"wide"}'
        echo slow > memory/items/river/content
        printf '# Styx\n\nA river.\n' > recall/nodes/semantic/Styx.md
        echo hello > chat/control/input; cat chat/latest.txt > /dev/null
        echo '{"event_type":"user","payload":"rang"}' > events/control/signal.json
        echo '{"op":"create","arguments":{"kind":"note","name":"oar","content":"long"},"correlation_id":"mine"}' > memory/control/invoke.json
        ask queues/control/put '{"queue":"ferry","body":{"who":"shade"}}'
        ask symbols/control/put '{"body":{"id":"my-coin-001","name":"obol"}}'
        ask prompts/control/override_store '{"prompt":"review/change","change":{"target":"section","path":"look","body":"Look twice."}}'
        ask sub_brains/control/upsert '{"brain":"scout","about":"Looks."}'
        ask agents/control/create '{"agent_id":"ada"}'
        ask dm/control/new_campaign '{"id":"c1","seed":7}'
        ask mail/control/send '{"to":"styx","subject":"fare","body":"one obol"}' > /dev/null
        "#,
    );
    assert_eq!(said, "");
    let home = host.state().join("agents/charon/home");
    std::fs::create_dir_all(home.join(".cache")).unwrap();
    std::fs::write(home.join("notes"), "kept").unwrap();
    std::fs::write(home.join(".cache/big"), "not kept").unwrap();
    let before = host.says(SHOWN);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("copy.tar");
    let report = backed_up(&host, &file, &[]);
    assert_eq!((&report["caches_left_out"], &report["keys_left_out"]), (&Value::from(1), &Value::from(0)), "{report}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    drop(host);
    let host = restored(&file);
    assert_eq!(host.says(SHOWN), before);
    let home = host.state().join("agents/charon/home");
    assert_eq!(
        (std::fs::read_to_string(home.join("notes")).unwrap().as_str(), home.join(".cache").exists()),
        ("kept", false)
    );
    let state = host.state();
    let (ok, said) = acheron(&["audit", "verify", "--state", state.to_str().unwrap()]);
    assert!(ok, "the chain goes on: {said}");
}

/// While the backup is made, calls of effect `write` change the database, and calls that change plain files are journaled in it.
/// In the copy every job has its change, and no file is older than the job that wrote it.
#[test]
fn a_backup_under_load_is_of_one_moment() {
    let host = TestHost::of(SPEC);
    let root = host.root();
    let (stop, written, overridden) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (root, stop, written) = (root.as_path(), &stop, &written);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let memory = format!(r#"{{"kind":"note","name":"m-{writer}-{number}","content":"x"}}"#);
                    call(root, "charon/memory/control/create.json", &memory);
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        scope.spawn(|| {
            for number in 1.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let change = format!(
                    r#"{{"prompt":"review/change","change":{{"target":"section","path":"look","body":"version {number}"}}}}"#
                );
                call(&root, "styx/prompts/control/override_store.json", &change);
                overridden.store(number, Ordering::SeqCst);
            }
        });
        for copy in 0..5 {
            let (before, files) = (written.load(Ordering::SeqCst), overridden.load(Ordering::SeqCst));
            until("more is written", || {
                written.load(Ordering::SeqCst) > before + 10 && overridden.load(Ordering::SeqCst) > files
            });
            let least = written.load(Ordering::SeqCst);
            backed_up(&host, &dir.path().join(format!("{copy}.tar")), &[]);
            std::fs::write(dir.path().join(format!("{copy}.least")), least.to_string()).unwrap();
        }
        stop.store(true, Ordering::SeqCst);
    });
    drop(host);
    for copy in 0..5 {
        let host = restored(&dir.path().join(format!("{copy}.tar")));
        let database = host.state().join("acheron.db");
        let count = |sql: &str| {
            let conn = acheron_store::Connection::open(&database).unwrap();
            conn.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap()
        };
        let memories = count("SELECT count(*) FROM memories");
        let jobs = count("SELECT count(*) FROM jobs WHERE service = 'memory' AND state = 'done'");
        let events = count("SELECT count(*) FROM events WHERE kind = 'job' AND payload LIKE '%\"memory\"%'");
        assert_eq!((memories, jobs), (jobs, events), "each job has its memory and its event");
        let least: u64 = std::fs::read_to_string(dir.path().join(format!("{copy}.least"))).unwrap().parse().unwrap();
        assert!(memories >= least, "what was acknowledged before is in it: {memories} of {least}");
        // The file is whole, and not older than the last job that is done.
        let done = count(
            "SELECT coalesce(max(CAST(substr(json_extract(request, '$.change.body'), 9) AS INTEGER)), 0) FROM jobs \
             WHERE service = 'prompts' AND operation = 'override_store' AND state = 'done'",
        );
        let text = std::fs::read_to_string(host.state().join("prompts/overrides/review/change/latest.json")).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let body = file["sections"]["look"]["body"].as_str().unwrap_or_else(|| panic!("{file}"));
        let version: u64 = body.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(done > 0 && version >= done, "the file has {version}, and job {done} is done");
        let state = host.state();
        let (ok, said) = acheron(&["audit", "verify", "--state", state.to_str().unwrap()]);
        assert!(ok, "{said}");
    }
}
