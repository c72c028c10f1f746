//! Errors of SQLite as [`Error`], with the cause and the remedy in the message. It is here and not in `acheron-store`
//! because a conversion must be in the crate of one of its two types.

use rusqlite::ffi;

use crate::error::{Code, Error};

/// A failure of the disk; the store looks for a full quota or a read-only disk behind it.
const DISK: Code = Code::Os(libc::EIO);

/// So that `?` works in every closure with a connection.
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

const FULL: &str = "the disk that holds the state is full: make room and try again";
const READ_ONLY: &str = "the state directory is on a read-only disk";

/// The error of an extended result code.
fn said(extended: i32, text: &str) -> Error {
    match extended & 0xff {
        ffi::SQLITE_FULL => Error::no_space(FULL),
        ffi::SQLITE_READONLY => Error::read_only(READ_ONLY),
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => {
            Error::busy("the database is locked by another process: wait for it, or end it, and try again")
        }
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Error::internal(format!(
            "the database is damaged ({text}): stop acheron, move its state directory aside and restore a backup"
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
    fn a_damaged_database_says_what_to_do() {
        let said = said(ffi::SQLITE_CORRUPT, "database disk image is malformed").message;
        assert!(said.contains("damaged") && said.contains("backup"), "{said}");
    }
}
