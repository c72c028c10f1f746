//! The processor time that a part of a change may take: there is one writer, and everybody waits for it. Processor time
//! and not time of the clock, so that a busy machine fails nothing. The writer uses it.

use std::cell::Cell;
use std::time::Duration;

use rusqlite::Connection;

use acheron_base::{Error, Result};

/// The limit of one attempt.
pub const ATTEMPT_LIMIT: Duration = Duration::from_millis(100);
/// The number of steps of SQLite's machine between two looks at the clock.
const STEPS: i32 = 20_000;

thread_local! {
    /// When the attempt on this thread must have ended, in processor time of the thread.
    static UNTIL: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Lets the limit interrupt the statements of a connection, on the thread that uses it.
pub fn watch(conn: &mut Connection) -> Result<()> {
    let exceeded = || UNTIL.get().is_some_and(|until| processor_time() > until);
    Ok(conn.progress_handler(STEPS, Some(exceeded))?)
}

/// Runs `part` under the limit. A statement that exceeds it is interrupted; code between statements is judged at its end.
pub fn limited<T>(part: impl FnOnce() -> Result<T>) -> Result<T> {
    let until = processor_time() + ATTEMPT_LIMIT;
    UNTIL.set(Some(until));
    let limit = Limit;
    let done = part();
    drop(limit);
    match processor_time() > until {
        true => Err(Error::timeout(format!("the change took more than {} ms", ATTEMPT_LIMIT.as_millis()))),
        false => done,
    }
}

/// Ends with the part that it limits, also if that panics.
struct Limit;

impl Drop for Limit {
    fn drop(&mut self) {
        UNTIL.set(None);
    }
}

/// The processor time of this thread.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
