//! The store as a whole: many writers, and every way in which a disk can disappoint.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use acheron_base::Code;

/// The schema of these tests.
const AUDIT: &[&str] =
    &["CREATE TABLE audit (id INTEGER PRIMARY KEY, at_ms, principal, pid, action, path TEXT, allowed, reason)"];

/// A store in a directory of its own, gone afterwards.
struct Trial {
    store: Store,
    dir: TempDir,
}

impl Trial {
    fn new() -> Trial {
        let dir = tempfile::tempdir().unwrap();
        Trial { store: Store::open(dir.path(), AUDIT).unwrap(), dir }
    }

    /// As after a restart of the host.
    fn again(self) -> Trial {
        self.store.close();
        Trial { store: Store::open(self.dir.path(), AUDIT).unwrap(), dir: self.dir }
    }
}

impl Deref for Trial {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// A small file system of memory, unmounted afterwards. Needs root, which the house's tests have.
struct Disk(TempDir);

impl Disk {
    fn new(options: &str) -> Disk {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk(dir);
        disk.mount(options);
        disk
    }

    fn mount(&self, options: &str) {
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(self.0.path()).status();
        assert!(done.unwrap().success(), "these tests mount a tmpfs, and so need root");
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn put(store: &Store, text: &str) -> Result<()> {
    let text = text.to_owned();
    store.write_blocking(move |tx| {
        tx.execute("INSERT INTO audit VALUES (NULL, 1, 'x', 1, 'x', ?1, 0, '')", [text])?;
        Ok(())
    })
}

fn count(store: &Store) -> u64 {
    store.look(|conn| Ok(conn.query_row("SELECT count(*) FROM audit", [], |row| row.get(0))?)).unwrap()
}

/// Queues `work` from 64 threads while the writer is kept busy, so that all are in one group.
fn together(store: &Store, work: impl Fn(usize, &Tx<'_>) -> Result<()> + Copy + Send + 'static) -> Vec<Result<()>> {
    let (release, held) = mpsc::channel::<()>();
    let first = store.write(move |_| held.recv().map_err(|_| Error::internal("nobody")));
    let threads: Vec<_> = (0..64)
        .map(|n| {
            std::thread::spawn({
                let store = store.clone();
                move || store.write(move |tx| work(n, tx))
            })
        })
        .collect();
    let queued: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    release.send(()).unwrap();
    _ = first.wait(); // it may be in one group with those that came early
    queued.into_iter().map(Written::wait).collect()
}

#[test]
fn many_writers_share_one_commit() {
    let store = Trial::new();
    let answers = together(&store, |_, tx| {
        tx.execute("INSERT INTO audit VALUES (NULL, 1, 'x', 1, 'x', 'x', 0, '')", [])?;
        Ok(())
    });
    assert!(answers.iter().all(Result::is_ok));
    // The first may be under way before the others come.
    assert_eq!(count(&store), 64);
    assert!(store.commits() <= 2, "{} commits", store.commits());
}

#[test]
fn one_that_fails_or_panics_takes_nothing_along() {
    let store = Trial::new();
    let answers = together(&store, |n, tx| {
        tx.execute("INSERT INTO audit VALUES (NULL, 1, 'x', 1, 'x', 'x', 0, '')", [])?;
        match n {
            5 => Err(Error::conflict("stale")),
            6 => panic!("the sixth"),
            7 => Ok(tx.execute_batch("INSERT INTO nowhere VALUES (1)")?),
            _ => Ok(()),
        }
    });
    let failed: Vec<_> = answers.into_iter().filter_map(Result::err).map(|error| (error.code, error.message)).collect();
    assert_eq!(failed[0], (Code::Conflict, "stale".into()));
    assert_eq!(failed[1], (Code::Internal, "a change of the database panicked: the sixth".into()));
    assert_eq!((failed[2].0, failed.len()), (Code::Internal, 3));
    assert_eq!(count(&store), 61);
    assert!(store.commits() <= 2, "{} commits", store.commits());
}

#[test]
fn steps_that_were_put_off_are_taken_once_all_changes_are_made() {
    let store = Trial::new();
    let note = |tx: &Tx<'_>, text: &str| {
        tx.execute("INSERT INTO audit (path) VALUES (?1)", [text])?;
        let text = format!("{text}, put off");
        tx.put_off(move |conn| {
            conn.execute("INSERT INTO audit (path) VALUES (?1)", [text])?;
            Ok(())
        });
        Ok(())
    };
    let answers = together(&store, move |n, tx| {
        note(tx, "whole")?;
        match n {
            5 => Err(Error::conflict("stale")),
            6 => tx.attempt(|| note(tx, "part").and(Err::<(), _>(Error::conflict("stale")))).or(Ok(())),
            _ => Ok(()),
        }
    });
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1);
    let written: Vec<(String, u64)> = store
        .look(|conn| {
            let mut select = conn.prepare("SELECT path, count(*) FROM audit GROUP BY 1 ORDER BY min(id)")?;
            Ok(select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Sql<_>>()?)
        })
        .unwrap();
    assert_eq!(written, [("whole".to_owned(), 63), ("whole, put off".to_owned(), 63)]);
}

#[test]
fn a_step_that_was_put_off_and_fails_fails_the_commit() {
    let store = Trial::new();
    let answers = together(&store, |n, tx| {
        tx.execute("INSERT INTO audit (path) VALUES ('x')", [])?;
        if n == 5 {
            tx.put_off(|_| panic!("the fifth"));
        }
        Ok(())
    });
    assert!(answers.iter().filter_map(|answer| answer.as_ref().err()).all(|error| error.message.contains("the fifth")));
    assert_eq!(count(&store), answers.iter().filter(|answer| answer.is_ok()).count() as u64);
    assert!(count(&store) < 64);
    put(&store, "goes on").unwrap();
}

#[test]
fn what_follows_a_commit_happens_though_nobody_waits() {
    let store = Trial::new();
    let (heard, hear) = mpsc::channel();
    let tell = heard.clone();
    drop(store.write_then(|_| Ok(7), move |n| tell.send(*n).unwrap()));
    drop(store.write_then(|_| Err::<i32, _>(Error::conflict("no")), move |n| heard.send(*n).unwrap()));
    drop(store.write_then(|_| Ok(()), |()| panic!("after")));
    put(&store, "later").unwrap();
    assert_eq!(hear.iter().collect::<Vec<_>>(), [7]);
}

#[tokio::test]
async fn a_runtime_writes_and_reads_without_blocking() {
    let store = Trial::new();
    let n = store.write(|tx| Ok(tx.execute("INSERT INTO audit VALUES (NULL, 1, 'x', 1, 'x', 'x', 0, '')", [])?));
    assert_eq!(n.await, Ok(1));
    let seen = store.read(|conn| Ok(conn.query_row("SELECT count(*) FROM audit", [], |row| row.get::<_, u64>(0))?));
    assert_eq!(seen.await, Ok(1));
    let panicked = store.read(|_| -> Result<()> { panic!("oh") }).await.unwrap_err();
    assert_eq!(panicked.code, Code::Internal);
}

#[test]
fn what_was_written_is_there_after_a_restart() {
    let store = Trial::new();
    put(&store, "kept").unwrap();
    let store = store.again();
    assert_eq!((count(&store), store.look(super::backup::faults).unwrap()), (1, vec![]));
}

#[test]
fn a_closed_store_refuses_and_keeps_what_was_queued() {
    let store = Trial::new();
    let queued = store.write(|tx| Ok(tx.execute("INSERT INTO audit VALUES (NULL, 1, 'x', 1, 'x', 'x', 0, '')", [])?));
    store.close();
    assert_eq!(queued.wait(), Ok(1));
    assert_eq!(put(&store, "late").unwrap_err().code, Code::Unavailable);
}

#[test]
fn the_last_clone_may_be_dropped_by_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), AUDIT).unwrap();
    let clone = store.clone();
    let (release, held) = mpsc::channel::<()>();
    let answer = store.write(move |_| {
        held.recv().map_err(|_| Error::internal("nobody"))?;
        drop(clone);
        Ok(())
    });
    drop(store);
    release.send(()).unwrap();
    answer.wait().unwrap();
}

