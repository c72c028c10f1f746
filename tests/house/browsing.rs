//! Nothing hangs by browsing: programs that read or copy a whole tree come to their end, and have every file whole.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;

use crate::common::{command, session, until};
use crate::model_server::FakeModelServer;
use crate::test_host::TestHost;

/// A tree that has done something and is idle again.
fn idle() -> TestHost {
    let house = TestHost::new();
    let script = "cd agents/self
        echo '{\"kind\":\"note\",\"name\":\"ford\",\"content\":\"The ford is at the willow.\"}' > memory/control/create.json
        echo '{\"query\":\"ford\"}' > memory/control/search.json
        echo hello > chat/control/input; cat chat/latest.txt > /dev/null
        echo '{\"command\":\"true\"}' > terminal/control/exec.json; cat jobs/last/status.json > /dev/null; sync";
    let said = session(house.root().as_path(), script);
    assert!(!said.contains('!'), "{said}");
    // The end of the last job is told after it, and the wiki is read when somebody asks for a page.
    let told = "ls agents/self/recall/nodes > /dev/null; cat agents/self/events/log.ndjson agents/self/*/status.json";
    let mut last = String::new();
    until("the host is idle", || {
        let now = session(&house.root(), told);
        let same = now == last && !now.contains("\"reading\"");
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(if same { 0 } else { 200 }));
        same
    });
    house
}

/// The listed files with their bytes; links are not followed.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let (entry, path) = entry.map(|entry| (entry.file_type().unwrap(), entry.path())).unwrap();
            if entry.is_dir() {
                open.push(path);
            } else if entry.is_file() {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read(&path).unwrap_or_else(|error| error.to_string().into_bytes()));
            }
        }
    }
    found
}

