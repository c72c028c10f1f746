//! `model/` of each agent: the requests of its programs to models. Used by `host`.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::request_line::RequestLine;
use crate::state::model_requests::{self, RequestRow};
use acheron_base::{Clock, Result};
use acheron_store::Store;
use acheron_vfs::{Listing, Log, text};

/// The sizes of `requests.ndjson` and `bodies.ndjson` in bytes.
const LOG_BYTES: usize = 4 << 20;
const BODIES_BYTES: usize = 16 << 20;

const README: &str = "\
# model

What programs of this agent asked its model through the gateway.

- `requests.ndjson`: one line per request when it has ended: tokens, money, times, status; `tail -f` follows it.
  `requests.ndjson.1` has older lines.
- `bodies.ndjson`: the bodies of requests and answers by the same id, if the mountspec says `\"model\": {\"keep_bodies\": true}`.
";

/// The logs of all agents.
pub struct RequestLogs {
    store: Store,
    clock: Clock,
    all: Mutex<HashMap<String, Arc<RequestLog>>>,
}

/// The requests of one agent's programs.
pub struct RequestLog {
    shown: Log,
    bodies: Log,
}

impl RequestLogs {
    /// Opens the logs, and ends the requests that an earlier host left behind. Blocks.
    pub fn open(store: Store, clock: Clock) -> Result<RequestLogs> {
        let count = "SELECT count(*) FROM model_requests WHERE ended = 0";
        if store.look(|conn| Ok(conn.query_row(count, [], |row| row.get::<_, usize>(0))?))? > 0 {
            store.write_blocking(|tx| model_requests::end_left(tx, RequestLine::of_stopped_host))?;
        }
        Ok(RequestLogs { store, clock, all: Mutex::default() })
    }

    /// The log of an agent, restored from the store at the first request for it.
    pub fn of(&self, agent: &str) -> Result<Arc<RequestLog>> {
        let mut all = self.all.lock();
        if let Some(log) = all.get(agent) {
            return Ok(log.clone());
        }
        let log = RequestLog {
            shown: Log::new(LOG_BYTES, self.clock.clone()),
            bodies: Log::new(BODIES_BYTES, self.clock.clone()),
        };
        for row in self.store.look(|conn| model_requests::tail(conn, agent, LOG_BYTES))? {
            log.show(&row);
        }
        Ok(all.entry(agent.to_owned()).or_insert_with(|| Arc::new(log)).clone())
    }

    /// The directory of an agent.
    pub fn directory(&self, agent: &str) -> Result<Listing> {
        let log = self.of(agent)?;
        Ok(Listing::default()
            .file("README.md", text(README))
            .file("requests.ndjson", log.shown.clone())
            .file("requests.ndjson.1", log.shown.older())
            .file("bodies.ndjson", log.bodies.clone())
            .file("bodies.ndjson.1", log.bodies.older()))
    }

    pub fn forget(&self, agent: &str) {
        self.all.lock().remove(agent);
    }
}

impl RequestLog {
    /// Shows a request that has ended and is on the disk.
    pub fn show(&self, row: &RequestRow) {
        self.shown.line(&row.line);
        if let Some(bodies) = &row.bodies {
            self.bodies.line(bodies);
        }
    }
}
