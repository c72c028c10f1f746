//! Histories on a real disk: what is kept, what is noticed, what is refused.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tempfile::TempDir;

use super::super::seal::SealKeys;
use super::{Histories, HistoryRecord, check_session};
use acheron_base::{Code, Result};
use acheron_store::Store;

struct Fixture {
    dir: TempDir,
    store: Store,
}

impl Fixture {
    fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::state::open_in(&dir.path().join("state")).unwrap();
        Fixture { dir, store }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("sessions")
    }

    fn open(&self, given: Option<&str>) -> Result<Histories> {
        let count = AtomicU8::new(1);
        let random = move |bytes: &mut [u8]| bytes.fill(count.fetch_add(1, Ordering::SeqCst));
        Histories::open(&self.path(), "charon", self.store.clone(), given, Arc::new(random), None)
    }

    fn file(&self, session: &str) -> PathBuf {
        self.path().join(format!("{session}.sealed"))
    }
}

fn record(role: &str, content: &str) -> HistoryRecord {
    HistoryRecord { role: role.to_owned(), content: content.to_owned(), at_ms: 5 }
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

fn put(file: &Path, lines: &[String]) {
    std::fs::write(file, lines.join("\n") + "\n").unwrap();
}

#[test]
fn what_is_appended_comes_back_in_order_after_a_restart() {
    let fixture = Fixture::new();
    let histories = fixture.open(None).unwrap();
    assert_eq!(histories.read("s").unwrap(), []);
    histories.append("s", &[record("query", "one"), record("assistant", "two")]).unwrap();
    histories.append("s", &[record("query", "three")]).unwrap();
    drop(histories);
    let read = fixture.open(None).unwrap().read("s").unwrap();
    assert_eq!(read.iter().map(|record| record.content.as_str()).collect::<Vec<_>>(), ["one", "two", "three"]);
    assert_eq!(fixture.open(None).unwrap().sessions(), ["s"]);
}

#[test]
fn nothing_can_be_read_on_the_disk() {
    let fixture = Fixture::new();
    fixture.open(None).unwrap().append("s", &[record("query", "plain words")]).unwrap();
    let text = std::fs::read_to_string(fixture.file("s")).unwrap();
    assert!(!text.contains("plain") && !text.starts_with('{') && text.lines().count() == 1);
}

#[test]
fn lines_that_are_changed_moved_dropped_copied_or_cut_off_are_noticed() {
    let fixture = Fixture::new();
    let histories = fixture.open(None).unwrap();
    for session in ["s", "t"] {
        histories.append(session, &[record("a", "1"), record("b", "2"), record("c", "3")]).unwrap();
    }
    let file = fixture.file("s");
    let good = lines(&file);
    let other = lines(&fixture.file("t"));
    let flipped = good[2][..good[2].len() - 3].to_owned() + "AAA";
    for (name, bad) in [
        ("changed", vec![good[0].clone(), good[1].clone(), flipped]),
        ("moved", vec![good[1].clone(), good[0].clone(), good[2].clone()]),
        ("dropped", vec![good[0].clone(), good[2].clone()]),
        ("copied", vec![good[0].clone(), good[0].clone(), good[1].clone()]),
        ("from another session", vec![other[0].clone(), good[1].clone(), good[2].clone()]),
        ("cut off", good[..2].to_vec()),
        ("in clear", vec!["{\"role\":\"a\",\"content\":\"1\"}".to_owned(), good[1].clone(), good[2].clone()]),
    ] {
        put(&file, &bad);
        let fault = histories.read("s").expect_err(name);
        assert_eq!(fault.code, Code::ExecutionFailed, "{name}: {fault}");
        assert!(histories.append("s", &[record("d", "4")]).is_err(), "{name}");
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(histories.read("s").unwrap_err().message, "3 lines were cut off the history of session s");
    put(&file, &good);
    assert_eq!(histories.read("s").unwrap().len(), 3);
}

#[test]
fn what_a_crash_left_uncounted_is_taken_up_and_half_a_line_is_not() {
    let fixture = Fixture::new();
    let histories = fixture.open(None).unwrap();
    histories.append("s", &[record("a", "1")]).unwrap();
    let one = lines(&fixture.file("s"));
    histories.append("s", &[record("b", "2")]).unwrap();
    let two = lines(&fixture.file("s"));
    // The database of the moment before the second append, with the file of the moment after it.
    let earlier = fixture.store.look(|conn| {
        let row = |row: &acheron_store::Row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        Ok(conn.query_row("SELECT lines, last FROM sealed_histories", [], row)?)
    });
    assert_eq!(earlier.unwrap().0, 2);
    fixture
        .store
        .write_blocking(|tx| {
            Ok(tx.execute("UPDATE sealed_histories SET lines = 0, last = 'AAAAAAAAAAAAAAAAAAAAAA'", [])?)
        })
        .unwrap();
    assert_eq!(histories.read("s").unwrap().len(), 2);
    let half = &two[1][..20];
    std::fs::write(fixture.file("s"), format!("{}\n{half}", one[0])).unwrap();
    assert_eq!(histories.read("s").unwrap().len(), 1);
    histories.append("s", &[record("c", "3")]).unwrap();
    let read = histories.read("s").unwrap();
    assert_eq!(read.iter().map(|record| record.content.as_str()).collect::<Vec<_>>(), ["1", "3"]);
}

#[test]
fn the_key_is_made_once_for_its_owner_alone() {
    let fixture = Fixture::new();
    fixture.open(None).unwrap();
    let key = fixture.path().join("history.key");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&key).unwrap();
    assert!(SealKeys::read(&text).is_ok());
    fixture.open(None).unwrap();
    assert_eq!(std::fs::read_to_string(&key).unwrap(), text);
}

/// A lost key closes the sessions that it sealed. Others go on, and it can be put back beside the new one.
#[test]
fn a_lost_key_stops_the_sessions_that_it_sealed_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.open(None).unwrap().append("old", &[record("a", "1")]).unwrap();
    let key = fixture.path().join("history.key");
    let lost = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let random = move |bytes: &mut [u8]| bytes.fill(77);
    let open = || Histories::open(&fixture.path(), "charon", fixture.store.clone(), None, Arc::new(random), None);
    let histories = open().unwrap();
    let refused = histories.read("old").unwrap_err();
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.message.contains("add its line to history.key"), "{refused}");
    assert!(histories.append("old", &[record("a", "2")]).is_err(), "nothing is written after what cannot be read");
    histories.append("new", &[record("a", "3")]).unwrap();
    assert_eq!(histories.read("new").unwrap().len(), 1);
    let both = lost + &std::fs::read_to_string(&key).unwrap();
    std::fs::write(&key, both).unwrap();
    let histories = open().unwrap();
    assert_eq!((histories.read("old").unwrap().len(), histories.read("new").unwrap().len()), (1, 1));
}

