//! Turns that the host's death cuts off: each goes on where it was, and nothing that it did is done again.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::life::{self, Life};
use super::load::{put, until};

const AGENTS: usize = 50;
const KILLS: u64 = 3;

fn call(name: &str, arguments: Value) -> Value {
    json!({"answer": {"tool_calls": [{"name": name, "arguments": arguments}]}})
}

fn write(path: &str, content: &str) -> Value {
    call("file_write", json!({"path": path, "content": content}))
}

fn reply(text: &str) -> Value {
    write("/agents/self/chat/control/reply", text)
}

/// Adds a line to the agent's file in the project, from inside the host.
fn add(agent: &str, word: &str) -> Value {
    call(
        "file_write",
        json!({"path": format!("/projects/here/fs/lines/{agent}"), "content": format!("{word}\n"), "append": true}),
    )
}

/// Adds a line to the same file by a program, which then does `after`.
fn run(agent: &str, word: &str, after: &str) -> Value {
    let command = format!("echo {word} >> /projects/here/fs/lines/{agent}; {after}");
    write(
        "/agents/self/terminal/control/exec.json",
        &json!({ "command": command, "_meta": { "correlation_id": word } }).to_string(),
    )
}

/// Agents with a script each, over one project that they may write to.
fn prepare(place: &Path, scripts: &[(String, Vec<Value>)]) {
    for dir in ["here/lines", "here/scripts"] {
        fs::create_dir_all(place.join(dir)).unwrap();
    }
    let mut agents = json!({});
    for (agent, lines) in scripts {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(place.join(format!("here/scripts/{agent}.ndjson")), text).unwrap();
        fs::write(place.join("here/lines").join(agent), "").unwrap();
        let permissions = json!([{"allow": ["read", "write", "invoke"], "path": "/agents/self/**"},
                                 {"allow": ["read", "write"], "path": "/projects/here/**"}]);
        agents[agent] = json!({"projects": ["here"], "permissions": permissions,
                               "model": {"kind": "script", "name": format!("scripts/{agent}.ndjson")}});
    }
    life::write_spec(
        place,
        &json!({"layout": "acheron-1", "default_agent": scripts[0].0, "agents": agents,
        "sandbox": {"allow_unconfined": true}, "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}}),
    );
}

fn lines(place: &Path, agent: &str) -> Vec<String> {
    fs::read_to_string(place.join("here/lines").join(agent)).unwrap().lines().map(str::to_owned).collect()
}

/// How often an agent was told that it cannot be known whether a call was carried out.
fn interruptions(place: &Path, agent: &str) -> usize {
    let records = life::turn_records(&place.join("state"), agent);
    let told = |record: &String| record.contains("\"kind\":\"outcome\"") && record.contains("interrupted");
    records.iter().filter(|record| told(record)).count()
}

#[test]
fn fifty_turns_that_are_killed_again_and_again_all_end_and_do_nothing_twice() {
    let place = tempfile::tempdir().unwrap();
    let names: Vec<String> = (1..=AGENTS).map(|n| format!("a{n:02}")).collect();
    let scripts: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, agent)| {
            let mut script: Vec<Value> = ["one", "two", "three"].iter().map(|word| add(agent, word)).collect();
            if n.is_multiple_of(5) {
                script.push(run(agent, "four", "true"));
                // not `jobs/last`: where the program was cut off before its job, that is the turn itself, which would wait for its end
                script.push(call("file_read", json!({"path": "/agents/self/jobs/by/four/status.json"})));
            }
            script.push(add(agent, "five"));
            script.push(reply("done"));
            (agent.clone(), script)
        })
        .collect();
    prepare(place.path(), &scripts);

    let mut dice = StdRng::seed_from_u64(50);
    let mut cut_off = 0;
    for kill in 0..KILLS {
        let life = Life::begin(place.path(), &[]);
        if kill == 0 {
            thread::scope(|scope| {
                for agent in &names {
                    let input = life.root().join("agents").join(agent).join("chat/control/input");
                    scope.spawn(move || put(&input, "go").unwrap());
                }
            });
        }
        // the moment of death, not a wait for anything
        thread::sleep(Duration::from_millis(dice.random_range(20..300)));
        life.kill();
        cut_off += names.iter().filter(|agent| !lines(place.path(), agent).contains(&"five".to_owned())).count();
    }
    assert!(cut_off >= AGENTS / 2, "the kills came too late to cut anything off");

    let life = Life::begin(place.path(), &[]);
    for (n, agent) in names.iter().enumerate() {
        // waits until the turn has ended
        let said = fs::read_to_string(life.root().join("agents").join(agent).join("chat/latest.txt")).unwrap();
        assert_eq!(said.trim(), "done", "{agent}");
        let found = lines(place.path(), agent);
        let once: BTreeSet<&String> = found.iter().collect();
        assert_eq!(once.len(), found.len(), "{agent} did something twice: {found:?}");
        let (wanted, told) = (if n.is_multiple_of(5) { 5 } else { 4 }, interruptions(place.path(), agent));
        assert!(found.len() + told >= wanted, "{agent} was not told of what is missing: {found:?}, told {told} times");
        assert_eq!(replies(&life, agent), ["done"], "{agent}: a reply is said once, however often it was cut off");
    }
    life.leave();
}

