//! Forgets what is over, now and then, as the mountspec says how much to keep: jobs, events, the audit, turns.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{HostState, lifecycle, wiring};
use crate::services::sub_brains::descent;
use crate::state::audit::AuditLimits;
use crate::state::{self, Pruned, RetentionLimits};
use acheron_base::{Code, Result, blocking};

const NOW_AND_THEN: Duration = Duration::from_secs(600);
/// The lines of the audit that are kept; floods of refusals are folded before they get there.
const AUDIT_LINES: u64 = 1_000_000;
/// How long a helper stays that has done its task, so that its work can be looked at.
const HELPERS_MS: u64 = 60 * 60 * 1000;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Events are smaller than jobs, and one job makes several.
const EVENTS_PER_JOB: u64 = 10;

/// Starts the task that prunes expired records; it ends with the host.
pub fn now_and_then(host: &Arc<HostState>) {
    let grown = host.context.jobs.grown.clone();
    let host: Weak<HostState> = Arc::downgrade(host);
    tokio::spawn(async move {
        let mut time = tokio::time::interval(NOW_AND_THEN);
        loop {
            tokio::select! {
                _ = time.tick() => {},
                () = grown.notified() => {},
            }
            let Some(host) = host.upgrade() else { return };
            let ended_before_ms = host.context.clock.now_ms().saturating_sub(HELPERS_MS);
            if let Err(error) = tidy_helpers(&host, ended_before_ms).await {
                tracing::warn!(%error, "a helper that has ended could not be taken away");
            }
            match tidy(&host).await {
                Ok(_) => (),
                Err(error) if error.code == Code::Unavailable => return, // the store was closed: the host goes down
                Err(error) => tracing::warn!(%error, "expired records could not be pruned"),
            }
        }
    });
}

/// Takes away the helpers of agents (`sub_brains`) whose task ended before then, with all that they left. Returns how many.
pub async fn tidy_helpers(host: &Arc<HostState>, ended_before_ms: u64) -> Result<usize> {
    let all = host.profiles.all();
    let has_ended = |id: &String| {
        let Ok(chat) = host.shared.runtimes.chat(id) else { return true };
        let last_ms = chat.agent_runtime().history.last_ms().unwrap_or(host.identity.started_at_ms);
        chat.idle() && last_ms < ended_before_ms
    };
    let mut gone = 0;
    for id in all.iter().filter(|(_, profile)| profile.parent.is_some()).map(|(id, _)| id) {
        let below = descent(&all, id);
        // One that has helpers goes after them, the next time if not now.
        if below.iter().all(has_ended) && below.iter().skip(1).all(|id| !host.profiles.has(id)) {
            lifecycle::remove(host, id, true).await?;
            gone += 1;
        }
    }
    Ok(gone)
}

/// Forgets once: in the database first, then what the tree shows of it.
pub async fn tidy(host: &HostState) -> Result<Pruned> {
    let retention = host.current.spec().retention;
    let keep = RetentionLimits {
        jobs: usize::try_from(retention.jobs).unwrap_or(usize::MAX >> 1),
        events: retention.jobs.saturating_mul(EVENTS_PER_JOB),
        job_bytes: host.current.spec().limits.jobs_bytes,
        before_ms: host.context.clock.now_ms().saturating_sub(retention.days.saturating_mul(DAY_MS)),
    };
    let turns_bytes = host.current.spec().limits.turns_bytes;
    let gone = state::prune(&host.store, keep).await?;
    let (dir, store, size) = (host.paths.state.clone(), host.store.clone(), host.audit.clone());
    let now_ms = host.context.clock.now_ms();
    let audit = AuditLimits { lines: AUDIT_LINES, before_ms: keep.before_ms };
    blocking(move || state::audit::prune(&dir, &store, &size, audit, now_ms)).await?;
    host.access.tell_counted();
    wiring::forget(host, keep.before_ms).await?;
    host.context.approvals.prune(keep.before_ms).await?;
    host.context.event_logs.pruned();
    for agent in host.context.jobs.agents() {
        host.context.jobs.of(&agent).forget(&gone.jobs);
    }
    for agent in host.profiles.ids() {
        let Ok(chat) = host.shared.runtimes.chat(&agent) else { continue };
        blocking(move || chat.agent_runtime().tidy(keep.before_ms, turns_bytes)).await?;
    }
    Ok(gone)
}
