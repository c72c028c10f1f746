//! A database that only repeats what is known elsewhere, such as a full-text index. It is made anew when it is damaged or of
//! another version, so it needs no migrations and no backup.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::Connection;

use super::{BUSY_TIMEOUT, connect};
use acheron_base::Result;

/// Memory for pages of the database, per connection, in KiB.
const CACHE_KIB: i64 = 2048;

/// One connection that writes and one that reads, so that a search does not wait for a change.
pub struct CacheDb {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl CacheDb {
    /// Opens the database at `path`, whose tables are `schema`. One of another `version` or a damaged one is thrown away.
    pub fn open(path: &Path, schema: &str, version: u32) -> Result<CacheDb> {
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        match CacheDb::begin(path, schema, version) {
            Ok(cache) => Ok(cache),
            Err(error) => {
                tracing::warn!(%error, "{} is made anew", path.display());
                for file in files(path) {
                    acheron_base::if_exists(std::fs::remove_file(file).map_err(Into::into))?;
                }
                CacheDb::begin(path, schema, version)
            }
        }
    }

    fn begin(path: &Path, schema: &str, version: u32) -> Result<CacheDb> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let writer = open(path)?;
        let found: u32 = writer.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        let tables: u32 = writer.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            writer.execute_batch(&format!("BEGIN; {schema}; PRAGMA user_version = {version}; COMMIT"))?;
        } else if found != version {
            return Err(acheron_base::Error::invalid(format!("its version is {found}, and {version} is wanted")));
        }
        let reader = open(path)?;
        reader.pragma_update(None, "query_only", true)?;
        Ok(CacheDb { writer: Mutex::new(writer), reader: Mutex::new(reader) })
    }

    /// Makes a change completely or not at all. Blocks.
    pub fn change<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut conn = self.writer.lock();
        let tx = conn.transaction()?;
        let done = work(&tx)?;
        tx.commit()?;
        Ok(done)
    }

    /// Reads one consistent state. Blocks.
    pub fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut conn = self.reader.lock();
        let tx = conn.transaction()?;
        let seen = work(&tx)?;
        tx.finish()?;
        Ok(seen)
    }
}

fn open(path: &Path) -> Result<Connection> {
    let conn = connect(path, BUSY_TIMEOUT)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    // What is lost with the power is read again.
    conn.pragma_update(None, "synchronous", "normal")?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(conn)
}

/// The files of a database.
pub fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_kept_and_one_that_cannot_be_used_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/cache.db");
        let schema = "CREATE TABLE t (x)";
        let count = |cache: &CacheDb| {
            cache.look(|conn| Ok(conn.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, u32>(0))?)).unwrap()
        };
        let add = |cache: &CacheDb| cache.change(|conn| Ok(conn.execute("INSERT INTO t VALUES (1)", [])?)).unwrap();
        add(&CacheDb::open(&path, schema, 1).unwrap());
        assert_eq!(count(&CacheDb::open(&path, schema, 1).unwrap()), 1);
        assert_eq!(count(&CacheDb::open(&path, schema, 2).unwrap()), 0);
        add(&CacheDb::open(&path, schema, 2).unwrap());
        std::fs::write(&path, "no database at all, and long enough to be looked at by its first page".repeat(100))
            .unwrap();
        assert_eq!(count(&CacheDb::open(&path, schema, 2).unwrap()), 0);
    }
}