/// What the agent has replied, turn by turn.
fn replies(life: &Life, agent: &str) -> Vec<String> {
    let history = fs::read_to_string(life.root().join("agents").join(agent).join("chat/history.ndjson")).unwrap();
    let entries = history.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries.map(|entry| entry["reply"].as_str().unwrap_or_default().to_owned()).collect()
}

/// `a01` is answered for from outside, `a02` waits for what never comes until it is cancelled.
#[test]
fn a_reply_or_a_cancel_that_was_acknowledged_holds_although_the_host_died_at_once() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("here")).unwrap();
    let never = call("file_read", json!({"path": "/agents/self/events/sources/user/never.json"}));
    fs::write(place.path().join("here/never.ndjson"), format!("{never}\n").repeat(6)).unwrap();
    let agents = json!({"a01": {"model": {"kind": "external"}},
                        "a02": {"model": {"kind": "script", "name": "never.ndjson"}}});
    life::write_spec(place.path(), &json!({"layout": "acheron-1", "default_agent": "a01", "agents": agents}));
    let mut life = Life::begin(place.path(), &[]);
    for n in 1..=6 {
        let [one, two] = ["a01", "a02"].map(|agent| life.root().join("agents").join(agent));
        put(&one.join("chat/control/input"), "go").unwrap();
        put(&two.join("chat/control/input"), "go").unwrap();
        let says = |file: &str, word: &str| fs::read_to_string(life.root().join(file)).unwrap().contains(word);
        until("a turn waits for its reply", || says("agents/a01/chat/status.json", "\"running\""));
        until("a turn waits", || says("agents/a02/jobs/last/progress.json", "\"waiting\":true"));
        let job = fs::read_link(two.join("jobs/last")).unwrap();
        put(&two.join("jobs").join(&job).join("control/cancel"), "x").unwrap();
        put(&one.join("chat/control/reply"), &format!("answer {n}")).unwrap();
        life.kill();
        life = Life::begin(place.path(), &[]);
        until("the turn has its reply", || replies(&life, "a01").len() == n);
        assert_eq!(replies(&life, "a01")[n - 1], format!("answer {n}"));
        let state = life.root().join("agents/a02/jobs").join(job).join("progress.json");
        until("the turn is over", || fs::read_to_string(&state).unwrap().contains("\"state\":\"cancelled\""));
    }
    life.leave();
}

#[test]
fn a_program_that_hung_when_the_host_died_ran_once_and_the_model_is_told() {
    let place = tempfile::tempdir().unwrap();
    let agent = "a01";
    // no other process of this machine sleeps for so long
    let seconds = format!("9{}", std::process::id());
    let script = vec![
        run(agent, "once", &format!("sleep {seconds}")),
        call("file_read", json!({"path": "/agents/self/jobs/last/status.json"})),
        json!({"when": "interrupted", "answer": reply("I was told")["answer"]}),
        reply("nobody told me"),
    ];
    prepare(place.path(), &[(agent.to_owned(), script)]);
    let life = Life::begin(place.path(), &[]);
    put(&life.root().join("agents/a01/chat/control/input"), "go").unwrap();
    until("the program runs", || lines(place.path(), agent) == ["once"]);
    life.kill();
    until("the program ends with the host", || !runs(&seconds));
    let life = Life::begin(place.path(), &[]);
    let said = fs::read_to_string(life.root().join("agents/a01/chat/latest.txt")).unwrap();
    assert_eq!(said.trim(), "I was told");
    assert_eq!(lines(place.path(), agent), ["once"]);
    life.leave();
}

/// Whether a program has this word among its arguments.
fn runs(word: &str) -> bool {
    let commands = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    commands.into_iter().any(|command| command.split(|byte| *byte == 0).any(|it| it == word.as_bytes()))
}
