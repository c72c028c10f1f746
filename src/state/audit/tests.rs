use std::path::Path;

use acheron_store::Connection;

use super::*;
use crate::state::TestStore;

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

fn fill(store: &TestStore, count: u64) {
    for at in 1..=count {
        store.write_blocking(move |tx| insert(tx, &of("agent styx", at))).unwrap();
    }
}

fn dir(store: &TestStore) -> &Path {
    store.path().parent().unwrap()
}

fn verdict(store: &TestStore) -> Verdict {
    check::verify(dir(store), Vec::new()).unwrap().verdict
}

/// Changes the database behind the back of the host.
fn tamper(store: &TestStore, sql: &str) {
    let conn = Connection::open(store.path()).unwrap();
    conn.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    conn.execute_batch(sql).unwrap();
}

#[test]
fn a_line_is_kept_with_the_change_that_it_tells_of_or_not_at_all() {
    let store = TestStore::new();
    fill(&store, 2);
    let failed = store.write_blocking(|tx| {
        insert(tx, &of("agent styx", 3))?;
        Err::<(), _>(acheron_base::Error::conflict("no"))
    });
    assert!(failed.is_err());
    let mut kinds = Vec::new();
    let listed = store.look(|conn| {
        read::each(conn, 0, |line| {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            kinds.push((line["seq"].as_u64().unwrap(), line["kind"].as_str().unwrap().to_owned()));
            true
        })
    });
    listed.unwrap();
    assert_eq!(kinds, [(1, "key".to_owned()), (2, "denied".to_owned()), (3, "denied".to_owned())]);
    assert!(matches!(verdict(&store), Verdict::Intact { lines: 3, .. }));
    let store = store.again();
    fill(&store, 1);
    assert!(matches!(verdict(&store), Verdict::Intact { lines: 4, .. }));
}

#[test]
fn what_was_changed_or_cut_off_in_the_database_is_found() {
    let changed = |sql: &str| {
        let store = TestStore::new();
        fill(&store, 1200);
        tamper(&store, sql);
        verdict(&store).to_string()
    };
    let replaced = "UPDATE audit_blocks SET lines = replace(lines, 'write', 'read') WHERE first = 500";
    assert_eq!(changed(replaced), "broken at 501: it does not follow from the line before: one of the two was changed");
    assert!(
        changed("DELETE FROM audit_blocks WHERE first = 600")
            .starts_with("broken at 600: line 601 stands in its place")
    );
    assert_eq!(
        changed("DELETE FROM audit_blocks WHERE first > 1000"),
        "truncated after 1001: lines up to 1202 were written"
    );
    let forged = "DELETE FROM audit_blocks WHERE first > 1000; UPDATE audit_head SET seq = 1000";
    assert_eq!(changed(forged), "broken at 1000: the head of the log was forged");
}

#[test]
fn a_log_that_was_cut_while_no_host_ran_does_not_go_on_as_if_nothing_had_happened() {
    let store = TestStore::new();
    fill(&store, 20);
    tamper(&store, "DELETE FROM audit_blocks WHERE first > 10");
    let store = store.again();
    fill(&store, 1);
    let found = verdict(&store).to_string();
    assert!(found.starts_with("broken at 11"), "{found}");
    let mut faults = 0;
    store
        .look(|conn| {
            read::each(conn, 0, |line| {
                faults += usize::from(line.contains(r#""kind":"fault""#));
                true
            })
        })
        .unwrap();
    assert_eq!(faults, 1);
}

#[test]
fn the_log_is_read_from_any_place_and_grows_by_whole_lines() {
    let store = TestStore::new();
    fill(&store, 50);
    let read = |offset, size| store.look(|conn| read::bytes(conn, offset, size)).unwrap();
    let all = read(0, usize::MAX);
    assert_eq!(all.len() as u64, store.look(read::end).unwrap());
    let mut pieces = Vec::new();
    while pieces.len() < all.len() {
        let piece = read(pieces.len() as u64, 777);
        assert!(!piece.is_empty());
        pieces.extend(piece);
    }
    assert_eq!(pieces, all);
    assert!(read(all.len() as u64, 10).is_empty());
}

#[test]
fn the_retention_cuts_at_a_checkpoint_and_the_rest_is_intact() {
    let store = TestStore::new();
    fill(&store, 2500);
    let limits = |lines| AuditLimits { lines, before_ms: 0 };
    let size = AuditSize::default();
    let gone = |keep| prune(dir(&store), &store, &size, keep, 99).unwrap();
    assert_eq!(gone(limits(2400)), 0, "there is no checkpoint so early");
    let removed = gone(limits(1000));
    assert!((1000..=1600).contains(&removed), "{removed}");
    let found = verdict(&store);
    assert!(matches!(&found, Verdict::Intact { cut: Some(_), .. }), "{found}");
    assert!(found.to_string().contains("cut by retention after"));
    assert!(size.range().0 > 0);
    assert_eq!(gone(limits(1000)), 0);
    tamper(&store, "UPDATE audit_seam SET seq = seq + 1");
    assert!(matches!(verdict(&store), Verdict::Broken { .. }));
}

#[test]
fn entries_of_a_version_without_a_chain_become_lines() {
    let store = TestStore::new();
    tamper(&store, "INSERT INTO audit VALUES (NULL, 5, 'agent styx', 7, 'read', '/x', 0, 'no rule allows it')");
    let store = store.again();
    let mut found = String::new();
    store
        .look(|conn| {
            read::each(conn, 0, |line| {
                found = line.to_owned();
                true
            })
        })
        .unwrap();
    assert!(found.contains(r#""at_ms":5,"kind":"denied","principal":"agent styx""#), "{found}");
    assert!(matches!(verdict(&store), Verdict::Intact { lines: 2, .. }));
}

#[test]
fn heads_are_read_as_they_are_written_down() {
    let hash = "ab".repeat(32);
    let found = check::anchors(&format!("7 {hash}\n\n9 {hash} 2026-11-18\n")).unwrap();
    assert_eq!(found.iter().map(|head| head.seq).collect::<Vec<_>>(), [7, 9]);
    for wrong in ["7", "x y", &format!("-1 {hash}"), "7 abc"] {
        assert!(check::anchors(wrong).is_err(), "{wrong}");
    }
}
