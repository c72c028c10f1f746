//! Views: agents work in copies of a project, the operator reads what they changed, promotes it, undoes that, throws it away.

use std::path::Path;

use expect_test::expect;
use serde_json::{Value, json};

use crate::common::until;
use crate::test_host::TestHost;

fn agent(view: &str) -> Value {
    json!({"projects": ["here"], "view": view})
}

fn spec() -> String {
    json!({"layout": "acheron-1", "default_agent": "charon",
        "agents": {"charon": agent("own"), "styx": agent("own"), "lethe": agent("shared"), "acheron": agent("shared"),
            "plain": {"projects": ["here"]}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}})
    .to_string()
}

/// Runs a command in the sandbox of an agent and returns what it says.
fn exec(house: &TestHost, agent: &str, command: &str) -> String {
    let call = json!({"command": command}).to_string().replace('\'', r"'\''");
    house.says(&format!(
        r#"cd agents/{agent}/terminal; echo '{call}' > control/exec.json; jq -r '.result | .stdout + .stderr' result.json | sed '$ {{/^$/d}}'"#
    ))
}

/// Writes a command to a control file of a view, and returns the answer on the same handle.
fn call(house: &TestHost, view: &str, op: &str, arguments: Value) -> Value {
    let arguments = arguments.to_string().replace('\'', r"'\''");
    let said = house
        .says(&format!("cd projects/here/views/{view}; exec 3<>control/{op}.json; echo '{arguments}' >&3; cat <&3"));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{op}: {error}: {said}"))
}

fn changes(house: &TestHost, view: &str) -> Vec<String> {
    let said = house.says(&format!(
        r#"jq -r '.changes[] | .what + " " + .path + (if .held then " held" else "" end) + (if .conflict then " conflict" else "" end)' projects/here/views/{view}/changes.json"#
    ));
    said.lines().map(str::to_owned).collect()
}

fn file(house: &TestHost, name: &str) -> String {
    std::fs::read_to_string(house.here().join(name)).unwrap_or_else(|_| "-".to_owned())
}

