use super::*;
use crate::state::TestStore;

#[test]
fn entries_come_newest_first_and_go_by_age_and_count() {
    let store = TestStore::new();
    let entry = |at_ms| of("charon", at_ms);
    store.write_blocking(move |tx| (1..=6).try_for_each(|at| insert(tx, &entry(at)))).unwrap();
    assert_eq!(store.look(|conn| newest(conn, 1)).unwrap(), [entry(6)]);
    let gone = |keep, before, batch| {
        let surplus = store.look(|conn| surplus(conn, keep)).unwrap();
        store.write_blocking(move |tx| prune(tx, &surplus, before, batch)).unwrap()
    };
    assert_eq!((gone(100, 3, 10), gone(2, 0, 1), gone(2, 0, 10), gone(2, 0, 10)), (2, 1, 1, 0));
    assert_eq!(store.look(|conn| newest(conn, 10)).unwrap(), [entry(6), entry(5)]);
}

#[test]
fn the_entries_of_one_principal_do_not_push_out_those_of_another() {
    let store = TestStore::new();
    store
        .write_blocking(|tx| {
            insert(tx, &of("styx", 1))?;
            (2..=500).try_for_each(|at| insert(tx, &of("charon", at)))
        })
        .unwrap();
    let surplus = store.look(|conn| surplus(conn, 10)).unwrap();
    while store
        .write_blocking({
            let surplus = surplus.clone();
            move |tx| prune(tx, &surplus, 0, 100)
        })
        .unwrap()
        > 0
    {}
    let kept = store.look(|conn| newest(conn, 1000)).unwrap();
    assert_eq!((kept.len(), kept.last()), (11, Some(&of("styx", 1))));
}

fn of(principal: &str, at_ms: u64) -> AuditEntry {
    AuditEntry {
        at_ms,
        principal: principal.into(),
        pid: 7,
        action: "write".into(),
        path: "/agents/styx/chat".into(),
        allowed: false,
        reason: "no rule allows it".into(),
    }
}
