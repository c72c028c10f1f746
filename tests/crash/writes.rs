//! Operations of effect `write`: when the write returns they have happened, with their job and their event.

use std::path::Path;

use acheron::state::{events, jobs};

use super::life::{AGENT, Life};
use super::load::put;

/// How often the host is killed right after an answer.
const KILLS: u32 = 12;

/// The state of the job called `name`, and the kinds of the events about it, before any host has touched them again.
fn left(state: &Path, name: &str) -> (String, Vec<String>) {
    let store = crate::open_state(state);
    let row = store.look(|conn| jobs::correlated(conn, AGENT, name)).unwrap().expect("the job is in the journal");
    let all = store.look(|conn| events::since(conn, AGENT, 0, crate::steps::ALL)).unwrap().0;
    let about = all.into_iter().filter(|event| event.path.contains(&row.id));
    let kinds = about.map(|event| format!("{} {}", event.kind, event.payload["state"])).collect();
    store.close();
    (row.state.name().to_owned(), kinds)
}

/// The events about changes at a path.
fn changes(state: &Path, path: &str) -> Vec<String> {
    let store = crate::open_state(state);
    let all = store.look(|conn| events::since(conn, AGENT, 0, crate::steps::ALL)).unwrap().0;
    store.close();
    let here = all.into_iter().filter(|event| event.kind == "change" && event.path.contains(path));
    here.map(|event| event.payload["memory"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_was_acknowledged_has_happened_with_its_job_and_its_event() {
    let place = tempfile::tempdir().unwrap();
    let state = place.path().join("state");
    for n in 0..KILLS {
        let life = Life::begin(place.path(), &[]);
        let agent = life.agent();
        if let Some(before) = n.checked_sub(1) {
            assert_eq!(std::fs::read_to_string(agent.join(format!("memory/items/m-{before}/content"))).unwrap(), "x");
            assert!(agent.join(format!("memory/items/d-{before}")).is_dir());
            assert!(agent.join(format!("symbols/items/s-{before}.json")).is_file());
        }
        let meta = |service: &str| format!("\"_meta\":{{\"correlation_id\":\"{service}-{n}\"}}");
        let put = |file: &str, text: &str| put(&agent.join(file), text).unwrap();
        put("symbols/control/put.json", &format!("{{\"body\":{{\"id\":\"s-{n}\"}},{}}}", meta("symbols")));
        std::fs::create_dir(agent.join(format!("memory/items/d-{n}"))).unwrap();
        let create = format!("{{\"kind\":\"note\",\"name\":\"m-{n}\",\"content\":\"x\",{}}}", meta("memory"));
        put("memory/control/create.json", &create);
        life.kill();
        for service in ["symbols", "memory"] {
            let (done, told) = left(&state, &format!("{service}-{n}"));
            assert_eq!((done.as_str(), told), ("done", vec!["job \"done\"".to_owned()]), "{service} {n}");
        }
        for name in ["m", "d"] {
            assert_eq!(changes(&state, &format!("/memory/items/{name}-{n}")), ["created"], "{name} {n}");
        }
    }
}
