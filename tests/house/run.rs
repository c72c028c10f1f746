//! `acheron run` and the options of `acheron exec`: programs of the operator in the sandbox of an agent.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::common::{self, until};

/// A machine with a home, a project and a state directory. Dropping it takes every host away that was started in it.
struct Machine(TempDir);

impl Machine {
    fn new() -> Machine {
        let machine = Machine(TempDir::new().unwrap());
        for name in ["home/bin", "project", "state"] {
            std::fs::create_dir_all(machine.at(name)).unwrap();
        }
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn tree(&self) -> PathBuf {
        self.at("state/acheron-tree")
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// `acheron run` in the project.
    fn run(&self, words: &[&str]) -> Command {
        let mut command = common::command(&self.at("project"), &[env!("CARGO_BIN_EXE_acheron"), "run"]);
        command.args(words).env("HOME", self.at("home")).env("XDG_STATE_HOME", self.at("state"));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.at("home/bin").display()));
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.run(words).output().unwrap()
    }

    fn said(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}{}[{:?}]", text(&output.stdout), text(&output.stderr), output.status.code())
    }

    fn mounted(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        mounts.lines().any(|line| line.contains(self.at("state").to_str().unwrap()))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Ok(pid) = std::fs::read_to_string(self.at("state/acheron/acheron.pid")) {
            _ = Command::new("kill").arg(pid.trim()).stderr(Stdio::null()).status();
        }
        _ = Command::new("umount").arg("-l").arg(self.tree()).stderr(Stdio::null()).status();
    }
}

