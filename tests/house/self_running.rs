//! What other programs run by themselves, in a project that an agent may write: read, but never changed by it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::common;
use crate::test_host::TestHost;
use acheron::agent::tools::tree::TreeTools;
use acheron::agent::tools::{ToolCall, perform};
use acheron::policy::PrincipalCaller;
use acheron_vfs::Caller;

fn spec(mirror: bool, protected: Option<Value>) -> String {
    let mut spec = json!({"layout": "acheron-1", "agents": {"charon": {"projects": ["here"]}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false, "mirror": mirror}}}}});
    if let Some(protected) = protected {
        spec["projects"]["here"]["protected"] = protected;
    }
    spec.to_string()
}

const RUN: &str = r#"
    run() { jq -cn --arg c "$1" '{command: $c, timeout_ms: 60000}' > agents/charon/terminal/control/exec.json
            jq -r '(.result.stdout + .result.stderr) // .error.message' agents/charon/terminal/result.json; }
"#;

/// What the agent's own tool answers: `done`, or the code of the refusal.
fn written_by_tool(house: &TestHost, path: &str) -> String {
    let arguments = json!({"path": format!("/projects/here/fs/{path}"), "content": "evil"});
    let tool = ToolCall::read("file_write", arguments.as_object().unwrap().clone()).ok().unwrap();
    let said = house.inside(async |host| {
        let (tree, caller) = (host.tree().clone(), Caller::agent("charon"));
        perform(&TreeTools { tree, caller, id: Arc::new(|| "h".to_owned()), parked: Arc::new(|_| ()) }, &tool).await
    });
    said["error"]["code"].as_str().unwrap_or("done").to_owned()
}

/// All names in the project, without the inside of git's own store.
fn names(house: &TestHost) -> String {
    common::session(&house.here(), "find . -mindepth 1 -path '*/objects/*' -prune -o -print | sort")
}

/// A repository with a hook of the operator's, a module in it, and settings of an editor deeper down.
fn repository(here: &std::path::Path) {
    let said = common::session(
        here,
        "git init -q -b main . && git config user.name Op && git config user.email op@example.org
         git add . && git commit -qm first && mkdir -p packages/one/.vscode && echo '{}' > packages/one/.vscode/tasks.json
         git init -q --bare remote.git && git remote add origin \"$PWD/remote.git\" && git push -q origin main
         echo 'exit 0' > .git/hooks/pre-push",
    );
    assert_eq!(said, "");
}

#[test]
fn an_agent_plants_nothing_that_runs_by_itself() {
    for mirror in [false, true] {
        let house = TestHost::prepared(&spec(mirror, None), repository);
        let before = names(&house);
        let said = house.says(&format!(
            r#"{RUN}
            run 'for f in .mcp.json .envrc .claude/settings.json .codex/config.toml .cursor/mcp.json .vscode/tasks.json \
                     .idea/x .github/workflows/x.yml .git/hooks/pre-commit .git/hooks/pre-push .git/config .git/commondir \
                     packages/one/.vscode/tasks.json packages/one/.vscode/more.json HEAD .gemini/settings.json opencode.json \
                     .devcontainer/x .pre-commit-config.yaml lefthook.yml .mise.toml .exrc .dir-locals.el .zed/x .pnpmfile.cjs; do
                   (mkdir -p $(dirname $f); echo evil > $f) 2>/dev/null && echo "planted $f"
                   (mkdir -p $(dirname $f); cp notes.txt tmp.$$; mv tmp.$$ $f) 2>/dev/null && echo "moved $f"
                   ln -s notes.txt $f 2>/dev/null && echo "linked $f"; rm -f tmp.$$
                 done; mv .git g 2>/dev/null && echo moved; mv packages/one/.vscode v 2>/dev/null && echo moved; rm -rf v
                 rmdir .github 2>/dev/null; echo tried'
            "#
        ));
        assert_eq!(said, "tried\n\n", "mirror: {mirror}");
        assert_eq!(names(&house), before, "nothing is planted and nothing is left, mirror: {mirror}");
        let hook = std::fs::read_to_string(house.here().join(".git/hooks/pre-push")).unwrap();
        assert_eq!(hook, "exit 0\n");
        for path in ["HEAD", ".mcp.json", ".claude/x", ".git/hooks/x", ".git/config", "packages/one/.vscode/tasks.json"]
        {
            let said = written_by_tool(&house, path);
            assert!(["forbidden", "not_found"].contains(&said.as_str()), "{mirror} {path}: {said}");
        }
        assert_eq!(written_by_tool(&house, "packages/one/free"), "done");
    }
}

