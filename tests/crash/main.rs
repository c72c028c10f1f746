//! What the host survives: it is killed again and again under load, and asked what it still knows; its disks fail.
//!
//! The host runs in a child process, which is this same program (see `life`); the load comes through the mount.

mod disks;
mod files;
mod game;
mod gateway;
mod lasting;
mod life;
mod load;
mod long_turn;
mod mail;
mod mixed;
mod native_calls;
mod reader;
mod rewind;
mod sleep;
mod soak;
mod steps;
mod trace;
mod turns;
mod views;
mod writes;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use acheron::state::{self, events, jobs};
use lasting::Lasting;
use life::Life;
use load::Acknowledged;

/// How often the host is killed at least, with `CRASH_ALL=1` the whole of it; `scripts/soak` goes on for as long as it was
/// asked to.
fn lives() -> u32 {
    if std::env::var_os("CRASH_ALL").is_some() { 200 } else { 50 }
}

/// How long a soak lasts, if this is one.
fn soaking() -> Option<Duration> {
    std::env::var("SOAK_SECONDS").ok().and_then(|text| text.parse().ok()).map(Duration::from_secs)
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_happens_twice() {
    let place = tempfile::tempdir().unwrap();
    let mut known = Acknowledged::default();
    let mut numbers = BTreeMap::new();
    let mut lasting = Lasting::prepare(place.path());
    let (began, whole) = (Instant::now(), soaking().unwrap_or_default());
    for n in (0..).take_while(|n| *n < lives() || began.elapsed() < whole) {
        let life = Life::begin(place.path(), &[]);
        known.check_through(&life.agent());
        for (path, number) in load::numbers(&life.agent()) {
            assert_eq!(*numbers.entry(path.clone()).or_insert(number), number, "the inode number of {path} stays");
        }
        lasting.check_and_change(life.root(), n);
        known = load::until_killed(life, known, n);
        check_database(&place.path().join("state"), &known);
    }
    println!("{} writes, {} jobs, {} signals acknowledged", known.writes(), known.jobs(), known.signals());
    assert!(known.writes() > 0 && known.jobs() > 0 && known.signals() > 0, "the load did nothing: {known:?}");
}

/// What the database says after a kill, before any host has touched it again.
fn check_database(state: &Path, known: &Acknowledged) {
    assert_eq!(state::faults(state).unwrap(), Some(vec![]));
    let store = crate::open_state(state);
    let signals: Vec<u64> = store
        .look(|conn| events::since(conn, life::AGENT, 0, steps::ALL))
        .unwrap()
        .0
        .into_iter()
        .filter(|event| event.kind == "signal")
        .map(|event| event.payload["payload"]["n"].as_u64().unwrap())
        .collect();
    known.check_signals(&signals);
    for job in known.job_names() {
        let found = store.look(|conn| jobs::correlated(conn, life::AGENT, &job)).unwrap();
        assert!(found.is_some(), "the accepted job {job} is not in the journal");
    }
    store.close();
}

/// The database of a state directory that no host uses.
fn open_state(dir: &std::path::Path) -> acheron_store::Store {
    acheron::state::open(dir, &acheron_base::Clock::real(), &acheron_base::Random::real()).unwrap().0
}
