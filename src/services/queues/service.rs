//! The service: who may use which queue, and the operations.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::backend::{LeasedItem, NewItem, TakeRequest, Taken};
use super::lease::ItemEvent;
use super::waiting::PassOn;
use super::{Queues, files, names, sqlite};
use crate::contract::Operation;
use crate::events::Commit;
use crate::policy::PrincipalCaller;
use crate::service::{Cx, Service, WriteCx, json as to_json};
use acheron_base::{Error, Ids, Result};
use acheron_vfs::{Caller, Node};

/// The largest body, in bytes of JSON.
const BODY: usize = 256 << 10;
/// The longest time of a lease, of a delay and of a wait, in milliseconds.
const LONGEST_LEASE: u64 = 24 * 3_600_000;
const LONGEST_WAIT: u64 = 3_600_000;
/// The most attempts of an item.
const MOST_ATTEMPTS: u32 = 1000;

/// The queues as one agent uses them.
#[derive(Clone)]
pub struct QueuesService {
    pub(super) queues: Arc<Queues>,
    pub(super) ids: Ids,
    agent: String,
}

impl QueuesService {
    pub fn new(queues: Arc<Queues>, ids: Ids, agent: &str) -> QueuesService {
        QueuesService { queues, ids, agent: agent.to_owned() }
    }

    /// Leases an item as soon as there is one, in one commit with the end of the call.
    async fn take(&self, cx: &Cx, queue: String, wait_ms: u64, lease_ms: u64) -> Result<Output> {
        let signal = self.queues.signals.of(&queue);
        let begun = tokio::time::Instant::now();
        let until = begun + Duration::from_millis(wait_ms);
        let taken = loop {
            let mut place = signal.place();
            let pass_on = PassOn::new(&signal);
            // Always to its end: only the wait has a limit.
            let taken = self.try_take(cx, &queue, lease_ms).await;
            if taken.is_ok() {
                pass_on.done();
            }
            if !matches!(taken, Ok(None)) {
                break taken;
            }
            if tokio::time::timeout_at(until, place.wait(&cx.clock)).await.is_err() {
                break Ok(None);
            }
        };
        self.queues.signals.leave(&queue, signal);
        Ok(match taken? {
            Some(item) => Output::Leased(item),
            None => Output::Empty(EmptyQueue { queue, empty: true, waited_ms: begun.elapsed().as_millis() as u64 }),
        })
    }

    /// Leases an item if there is one.
    async fn try_take(&self, cx: &Cx, queue: &str, lease_ms: u64) -> Result<Option<LeasedItem>> {
        let token = names::token(queue, &self.ids.id("lease"));
        let by = cx.caller.principal().to_string();
        let wanted = TakeRequest { queue: queue.to_owned(), token, lease_ms, by, at_ms: cx.clock.now_ms() };
        let queues = self.queues.clone();
        let ended = cx.end_with(move |commit| {
            let taken = sqlite::take_in(commit.tx(), &wanted)?;
            let signal = queues.signals.of_waiting(&wanted.queue);
            let value = match &taken {
                Taken::Leased { item, .. } => Some(to_json(item)?),
                Taken::Empty { .. } => None,
            };
            commit.after(move || {
                let Some(signal) = signal else { return };
                match taken {
                    Taken::Leased { item, more } => {
                        signal.due(item.lease_until_ms);
                        if more {
                            signal.ready();
                        }
                    }
                    Taken::Empty { due_ms } => signal.first_due(due_ms),
                }
            });
            Ok(value)
        })?;
        let item = ended.await?;
        item.map(|value| serde_json::from_value(value).map_err(|error| Error::internal(error.to_string()))).transpose()
    }