/// Ordinary work with git, each step as a line.
const GIT: &str = r#"
    step() { echo "$1: $("${@:2}" > /tmp/out 2>&1 && echo ok || { echo failed; head -n 2 /tmp/out; })"; }
    exec 2>&1
    cd /projects/here/fs; git config --global --add safe.directory '*' 
    git config --global user.name A; git config --global user.email a@example.org
    git config --global url./projects/here/fs/remote.git.insteadOf "$(git config remote.origin.url)"
    echo new > work.txt; step add git add work.txt; step commit git commit -qm work
    step branch git branch side; step checkout git checkout -q side; step back git checkout -q main
    step merge git merge -q side; step stash sh -c 'echo x >> work.txt; git stash -q && git stash pop -q && git checkout -q .'
    step push git push -q origin main; step fetch git fetch -q origin
    step worktree git worktree add -q tree -b tree; step "commit in it" sh -c 'cd tree && echo t > t && git add t && git commit -qm t'
    step "remove it" git worktree remove --force tree
    step gc git gc -q; step status git status --short; step rebase git rebase -q side; step tag git tag v1
    step track git checkout -q -b tracked --track origin/main; git rev-parse --abbrev-ref HEAD
    step "push -u" git push -q -u origin tracked; git ls-remote -q origin tracked | wc -l
"#;

#[test]
fn ordinary_git_goes_on_working() {
    let opted_out = json!([".git/hooks", ".git/commondir", ".mcp.json", ".claude"]);
    for (protected, mirror) in [(None, false), (Some(opted_out), false), (None, true)] {
        let house = TestHost::prepared(&spec(mirror, protected.clone()), repository);
        let config = || std::fs::read_to_string(house.here().join(".git/config")).unwrap();
        let before = config();
        let said = house.says(&format!("{RUN}\nrun {}", shell_quoted(&format!("bash -c {}", shell_quoted(GIT)))));
        let steps = "add commit branch checkout back merge stash push fetch worktree commit_in_it remove_it gc status rebase \
                     tag track";
        let mut expected: String =
            steps.split_whitespace().map(|step| format!("{}: ok\n", step.replace('_', " "))).collect();
        expected += "tracked\npush -u: ok\n1\n\n";
        assert_eq!(said, expected, "{protected:?} {mirror}");
        // What is tracked would be noted there: git says that it cannot, and goes on. It is the one thing to opt out of.
        assert_eq!(config() == before, protected.is_none(), "{}", config());
    }
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
fn the_operator_may_name_other_paths_or_none() {
    let house = TestHost::of(&spec(false, Some(json!(["Makefile"]))));
    let said =
        house.says(&format!("{RUN}\nrun 'echo x > .mcp.json && (echo x > Makefile) 2>/dev/null || echo refused'"));
    assert_eq!(said, "refused\n\n");
    assert!(house.here().join(".mcp.json").exists() && !house.here().join("Makefile").exists());
    let wrong = acheron::spec::Spec::check(&spec(false, Some(json!(["../x", "/etc", "a/*"])))).unwrap_err();
    let plain = |fault: &&acheron::contract::ValueFault| fault.message.contains("is not a plain path in the project");
    assert_eq!(wrong.iter().filter(plain).count(), 3, "{wrong:?}");
}

#[test]
fn what_appears_deeper_down_is_protected_from_the_next_program_on() {
    let house = TestHost::of(&spec(false, None));
    let plant = format!("{RUN}\nrun '(echo evil > deep/.git/config) 2>/dev/null && echo planted || echo refused'");
    std::fs::create_dir_all(house.here().join("deep/.git")).unwrap();
    assert_eq!(house.says(&plant), "planted\n\n");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(house.says(&plant), "refused\n\n");
}
