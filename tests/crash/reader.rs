//! A reader of `next.json` whose host dies between two of its reads.

use std::fs;
use std::io::Read;

use serde_json::Value;

use super::life::Life;
use super::load::put;

fn number(event: &[u8]) -> u64 {
    let event: Value = serde_json::from_slice(event).unwrap();
    event["signal"]["payload"]["n"].as_u64().unwrap()
}

fn send(life: &Life, n: u64) {
    let signal = life.agent().join("events/control/signal.json");
    put(&signal, &format!(r#"{{"event_type":"user","payload":{{"n":{n}}}}}"#)).unwrap();
}

/// The next event, for a reader that reads to the end of the file and closes it.
fn hear(life: &Life) -> u64 {
    number(&fs::read(life.agent().join("events/next.json")).unwrap())
}

#[test]
fn a_reader_whose_read_fails_because_the_host_died_gets_the_event_again() {
    let place = tempfile::tempdir().unwrap();
    let life = Life::begin(place.path(), &[]);
    let wait = r#"{"paths":["/agents/self/events/sources/user.json"],"timeout_ms":60000}"#;
    put(&life.agent().join("events/control/wait.json"), wait).unwrap();
    send(&life, 1);
    let mut reader = fs::File::open(life.agent().join("events/next.json")).unwrap();
    let mut bytes = [0; 4096];
    let length = reader.read(&mut bytes).unwrap();
    assert_eq!(number(&bytes[..length]), 1);
    // Changes are stored in order: what the host stores because of the read is durable when the signal is.
    send(&life, 2);
    life.kill();
    // A reader that reads to the end, such as `fs::read`, now fails with all bytes in its hand, and drops them.
    reader.read(&mut bytes).unwrap_err();
    drop(reader);

    let life = Life::begin(place.path(), &[]);
    assert_eq!(hear(&life), 1);
    assert_eq!(hear(&life), 2);
    send(&life, 3);
    life.kill();

    let life = Life::begin(place.path(), &[]);
    assert_eq!(hear(&life), 3, "what was read and closed does not come again");
    life.kill();
}