    /// Tells those who wait that an item may be taken at this time.
    fn tell(&self, commit: &Commit<'_>, queue: &str, at_ms: u64) {
        let (queues, queue, now_ms) = (self.queues.clone(), queue.to_owned(), self.queues.clock.now_ms());
        commit.after(move || {
            if let Some(signal) = queues.signals.of_waiting(&queue) {
                if at_ms <= now_ms { signal.ready() } else { signal.due(at_ms) }
            }
        });
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", content = "arguments", rename_all = "snake_case")]
pub enum Command {
    /// Puts an item into a queue, which is made if it is not there. The item is durable when the write returns.
    Put {
        /// `[a-z0-9][a-z0-9_-]{0,63}`.
        queue: String,
        /// Any JSON; at most 256 KiB.
        body: Value,
        /// Higher ones are taken first; within a priority, older ones.
        #[serde(default)]
        priority: i64,
        /// Not before this time, in milliseconds since 1970.
        #[serde(default)]
        not_before_ms: Option<u64>,
        /// An id of your choice: the same again is the same item, also when that is done.
        #[serde(default)]
        id: Option<String>,
        /// How often it may be taken before it is dead.
        #[serde(default = "attempts")]
        max_attempts: u32,
    },
    /// Leases the first item; waits for one. If there is none in time, `empty` is true. A program that opens the control file
    /// for reading and writing and goes before the answer takes nothing.
    Take {
        queue: String,
        /// At most an hour; 0 only looks.
        #[serde(default = "wait")]
        wait_ms: u64,
        /// How long you have for the item before somebody else may take it; `extend` renews it.
        #[serde(default = "lease")]
        lease_ms: u64,
    },
    /// The item of this lease is done. Again is the same.
    Done {
        /// From the result of `take`.
        lease: String,
    },
    /// The attempt failed: the item is taken again after a pause that doubles each time, or is dead after its last attempt.
    Fail {
        lease: String,
        /// What went wrong, for `dead/<id>.json`.
        #[serde(default)]
        error: Option<String>,
        /// The pause, instead of 1 s, 2 s, 4 s, … 5 min.
        #[serde(default)]
        retry_in_ms: Option<u64>,
        /// It is dead at once.
        #[serde(default)]
        dead: bool,
    },
    /// Renews a lease from now on.
    Extend {
        lease: String,
        #[serde(default = "lease")]
        lease_ms: u64,
    },
    /// Makes a dead item ready again, with all its attempts.
    Retry {
        queue: String,
        /// As its file in `dead/` is called.
        id: String,
    },
    /// Drops a dead item.
    Discard { queue: String, id: String },
}

fn attempts() -> u32 {
    5
}

fn wait() -> u64 {
    60_000
}

fn lease() -> u64 {
    60_000
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    Leased(LeasedItem),
    Empty(EmptyQueue),
    Put(PutItem),
    Settled(SettledLease),
    Dead(DeadChange),
}

#[derive(Serialize, JsonSchema)]
pub struct EmptyQueue {
    pub(super) queue: String,
    /// Nothing was there.
    pub(super) empty: bool,
    pub(super) waited_ms: u64,
}

/// The result of `take`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code)] // only its schema is used
enum TakeResult {
    Leased(LeasedItem),
    Empty(EmptyQueue),
}

#[derive(Serialize, JsonSchema)]
pub struct PutItem {
    pub(super) queue: String,
    pub(super) id: String,
}

#[derive(Serialize, JsonSchema)]
pub struct SettledLease {
    pub(super) queue: String,
    /// `done`, `failed` or `extended`.
    pub(super) state: &'static str,
    /// When the item may be taken again: after its pause, or when the lease ends. None if it is done or dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) due_ms: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub struct DeadChange {
    pub(super) queue: String,
    pub(super) id: String,
    /// `ready` or `discarded`.
    pub(super) state: &'static str,
}

#[async_trait]
impl Service for QueuesService {
    const NAME: &'static str = "queues";
    const ABOUT: &'static str = "Queues of work, shared by all agents of this host: leases with time-outs, retries, dead letters.\n\n\
        `put` an item, `take` it (which waits), work, and say `done` or `fail` with the lease. A lease that is neither ended nor \
        extended in its time goes to somebody else, so an item may be handed out more than once, but never after it is done. \
        `names/<queue>/status.json` counts; `names/<queue>/dead/<id>.json` is an item whose attempts all failed. A rule on \
        `/agents/self/queues/names/<queue>` decides who may use a queue (`invoke`) and see it (`read`). \
        A worker in five lines of shell: `/global/library/topics/queues.md`.";
    type Command = Command;
    type Output = Output;

    fn operations() -> Vec<Operation> {
        let lease = json!({"lease": "crossings.lease-of-your-take"});
        let dead = json!({"queue": "crossings", "id": "soul-1"});
        vec![
            Operation::write("put")
                .gives::<PutItem>()
                .example(json!({"queue": "crossings", "body": {"soul": "Orpheus"}, "id": "soul-1", "priority": 1})),
            Operation::execute("take")
                .gives::<TakeResult>()
                .deadline(Duration::from_millis(LONGEST_WAIT + 60_000))
                .for_its_reader()
                .example(json!({"queue": "crossings", "wait_ms": 100})),
            Operation::write("done").gives::<SettledLease>().idempotent().example(lease.clone()),
            Operation::write("fail")
                .gives::<SettledLease>()
                .example(json!({"lease": "crossings.lease-of-your-take", "error": "the ferry was full"})),
            Operation::write("extend").gives::<SettledLease>().idempotent().example(lease),
            Operation::write("retry").gives::<DeadChange>().example(dead.clone()),
            Operation::write("discard").gives::<DeadChange>().example(dead),
        ]
    }

    fn files(&self) -> Vec<(String, Node)> {
        files::listed(&self.queues)
    }

    fn check(&self, _caller: &Caller, command: Command) -> Result<()> {
        match command {
            Command::Put { body, id, max_attempts, .. } => {
                id.as_deref().map_or(Ok(()), names::check_id)?;
                within("max_attempts", max_attempts.into(), 1, MOST_ATTEMPTS.into())?;
                match body.to_string().len() {
                    bytes if bytes > BODY => Err(Error::too_large(format!(
                        "the body has {bytes} bytes, and at most {BODY} are allowed: write it to a file and put its path"
                    ))),
                    _ => Ok(()),
                }
            }
            Command::Take { wait_ms, lease_ms, .. } => {
                within("wait_ms", wait_ms, 0, LONGEST_WAIT)?;
                within("lease_ms", lease_ms, 1, LONGEST_LEASE)
            }
            Command::Fail { retry_in_ms, .. } => within("retry_in_ms", retry_in_ms.unwrap_or(0), 0, LONGEST_LEASE),
            Command::Extend { lease_ms, .. } => within("lease_ms", lease_ms, 1, LONGEST_LEASE),
            Command::Done { .. } | Command::Retry { .. } | Command::Discard { .. } => Ok(()),
        }
    }

    /// A queue is used by whoever may `invoke` on its directory.
    fn invoked_paths(&self, command: Command) -> Result<Vec<String>> {
        let queue = match &command {
            Command::Put { queue, .. }
            | Command::Take { queue, .. }
            | Command::Retry { queue, .. }
            | Command::Discard { queue, .. } => queue,
            Command::Done { lease } | Command::Fail { lease, .. } | Command::Extend { lease, .. } => {
                names::queue_of(lease)?
            }
        };
        names::check_queue(queue)?;
        Ok(vec![format!("/agents/{}/queues/names/{queue}", self.agent)])
    }

    async fn invoke(&self, cx: &Cx, command: Command) -> Result<Output> {
        match command {
            Command::Take { queue, wait_ms, lease_ms } if !self.queues.far.has(&queue) => {
                self.take(cx, queue, wait_ms, lease_ms).await
            }
            command => self.call(cx, command).await,
        }
    }

    fn write(&self, cx: &WriteCx<'_>, command: Command) -> Result<Output> {
        self.change(cx.commit, cx.caller, command)
    }

    fn is_local(&self) -> bool {
        self.queues.far.is_empty()
    }
}

impl QueuesService {
    /// Does a command on a queue of this host, as part of a commit.
    pub(super) fn change(&self, commit: &Commit<'_>, caller: &Caller, command: Command) -> Result<Output> {
        let (tx, now_ms) = (commit.tx(), self.queues.clock.now_ms());
        match command {
            Command::Put { queue, body, priority, not_before_ms, id, max_attempts } => {
                let id = id.unwrap_or_else(|| self.ids.id("item"));
                let by = caller.principal().to_string();
                let item = NewItem { queue, id, body, priority, not_before_ms, max_attempts, by, at_ms: now_ms };
                if self.queues.backend.put_in(tx, &item)? {
                    self.tell(commit, &item.queue, not_before_ms.unwrap_or(now_ms));
                }
                Ok(Output::Put(PutItem { queue: item.queue, id: item.id }))
            }
            Command::Done { lease } => self.settle(commit, "done", ItemEvent::Done { token: lease }, None),
            Command::Fail { lease, error, retry_in_ms, dead } => {
                self.settle(commit, "failed", ItemEvent::Fail { token: lease, retry_in_ms, dead }, error.as_deref())
            }
            Command::Extend { lease, lease_ms } => {
                self.settle(commit, "extended", ItemEvent::Extend { token: lease, lease_ms }, None)
            }
            Command::Retry { queue, id } => {
                sqlite::dead_item_in(tx, &queue, &id, &ItemEvent::Retry, now_ms)?;
                self.tell(commit, &queue, now_ms);
                Ok(Output::Dead(DeadChange { queue, id, state: "ready" }))
            }
            Command::Discard { queue, id } => {
                sqlite::dead_item_in(tx, &queue, &id, &ItemEvent::Discard, now_ms)?;
                Ok(Output::Dead(DeadChange { queue, id, state: "discarded" }))
            }
            Command::Take { .. } => Err(Error::internal("queues: take waits, and is no change by itself")),
        }
    }

    fn settle(
        &self,
        commit: &Commit<'_>,
        state: &'static str,
        event: ItemEvent,
        error: Option<&str>,
    ) -> Result<Output> {
        let (ItemEvent::Done { token } | ItemEvent::Fail { token, .. } | ItemEvent::Extend { token, .. }) = &event
        else {
            return Err(Error::internal("only a lease is settled"));
        };
        let queue = names::queue_of(token)?.to_owned();
        let due_ms = sqlite::settle_in(commit.tx(), &event, error, self.queues.clock.now_ms())?;
        if let Some(due_ms) = due_ms {
            self.tell(commit, &queue, due_ms);
        }
        Ok(Output::Settled(SettledLease { queue, state, due_ms }))
    }
}

fn within(name: &str, number: u64, least: u64, most: u64) -> Result<()> {
    match (least..=most).contains(&number) {
        true => Ok(()),
        false => Err(Error::invalid(format!("{name} is {least} to {most}"))),
    }
}
