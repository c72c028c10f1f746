//! One waiter: checks for a match and sleeps until there may be one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::wait::{Armed, WaitMatch, WaitOutcome, find_match, timed_out};
use super::{EventLog, Selector, wait};
use crate::jobs::{JobEntry, Jobs};
use acheron_base::Result;
use acheron_vfs::{Answer, Reply, line};

/// A wait with its own cursor.
#[derive(Clone)]
pub struct Waiter(Arc<WaiterInner>);

struct WaiterInner {
    event_log: Arc<EventLog>,
    jobs: Arc<Jobs>,
    armed: Mutex<Armed>,
    timeout_ms: Option<u64>,
    /// The arming of `next.json` that this waiter serves; its readers share it.
    arming: Option<u64>,
    /// The match of the last answer; acknowledged when its reader has read it to the end.
    last_match: Mutex<Option<WaitMatch>>,
}

impl Waiter {
    /// Without a time limit, a read waits until something happens.
    pub fn new(event_log: &Arc<EventLog>, jobs: &Arc<Jobs>, armed: Armed, timeout_ms: Option<u64>) -> Self {
        Waiter::begin(event_log, jobs, armed, timeout_ms, None)
    }

    /// A reader of `next.json`, for the given arming.
    pub fn shared(event_log: &Arc<EventLog>, jobs: &Arc<Jobs>, armed: Armed, timeout_ms: u64, arming: u64) -> Self {
        Waiter::begin(event_log, jobs, armed, Some(timeout_ms), Some(arming))
    }

    fn begin(
        event_log: &Arc<EventLog>,
        jobs: &Arc<Jobs>,
        armed: Armed,
        timeout_ms: Option<u64>,
        arming: Option<u64>,
    ) -> Self {
        let (event_log, jobs, armed) = (event_log.clone(), jobs.clone(), Mutex::new(armed));
        Waiter(Arc::new(WaiterInner { event_log, jobs, armed, timeout_ms, arming, last_match: Mutex::default() }))
    }

    /// The next match and its body; a timeout has only a body.
    pub async fn next(&self) -> Result<(Option<WaitMatch>, Value)> {
        let inner = &self.0;
        let begun = inner.event_log.clock.now_ms();
        let deadline = inner.timeout_ms.map(|ms| tokio::time::Instant::now() + Duration::from_millis(ms));
        let mut changes = inner.event_log.listen();
        let mut eager = true;
        loop {
            changes.borrow_and_update();
            let armed = inner.armed.lock().clone();
            let next_look = inner.look(&armed, eager).await?;
            let events = inner.event_log.after(armed.cursor).wait().await?;
            let now = inner.event_log.clock.now_ms();
            let until = match find_match(&armed, &inner.event_log.agent, &events, |id| inner.ended(id), now) {
                WaitOutcome::Match(found) => return Ok((Some(found.clone()), found.body)),
                WaitOutcome::Pending { until_ms } => until_ms,
            };
            if let Some(event) = events.last() {
                inner.skip_to(event.seq);
                if event.seq < inner.event_log.last() {
                    continue; // it was only a page of them
                }
            }
            let out_of_time = deadline.is_some_and(|end| end <= tokio::time::Instant::now());
            if out_of_time {
                return Ok((None, timed_out(now.saturating_sub(begun))));
            }
            let timer =
                until.map(|at| tokio::time::Instant::now() + Duration::from_millis(at.saturating_sub(now).max(1)));
            eager = tokio::select! {
                _ = changes.changed() => true,
                () = sleep_until(timer) => false,
                () = sleep_until(next_look) => false,
                () = sleep_until(deadline) => false,
            };
        }
    }

    /// The arming of `next.json` that this waiter serves.
    pub fn arming(&self) -> Option<u64> {
        self.0.arming
    }

    /// Whether this waiter serves that arming of `next.json`.
    pub fn serves(&self, arming: u64) -> bool {
        self.0.arming == Some(arming)
    }

    /// Notes that the reader has `found` to its end.
    pub fn acknowledge(&self, found: &WaitMatch) {
        self.0.armed.lock().acknowledge(found);
        if let Some(arming) = self.0.arming {
            self.0.event_log.acknowledge(arming, found.seq, found.selector);
        }
    }
}

/// Sleeps forever without a time.
async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl WaiterInner {
    /// Nothing up to the event `seq` matched; skip these events from now on.
    fn skip_to(&self, seq: u64) {
        let mut armed = self.armed.lock();
        armed.cursor = armed.cursor.max(seq);
        if let Some(arming) = self.arming {
            self.event_log.skip_to(arming, seq);
        }
    }

    /// Looks at the paths of which no event tells. Returns when to look again.
    async fn look(&self, armed: &Armed, eager: bool) -> Result<Option<tokio::time::Instant>> {
        let mut next_look = None;
        for path in armed.watched.iter() {
            let next = path.look(&self.event_log, eager).await?;
            next_look = Some(next_look.map_or(next, |first: tokio::time::Instant| first.min(next)));
        }
        Ok(next_look)
    }

    /// The status of the job `id`, if it has ended.
    fn ended(&self, id: &str) -> Option<Value> {
        match self.jobs.of(&self.event_log.agent).get(id) {
            Some(JobEntry::Loaded(job)) if job.settled() => Some(job.status_json()),
            Some(JobEntry::Loaded(_)) => None,
            // An archived or forgotten job has ended.
            Some(JobEntry::Archived) | None => Some(serde_json::json!({ "job_id": id, "archived": true })),
        }
    }
}

/// Each read of the handle returns the next event.
impl Reply for Waiter {
    fn read(&self) -> Answer<Bytes> {
        let waiter = self.clone();
        Answer::later(async move {
            let (found, body) = waiter.next().await?;
            *waiter.0.last_match.lock() = found;
            Ok(line(&body))
        })
    }

    fn readable(&self) -> Answer<()> {
        let waiter = self.clone();
        Answer::later(async move { waiter.next().await.map(|_| ()) })
    }

    fn finished(&self) -> bool {
        if let Some(found) = self.0.last_match.lock().take() {
            self.acknowledge(&found);
        }
        true
    }

    fn endless(&self) -> bool {
        true
    }
}

/// The selectors of `wait` for `agent`.
pub fn selectors(agent: &str, jobs: &Jobs, wait: &wait::Wait) -> Result<Vec<Selector>> {
    wait.check()?;
    let agent_jobs = jobs.of(agent);
    let job = |word: &str| match word {
        "last" => agent_jobs.last(),
        word => agent_jobs.by_correlation_id(word).or_else(|| agent_jobs.get(word).map(|_| word.to_owned())),
    };
    wait.paths.iter().map(|path| Selector::parse(path, agent, job)).collect()
}

/// The selectors of an armed wait. A job that no longer exists has ended; that is not an error.
pub fn armed_selectors(agent: &str, wait: &wait::Wait) -> Result<Arc<[Selector]>> {
    wait.paths.iter().map(|path| Selector::parse(path, agent, |id| Some(id.to_owned()))).collect()
}
