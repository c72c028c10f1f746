use serde_json::json;

use super::*;
use crate::state::TestStore;

const FEW: PageLimits = PageLimits { events: 100, bytes: 1 << 20 };

fn happened(store: &TestStore, agent: &'static str, at_ms: u64) -> u64 {
    let (kind, path, payload) = ("signal".into(), "/x".into(), json!({"at": at_ms}));
    store
        .write_blocking(move |tx| {
            let event = append(tx, agent, kind, path, at_ms, payload)?;
            Ok(event.seq)
        })
        .unwrap()
}

fn seqs(store: &TestStore, agent: &str, after: u64) -> Vec<u64> {
    store.look(|conn| since(conn, agent, after, FEW)).unwrap().0.iter().map(|event| event.seq).collect()
}

#[test]
fn each_agent_counts_for_itself() {
    let store = TestStore::new();
    assert_eq!([happened(&store, "a", 1), happened(&store, "a", 1), happened(&store, "b", 1)], [1, 2, 1]);
    assert_eq!((seqs(&store, "a", 0), seqs(&store, "a", 1), seqs(&store, "b", 0)), (vec![1, 2], vec![2], vec![1]));
    assert_eq!(seqs(&store, "a", u64::MAX), Vec::<u64>::new());
    let seen = store.look(|conn| tail(conn, "a", PageLimits { events: 1, bytes: 1 << 20 })).unwrap();
    let expected = Event { seq: 2, kind: "signal".into(), path: "/x".into(), at_ms: 1, payload: json!({"at": 1}) };
    assert_eq!(seen, [expected]);
}

#[test]
fn numbers_are_not_given_again_after_retention_took_all() {
    let store = TestStore::new();
    happened(&store, "a", 1);
    happened(&store, "a", 2);
    assert_eq!(store.write_blocking(|tx| prune(tx, 0, 0, 10)).unwrap(), 2);
    assert_eq!(store.look(|conn| last(conn, "a")).unwrap(), 2);
    assert_eq!(happened(&store, "a", 3), 3);
}

#[test]
fn retention_goes_by_age_and_by_count_in_batches() {
    let store = TestStore::new();
    for at in 1..=10 {
        happened(&store, "a", at);
        happened(&store, "b", at);
    }
    let gone = |keep, before, batch| store.write_blocking(move |tx| prune(tx, keep, before, batch)).unwrap();
    assert_eq!(gone(100, 3, 3), 3);
    assert_eq!(gone(100, 3, 3), 1);
    assert_eq!(gone(100, 3, 3), 0);
    assert_eq!(gone(5, 0, 4), 4);
    assert_eq!(gone(5, 0, 4), 2);
    assert_eq!((seqs(&store, "a", 0), seqs(&store, "b", 0)), (vec![6, 7, 8, 9, 10], vec![6, 7, 8, 9, 10]));
}

#[test]
fn a_cursor_stays_when_the_wait_changes_and_never_goes_back() {
    let store = TestStore::new();
    assert_eq!(store.look(|conn| cursor(conn, "a")).unwrap(), Cursor::default());
    let seen = store.write_blocking(|tx| {
        arm(tx, "a", &json!({"paths": ["/x"]}), Some(4), 50)?;
        advance(tx, "a", 7)?;
        advance(tx, "a", 5)?;
        arm(tx, "a", &json!({"paths": []}), None, 60)?;
        cursor(tx, "a")
    });
    assert_eq!(seen.unwrap(), Cursor { cursor: 7, wait: Some(json!({"paths": []})), armed_at_ms: Some(60) });
}

#[test]
fn a_page_ends_at_its_bytes_and_has_at_least_one_event() {
    let store = TestStore::new();
    let long = "x".repeat(1000);
    let fill = move |tx: &Tx<'_>| {
        (0..5).try_for_each(|_| {
            append(tx, "a", "signal".into(), "/".into(), 1, json!({"from": "b", "is": long})).map(drop)
        })
    };
    store.write_blocking(fill).unwrap();
    let limits = |bytes| PageLimits { events: 100, bytes };
    let read = |bytes| store.look(|conn| since(conn, "a", 0, limits(bytes))).unwrap();
    assert_eq!((read(1).0.len(), read(1).1), (1, true));
    assert_eq!((read(1500).0.len(), read(1500).1), (2, true));
    assert_eq!((read(1 << 20).0.len(), read(1 << 20).1), (5, false));
    let newest = store.look(|conn| tail(conn, "a", limits(1500))).unwrap();
    assert_eq!(newest.iter().map(|event| event.seq).collect::<Vec<_>>(), [4, 5]);
    let senders = store.look(|conn| signal_bytes(conn, "a")).unwrap();
    assert!(senders.len() == 1 && senders["b"] > 5000, "{senders:?}");
}
