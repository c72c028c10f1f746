//! The lines of the audit and the events of all agents, in one order. An event about a job that a line of the audit tells of,
//! too, is left out. Used by `acheron log` and `acheron top`.

use std::collections::{HashSet, VecDeque};

use super::render::LogLine;
use crate::state::audit::read;
use crate::state::events::{self, PageLimits};
use acheron_base::Result;
use acheron_store::{Connection, params};

/// The sizes of what is read at once.
const AUDIT_BYTES: usize = 1 << 20;
const EVENTS: PageLimits = PageLimits { events: 2048, bytes: 4 << 20 };
/// The jobs whose ends are remembered.
const ENDED: usize = 8192;

/// How far the log was read.
pub struct LogSource {
    since_ms: u64,
    /// The last line of the audit.
    seq: u64,
    /// The place of the last event.
    place: u64,
    ended: HashSet<String>,
    ended_in_order: VecDeque<String>,
}

impl LogSource {
    fn at(since_ms: u64, seq: u64, place: u64) -> LogSource {
        LogSource { since_ms, seq, place, ended: HashSet::new(), ended_in_order: VecDeque::new() }
    }

    /// Everything since a time.
    pub fn since(conn: &Connection, since_ms: u64) -> Result<LogSource> {
        Ok(LogSource::at(since_ms, read::before(conn, since_ms)?, events::places(conn, since_ms)?.0))
    }

    /// At least so many of the newest lines, if there are.
    pub fn newest(conn: &Connection, lines: u64) -> Result<LogSource> {
        let last = read::head(conn)?.map_or(0, |(head, _)| head.seq);
        let place = events::places(conn, u64::MAX >> 1)?.1;
        Ok(LogSource::at(0, last.saturating_sub(lines), place.saturating_sub(lines)))
    }

    /// Hands on what there is after the last time, until `take` returns false. Returns whether it did.
    pub fn read(&mut self, conn: &Connection, mut take: impl FnMut(LogLine) -> bool) -> Result<bool> {
        let (mut lines, mut told) = (VecDeque::new(), VecDeque::new());
        let (mut all_lines, mut all_told) = (false, false);
        loop {
            if lines.is_empty() && !all_lines {
                lines = self.next_lines(conn)?;
                all_lines = lines.is_empty();
            }
            if told.is_empty() && !all_told {
                told = self.next_events(conn)?;
                all_told = told.is_empty();
            }
            let line_first = match (lines.front(), told.front()) {
                (Some(line), Some(event)) => line.at_ms <= event.at_ms,
                (line, _) => line.is_some(),
            };
            let Some(line) = (if line_first { lines.pop_front() } else { told.pop_front() }) else { return Ok(false) };
            self.note_end(&line);
            if self.is_wanted(&line) && !take(line) {
                return Ok(true);
            }
        }
    }

    fn is_wanted(&self, line: &LogLine) -> bool {
        let repeats = line.is_event && line.ended_job().is_some_and(|job| self.ended.contains(job));
        !repeats && line.at_ms >= self.since_ms && !matches!(line.kind(), "checkpoint" | "key")
    }

    /// Remembers the end of a job that the audit tells of.
    fn note_end(&mut self, line: &LogLine) {
        let Some(job) = line.ended_job().filter(|_| !line.is_event) else { return };
        if self.ended.insert(job.to_owned()) {
            self.ended_in_order.push_back(job.to_owned());
        }
        if self.ended_in_order.len() > ENDED
            && let Some(oldest) = self.ended_in_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    fn next_lines(&mut self, conn: &Connection) -> Result<VecDeque<LogLine>> {
        let text = read::after(conn, self.seq, AUDIT_BYTES)?;
        let lines: VecDeque<LogLine> = text.lines().filter_map(LogLine::of_audit).collect();
        self.seq = lines.back().map_or(self.seq, |line| line.number);
        Ok(lines)
    }

    fn next_events(&mut self, conn: &Connection) -> Result<VecDeque<LogLine>> {
        let page = events::placed_after(conn, self.place, EVENTS)?;
        self.place = page.last().map_or(self.place, |event| event.place);
        Ok(page.into_iter().map(LogLine::of_event).collect())
    }
}

/// Whether the database has something of an agent.
pub fn knows(conn: &Connection, agent: &str) -> Result<bool> {
    let found = "SELECT EXISTS (SELECT 1 FROM event_logs WHERE agent = ?1) OR EXISTS (SELECT 1 FROM events WHERE agent = ?1) \
                 OR EXISTS (SELECT 1 FROM spending WHERE payer = ?1)";
    Ok(conn.query_row(found, params![agent], |row| row.get(0))?)
}
