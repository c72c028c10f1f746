//! A copy of the database in one file, taken while others write, and a check of its integrity. The store uses it.

use std::fs::File;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use acheron_base::{Code, Error, Result};

/// Copies what `conn` sees into `file`, which appears complete or not at all and replaces an existing one.
///
/// All pages in one step: the copy is consistent, and a busy writer cannot make it start again and again.
pub(super) fn copy(conn: &Connection, file: &Path) -> Result<()> {
    let dir = match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    dir.metadata()?;
    if file.is_dir() {
        return Err(Error::new(Code::Os(libc::EISDIR), format!("{} is a directory", file.display())));
    }
    if same(conn.path().map(Path::new), file) {
        return Err(Error::invalid("a database cannot be its own backup: name another file"));
    }
    let aside = tempfile::Builder::new().prefix(".acheron-backup-").tempfile_in(dir)?;
    let mut target = Connection::open(aside.path())?;
    let step = Backup::new(conn, &mut target)?.step(-1)?;
    if !matches!(step, StepResult::Done) {
        return Err(Error::busy("the database is locked; try the backup again"));
    }
    // One file that needs no other.
    target.pragma_update(None, "journal_mode", "delete")?;
    target.close().map_err(|(_, err)| err)?;
    aside.as_file().sync_all()?;
    aside.persist(file).map_err(|err| err.error)?;
    File::open(dir)?.sync_all()?;
    Ok(())
}

/// Every problem that SQLite finds; none for an intact database.
pub(super) fn faults(conn: &Connection) -> Result<Vec<String>> {
    match look(conn) {
        // So damaged that it cannot be checked.
        Err(error) if error.code == Code::Internal => Ok(vec![error.message]),
        found => found,
    }
}

fn look(conn: &Connection) -> Result<Vec<String>> {
    let mut look = conn.prepare("PRAGMA integrity_check(100)")?;
    let mut found = look.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    found.retain(|line| line != "ok");
    let mut look = conn.prepare("SELECT \"table\", rowid FROM pragma_foreign_key_check LIMIT 100")?;
    let stray = look.query_map([], |row| {
        Ok(format!("row {} of {} refers to nothing", row.get::<_, i64>(1)?, row.get::<_, String>(0)?))
    })?;
    for line in stray {
        found.push(line?);
    }
    Ok(found)
}

fn same(database: Option<&Path>, file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
    database.and_then(id).is_some_and(|database| id(file) == Some(database))
}
