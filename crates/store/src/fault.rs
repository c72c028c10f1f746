//! Errors of SQLite, with the cause and the remedy. The writer and the readers use it.

use rusqlite::ffi;

use acheron_base::{Code, Error, Result};

const DISK: Code = Code::Os(libc::EIO);

/// Explains a failed write: SQLite reports a full quota or a read-only disk only as a failed write.
pub(super) fn with_errno(error: Error, errno: i32) -> Error {
    match errno {
        _ if error.code != DISK => error,
        libc::ENOSPC | libc::EDQUOT => full(),
        libc::EROFS => read_only(),
        _ => error,
    }
}

/// The last error number of the system on this connection.
#[allow(unsafe_code)] // only the C interface offers it
pub(super) fn errno(conn: &rusqlite::Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, borrowed for the length of the call, on its own thread.
    unsafe { ffi::sqlite3_system_errno(conn.handle()) }
}

/// [`with_errno`] for a result.
pub(super) fn explained<T>(conn: &rusqlite::Connection, answer: Result<T>) -> Result<T> {
    answer.map_err(|error| if error.code == DISK { with_errno(error, errno(conn)) } else { error })
}

/// Whether the disk refused, and not the change.
pub(super) fn is_of_the_disk(error: &Error) -> bool {
    error.code == DISK || matches!(error.code, Code::NoSpace | Code::ReadOnly)
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

    fn failure(extended: i32) -> Error {
        Error::from(rusqlite::Error::SqliteFailure(ffi::Error::new(extended), None))
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
            assert_eq!(with_errno(failure(extended), errno).code, code, "{extended} {errno}");
        }
    }
}
