use super::*;
use crate::state::TestStore;

fn add(store: &Store, job: &'static str, before: usize, count: usize) -> Result<()> {
    let records: Vec<String> = (before..before + count).map(|n| format!("record {n}")).collect();
    store.write_blocking(move |tx| append(tx, "ada", job, before, &records))
}

#[test]
fn a_record_after_a_missing_one_is_refused() {
    let store = TestStore::new();
    add(&store, "j1", 0, 2).unwrap();
    assert!(add(&store, "j1", 3, 1).unwrap_err().message.contains("is missing"));
    assert!(add(&store, "j2", 1, 1).unwrap_err().message.contains("no turn j2"));
    add(&store, "j1", 2, 1).unwrap();
    let records = store.look(|conn| records(conn, "ada", "j1")).unwrap();
    assert_eq!(records, ["record 0", "record 1", "record 2"]);
    assert_eq!(store.look(|conn| last(conn, "ada", "j1")).unwrap().as_deref(), Some("record 2"));
}

#[test]
fn a_long_turn_is_deleted_in_parts_and_no_other_with_it() {
    let store = TestStore::new();
    add(&store, "j1", 0, 3 * BATCH).unwrap();
    add(&store, "j2", 0, 1).unwrap();
    let before = store.commits();
    delete(&store, "ada", "j1").unwrap();
    assert_eq!(store.commits() - before, 4);
    delete(&store, "ada", "j1").unwrap();
    assert_eq!(store.look(|conn| jobs(conn, "ada")).unwrap(), ["j2"]);
    let left: i64 =
        store.look(|conn| Ok(conn.query_row("SELECT count(*) FROM turn_records", [], |row| row.get(0))?)).unwrap();
    assert_eq!(left, 1);
}