#[test]
fn a_program_sees_its_project_and_the_tree_and_nothing_else() {
    let machine = Machine::new();
    std::fs::write(machine.at("home/secret"), "a key").unwrap();
    std::fs::write(machine.at("project/main.rs"), "fn main() {}").unwrap();
    let script = "pwd; cat main.rs; echo; echo new > made; ls /agents; head -1 /AGENTS.md; readlink /projects/project/fs; \
                  cat ~/secret; ls -A ~; echo kept > ~/kept; exit 3";
    let said = machine.said(&["sh", "-c", script]);
    let project = machine.at("project").display().to_string();
    assert!(said.starts_with(&format!("{project}\nfn main() {{}}\nself\nsh\n# For an agent")), "{said}");
    assert!(said.contains(&format!("\n{project}\n")) && said.contains("cat: ") && !said.contains("a key"), "{said}");
    assert!(
        said.contains("acheron: sh ran ") && said.contains("1 file changed: made") && said.ends_with("[Some(3)]"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(machine.at("project/made")).unwrap(), "new\n");
    // The home lasts, and the host has gone with its last program.
    until("the host has gone", || !machine.mounted());
    assert!(machine.said(&["sh", "-c", "cat ~/kept"]).starts_with("kept\n"));
}

/// The project of a run is named after its directory: the next one of that name must not be the old program's.
#[test]
fn what_an_agent_was_given_for_a_run_is_taken_back_after_a_crash() {
    let machine = Machine::new();
    let script = "touch on; sleep 600";
    let words = ["--agent", "old", "--budget", "50tok", "sh", "-c", script];
    let mut run = machine.run(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it runs", || machine.at("project/on").exists());
    let profile = || -> serde_json::Value {
        let text = std::fs::read(machine.at("state/acheron/agents/old/profile.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    };
    assert_eq!(profile()["projects"], serde_json::json!(["project"]));
    let host = std::fs::read_to_string(machine.at("state/acheron/acheron.pid")).unwrap();
    let host = rustix::process::Pid::from_raw(host.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(host, rustix::process::Signal::KILL).unwrap();
    assert!(!run.wait().unwrap().success());
    // The next host comes up although the mount of the old one is still there.
    let said = machine.said(&["--agent", "new", "sh", "-c", "echo again"]);
    assert!(said.starts_with("again\n"), "{said}");
    assert_eq!((&profile()["projects"], &profile()["budget"]), (&serde_json::json!([]), &serde_json::json!({})));
}

#[test]
fn two_programs_share_a_host_and_the_last_takes_it_down() {
    let machine = Machine::new();
    let mut first: Child = machine
        .run(&[
            "sh",
            "-c",
            "touch one; until test -e two; do sleep 0.05; done; ls /agents; cat /agents/self/chat/status.json > status",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the first runs", || machine.at("project/one").exists());
    let pid = || std::fs::read_to_string(machine.at("state/acheron/acheron.pid")).unwrap();
    let host = pid();
    let second = machine.said(&["sh", "-c", "ls /agents; touch two"]);
    // Each is an agent of its own, and neither sees the other.
    assert!(second.starts_with("self\nsh-2\n"), "{second}");
    let mut output = String::new();
    std::io::Read::read_to_string(first.stdout.as_mut().unwrap(), &mut output).unwrap();
    assert_eq!((output.as_str(), first.wait().unwrap().code()), ("self\nsh\n", Some(0)));
    assert_eq!(pid(), host);
    until("the host has gone", || !machine.mounted());
    assert!(!machine.at("state/acheron/host.sock").exists());
}

#[test]
fn a_command_that_is_killed_leaves_nothing_behind() {
    let machine = Machine::new();
    let mut child = machine.run(&["sh", "-c", "touch ready; sleep 1000"]).stderr(Stdio::null()).spawn().unwrap();
    until("it runs", || machine.at("project/ready").exists());
    let acheron = descendant(child.id(), "run");
    rustix::process::kill_process(rustix::process::Pid::from_raw(acheron).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    child.wait().unwrap();
    until("the host has gone", || !machine.mounted());
    // The state can be opened again, and the directory is a project again.
    assert!(machine.said(&["sh", "-c", "echo again"]).starts_with("again\n"));
}

/// The process of ours below `parent` that has this word in its command line.
fn descendant(parent: u32, word: &str) -> i32 {
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
    let has = |pid: &&str| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    children.split_whitespace().find(has).unwrap().parse().unwrap()
}

#[test]
fn what_other_programs_obey_cannot_be_changed_under_either_name() {
    let machine = Machine::new();
    let git = Command::new("git").args(["init", "-q"]).current_dir(machine.at("project")).status().unwrap();
    assert!(git.success());
    let script = "for dir in . /projects/project/fs; do echo x > $dir/.git/hooks/pre-commit; echo x >> $dir/.git/config; \
                  mkdir $dir/.claude; done; echo over";
    let said = machine.said(&["sh", "-c", script]);
    assert!(said.starts_with("over\n") && said.matches("Read-only file system").count() >= 4, "{said}");
    assert!(!machine.at("project/.git/hooks/pre-commit").exists() && !machine.at("project/.claude").exists());
    // What is not protected can be changed under every name, and so can the directory above, which is the sandbox's own.
    let script =
        "mkdir $PWD/new /projects/project/fs/other && echo x > $PWD/new/x && cd $(mktemp -d) && touch y && pwd";
    let said = machine.said(&["sh", "-c", script]);
    assert!(said.starts_with("/tmp/tmp.") && machine.at("project/new/x").exists(), "{said}");
    assert!(machine.at("project/other").is_dir());
}

#[test]
fn a_program_outside_of_the_system_comes_with_what_it_needs() {
    let machine = Machine::new();
    let node = "home/.nvm/versions/node/v22";
    machine.program(&format!("{node}/bin/node"), "#!/bin/sh\necho node runs $(basename $1)\n");
    machine.program(&format!("{node}/lib/node_modules/coder/cli.js"), "#!/usr/bin/env node\n");
    std::fs::write(machine.at("home/.nvm/token"), "secret").unwrap();
    std::os::unix::fs::symlink(
        machine.at(&format!("{node}/lib/node_modules/coder/cli.js")),
        machine.at("home/bin/coder"),
    )
    .unwrap();
    std::os::unix::fs::symlink(machine.at(&format!("{node}/bin/node")), machine.at("home/bin/node")).unwrap();
    let said = machine.said(&["coder", "--help"]);
    assert!(said.starts_with("node runs cli.js\n"), "{said}");
    let token = machine.at("home/.nvm/token").display().to_string();
    let said = machine.said(&["--agent", "coder", "sh", "-c", &format!("cat {token}")]);
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn what_cannot_be_done_is_refused_with_the_reason() {
    let machine = Machine::new();
    let refused = |words: &[&str]| machine.said(words);
    let said = refused(&["no-such-program"]);
    assert_eq!(
        said,
        "error: there is no program `no-such-program` on the PATH: install it, or name its file\n[Some(127)]"
    );
    let said = refused(&["codex"]);
    assert!(said.contains("hint: npm install -g @openai/codex") || said.ends_with("[Some(0)]"), "{said}");
    let said = refused(&["--budget", "2eur", "true"]);
    assert!(said.contains("`2eur` is not a budget: write `2usd`"), "{said}");
    let said = refused(&["--budget", "2usd", "true"]);
    assert!(said.contains("budget.money: needs model.prices; without prices every call costs 0"), "{said}");
    let said = refused(&["--model", "oracle:x", "true"]);
    assert!(said.contains("unknown model kind `oracle`"), "{said}");
    let said = refused(&["--agent", "No Name", "true"]);
    assert!(said.contains("`No Name` is no name of an agent"), "{said}");
    let said = refused(&["--bind", "/nowhere", "true"]);
    assert!(said.contains("/nowhere"), "{said}");
    let said = refused(&["-t", "true"]);
    assert!(said.contains("-t needs a terminal"), "{said}");
    let mut home = machine.run(&["true"]);
    let output = home.current_dir(machine.at("home")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("is your home directory, and the program could change all of it"), "{said}");
}

#[test]
fn the_profile_that_the_host_shows_is_the_one_that_counts() {
    let machine = Machine::new();
    std::fs::create_dir_all(machine.at("library/programs")).unwrap();
    std::fs::write(machine.at("library/Index.md"), "# Mine\n").unwrap();
    let library = machine.at("library");
    std::fs::write(library.join("programs/env.json"), r#"{"env": {"MINE": "{gateway}/x"}}"#).unwrap();
    let spec = serde_json::json!({"agents": {"charon": {}}, "projects": {}, "library": library});
    std::fs::write(machine.at("spec.json"), spec.to_string()).unwrap();
    let file = machine.at("spec.json");
    let said = machine.said(&["--spec", file.to_str().unwrap(), "env"]);
    assert!(said.contains("MINE=http://127.0.0.1:4141/x\n") && !said.contains("OPENAI_BASE_URL"), "{said}");
    let networked = serde_json::json!({"agents": {"free": {}}, "projects": {}, "sandbox": {"network": ["free"]}});
    std::fs::write(machine.at("networked.json"), networked.to_string()).unwrap();
    let (file, state) = (machine.at("networked.json"), machine.at("state/other"));
    let words = ["--state", state.to_str().unwrap(), "--spec", file.to_str().unwrap(), "--agent", "free", "env"];
    let said = machine.said(&words);
    assert!(said.contains("free shares the network of the machine") && !said.contains("OPENAI_BASE_URL"), "{said}");
    until("the hosts have gone", || !machine.mounted());
}

#[test]
fn a_dry_run_shows_the_plan_and_starts_nothing() {
    let machine = Machine::new();
    let said = machine.said(&["--dry-run", "--budget", "2usd", "codex", "exec", "hi"]);
    for line in [
        "arguments  -c model_provider=gate",
        "-m gpt-6.1-sol",
        "model      openai:gpt-6.1-sol, behind http://127.0.0.1:4141",
        "budget     2usd",
        "variable   GATE_KEY=acheron",
        "network    none but the gateway",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("(writable)") && said.ends_with("[Some(0)]"), "{said}");
    assert!(!machine.at("state/acheron").exists() && !machine.mounted());
}

#[test]
fn exec_takes_variables_binds_a_home_and_a_directory() {
    let host = crate::test_host::TestHost::new();
    let data = TempDir::new().unwrap();
    std::fs::write(data.path().join("x"), "data\n").unwrap();
    let acheron = env!("CARGO_BIN_EXE_acheron");
    let exec = |options: &str, script: &str| {
        let data = data.path().display();
        let session = format!("A=1 B=2 {acheron} exec --root . --agent charon {options} -- sh -c '{script}'");
        common::session(&host.root(), &session.replace("DATA", &data.to_string()))
    };
    assert_eq!(exec("--env A --env C=3", "echo $A.$B.$C"), "1..3\n");
    assert_eq!(exec("--env NOT_SET", "true"), "! error: --env NOT_SET: it is not set here\n");
    assert_eq!(
        exec("--bind DATA:/data:ro", "cat /data/x; echo y > /data/y"),
        "data\n! sh: 1: cannot create /data/y: Read-only file system\n"
    );
    assert_eq!(exec("--bind DATA:/data", "echo y > /data/y; ls /data"), "x\ny\n");
    assert_eq!(exec("--cwd /tmp", "pwd"), "/tmp\n");
    assert_eq!(exec("", "echo kept > ~/kept"), "");
    assert_eq!(exec("", "cat ~/kept; pwd"), "kept\n/projects/here/fs\n");
    assert_eq!(exec("--home DATA", "ls ~"), "x\ny\n");
    assert_eq!(exec("-T", "test -t 0 || echo no terminal"), "no terminal\n");
    assert_eq!(
        exec("--bind DATA:/etc", "true"),
        "! error: `/etc` cannot be bound to: it belongs to the sandbox itself\n"
    );
}

#[test]
fn a_run_reaches_the_hosts_that_it_is_given_and_names_those_it_was_refused() {
    let (machine, port) = (Machine::new(), crate::network::server());
    std::fs::write(machine.at("project/ask.sh"), crate::network::asking(port)).unwrap();
    let said = machine.said(&["--network", &format!("localhost:{port}"), "--agent", "asker", "bash", "ask.sh"]);
    assert!(said.starts_with("HTTP/1.1 200 Connection established\nHTTP/1.0 200 OK\nhello\n"), "{said}");
    for line in [
        "acheron: 2 connections to the network\n".to_owned(),
        "acheron: refused: evil.example:443 is not in network\n".to_owned(),
        "acheron: to allow it: --network evil.example:443,169.254.169.254:80\n".to_owned(),
        format!(
            "acheron: or in the mountspec: \"sandbox\": {{\"network\": {{\"asker\":[\"localhost:{port}\",\"evil.example:443\",\"169.254.169.254:80\"]}}}}\n"
        ),
    ] {
        assert!(said.contains(&line), "{line}: {said}");
    }
    // What one run was given, the next is not; but it is told of what it asked for.
    let said = machine.said(&["--agent", "asker", "bash", "ask.sh"]);
    assert!(said.starts_with(&format!("HTTP/1.1 403 localhost:{port} is not in network\n")), "{said}");
    assert!(
        !said.contains("hello") && said.contains(&format!("--network localhost:{port},evil.example:443")),
        "{said}"
    );
    let said = machine.said(&["--network", "https://x/", "true"]);
    assert!(said.starts_with("error: --network: "), "{said}");
}

#[test]
fn a_program_without_a_key_uses_a_login_of_its_own_and_run_says_so() {
    let (machine, port) = (Machine::new(), crate::network::server());
    let profile = serde_json::json!({
        "model": "anthropic:claude-x",
        "env": {"ANTHROPIC_BASE_URL": "{gateway}", "ANTHROPIC_API_KEY": "{key}"},
        "login": {"hosts": [format!("localhost:{port}")], "env": {"LOGGED": "in"}},
    });
    std::fs::create_dir_all(machine.at("home/.config/acheron/programs")).unwrap();
    std::fs::write(machine.at("home/.config/acheron/programs/coder.json"), profile.to_string()).unwrap();
    let script = format!(
        "#!/bin/bash\necho LOGGED=$LOGGED.$ANTHROPIC_BASE_URL; cat ~/token 2>/dev/null || echo secret > ~/token\n{}",
        crate::network::asking(port)
    );
    machine.program("home/bin/coder", &script);
    let run = |words: &[&str], key: Option<&str>| {
        let mut command = machine.run(words);
        command.env_remove("ANTHROPIC_API_KEY").env_remove("XDG_CONFIG_HOME");
        if let Some(key) = key {
            command.env("ANTHROPIC_API_KEY", key);
        }
        let output = command.output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        // The next host is another, with another environment.
        until("the host has gone", || !machine.mounted());
        said
    };
    let said = run(&["coder"], None);
    assert!(said.contains("LOGGED=in.\n") && said.contains("hello\n"), "{said}");
    assert!(
        said.contains(
            "acheron: ANTHROPIC_API_KEY is not set; anthropic needs it: coder uses a log-in of its own, which stays in "
        ) && said
            .contains(&format!("; it may reach localhost:{port}; connections are counted, tokens and money are not\n"))
            && said.contains("acheron: 2 connections to the network\n"),
        "{said}"
    );
    // It lasts.
    assert!(run(&["coder"], None).contains("LOGGED=in.\nsecret\n"));
    let said = run(&["--budget", "500ktok", "coder"], None);
    assert!(
        said.contains("coder uses a log-in of its own") && said.contains("--budget and --record need a key"),
        "{said}"
    );
    // With a key there is the gateway, and no other host.
    let said = run(&["coder"], Some("sk-real"));
    assert!(
        said.contains("LOGGED=.http://127.0.0.1:4141\n") && !said.contains("hello") && !said.contains("log-in"),
        "{said}"
    );
    let said = run(&["--login", "coder"], Some("sk-real"));
    assert!(
        said.contains("LOGGED=in.\n") && said.contains("acheron: --login: coder uses a log-in of its own"),
        "{said}"
    );
}

/// Asks the gateway again and again until it is refused, and prints how often it was answered.
const SPENDER: &str = r#"#!/bin/bash
body='{"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":20}'
answered=0
while :; do
  exec 3<>/dev/tcp/127.0.0.1/4141 || exit 9
  printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %s\r\n\r\n%s' ${#body} "$body" >&3
  answer=$(cat <&3); exec 3>&-
  case $answer in *'HTTP/1.1 200'*) answered=$((answered + 1)) ;; *) break ;; esac
  touch "answered-$ACHERON_AGENT"
  [ -n "$FOR_EVER" ] && sleep 0.2
done
echo "answered $answered"
echo "$answer" | tail -1
"#;

#[test]
fn ten_programs_at_once_keep_their_budgets_and_one_that_is_killed_leaves_nothing() {
    use crate::upstream::{Told, Upstream};
    // The hour of it: ACHERON_MANY_SECONDS=3600.
    let seconds = std::env::var("ACHERON_MANY_SECONDS").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let until_then = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    let machine = Machine::new();
    let answer = serde_json::json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "PONG"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40}});
    let upstream = Upstream::start(move |_| Told::whole(&answer));
    let spec = serde_json::json!({"layout": "acheron-1", "agents": {"charon": {}}, "projects": {},
        "model": {"kind": "openai", "name": "m", "base_url": upstream.url()}});
    std::fs::write(machine.at("spec.json"), spec.to_string()).unwrap();
    for name in ["one", "two", "three", "four", "five"] {
        machine.program(&format!("home/bin/{name}"), SPENDER);
    }
    let file = machine.at("spec.json").display().to_string();
    let start = |number: usize, more: &[&str]| {
        let (agent, budget) = (format!("agent-{number}"), format!("{}tok", 200 + 40 * number));
        let name = ["one", "two", "three", "four", "five"][number % 5];
        let words = [&["--spec", &file, "--agent", &agent, "--budget", &budget], more, &[name]].concat();
        machine.run(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    loop {
        let before = upstream.asked().len();
        let mut killed = machine
            .run(&["--spec", &file, "--agent", "doomed", "--env", "FOR_EVER=1", "one"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let running: Vec<Child> = (0..9).map(|number| start(number, &[])).collect();
        until("the doomed one works", || machine.at("project/answered-doomed").exists());
        let doomed = descendant(killed.id(), "run");
        let doomed = rustix::process::Pid::from_raw(doomed).unwrap();
        rustix::process::kill_process(doomed, rustix::process::Signal::KILL).unwrap();
        killed.wait().unwrap();
        let mut answered = 0;
        for (number, child) in running.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let count: u64 = out.lines().find_map(|line| line.strip_prefix("answered ")?.parse().ok()).unwrap_or(0);
            let budget = 200 + 40 * number as u64;
            assert!(count > 0 && count * 40 <= budget, "agent-{number}: {count} of {budget}: {out}{err}");
            assert!(out.contains("run it again with a larger --budget"), "{out}{err}");
            answered += count;
        }
        let asked = upstream.asked().len() - before;
        assert!(asked as u64 >= answered, "{asked} {answered}");
        until("the host has gone", || !machine.mounted());
        // Neither a process nor anything that listens is left: a sandbox's network ends with its last process and listener.
        let mine = machine.at("").display().to_string();
        let left = || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
            let texts = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
            texts.filter(|line| line.contains("acheron") && line.contains(&mine)).collect::<Vec<_>>()
        };
        until("all processes have gone", || left().is_empty());
        _ = std::fs::remove_file(machine.at("project/answered-doomed"));
        if std::time::Instant::now() >= until_then {
            break;
        }
    }
}
