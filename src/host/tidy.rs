//! Forgets what is over, now and then, as the mountspec says how much to keep: jobs, events, the audit, turns.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{HostState, wiring};
use crate::state::audit::AuditLimits;
use crate::state::{self, Pruned, RetentionLimits};
use acheron_base::{Code, Result, blocking};

const NOW_AND_THEN: Duration = Duration::from_secs(600);
/// The lines of the audit that are kept; floods of refusals are folded before they get there.
const AUDIT_LINES: u64 = 1_000_000;
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
            match tidy(&host).await {
                Ok(_) => (),
                Err(error) if error.code == Code::Unavailable => return, // the store was closed: the host goes down
                Err(error) => tracing::warn!(%error, "expired records could not be pruned"),
            }
        }
    });
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
