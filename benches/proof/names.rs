//! How long one request keeps the thread that serves all callers, while one of them lists what is large.

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::Run;
use super::growth::ended;
use super::house::{Scratch, TestHost, plain};
use super::store::fill;
use super::table::{Aim, Figure};

/// The limit in milliseconds.
const AIM: Aim = Aim::AtMost(50.0);

pub fn rows(run: &Run) -> Vec<Figure> {
    let (pages, many) = if run.quick { (2_000, 10_000) } else { (20_000, 100_000) };
    let state = |make: fn(&Path, usize), count: usize| {
        let scratch = Scratch::new();
        make(&scratch.path().join("state"), count);
        let mut spec = plain();
        spec["retention"] = json!({ "jobs": 10_000_000, "days": 10_000 });
        TestHost::in_scratch(scratch, &spec)
    };
    vec![
        listed(
            format!("ls recall/by/*, {pages} pages"),
            &state(wiki, pages),
            &["by/backlinks", "by/orphans", "by/broken", "by/recent", "nodes/semantic"]
                .map(|it| format!("recall/{it}")),
        ),
        listed(format!("ls of {many} memories"), &state(fill, many), &["memory/items".to_owned()]),
        listed(format!("ls of {many} jobs"), &state(ended, many), &["jobs", "jobs/by"].map(str::to_owned)),
        mirrored(many),
        signals(if run.quick { 20 } else { 800 }),
    ]
}

/// Signals of a megabyte, until the sender has sent as many bytes as it may.
fn signals(count: usize) -> Figure {
    let house = TestHost::in_scratch(Scratch::new(), &plain());
    let signal = json!({ "event_type": "user", "payload": "x".repeat(1_000_000) }).to_string();
    let began = Instant::now();
    let file = house.own("events/control/signal.json");
    let sent = (0..count).take_while(|_| std::fs::write(&file, &signal).is_ok()).count();
    figure(format!("{count} signals of 1 MB"), &house, sent, began)
}

/// Pages that link to each other and to pages that do not exist.
fn wiki(state: &Path, count: usize) {
    let folder = state.join("agents/charon/recall/store/semantic");
    std::fs::create_dir_all(&folder).expect("a folder");
    for number in 0..count {
        let text = format!("# Page {number}\n\n[[Page {}]] [[Page {}]] [[Nowhere {number}]]\n", number / 2, number + 1);
        std::fs::write(folder.join(format!("Page {number}.md")), text).expect("a page");
    }
}

fn mirrored(count: usize) -> Figure {
    let scratch = Scratch::new();
    let project = scratch.make("project");
    (0..count).for_each(|number| std::fs::write(project.join(number.to_string()), "").expect("a file"));
    let spec = json!({
        "layout": "acheron-1",
        "agents": { "charon": { "projects": ["p"] } },
        "projects": { "p": { "binds": { "/": { "path": project, "read_only": false, "mirror": true } } } },
    });
    let house = TestHost::in_scratch(scratch, &spec);
    let began = Instant::now();
    let names = list(&house.path("projects/p/fs"));
    figure(format!("ls of {count} files in a mirrored directory"), &house, names, began)
}

/// Lists directories of the first agent, each with the size and time of every name in it.
fn listed(what: String, house: &TestHost, dirs: &[String]) -> Figure {
    let began = Instant::now();
    let names = dirs.iter().map(|dir| list(&house.own(dir))).sum();
    figure(what, house, names, began)
}

fn list(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).expect("a directory");
    entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.metadata().is_ok())).count()
}

fn figure(what: String, house: &TestHost, names: usize, began: Instant) -> Figure {
    let took = began.elapsed();
    let worst: Value = house.metrics()["session"]["worst"].clone();
    let ms = worst["took_us"].as_f64().unwrap_or(f64::NAN) / 1000.0;
    let (kind, place) = (worst["kind"].as_str().unwrap_or(""), worst["place"].as_str().unwrap_or(""));
    Figure::number(format!("names: {what}: the longest request on the session thread"), ms, "ms", AIM)
        .detail(format!("{kind} in {place}; {names} names in {took:.1?}"))
}