#[test]
fn an_agent_works_in_its_view_and_the_operator_promotes_what_he_likes() {
    let house = TestHost::of(&spec());
    assert_eq!(
        exec(&house, "charon", "sed -i s/note/line/ notes.txt; echo more > more.txt; rm main.rs; ls; cat notes.txt"),
        "more.txt\nnotes.txt\na line\n"
    );
    house.check(
        r#"
        ls projects/here/fs; cat projects/here/fs/notes.txt
        cd projects/here/views/charon; ls
        jq -c '.counts, (.changes[] | [.what, .path, .bytes])' changes.json; cat diff.patch
        jq -c .progress status.json
        echo '{"paths":["notes.txt"]}' > control/promote.json; jq -c .result result.json
        cat ../../fs/notes.txt; jq -c '[.changes[].path]' changes.json
        echo '{}' > control/promote.json; jq -c .result result.json; ls ../../fs
        echo '{}' > control/promote.json; jq -c .result result.json
        echo '{}' > control/undo.json; jq -c .result result.json; ls ../../fs; ls fs; jq -c '[.changes[].path]' changes.json
        echo '{}' > control/undo.json; jq -c .error.message result.json
        "#,
        expect![[r#"
            main.rs
            notes.txt
            a note
            CAPS.json
            OPS.json
            PERMISSIONS.json
            README.md
            SCHEMA.json
            changes.json
            control
            diff.patch
            fs
            result.json
            status.json
            {"added":1,"changed":1,"conflicts":0,"held":0,"removed":1,"renamed":0}
            ["removed","main.rs",null]
            ["added","more.txt",5]
            ["changed","notes.txt",7]
            diff --git a/main.rs b/main.rs
            deleted file mode 100644
            index b68ae3cfa7160afcba3720c876ead78c3d01db2d..0000000000000000000000000000000000000000
            --- a/main.rs
            +++ /dev/null
            @@ -1,3 +0,0 @@
            -fn main() {
            -    // TODO: everything
            -}
            diff --git a/more.txt b/more.txt
            new file mode 100644
            index 0000000000000000000000000000000000000000..ef49dd86a6957875edcd0bff210337d6b6dd063c
            --- /dev/null
            +++ b/more.txt
            @@ -0,0 +1 @@
            +more
            diff --git a/notes.txt b/notes.txt
            index a941c2e33656b2444712059e9c8c4dbbf3acd958..e250146dbeb9d1c87e0b16ebe41925dc6d6ea0f5 100644
            --- a/notes.txt
            +++ b/notes.txt
            @@ -1 +1 @@
            -a note
            +a line
            {"view":"mounted","agent":"charon","changes":3,"held":0,"conflicts":[],"can_undo":false}
            {"promoted":[{"what":"changed","path":"notes.txt"}],"count":1,"held":[],"left":2}
            a line
            ["main.rs","more.txt"]
            {"promoted":[{"what":"removed","path":"main.rs"},{"what":"added","path":"more.txt"}],"count":2,"held":[],"left":0}
            more.txt
            notes.txt
            {"promoted":[],"count":0,"held":[],"left":0,"note":"the view has no changes"}
            {"undone":["main.rs","more.txt"]}
            main.rs
            notes.txt
            more.txt
            notes.txt
            ["main.rs","more.txt"]
            "there is no promote of this view that could be undone"
        "#]],
    );
    assert_eq!(call(&house, "charon", "discard", json!({}))["ok"], true);
    until("there is a new view", || changes(&house, "charon").is_empty());
    assert_eq!(
        exec(&house, "charon", "ls; cat notes.txt"),
        "main.rs\nnotes.txt\na line\n",
        "a new view of what is there now"
    );
}

#[test]
fn many_agents_work_at_once_each_in_its_own_view_or_in_one_together() {
    let house = TestHost::of(&spec());
    for agent in ["charon", "styx", "lethe", "acheron", "plain"] {
        exec(&house, agent, &format!("echo {agent} >> notes.txt; echo {agent} > {agent}.txt"));
    }
    let seen = |agent: &str| exec(&house, agent, "echo $(cat notes.txt) $(ls)");
    // The project itself has changed too; notes.txt of a view is the view's own.
    until("the views follow the project", || seen("charon").contains("plain.txt"));
    assert_eq!(seen("charon"), "a note charon charon.txt main.rs notes.txt plain.txt\n");
    assert_eq!(seen("styx"), "a note styx main.rs notes.txt plain.txt styx.txt\n");
    assert_eq!(seen("lethe"), "a note lethe acheron acheron.txt lethe.txt main.rs notes.txt plain.txt\n");
    assert_eq!(seen("acheron"), seen("lethe"));
    assert_eq!(file(&house, "notes.txt"), "a note\nplain\n");
    // Both changed the same file, and so has the project: nothing of it goes back by itself.
    assert_eq!(changes(&house, "charon"), ["added charon.txt", "changed notes.txt conflict"]);
    let refused = call(&house, "charon", "promote", json!({}));
    assert_eq!(refused["error"]["code"], "conflict", "{refused}");
    assert_eq!(call(&house, "charon", "promote", json!({"paths": ["charon.txt"]}))["result"]["count"], 1);
    let kept = call(&house, "charon", "rebase", json!({"keep": ["notes.txt"]}));
    assert_eq!(kept["result"]["conflicts"], json!([]), "{kept}");
    assert_eq!(call(&house, "charon", "promote", json!({}))["result"]["count"], 1);
    assert_eq!(file(&house, "notes.txt"), "a note\ncharon\n");
    until("styx sees it", || seen("styx").contains("charon.txt"));
    assert_eq!(call(&house, "styx", "discard", json!({"paths": ["notes.txt"]}))["ok"], true);
    assert_eq!(seen("styx"), "a note charon charon.txt main.rs notes.txt plain.txt styx.txt\n");
}

/// The tools of a turn, the search and the doors see the same as programs do.
#[test]
fn every_tool_of_an_agent_works_in_its_view() {
    let house = TestHost::of(&spec());
    exec(&house, "charon", "echo needle > found.txt; rm main.rs");
    house.check(
        r#"
        echo '{"query":"needle"}' > agents/charon/search_code/control/search.json; jq -c '[.result.matches[].path]' agents/charon/search_code/result.json
        echo '{"query":"needle"}' > agents/plain/search_code/control/search.json; jq -c '[.result.matches[].path]' agents/plain/search_code/result.json
        "#,
        expect![[r#"
            ["/projects/here/fs/found.txt"]
            []
        "#]],
    );
    let listed = house.inside(async |host| {
        use acheron::policy::PrincipalCaller;
        let (tree, caller) = (host.tree().clone(), acheron_vfs::Caller::agent("charon"));
        tree.write(&caller, "/projects/here/fs/notes.txt", b"by the tool").await.unwrap();
        let names = acheron_base::blocking(move || {
            let all = tree.list(&caller, "/projects/here/fs")?;
            let hidden = tree.list(&caller, "/projects/here/views/styx").is_err();
            let own = tree.list(&caller, "/projects/here/views/charon")?.len();
            Ok((all.into_iter().map(|entry| entry.path).collect::<Vec<_>>(), hidden, own))
        });
        names.await.unwrap()
    });
    assert_eq!(listed.0, ["/projects/here/fs/found.txt", "/projects/here/fs/notes.txt"]);
    assert!(listed.1, "the views of others are not there");
    assert!(listed.2 > 5, "what is told of the own view is");
    assert_eq!(file(&house, "notes.txt"), "a note\n");
    assert_eq!(exec(&house, "charon", "cat notes.txt"), "by the tool\n");
}

const PLANTED: [&str; 12] = [
    "sub/.git/hooks/pre-commit",
    "sub/.mcp.json",
    "sub/.claude/settings.json",
    "sub/.vscode/tasks.json",
    "sub/.envrc",
    "sub/.github/workflows/ci.yml",
    "sub/.gitlab-ci.yml",
    "sub/.husky/pre-push",
    "sub/.devcontainer/devcontainer.json",
    "tool.sh",
    "out",
    "sub/out",
];

#[test]
fn of_twelve_planted_files_none_gets_through_and_each_does_if_it_is_named() {
    let house = TestHost::of(&spec());
    let mut script = String::from("mkdir sub; echo fine > sub/fine.txt; ");
    for path in PLANTED.iter().take(9) {
        script += &format!("mkdir -p $(dirname {path}); echo planted > {path}; ");
    }
    script += "echo '#!/bin/sh' > tool.sh; chmod +x tool.sh; ln -s /etc/passwd out; ln -s ../../../etc sub/out";
    exec(&house, "charon", &script);
    let promoted = call(&house, "charon", "promote", json!({}));
    assert_eq!(promoted["result"]["count"], 1, "{promoted}");
    assert_eq!(file(&house, "sub/fine.txt"), "fine\n");
    let through = |path: &&str| house.here().join(path).symlink_metadata().is_ok();
    assert_eq!(PLANTED.into_iter().filter(through).count(), 0);
    // A directory does not name what is held in it.
    let refused = call(&house, "charon", "promote", json!({"paths": ["sub"]}));
    assert_eq!(refused["error"]["code"], "forbidden", "{refused}");
    assert_eq!(PLANTED.into_iter().filter(through).count(), 0);
    let all: Vec<&str> = PLANTED.to_vec();
    let promoted = call(&house, "charon", "promote", json!({"paths": all}));
    assert_eq!(promoted["result"]["count"], 12, "{promoted}");
    assert_eq!(PLANTED.into_iter().filter(through).count(), 12);
    assert_eq!(std::fs::read_link(house.here().join("out")).unwrap(), Path::new("/etc/passwd"));
}

#[test]
fn an_agent_neither_promotes_nor_sees_the_views_of_others() {
    let house = TestHost::of(&spec());
    exec(&house, "charon", "echo 1 > a");
    let tried = exec(
        &house,
        "charon",
        "ls /projects/here; echo '{}' > /projects/here/views/charon/control/promote.json; find / -name 'gen-*' 2> /dev/null | head -3; grep -c /state/views /proc/self/mountinfo",
    );
    assert!(tried.starts_with("fs\n0\n") && tried.contains("promote.json"), "{tried}");
    let refused = house.inside(async |host| {
        use acheron::policy::PrincipalCaller;
        let (tree, caller) = (host.tree().clone(), acheron_vfs::Caller::agent("charon"));
        let promoted = tree.write(&caller, "/projects/here/views/charon/control/promote.json", b"{}").await.is_err();
        let written = tree.write(&caller, "/projects/here/views/charon/fs/notes.txt", b"x").await.is_err();
        let other = tree.read(&caller, "/projects/here/views/styx/diff.patch").await.is_err();
        let own = tree.read(&caller, "/projects/here/views/charon/diff.patch").await.is_ok();
        (promoted, written, other, own)
    });
    assert_eq!(refused, (true, true, true, true));
    assert_eq!(file(&house, "a"), "-");
}

/// Each way in which a base can change under an open view, noticed by the host itself.
#[test]
fn a_project_that_changes_underneath_is_seen_in_an_open_view() {
    let house = TestHost::prepared(&spec(), |here| {
        for name in ["written", "replaced", "deleted", "todir", "copied"] {
            std::fs::write(here.join(name), "old\n").unwrap();
        }
        std::fs::create_dir(here.join("d")).unwrap();
        std::fs::write(here.join("d/theirs"), "old\n").unwrap();
    });
    let fs = house.root().join("projects/here/views/charon/fs");
    let read = |name: &str| std::fs::read_to_string(fs.join(name)).unwrap_or_else(|_| "-\n".to_owned());
    for name in ["written", "replaced", "deleted", "todir", "copied", "d/theirs"] {
        assert_eq!(read(name), "old\n");
    }
    assert_eq!(read("created"), "-\n");
    let open = std::fs::File::open(fs.join("replaced")).unwrap();
    exec(&house, "charon", "echo mine > copied; echo mine > d/mine");
    house.says(
        "cd ../here; echo new > written; echo new > t; mv t replaced; rm deleted; echo new > created; echo theirs > copied
         rm -r d; rm todir; mkdir todir; echo in > todir/f",
    );
    let expected = [
        ("written", "new\n"),
        ("replaced", "new\n"),
        ("deleted", "-\n"),
        ("created", "new\n"),
        ("copied", "mine\n"),
        ("todir/f", "in\n"),
        ("d/mine", "mine\n"),
        ("d/theirs", "-\n"),
    ];
    until("the view follows", || expected.iter().all(|(name, text)| read(name) == *text));
    let mut held = String::new();
    std::io::Read::read_to_string(&mut &open, &mut held).unwrap();
    assert_eq!(held, "old\n", "a file that is open stays open");
    assert_eq!(
        exec(&house, "charon", "cat written replaced created copied todir/f d/mine; ls d"),
        "new\nnew\nnew\nmine\nin\nmine\nmine\n"
    );
    assert_eq!(changes(&house, "charon"), ["changed copied conflict", "added d/mine"]);
}

#[test]
fn views_and_what_was_promoted_are_there_after_a_restart() {
    let mut house = TestHost::of(&spec());
    exec(&house, "charon", "echo 1 > a; echo 2 > b");
    call(&house, "charon", "promote", json!({"paths": ["a"]}));
    house.says(
        r#"echo '{"name":"mine"}' > projects/here/views/control/create.json; cat projects/here/views/result.json"#,
    );
    house.says("echo x > projects/here/views/mine/fs/x");
    house.restart();
    assert_eq!(changes(&house, "charon"), ["added b"]);
    assert_eq!(changes(&house, "mine"), ["added x"]);
    assert_eq!(exec(&house, "charon", "cat a b"), "1\n2\n");
    assert_eq!(call(&house, "charon", "undo", json!({}))["ok"], true);
    assert_eq!((file(&house, "a"), changes(&house, "charon").len()), ("-".to_owned(), 2));
    assert_eq!(call(&house, "mine", "discard", json!({}))["ok"], true);
    assert_eq!(house.says("ls projects/here/views | grep -c mine"), "0\n");
}

#[test]
fn a_view_comes_back_to_a_snapshot_and_back_again() {
    let house = TestHost::of(&spec());
    exec(&house, "charon", "echo 1 > a; mkdir d; mv notes.txt d/; rm main.rs");
    assert_eq!(call(&house, "charon", "snapshot", json!({"name": "first"}))["ok"], true);
    exec(&house, "charon", "echo 2 > a; rm -r d; echo b > b; printf 'int' > main.rs");
    let after = changes(&house, "charon");
    assert_eq!(call(&house, "charon", "restore", json!({"name": "first"}))["ok"], true);
    assert_eq!(exec(&house, "charon", "ls -R; cat a d/notes.txt"), ".:\na\nd\n\n./d:\nnotes.txt\n1\na note\n");
    assert_eq!(call(&house, "charon", "restore", json!({"name": "before"}))["ok"], true);
    assert_eq!(changes(&house, "charon"), after);
    assert_eq!(call(&house, "charon", "restore", json!({"name": "../x"}))["ok"], false);
}

#[test]
fn a_comment_on_a_line_is_mail_to_the_agent() {
    let house = TestHost::of(&spec());
    exec(&house, "charon", "echo 1 > a");
    call(&house, "charon", "comment", json!({"path": "a", "line": 1, "text": "why 1?"}));
    house.check(
        "jq -c '[.from, .subject, .body]' agents/charon/mail/inbox/*.json",
        expect![[r#"
        ["operator","a comment on your changes in the view charon","a:1: why 1?"]
    "#]],
    );
}

#[test]
fn a_repository_can_be_worked_in_and_its_patch_applies() {
    let house = TestHost::prepared(&spec(), |here| {
        let git = "git init -qb main . && git config user.email a@b && git config user.name n && echo target/ > .gitignore && git add -A && git commit -qm first && cp -a . ../copy";
        assert!(std::process::Command::new("sh").args(["-c", git]).current_dir(here).status().unwrap().success());
    });
    let said = exec(
        &house,
        "charon",
        "echo more >> notes.txt; mkdir -p src target; git mv main.rs src/; head -c 3000 /dev/urandom > bin; echo o > target/o
         git add -A; git -c user.email=a@b -c user.name=n commit -qm work; git status --short; git log --oneline | wc -l",
    );
    assert_eq!(said, "2\n", "a repository in a view is a repository");
    house.check(
        r#"cd projects/here/views/charon
        jq -c '[.changes[] | [.what, .path]], [.git[].path], .ignored' changes.json
        cat diff.patch > ../../../../../copy.patch 2> /dev/null; cp diff.patch /dev/null
        cd ../../../../../copy && git apply ../copy.patch && git status --short"#,
        expect![[r#"
            [["added","bin"],["changed","notes.txt"],["renamed","src/main.rs"]]
            [".git"]
            [{"path":"target","files":1,"bytes":2}]
             D main.rs
             M notes.txt
            ?? bin
            ?? src/
        "#]],
    );
    assert_eq!(call(&house, "charon", "promote", json!({}))["ok"], true);
    house.check(
        "cd ../here; git log --oneline | wc -l; git --no-optional-locks status --short; ls",
        expect![[r#"
            1
             D main.rs
             M notes.txt
            ?? bin
            ?? src/
            bin
            notes.txt
            src
        "#]],
    );
    // The commits go too if git is named; its settings and hooks would not.
    assert_eq!(call(&house, "charon", "promote", json!({"paths": [".git"]}))["ok"], true);
    house.check(
        "cd ../here; git log --oneline | wc -l; git status --short; git fsck 2>&1 | grep -v dangling",
        expect![[r#"
            2
        "#]],
    );
}
