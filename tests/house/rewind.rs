//! The way back to an earlier turn: files (whoever changed them), conversation and memory together.

use serde_json::{Value, json};

use crate::test_host::TestHost;

fn write(path: &str, content: &str) -> Value {
    json!({"answer": {"tool_calls": [{"name": "file_write", "arguments": {"path": path, "content": content, "create_parents": true}}]}})
}

fn order(service: &str, op: &str, arguments: Value) -> Value {
    write(&format!("agents/self/{service}/control/{op}.json"), &arguments.to_string())
}

/// Three turns, each of which changes files by the tool and by a shell, and memory.
fn lines() -> Vec<Value> {
    let mut lines = Vec::new();
    for turn in 1..=3 {
        let shell = format!(
            "echo {turn} >> shell.txt; mkdir -p d{turn}; mv notes.txt d{turn}/ 2> /dev/null || mv d*/notes.txt d{turn}/; true"
        );
        lines.push(write("projects/here/fs/tool.txt", &format!("turn {turn}")));
        lines.push(order("terminal", "exec", json!({"command": shell})));
        lines.push(json!({"answer": {"tool_calls": [{"name": "file_read", "arguments": {"path": "agents/self/terminal/result.json"}}]}}));
        lines.push(match turn {
            1 => order("memory", "create", json!({"kind": "note", "name": "plan", "content": "one"})),
            2 => order("memory", "mutate", json!({"memory_path": "/agents/self/memory/items/plan", "content": "two"})),
            _ => order("memory", "create", json!({"kind": "note", "name": "late", "content": "three"})),
        });
        lines.push(write("agents/self/chat/control/reply", &format!("done {turn}")));
    }
    lines
}

/// The first turn once more, differently.
fn again() -> Vec<Value> {
    vec![write("projects/here/fs/tool.txt", "again"), write("agents/self/chat/control/reply", "done again")]
}

fn script(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn house() -> TestHost {
    let spec = json!({"layout": "acheron-1", "model": {"kind": "script", "name": "../script.ndjson"},
        "agents": {"charon": {"projects": ["here"], "view": "own"}},
        "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}}});
    TestHost::prepared(&spec.to_string(), |here| {
        std::fs::write(here.join("../script.ndjson"), script(&lines())).unwrap();
    })
}

fn say(house: &TestHost, text: &str) -> String {
    house.says(&format!("echo '{text}' > agents/charon/chat/control/input; cat agents/charon/chat/latest.txt"))
}

/// Everything that a way back brings back.
fn state(house: &TestHost) -> String {
    house.says(
        "cd projects/here/views/charon/fs; find . -type f | sort | xargs tail -n +1; cd ../../../../..
         cd agents/charon/memory/items; for f in */content; do echo $f $(cat $f); done",
    )
}

fn rewind(house: &TestHost, command: Value) -> Value {
    let said = house.says(&format!("exec 3<>agents/charon/chat/control/rewind.json; echo '{command}' >&3; cat <&3"));
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// What the model was shown as the conversation.
fn exchanges(house: &TestHost) -> usize {
    house.inside(async |host| {
        host.state.shared.runtimes.chat("charon").unwrap().agent_runtime().history.exchanges(None).len()
    })
}

#[test]
fn files_conversation_and_memory_come_back_together_and_the_way_back_can_be_undone() {
    let mut house = house();
    let mut states = vec![state(&house)];
    for turn in 1..=3 {
        assert_eq!(say(&house, "go on"), format!("done {turn}\n"));
        states.push(state(&house));
    }
    assert!(states[3].contains("1\n2\n3\n") && states[3].contains("late/content three"), "{}", states[3]);
    let preview = rewind(&house, json!({"to": 1, "preview": true}));
    let turns: Vec<&Value> = preview["result"]["turns"].as_array().unwrap().iter().map(|turn| &turn["turn"]).collect();
    assert_eq!(turns, [2, 3], "{preview}");
    assert_eq!(preview["result"]["memory"], json!(["late", "plan"]), "{preview}");
    assert!(preview["result"]["files"].to_string().contains("shell.txt"), "{preview}");
    assert_eq!(state(&house), states[3], "a preview changes nothing");
    let done = rewind(&house, json!({"to": 1}));
    assert_eq!(done["result"]["files"], "brought back", "{done}");
    assert_eq!((state(&house), exchanges(&house)), (states[1].clone(), 1));
    let undone = rewind(&house, json!({"undo": true}));
    assert_eq!(undone["ok"], true, "{undone}");
    assert_eq!((state(&house), exchanges(&house)), (states[3].clone(), 3));
    assert_eq!(rewind(&house, json!({"undo": true}))["ok"], false);
    assert_eq!(rewind(&house, json!({"to": 0}))["ok"], true);
    assert_eq!((state(&house), exchanges(&house)), (states[0].clone(), 0));
    // A host that starts begins its script anew.
    std::fs::write(house.here().join("../script.ndjson"), script(&again())).unwrap();
    house.restart();
    assert_eq!((state(&house), exchanges(&house)), (states[0].clone(), 0), "after a restart as well");
    // The next turn ends the time in which it can be undone, and can itself be rewound.
    assert_eq!(say(&house, "again"), "done again\n");
    assert_eq!(exchanges(&house), 1);
    assert_eq!(rewind(&house, json!({"undo": true}))["ok"], false);
    assert_eq!(rewind(&house, json!({"to": 99}))["error"]["code"], "not_found");
}

#[test]
fn the_command_tells_what_would_come_back_and_an_agent_cannot_rewind() {
    let house = house();
    say(&house, "go on");
    say(&house, "go on");
    let acheron = env!("CARGO_BIN_EXE_acheron");
    let said = house.says(&format!(
        "{acheron} rewind --root . --agent charon --to 1 --preview; {acheron} rewind --root . --agent charon --to 1; \
         {acheron} rewind --root . --agent charon --undo; {acheron} rewind --root . --agent charon --to 7"
    ));
    let expected = "turn 2 would not count: go on\nfile d1/notes.txt\nfile d2/notes.txt\nfile shell.txt\nfile tool.txt\nmemory plan\n\
        turn 1 is the last that counts; files: brought back\nthe rewind is taken back; files: brought back\n\
        ! error: there is no checkpoint of turn 7; there are those of 0, 1, 2\n";
    assert_eq!(said, expected);
    let refused = house.inside(async |host| {
        use acheron::policy::PrincipalCaller;
        let caller = acheron_vfs::Caller::agent("charon");
        host.tree().write(&caller, "/agents/charon/chat/control/rewind.json", br#"{"to":1}"#).await.unwrap_err()
    });
    assert!(refused.message.contains("the operator does"), "{refused}");
}
