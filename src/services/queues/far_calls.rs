//! The operations of the service on queues that all hosts share. Where there are such queues every operation awaits something,
//! so none of them is a change in one transaction; on this host's own queues they are as durable as before.

use std::time::Duration;

use super::backend::{NewItem, TakeRequest};
use super::far::FarQueue;
use super::lease::ItemEvent;
use super::names;
use super::service::{Command, DeadChange, EmptyQueue, Output, PutItem, QueuesService, SettledLease};
use crate::events::commit;
use crate::policy::PrincipalCaller;
use crate::service::Cx;
use acheron_base::Result;

impl Command {
    /// The queue that a command is about.
    pub fn queue(&self) -> Result<&str> {
        match self {
            Command::Put { queue, .. }
            | Command::Take { queue, .. }
            | Command::Retry { queue, .. }
            | Command::Discard { queue, .. } => Ok(queue),
            Command::Done { lease } | Command::Fail { lease, .. } | Command::Extend { lease, .. } => {
                names::queue_of(lease)
            }
        }
    }
}

impl QueuesService {
    /// Does a command that is not a change in one transaction.
    pub async fn call(&self, cx: &Cx, command: Command) -> Result<Output> {
        if !self.queues.far.has(command.queue()?) {
            let (own, caller) = (self.clone(), cx.caller.clone());
            let done = commit(self.queues.backend.store(), move |commit| own.change(commit, &caller, command));
            return done.await;
        }
        let (far, now_ms) = (self.queues.far.current()?, cx.clock.now_ms());
        match command {
            Command::Put { queue, body, priority, not_before_ms, id, max_attempts } => {
                // The job's id: if the call is made again, it is the same item.
                let id = id.unwrap_or_else(|| cx.job_id().to_owned());
                let by = cx.caller.principal().to_string();
                let item = NewItem { queue, id, body, priority, not_before_ms, max_attempts, by, at_ms: now_ms };
                let (queue, id) = (item.queue.clone(), item.id.clone());
                if far.put(item).await? {
                    self.hint(&queue, far.as_ref()).await;
                }
                Ok(Output::Put(PutItem { queue, id }))
            }
            Command::Take { queue, wait_ms, lease_ms } => {
                let (token, by) = (names::token(&queue, &self.ids.id("lease")), cx.caller.principal().to_string());
                let wanted = TakeRequest { queue: queue.clone(), token, lease_ms, by, at_ms: now_ms };
                let begun = tokio::time::Instant::now();
                let taken = self.queues.far.take(wanted, Duration::from_millis(wait_ms), &cx.clock).await?;
                let waited_ms = begun.elapsed().as_millis() as u64;
                Ok(taken.map_or(Output::Empty(EmptyQueue { queue, empty: true, waited_ms }), Output::Leased))
            }
            Command::Done { lease } => self.settle_far("done", ItemEvent::Done { token: lease }, None, now_ms).await,
            Command::Fail { lease, error, retry_in_ms, dead } => {
                self.settle_far("failed", ItemEvent::Fail { token: lease, retry_in_ms, dead }, error, now_ms).await
            }
            Command::Extend { lease, lease_ms } => {
                self.settle_far("extended", ItemEvent::Extend { token: lease, lease_ms }, None, now_ms).await
            }
            Command::Retry { queue, id } => {
                far.dead_item(&queue, &id, ItemEvent::Retry, now_ms).await?;
                self.hint(&queue, far.as_ref()).await;
                Ok(Output::Dead(DeadChange { queue, id, state: "ready" }))
            }
            Command::Discard { queue, id } => {
                far.dead_item(&queue, &id, ItemEvent::Discard, now_ms).await?;
                Ok(Output::Dead(DeadChange { queue, id, state: "discarded" }))
            }
        }
    }

    async fn hint(&self, queue: &str, far: &dyn FarQueue) {
        self.queues.far.hinted();
        far.hint(queue).await;
    }

    async fn settle_far(
        &self,
        state: &'static str,
        event: ItemEvent,
        error: Option<String>,
        now_ms: u64,
    ) -> Result<Output> {
        let (ItemEvent::Done { token } | ItemEvent::Fail { token, .. } | ItemEvent::Extend { token, .. }) = &event
        else {
            return Err(acheron_base::Error::internal("only a lease is settled"));
        };
        let (far, queue) = (self.queues.far.current()?, names::queue_of(token)?.to_owned());
        let due_ms = far.settle_due(&event, error, now_ms).await?;
        Ok(Output::Settled(SettledLease { queue, state, due_ms }))
    }
}