#[test]
fn a_wrong_key_is_an_error_and_never_a_new_key() {
    let fixture = Fixture::new();
    fixture.open(None).unwrap().append("s", &[record("a", "1")]).unwrap();
    let key = fixture.path().join("history.key");
    let good = std::fs::read(&key).unwrap();
    std::fs::write(&key, "MTIzNDU2Nzg5MA==\n").unwrap();
    let short = fixture.open(None).map(drop).unwrap_err();
    assert!(short.message.ends_with("history.key: line 1 of the history key is not 32 bytes in base64"), "{short}");
    let stranger = SealKeys::line(&|bytes| bytes.fill(99));
    let other = fixture.open(Some(&stranger)).unwrap().read("s").unwrap_err();
    assert_eq!(other.code, Code::Unavailable);
    assert!(other.message.contains("which is not among ours"), "{other}");
    std::fs::write(&key, good).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(fixture.open(None).map(drop).unwrap_err().code, Code::Forbidden);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fixture.open(None).unwrap().read("s").unwrap().len(), 1);
}

#[test]
fn after_a_rotation_old_and_new_lines_are_read() {
    let fixture = Fixture::new();
    let histories = fixture.open(None).unwrap();
    histories.append("s", &[record("a", "1")]).unwrap();
    let id = histories.rotate().unwrap();
    histories.append("s", &[record("b", "2")]).unwrap();
    assert!(lines(&fixture.file("s"))[1].contains(&id));
    assert_eq!(fixture.open(None).unwrap().read("s").unwrap().len(), 2);
    let mode = std::fs::metadata(fixture.path().join("history.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let given = SealKeys::line(&|bytes| bytes.fill(4));
    let fresh = Fixture::new();
    assert!(fresh.open(Some(&given)).unwrap().rotate().unwrap_err().message.contains("environment"));
}

#[test]
fn a_session_is_a_plain_name() {
    for bad in ["../evil", "", "a/b", ".hidden", "a b", "ä", "a\0", &"x".repeat(101)] {
        assert_eq!(check_session(bad).unwrap_err().code, Code::InvalidPayload, "{bad:?}");
    }
    for good in ["s", "session-1_a.b", "A"] {
        check_session(good).unwrap();
    }
    let fixture = Fixture::new();
    assert!(fixture.open(None).unwrap().append("../evil", &[record("a", "1")]).is_err());
    assert!(!fixture.dir.path().join("evil.sealed").exists());
}
