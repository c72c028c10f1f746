//! What SQLite said, as an error that names the cause and what to do about it.

use rusqlite::ffi;

use crate::error::{Code, Error, Result};

const DISK: Code = Code::Os(libc::EIO);

/// So that `?` works in every closure that is handed a connection.
impl From<rusqlite::Error> for Error {
    fn from(err: rusqlite::Error) -> Self {
        match &err {
            rusqlite::Error::SqliteFailure(code, _) => said(code.extended_code, &err.to_string()),
            rusqlite::Error::QueryReturnedNoRows => Error::not_found("the database has no such row"),
            rusqlite::Error::IntegralValueOutOfRange(..) | rusqlite::Error::ToSqlConversionFailure(_) => {
                Error::invalid(format!("the database cannot hold that value: {err}"))
            }
            _ => Error::internal(format!("the database gave an unexpected answer: {err}")),
        }
    }
}

/// The error of an extended result code.
fn said(extended: i32, text: &str) -> Error {
    match extended & 0xff {
        ffi::SQLITE_FULL => full(),
        ffi::SQLITE_READONLY => read_only(),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            Error::busy("the database is locked by another process: wait for it, or end it, and try again")
        }
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Error::internal(format!(
            "the database is damaged ({text}): stop acheron, put acheron.db aside and a backup in its place"
        )),
        ffi::SQLITE_CANTOPEN => Error::unavailable(format!("the database cannot be opened: {text}")),
        ffi::SQLITE_IOERR => Error::new(DISK, format!("the disk that holds the database failed: {text}")),
        ffi::SQLITE_TOOBIG => Error::too_large("the value is larger than the database takes"),
        ffi::SQLITE_INTERRUPT => Error::interrupted("the query was interrupted"),
        ffi::SQLITE_PERM | ffi::SQLITE_AUTH => Error::forbidden(format!("the database may not be used: {text}")),
        ffi::SQLITE_CONSTRAINT
            if matches!(extended, ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY) =>
        {
            Error::already_exists(format!("the database has that already: {text}"))
        }
        _ => Error::internal(format!("the database refused: {text}")),
    }
}

/// Looks behind a failure of the disk: SQLite tells a full quota or a disk gone read-only as a mere failed write.
pub(super) fn with_errno(error: Error, errno: i32) -> Error {
    match errno {
        _ if error.code != DISK => error,
        libc::ENOSPC | libc::EDQUOT => full(),
        libc::EROFS => read_only(),
        _ => error,
    }
}

/// What the system last told SQLite on this connection.
pub(super) fn errno(conn: &rusqlite::Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, borrowed for the length of the call, on its own thread.
    unsafe { ffi::sqlite3_system_errno(conn.handle()) }
}

/// [`with_errno`] for a whole answer.
pub(super) fn explained<T>(conn: &rusqlite::Connection, answer: Result<T>) -> Result<T> {
    answer.map_err(|error| if error.code == DISK { with_errno(error, errno(conn)) } else { error })
}

fn full() -> Error {
    Error::no_space("the disk that holds the state is full: make room and try again")
}

fn read_only() -> Error {
    Error::read_only("the state directory is on a read-only disk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_code() {
        let table = [
            (ffi::SQLITE_FULL, Code::NoSpace),
            (ffi::SQLITE_READONLY, Code::ReadOnly),
            (ffi::SQLITE_READONLY_DIRECTORY, Code::ReadOnly),
            (ffi::SQLITE_BUSY, Code::Busy),
            (ffi::SQLITE_BUSY_SNAPSHOT, Code::Busy),
            (ffi::SQLITE_LOCKED, Code::Busy),
            (ffi::SQLITE_CORRUPT, Code::Internal),
            (ffi::SQLITE_CORRUPT_VTAB, Code::Internal),
            (ffi::SQLITE_NOTADB, Code::Internal),
            (ffi::SQLITE_CANTOPEN, Code::Unavailable),
            (ffi::SQLITE_IOERR_FSYNC, DISK),
            (ffi::SQLITE_TOOBIG, Code::TooLarge),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Code::AlreadyExists),
            (ffi::SQLITE_CONSTRAINT_NOTNULL, Code::Internal),
            (ffi::SQLITE_ERROR, Code::Internal),
        ];
        for (extended, code) in table {
            assert_eq!(said(extended, "text").code, code, "{extended}");
        }
    }

    #[test]
    fn a_failed_write_is_explained_by_the_system() {
        let table = [
            (ffi::SQLITE_IOERR_WRITE, libc::EROFS, Code::ReadOnly),
            (ffi::SQLITE_IOERR_WRITE, libc::EDQUOT, Code::NoSpace),
            (ffi::SQLITE_IOERR_SHMSIZE, libc::ENOSPC, Code::NoSpace),
            (ffi::SQLITE_IOERR_WRITE, libc::EIO, DISK),
            (ffi::SQLITE_BUSY, libc::EROFS, Code::Busy),
        ];
        for (extended, errno, code) in table {
            assert_eq!(with_errno(said(extended, "text"), errno).code, code, "{extended} {errno}");
        }
    }

    #[test]
    fn a_damaged_database_says_what_to_do() {
        let said = said(ffi::SQLITE_CORRUPT, "database disk image is malformed").message;
        assert!(said.contains("damaged") && said.contains("backup"), "{said}");
    }
}