#[test]
fn a_reader_cannot_write() {
    let store = Trial::new();
    let refused = store.look(|conn| Ok(conn.execute("DELETE FROM audit", [])?)).unwrap_err();
    assert_eq!(refused.code, Code::ReadOnly);
}

#[test]
fn a_look_is_one_moment() {
    let store = Trial::new();
    put(&store, "before").unwrap();
    let seen = store.look(|conn| {
        let count = || conn.query_row("SELECT count(*) FROM audit", [], |row| row.get::<_, u64>(0));
        let before = count()?;
        put(&store, "meanwhile")?;
        Ok((before, count()?))
    });
    assert_eq!((seen, count(&store)), (Ok((1, 1)), 2));
}

#[test]
fn the_second_daemon_is_refused_with_the_pid_of_the_first() {
    let store = Trial::new();
    let refused = Store::open(store.dir.path(), AUDIT).err().unwrap();
    assert_eq!(refused.code, Code::Busy);
    assert!(refused.message.contains(&format!("(pid {})", std::process::id())), "{refused}");
}

#[test]
fn a_newer_database_is_refused() {
    let store = Trial::new();
    store.write_blocking(|tx| Ok(tx.pragma_update(None, "user_version", 999)?)).unwrap();
    store.close();
    let refused = Store::open(store.dir.path(), AUDIT).err().unwrap();
    assert_eq!(refused.code, Code::Unavailable);
    assert!(refused.message.contains("schema version 999"), "{refused}");
    assert_eq!(faults(store.dir.path(), AUDIT.len()).unwrap().unwrap().len(), 1);
}