/// Copies the tree with a program, and compares. What changes by itself need only be there.
fn copied(words: &[&str], unpack: &str) {
    let (house, to) = (idle(), TempDir::new().unwrap());
    let to = to.path().join("copy");
    std::fs::create_dir(&to).unwrap();
    let target = to.to_str().unwrap();
    let words: Vec<String> = words.iter().map(|word| word.replace("$TO", target)).collect();
    let output = command(&house.root(), &words.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(session(&to, unpack), "");
    // Read only now: a file that was read before has told its length.
    let (copy, before, after) = (files(&to), files(&house.root()), files(&house.root()));
    let mut wrong = Vec::new();
    for (name, bytes) in &before {
        // Counters of the host itself change with every read.
        let is_steady = after.get(name) == Some(bytes);
        match copy.get(name) {
            Some(copied) if copied == bytes || !is_steady && !copied.is_empty() => (),
            Some(copied) => wrong.push(format!("{name}: {} of {} bytes", copied.len(), bytes.len())),
            None => wrong.push(format!("{name} is missing")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), before.len(), wrong.join("\n"));
}

#[test]
fn cp_copies_every_file_whole() {
    copied(&["cp", "-r", ".", "$TO"], "");
}

#[test]
fn tar_stores_every_file_whole() {
    copied(&["tar", "-cf", "$TO/../it.tar", "."], "tar -xf ../it.tar");
}

#[test]
fn rsync_copies_every_file_whole() {
    copied(&["rsync", "-a", "./", "$TO/"], "");
}

/// The first attempt finds out how long the computed files are. rclone refuses a file whose length changes while it is copied: the
/// counters of the host change with every read, and keep their length.
#[test]
fn rclone_copies_every_file_whole() {
    copied(&["rclone", "copy", "--config", "/dev/null", "--retries", "5", ".", "$TO"], "");
}

#[test]
fn zip_stores_every_file_whole() {
    copied(&["zip", "-qry", "$TO/../it.zip", "."], "unzip -q ../it.zip");
}

#[test]
fn searches_of_an_idle_tree_end_and_find() {
    let house = idle();
    for words in [
        &["grep", "-rl", "the willow", "."][..],
        &["rg", "-l", "--hidden", "the willow", "."],
        &["find", ".", "-type", "f", "-exec", "grep", "-l", "the willow", "{}", "+"],
        &["bash", "-c", "find . -type f -exec head -c 100 {} + > /dev/null; grep -rl 'the willow' agents"],
    ] {
        let output = command(&house.root(), words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("memory/items/ford/content"), "{words:?}: {said}");
        assert!(output.status.code() != Some(124), "{words:?} took too long");
    }
}

/// What is listed and may wait is named in `.ignore`, so that a search does not stop at it.
#[test]
fn every_listed_file_that_waits_is_named_in_ignore() {
    let house = idle();
    let said = session(
        &house.root(),
        "cd agents/self; echo '{\"command\":\"sleep 600\"}' > terminal/control/exec.json
        find . -type f -size 0 -print0 | while IFS= read -r -d '' file; do
            timeout -s KILL 0.3 head -c 1 \"$file\" > /dev/null 2>&1; [ $? = 137 ] && echo \"$file\"
        done | sort > /tmp/waits.$$
        rg --files --hidden --no-require-git . | sort > /tmp/shown.$$
        comm -12 /tmp/waits.$$ /tmp/shown.$$; echo \"waiting: $(wc -l < /tmp/waits.$$)\"
        rm -f /tmp/waits.$$ /tmp/shown.$$; rg -c willow . > /dev/null && echo found
        echo > $(ls -d jobs/job-* | tail -1)/cancel",
    );
    let (unnamed, waiting) = said.split_once("waiting: ").unwrap_or((&said, ""));
    assert_eq!(unnamed, "", "these wait, and a search opens them");
    assert!(waiting.lines().next().is_some_and(|count| count != "0"), "{said}");
    assert!(waiting.contains("found"), "{said}");
}

/// A run of phases whose model has not answered yet: both forms of its reply wait, and a search opens neither.
#[test]
fn a_search_passes_by_the_replies_of_a_run_that_is_not_over() {
    let server = FakeModelServer::gated("Say sorry.".to_owned());
    let port = server.url.trim_end_matches("/v1").rsplit(':').next().unwrap();
    let spec = serde_json::json!({"layout": "acheron-1", "agents": {"charon": {}},
        "model": {"kind": "openai", "name": "m", "base_url": server.url}});
    let house = TestHost::of(&spec.to_string());
    let said = session(
        &house.root(),
        &format!(
            r#"cd agents/charon; echo '{{"query":"How?","session_id":"s"}}' > phases/control/run.json
            until [ -e phases/runs/*/reply.raw.txt ]; do sleep 0.05; done
            rg --files --hidden --no-require-git phases/runs | xargs -n 1 basename | sort | tr '\n' ' '
            (cd ../..; rg --files --hidden --no-require-git agents/charon/phases/runs | grep -c reply)
            exec 9<>/dev/tcp/127.0.0.1/{port}; printf 'POST /open HTTP/1.1\r\ncontent-length: 2\r\n\r\n{{}}' >&9
            cat phases/runs/*/reply.raw.txt"#
        ),
    );
    assert_eq!(said, "commands.ndjson context.md status.json symbols.json trace.ndjson 0\nSay sorry.\\\n");
}

/// Some programs heed only the `.ignore` of the directory they begin in.
#[test]
fn a_search_that_begins_in_an_agents_directory_passes_by_what_waits() {
    let house = idle();
    let said = session(
        &house.root(),
        "echo '{\"paths\":[\"/agents/self/events/sources/user.json\"]}' > agents/self/events/control/wait.json
        echo '{\"command\":\"sleep 600\"}' > agents/self/terminal/control/exec.json
        for at in agents/charon agents/charon/. $PWD/agents/charon; do timeout 30 rg -l --hidden 'the willow' $at | grep -c ford/content; done
        echo 1 > $(ls -d agents/charon/jobs/job-* | tail -1)/control/cancel",
    );
    assert_eq!(said, "1\n1\n1\n");
}
