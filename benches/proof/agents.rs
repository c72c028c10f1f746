//! A thousand scripted agents, each with a turn of ten steps, all at once.

use std::fmt::Write;
use std::time::Instant;

use serde_json::{Value, json};

use super::Run;
use super::house::{Scratch, TestHost, status, write_once};
use super::table::{Aim, Figure};

const STEPS: usize = 10;

pub fn rows(run: &Run) -> Vec<Figure> {
    let count = if run.quick { 20 } else { 1_000 };
    let scratch = Scratch::new();
    let call =
        |name: &str, arguments: Value| json!({"answer": {"tool_calls": [{"name": name, "arguments": arguments}]}});
    let mut script = String::new();
    for step in 1..STEPS {
        // The same call over and over would be taken for a fault of the model.
        let arguments = json!({ "path": format!("agents/self/events/sources/time/after/{step}.json") });
        writeln!(script, "{}", call("file_read", arguments)).expect("memory");
    }
    let arguments = json!({ "path": "agents/self/chat/control/reply", "content": "done" });
    writeln!(script, "{}", call("file_write", arguments)).expect("memory");
    std::fs::write(scratch.path().join("script.ndjson"), script).expect("a script");
    let names: Vec<String> = (0..count).map(|number| format!("agent-{number:04}")).collect();
    let agents: serde_json::Map<String, Value> = names.iter().map(|name| (name.clone(), json!({}))).collect();
    let spec = json!({
        "layout": "acheron-1",
        "default_agent": names[0],
        "model": { "kind": "script", "name": "script.ndjson" },
        "agents": agents,
    });
    let began = Instant::now();
    let house = TestHost::in_scratch(scratch, &spec);
    let started = began.elapsed().as_secs_f64();
    let before = status(house.pid(), "VmRSS") as f64 / 1024.0;

    let began = Instant::now();
    for name in &names {
        write_once(&house.path(&format!("agents/{name}/chat/control/input")), b"go");
    }
    let replied = names.iter().filter(|name| {
        let reply = std::fs::read(house.path(&format!("agents/{name}/chat/latest.txt")));
        reply.is_ok_and(|reply| reply.starts_with(b"done"))
    });
    let ended = replied.count();
    let took = began.elapsed().as_secs_f64();
    let (now, peak) = (status(house.pid(), "VmRSS") as f64 / 1024.0, status(house.pid(), "VmHWM") as f64 / 1024.0);
    vec![
        Figure::number(
            format!("{count} scripted agents x {STEPS} steps: turns that ended"),
            ended as f64,
            "",
            Aim::AtLeast(count as f64),
        )
        .detail(format!("{:.0} steps a second, {took:.1} s", (ended * STEPS) as f64 / took)),
        Figure::number("RSS with them", now, "MiB", Aim::Told)
            .detail(format!("{before:.0} before their turns, {peak:.0} at most; started in {started:.1} s")),
    ]
}