#[test]
fn a_backup_is_whole_while_others_write() {
    let store = Trial::new();
    let writer = std::thread::spawn({
        let store = store.clone();
        move || (0..200).for_each(|n| put(&store, &format!("{n} {}", "x".repeat(500))).unwrap())
    });
    let target = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..5).map(|n| target.path().join(format!("{n}.db"))).collect();
    for file in &files {
        super::backup(store.dir.path(), file).unwrap();
    }
    writer.join().unwrap();
    let last = target.path().join("0.db"); // replaced
    super::backup(store.dir.path(), &last).unwrap();
    for file in &files {
        let conn = Connection::open(file).unwrap();
        assert_eq!(super::backup::faults(&conn).unwrap(), Vec::<String>::new());
    }
    let copied: u64 =
        Connection::open(&last).unwrap().query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap();
    assert_eq!(copied, 200);
    let names = std::fs::read_dir(target.path()).unwrap().count();
    assert_eq!(names, 5, "no companions, nothing left aside");
}

#[test]
fn a_backup_goes_nowhere_foolish() {
    let store = Trial::new();
    let code = |path: &Path| super::backup(store.dir.path(), path).unwrap_err().code;
    assert_eq!(code(store.path()), Code::InvalidPayload);
    assert_eq!(code(store.dir.path()), Code::Os(libc::EISDIR));
    assert_eq!(code(&store.dir.path().join("none/x.db")), Code::NotFound);
    assert_eq!(super::backup(&store.dir.path().join("none"), Path::new("/tmp/x")).unwrap_err().code, Code::NotFound);
}

#[test]
fn a_full_disk_is_said_and_nothing_is_half_written() {
    let disk = Disk::new("size=2m,mode=0700");
    let store = Store::open(disk.path(), AUDIT).unwrap();
    put(&store, "small").unwrap();
    let mut kept = 1;
    let refused = loop {
        match put(&store, &"x".repeat(100_000)) {
            Ok(()) => kept += 1,
            Err(refused) => break refused,
        }
        assert!(kept < 100, "two megabytes took ten");
    };
    assert_eq!(refused.code, Code::NoSpace, "{refused}");
    assert_eq!((count(&store), store.look(super::backup::faults).unwrap()), (kept, vec![]));
    // room again: the same store goes on
    store.write_blocking(|tx| Ok(tx.execute("DELETE FROM audit WHERE path <> 'small'", [])?)).ok();
    store.close();
    disk.mount("remount,size=8m");
    let store = Store::open(disk.path(), AUDIT).unwrap();
    put(&store, "more").unwrap();
    assert_eq!(store.look(super::backup::faults).unwrap(), Vec::<String>::new());
    store.close();
}

#[test]
fn a_full_disk_goes_on_when_there_is_room_again() {
    let disk = Disk::new("size=2m,mode=0700");
    let store = Store::open(disk.path(), AUDIT).unwrap();
    while put(&store, &"x".repeat(100_000)).is_ok() {}
    let kept = count(&store);
    disk.mount("remount,size=8m");
    put(&store, "more").unwrap();
    assert_eq!((count(&store), store.look(super::backup::faults).unwrap()), (kept + 1, vec![]));
    store.close();
}

#[test]
fn a_read_only_disk_is_said() {
    let disk = Disk::new("size=2m,mode=0700");
    Store::open(disk.path(), AUDIT).unwrap().close();
    disk.mount("remount,ro");
    let refused = Store::open(disk.path(), AUDIT).err().unwrap();
    assert_eq!(refused.code, Code::ReadOnly, "{refused}");
}

#[test]
fn a_database_locked_by_another_is_busy_and_still_read() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_with(dir.path(), AUDIT, Duration::from_millis(20)).unwrap();
    put(&store, "before").unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(put(&store, "meanwhile").unwrap_err().code, Code::Busy);
    assert_eq!(count(&store), 1);
    other.execute_batch("ROLLBACK").unwrap();
    put(&store, "after").unwrap();
    assert_eq!(count(&store), 2);
}

