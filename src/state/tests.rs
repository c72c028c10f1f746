//! Databases of earlier schemas: `tests/fixtures/state` has one of each, with something in every table that a user would miss.
//! `UPDATE_EXPECT=1` writes those that are missing, from the migrations as they were released; `tests/house/upgrades.rs` mounts
//! them all.

use std::path::PathBuf;
use std::process::Command;

use super::*;

/// What is put into a database when its schema has come so far.
const ROWS: &[(usize, &str)] = &[
    (
        1,
        r#"INSERT INTO jobs VALUES ('job-0197a000-0000-7000-8000-000000000001', 'charon', 'memory', 'create', 'write', 0, 'done',
               'mine', 'operator', '{"name":"river"}', '{"version":1}', NULL, 1800000000000, 1800000000000, 1800000000001, 1);
           INSERT INTO events (agent, seq, kind, path, at_ms, payload)
               VALUES ('charon', 1, 'signal', '/agents/charon/events/sources/user/bell.json', 1800000000000, '{"payload":"rang"}');
           INSERT INTO event_logs (agent, last_seq, cursor) VALUES ('charon', 1, 0);
           INSERT INTO audit (at_ms, principal, pid, action, path, allowed, reason)
               VALUES (1800000000000, 'agent charon', 7, 'read', '/agents/styx', 0, 'no rule');"#,
    ),
    (
        2,
        r#"INSERT INTO memory_agents (number, agent) VALUES (1, 'charon');
           INSERT INTO memories (id, agent, name, version, tokens, write_protected, unevictable)
               VALUES (1099511627777, 1, 'river', 1, 3, 0, 0);
           INSERT INTO memory_versions VALUES (1099511627777, 1099511627777, 1, 0, 'note', '[]', '[]', 'text', 'wide and slow', 3, 1800000000000);
           INSERT INTO memory_now (rowid, name, content) VALUES (1099511627777, 'river', 'wide and slow');
           INSERT INTO memory_ever (rowid, name, content) VALUES (1099511627777, 'river', 'wide and slow');"#,
    ),
    (5, "INSERT INTO turns (number, agent, job) VALUES (1, 'charon', 'job-0197a000-0000-7000-8000-000000000002');"),
    (7, "INSERT INTO spending (payer, rounds, input, output, ms, money) VALUES ('charon', 2, 30, 4, 5, 0.5);"),
    (
        10,
        r#"INSERT INTO model_requests (id, agent, at_ms, ended, line) VALUES ('req-1', 'charon', 1800000000000, 1, '{"id":"req-1","status":200}');"#,
    ),
    (11, "INSERT INTO door_tokens VALUES ('tok-1', 'operator', 'laptop', x'00', 1800000000000);"),
    (
        12,
        r#"INSERT INTO mail (id, recipient, sender, subject, thread, at_ms, body)
               VALUES ('mail-0197a000-0000-7000-8000-000000000003', 'agent charon', 'operator', 'fare', 't', 1800000000000, '"one obol"');
           INSERT INTO mail_boxes VALUES ('agent charon', '', 1, 10), ('agent charon', 'operator', 1, 10);"#,
    ),
];

fn fixture(schema: usize) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/state/schema-{schema:02}.db.gz"))
}

fn write(schema: usize) {
    let dir = tempfile::tempdir().unwrap();
    for last in 1..=schema {
        // Rows come with their schema, so that later migrations find them.
        let store = Store::open(dir.path(), &MIGRATIONS[..last]).unwrap();
        let rows: String = ROWS.iter().filter(|(first, _)| *first == last).map(|(_, rows)| *rows).collect();
        store
            .write_blocking(move |tx| {
                tx.execute_batch(&rows)?;
                Ok(())
            })
            .unwrap();
        store.close();
    }
    let copy = dir.path().join("copy.db");
    acheron_store::backup(dir.path(), &copy).unwrap();
    let packed = Command::new("gzip").args(["-9nc"]).arg(&copy).output().unwrap();
    assert!(packed.status.success());
    std::fs::write(fixture(schema), packed.stdout).unwrap();
}

#[test]
fn every_schema_has_a_database_that_opens_and_is_copied_before() {
    let is_asked = std::env::var_os("UPDATE_EXPECT").is_some();
    for schema in 1..SCHEMA {
        let file = fixture(schema);
        if !file.exists() {
            match is_asked {
                true => write(schema),
                false if schema <= 13 => panic!("{} is missing: run this test with UPDATE_EXPECT=1", file.display()),
                false => continue,
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let unpacked = Command::new("gzip").arg("-dc").arg(&file).output().unwrap();
        std::fs::write(dir.path().join("acheron.db"), unpacked.stdout).unwrap();
        let (store, _) = open(dir.path(), &Clock::real(), &Random::real()).unwrap();
        let job = store.look(|conn| jobs::get(conn, "job-0197a000-0000-7000-8000-000000000001")).unwrap();
        assert_eq!(job.map(|job| job.operation), Some("create".to_owned()), "schema {schema}");
        store.close();
        assert_eq!(faults(dir.path()).unwrap(), Some(vec![]), "schema {schema}");
        // What it was before lies beside it, whole.
        let before = dir.path().join(format!("acheron.db.schema-{schema}"));
        let rows = acheron_store::look_file(&before, |conn| {
            Ok(conn.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, usize>(0))?)
        });
        assert_eq!(rows.unwrap(), 1, "schema {schema}");
    }
}

#[test]
fn events_of_an_earlier_version_are_taken_over_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let before = Store::open(dir.path(), &MIGRATIONS[..5]).unwrap();
    let fill = before.write_blocking(|tx| {
        for (seq, agent) in ["ada", "bob", "ada", "bob", "ada"].into_iter().enumerate() {
            let at_ms = seq as u64;
            events::append(tx, agent, "signal".into(), "/x".into(), at_ms, serde_json::json!(at_ms))?;
        }
        Ok(())
    });
    fill.unwrap();
    before.close();
    let (store, _) = open(dir.path(), &Clock::real(), &Random::real()).unwrap();
    let limits = events::PageLimits { events: 10, bytes: 1 << 20 };
    let times = |agent: &str| {
        let (found, _) = store.look(|conn| events::since(conn, agent, 0, limits)).unwrap();
        found.iter().map(|event| (event.seq, event.at_ms)).collect::<Vec<_>>()
    };
    assert_eq!((times("ada"), times("bob")), (vec![(1, 0), (2, 2), (3, 4)], vec![(1, 1), (2, 3)]));
}

#[test]
fn every_migration_can_be_applied_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    for last in 1..=MIGRATIONS.len() {
        Store::open(dir.path(), &MIGRATIONS[..last]).unwrap().close();
    }
    assert_eq!(faults(dir.path()).unwrap(), Some(vec![]));
}
