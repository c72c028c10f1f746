//! Links in a project that an agent may write: none leads past a rule, whichever service follows it.

use std::os::unix::fs::symlink;
use std::path::Path;

use expect_test::expect;
use serde_json::json;

use crate::common::until;
use crate::test_host::TestHost;

/// `open` may be read, `secret` may not.
const RULES: &str = r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["p"], "permissions": [
        { "deny": ["read", "write"], "path": "/projects/p/fs/secret/**" }] }, "styx": {} },
     "projects": { "p": { "binds": { "/": { "path": ".", "read_only": false } } } } }"#;

fn project(here: &Path) {
    for dir in ["secret", "open", "sub"] {
        std::fs::create_dir(here.join(dir)).unwrap();
    }
    std::fs::write(here.join("secret/key"), "swordfish\n").unwrap();
    std::fs::write(here.join("open/page"), "swordfish too\n").unwrap();
    for (name, to) in [
        ("to-dir", "secret"),
        ("to-file", "secret/key"),
        ("chain", "to-dir/key"),
        ("dotted", "sub/../secret"),
        ("through", "secret/../open"),
        ("absolute", "/projects/p/fs/secret"),
        ("nothing", "secret/none"),
        ("fine", "open"),
        (".ignore", "secret/key"),
    ] {
        symlink(to, here.join(name)).unwrap();
    }
}

#[test]
fn a_search_follows_no_link_past_a_rule() {
    let house = TestHost::prepared(RULES, project);
    // What the agent may write, and the hidden list of what is ignored must not name.
    std::fs::write(house.here().join("swordfish"), "a canary\n").unwrap();
    // As the agent: the operator may see everything.
    let script = r#"
        run() { jq -cn --arg c "$1" '{command: $c}' > agents/charon/terminal/control/exec.json
                jq -r '.result.stdout + .result.stderr + (.error.message // "")' agents/charon/terminal/result.json; }
        run 'cd /; search() { jq -cn --arg q "$1" --arg p "$2" "{query: \$q, path: \$p}" > agents/self/search_code/control/search.json
                jq -c "[\"$2\", .error.code] + [.result.matches[]?.path] | map(select(.))" agents/self/search_code/result.json; }
             for p in secret secret/key secret/none to-dir to-dir/key to-dir/none to-file chain dotted through absolute nothing; do search swordfish $p; done
             search swordfish /projects/p/fs/to-dir; search swordfish fine; search swordfish .; search canary .'
        "#;
    house.check(
        script,
        expect![[r#"
            ["secret","forbidden"]
            ["secret/key","forbidden"]
            ["secret/none","forbidden"]
            ["to-dir","forbidden"]
            ["to-dir/key","forbidden"]
            ["to-dir/none","forbidden"]
            ["to-file","forbidden"]
            ["chain","forbidden"]
            ["dotted","forbidden"]
            ["through","forbidden"]
            ["absolute","forbidden"]
            ["nothing","forbidden"]
            ["/projects/p/fs/to-dir","forbidden"]
            ["fine","/projects/p/fs/open/page"]
            [".","/projects/p/fs/open/page"]
            [".","/projects/p/fs/swordfish"]

        "#]],
    );
}

/// The state of the host lies in the project, and what other agents said lies in the state.
#[test]
fn a_search_does_not_print_what_another_agent_was_told() {
    let spec = r#"{ "layout": "acheron-1", "agents": { "charon": { "projects": ["all"] }, "styx": {} },
        "projects": { "all": { "binds": { "/": { "path": "..", "read_only": false } } } } }"#;
    let house = TestHost::prepared(spec, |here| {
        symlink("../state", here.join("door")).unwrap();
        symlink("../state/agents/styx", here.join("room")).unwrap();
    });
    let said = house.says(
        r#"
        echo 'the word is swordfish' > agents/styx/chat/control/input; cat agents/styx/chat/latest.txt > /dev/null
        run() { jq -cn --arg c "$1" '{command: $c}' > agents/charon/terminal/control/exec.json
                jq -r '.result.stdout + .result.stderr + (.error.message // "")' agents/charon/terminal/result.json; }
        run 'for p in here/door here/door/agents here/room state; do
                jq -cn --arg p $p "{query: \"swordfish\", path: \$p}" > /agents/self/search_code/control/search.json
                jq -c "[.error.code, .result]" /agents/self/search_code/result.json; done'
        "#,
    );
    assert_eq!(said.matches(r#"["forbidden",null]"#).count(), 4, "{said}");
    let there = std::process::Command::new("grep").args(["-rlsa", "swordfish"]).arg(house.state()).output().unwrap();
    assert!(!there.stdout.is_empty(), "the state does hold what was said");
}

/// A folder that the mountspec names in a project that agents write: what an agent puts in its place is not opened.
#[test]
fn a_folder_of_the_host_that_became_a_link_is_refused() {
    let spec = json!({"layout": "acheron-1", "agents": {"charon": {"projects": ["p"]}},
        "projects": {"p": {"binds": {"/": {"path": ".", "read_only": false}}}},
        "recall": {"store": "notes/wiki"}, "dm": {"root": "games"}});
    let mut house = TestHost::prepared(&spec.to_string(), |here| {
        let outside = here.parent().unwrap().join("outside");
        std::fs::create_dir_all(outside.join("wiki/semantic")).unwrap();
        std::fs::write(outside.join("wiki/semantic/Key.md"), "swordfish\n").unwrap();
        symlink("../outside", here.join("notes")).unwrap();
        symlink("../outside", here.join("games")).unwrap();
    });
    let read = r#"
        cd agents/charon
        echo '{"name":"semantic/Key.md"}' > recall/control/read.json; jq -r '.error.code, .result.text' recall/result.json
        ls recall/nodes
        ls | grep -x dm
        "#;
    house.check(
        read,
        expect![[r#"
        forbidden
        null
    "#]],
    );
    let outside = house.here().parent().unwrap().join("outside");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "nothing was made there");
    // Without links the same folders are opened, and made where they are not there.
    for link in ["notes", "games"] {
        std::fs::remove_file(house.here().join(link)).unwrap();
    }
    house.restart();
    house.check(
        read,
        expect![[r#"
        not_found
        null
        episodic
        index.md
        meta
        semantic
        dm
    "#]],
    );
    assert!(house.here().join("notes/wiki").is_dir() && house.here().join("games").is_dir());
}

#[test]
fn events_do_not_name_what_the_reader_may_not_see() {
    let house = TestHost::prepared(RULES, project);
    std::fs::write(house.here().join("secret/new"), "x").unwrap();
    std::fs::write(house.here().join("open/new"), "x").unwrap();
    let log = house.root().join("agents/charon/events/log.ndjson");
    let said = || std::fs::read_to_string(&log).unwrap();
    until("the change that may be seen is told", || said().contains("/projects/p/fs/open/new"));
    assert!(!said().contains("secret"), "{}", said());
}