#[test]
fn a_database_held_alone_by_another_cannot_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    Store::open(dir.path(), AUDIT).unwrap().close();
    let other = Connection::open(dir.path().join(FILE)).unwrap();
    other.execute_batch("PRAGMA locking_mode = exclusive; BEGIN EXCLUSIVE; DELETE FROM audit; COMMIT").unwrap();
    let refused = Store::open_with(dir.path(), AUDIT, Duration::from_millis(20)).err().unwrap();
    assert_eq!(refused.code, Code::Busy, "{refused}");
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let text = "dear diary ".repeat(100);
    std::fs::write(&path, &text).unwrap();
    let refused = Store::open(dir.path(), AUDIT).err().unwrap();
    assert_eq!(refused.code, Code::Internal);
    assert!(refused.message.contains("damaged") && refused.message.contains("backup"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_damaged_page_is_found_and_said() {
    let store = Trial::new();
    for n in 0..50 {
        put(&store, &format!("{n} {}", "x".repeat(2000))).unwrap();
    }
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'audit'";
    let page: usize = store.look(|conn| Ok(conn.query_row(root, [], |row| row.get(0))?)).unwrap();
    store.close();
    let path = store.dir.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    assert!(!faults(store.dir.path(), AUDIT.len()).unwrap().unwrap().is_empty());
    let again = Store::open(store.dir.path(), AUDIT).unwrap();
    let refused = again
        .look(|conn| Ok(conn.query_row("SELECT max(path) FROM audit", [], |row| row.get::<_, String>(0))?))
        .unwrap_err();
    assert!(refused.message.contains("damaged"), "{refused}");
}

#[test]
fn nobody_else_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let store = Trial::new();
    put(&store, "secret").unwrap();
    for name in [FILE, "acheron.db-wal", "acheron.db-shm", "acheron.lock"] {
        let mode = store.dir.path().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
}

#[test]
fn an_attempt_that_takes_too_long_is_undone_and_the_rest_of_the_change_goes_on() {
    let store = Trial::new();
    let code = store.write_blocking(|tx| {
        tx.execute_batch("CREATE TABLE t (n); INSERT INTO t VALUES (1)")?;
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let slow = tx.attempt(|| {
            tx.execute_batch("INSERT INTO t VALUES (2)")?;
            Ok(tx.query_row(endless, [], |row| row.get::<_, i64>(0))?)
        });
        Ok(slow.unwrap_err().code)
    });
    assert_eq!(code.unwrap(), Code::Timeout);
    assert_eq!(
        store.look(|conn| Ok(conn.query_row("SELECT sum(n) FROM t", [], |row| row.get::<_, i64>(0))?)).unwrap(),
        1
    );
}

/// Counts the notes of each commit, and refuses some.
struct Keeper(Arc<Mutex<Vec<Vec<String>>>>, Vec<String>);

impl super::NoteKeeper for Keeper {
    fn keep(&mut self, conn: &Connection, notes: Vec<String>) -> Result<()> {
        if notes.iter().any(|note| note == "refused") {
            return Err(Error::conflict("this note is not kept"));
        }
        conn.execute("INSERT INTO audit (path) VALUES (?1)", [notes.join(" ")])?;
        self.1 = notes;
        Ok(())
    }

    fn kept(&mut self) {
        self.0.lock().push(std::mem::take(&mut self.1));
    }
}

#[test]
fn notes_are_kept_with_their_changes_or_not_at_all() {
    let store = Trial::new();
    let refused = store.write_blocking(|tx| {
        tx.note("too early".to_owned());
        Ok(())
    });
    assert!(refused.is_err(), "nobody keeps notes yet");
    let seen = Arc::new(Mutex::new(Vec::new()));
    store.keep_notes(Box::new(Keeper(seen.clone(), Vec::new())));
    let note = |text: &'static str, ok: bool| {
        store.write_blocking(move |tx| {
            tx.note(text.to_owned());
            _ = tx.attempt(|| {
                tx.note("undone".to_owned());
                Err::<(), _>(Error::conflict("stale"))
            });
            if ok { Ok(()) } else { Err(Error::conflict("no")) }
        })
    };
    note("one", true).unwrap();
    note("failed", false).unwrap_err();
    assert_eq!(note("refused", true).unwrap_err().message, "this note is not kept");
    note("two", true).unwrap();
    put(&store, "without a note").unwrap();
    assert_eq!(*seen.lock(), [["one"], ["two"]]);
    assert_eq!(count(&store), 3);
}
