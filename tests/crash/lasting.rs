//! What stays as it was over every death: the active set of a memory that nobody else touches, and work that may simply
//! run again.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::life::{self, AGENT};
use super::load::put;

/// An agent of its own, so that the load does not move its memories.
const KEEPER: &str = "keeper";

/// What was acknowledged last.
pub struct Lasting {
    place: PathBuf,
    active: Option<Value>,
}

impl Lasting {
    /// A spec with the keeper in it, and a program whose work may be done again.
    pub fn prepare(place: &Path) -> Lasting {
        fs::create_dir_all(place.join("here")).unwrap();
        // notes each run, and ends only the second time: until then the host dies around it
        let program = "#!/bin/sh\ncat > /dev/null\necho run >> runs\n[ $(wc -l < runs) -gt 1 ] || exec sleep 600\necho '\"ran again\"'\n";
        fs::write(place.join("here/again.sh"), program).unwrap();
        fs::set_permissions(place.join("here/again.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        let own = json!([{"allow": ["read", "write", "invoke"], "path": "/agents/self/**"}]);
        life::write_spec(
            place,
            &json!({
                "layout": "acheron-1", "default_agent": AGENT, "sandbox": {"allow_unconfined": true},
                "agents": {AGENT: {"permissions": own, "projects": ["here"]}, KEEPER: {"permissions": own, "projects": ["here"]}},
                "projects": {"here": {"binds": {"/": {"path": ".", "read_only": false}}}},
                "services": {"again": {"command": ["/bin/sh", "/projects/here/fs/again.sh"], "about": "runs again",
                                       "operations": {"go": {"effect": "write", "idempotent": true, "timeout_ms": 900_000}}}},
            }),
        );
        Lasting { place: place.to_owned(), active: None }
    }

    /// Compares with the life before, and changes something for the life after.
    pub fn check_and_change(&mut self, root: &Path, life: u32) {
        let keeper = root.join("agents").join(KEEPER);
        if let Some(before) = &self.active {
            assert_eq!(active(&keeper), *before, "the active set is as it was");
        }
        let name = format!("m{}", life % 5);
        let path = json!({"memory_path": format!("/agents/self/memory/items/{name}")});
        match self.active.is_none() || life < 5 {
            true => call(
                &keeper,
                "create",
                &json!({"kind": "note", "name": name, "content": format!("{name} in life {life}")}),
            ),
            false => call(&keeper, ["load", "pin", "evict", "unpin"][life as usize % 4], &path),
        };
        self.active = Some(active(&keeper));
        self.work(&keeper, life);
    }

    /// A job that is declared idempotent: begun in the first life, queued again in the second.
    fn work(&self, keeper: &Path, life: u32) {
        let by = keeper.join("jobs/by/again");
        match life {
            0 => {
                put(&keeper.join("again/control/go.json"), r#"{"_meta":{"correlation_id":"again"}}"#).unwrap();
                super::load::until("the program runs", || {
                    fs::read(self.place.join("here/runs")).is_ok_and(|it| !it.is_empty())
                });
            }
            1 => {
                // waits until it has ended
                let status: Value = serde_json::from_slice(&fs::read(by.join("status.json")).unwrap()).unwrap();
                assert_eq!((&status["state"], &status["attempt"]), (&json!("done"), &json!(2)), "{status}");
                assert_eq!(fs::read_to_string(by.join("result.txt")).unwrap().trim(), "ran again");
            }
            _ => (),
        }
    }
}

/// The active set, without what is only a matter of time.
fn active(agent: &Path) -> Value {
    serde_json::from_slice(&fs::read(agent.join("memory/active.json")).unwrap()).unwrap()
}

/// One call of the memory on a handle of its own, answered or refused; either way it is settled.
fn call(agent: &Path, op: &str, arguments: &Value) {
    let control = agent.join(format!("memory/control/{op}.json"));
    let mut handle = fs::OpenOptions::new().read(true).write(true).open(control).unwrap();
    handle.write_all(arguments.to_string().as_bytes()).unwrap();
    handle.read_to_string(&mut String::new()).unwrap();
}
