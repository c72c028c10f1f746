//! Approvals: what the operator is asked before an agent does it.
//!
//! [`Approvals`] holds the requests that wait and those that were decided, [`files`] shows them as `approvals/`, [`always`] the
//! exceptions that answers have made. The core (`crates/approvals`) says what is asked and what an answer allows; `policy` says
//! when to ask; `service::runner` parks the calls. Nothing here does what is asked about. Used by `service`, `host` and `cli`;
//! uses `policy`, `state` and `events`.

pub mod always;
mod approval;
mod decide;
pub mod files;
mod table;
#[cfg(test)]
mod tests;
mod ticket;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::events::EventLogs;
use crate::state::approvals as rows;
use crate::state::approvals::ApprovalRow;
use acheron_approvals::{Exception, LinkKey, Subject};
use acheron_base::{Clock, Error, Ids, Result};
use acheron_store::Store;
use acheron_vfs::ChangeNotifier;

pub use approval::{Approval, ApprovalStatus};
pub use ticket::AskTicket;

use always::AlwaysNotifiers;
use table::ApprovalTable;

/// How many requests of one agent wait at most, and how many equal calls one request stands for.
pub const MOST_WAITING: usize = 8;

/// How long a request waits, unless the mountspec says otherwise.
pub const EXPIRES_MS: u64 = 15 * 60 * 1000;

/// Decided requests that are kept on the disk.
const KEPT: usize = 500;

/// All requests of the host.
pub struct Approvals {
    store: Store,
    event_logs: Arc<EventLogs>,
    ids: Ids,
    runtime: tokio::runtime::Handle,
    table: Mutex<ApprovalTable>,
    exceptions: RwLock<Vec<Exception>>,
    always: AlwaysNotifiers,
    expires_ms: RwLock<u64>,
    /// Names that come and go in `approvals/`.
    notifier: Arc<ChangeNotifier>,
    /// Counts changes, for readers that wait.
    changed: watch::Sender<u64>,
    /// How many wait for a request: places that would show one.
    listeners: Arc<AtomicUsize>,
    /// Why the last decision was refused.
    refused: Mutex<Option<Error>>,
    /// The name of this host.
    host: RwLock<String>,
    /// Signs the links that are sent out.
    links: OnceLock<Arc<LinkKey>>,
    /// Where the page of `acheron serve` is reached: as the mountspec says, and where a listener is open.
    url: RwLock<Option<String>>,
    listener: RwLock<Option<String>>,
}

impl Approvals {
    pub fn new(store: Store, event_logs: Arc<EventLogs>, ids: Ids, runtime: tokio::runtime::Handle) -> Arc<Approvals> {
        Arc::new(Approvals {
            store,
            event_logs,
            ids,
            runtime,
            table: Mutex::default(),
            exceptions: RwLock::default(),
            always: AlwaysNotifiers::default(),
            expires_ms: RwLock::new(EXPIRES_MS),
            notifier: Arc::default(),
            changed: watch::Sender::new(0),
            listeners: Arc::default(),
            refused: Mutex::default(),
            host: RwLock::default(),
            links: OnceLock::new(),
            url: RwLock::default(),
            listener: RwLock::default(),
        })
    }

    /// Takes over what an earlier run of the host left. Must be called within a runtime.
    pub fn restore(self: &Arc<Self>) -> Result<()> {
        let (rows, exceptions) = self.store.look(|conn| Ok((rows::all(conn)?, rows::exceptions(conn)?)))?;
        *self.exceptions.write() = exceptions;
        let mut fresh = [0; LinkKey::LENGTH];
        self.ids.random().fill(&mut fresh);
        let key = self.store.write_blocking(move |tx| rows::key(tx, &fresh))?;
        _ = self.links.set(Arc::new(LinkKey::new(&key))); // there is only one
        for row in rows {
            let approval = Arc::new(Approval::of_row(row));
            self.table.lock().restore(approval.clone());
            self.expire_in_time(&approval);
        }
        Ok(())
    }

    /// Requests from now on wait for so long.
    pub fn set_expiry(&self, ms: u64) {
        *self.expires_ms.write() = ms;
    }

    /// Links lead there, as the mountspec says.
    pub fn set_url(&self, url: Option<String>) {
        *self.url.write() = url;
    }

    /// Links lead there, while a listener is open and the mountspec names no place.
    pub fn set_listener(&self, url: Option<String>) {
        *self.listener.write() = url;
    }

    /// A listener was closed.
    pub fn clear_listener(&self, url: &str) {
        let mut listener = self.listener.write();
        if listener.as_deref() == Some(url) {
            *listener = None;
        }
    }

    /// Verifies links.
    pub fn links(&self) -> Option<Arc<LinkKey>> {
        self.links.get().cloned()
    }

    /// The link to the page of a request, if there is a page.
    pub fn link(&self, approval: &Approval) -> Option<String> {
        let base = self.url.read().clone().or_else(|| self.listener.read().clone())?;
        let signature = self.links()?.sign(&approval.id, approval.hash(), approval.expires_at_ms);
        Some(format!("{}/approve?id={}&t={signature}", base.trim_end_matches('/'), approval.id))
    }

    /// Changes whenever a request comes, or ends.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Requests show this name of the host.
    pub fn set_host(&self, name: &str) {
        name.clone_into(&mut self.host.write());
    }

    /// `request.json` of a request.
    pub fn request_page(&self, approval: &Approval) -> serde_json::Value {
        approval.request_page(&self.host.read(), self.listeners())
    }

    fn clock(&self) -> &Clock {
        self.ids.clock()
    }

    pub fn get(&self, id: &str) -> Option<Arc<Approval>> {
        self.table.lock().get(id)
    }

    /// All that are shown, oldest first.
    pub fn all(&self) -> Vec<Arc<Approval>> {
        self.table.lock().shown()
    }

    /// The oldest request that waits.
    pub fn oldest(&self) -> Option<Arc<Approval>> {
        self.all().into_iter().find(|approval| !approval.status().state.settled())
    }

    /// How many places wait for a request to show it.
    pub fn listeners(&self) -> usize {
        self.listeners.load(Ordering::SeqCst)
    }

    /// Whether an answer that was given before lets `agent` do what the rule asks about.
    pub fn lets(&self, agent: &str, rule: &str, subject: &Subject) -> bool {
        let now_ms = self.clock().now_ms();
        self.exceptions.read().iter().any(|exception| exception.lets(agent, rule, subject, now_ms))
    }

    /// Tells readers that something has changed.
    fn tell(&self, id: &str) {
        self.notifier.name(id);
        let gone = self.table.lock().trim();
        gone.iter().for_each(|id| self.notifier.name(id));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Removes what ended before this time, and exceptions that are over.
    pub async fn prune(self: &Arc<Self>, before_ms: u64) -> Result<()> {
        let now_ms = self.clock().now_ms();
        let over: Vec<String> =
            self.exceptions.read().iter().filter(|it| it.is_over(now_ms)).map(|it| it.id.clone()).collect();
        let ended = over.clone();
        let gone = self.store.write(move |tx| {
            ended.iter().try_for_each(|id| rows::remove_exception(tx, id).map(drop))?;
            rows::prune(tx, before_ms, KEPT)
        });
        let gone = gone.await?;
        self.exceptions.write().retain(|it| !over.contains(&it.id));
        self.table.lock().forget(&gone);
        gone.iter().for_each(|id| self.notifier.name(id));
        Ok(())
    }

    /// Forgets an agent that is gone: what waits for it is withdrawn by its jobs.
    pub fn forget(&self, agent: &str) {
        let gone = self.table.lock().forget_agent(agent);
        self.exceptions.write().retain(|exception| exception.agent != agent);
        gone.iter().for_each(|id| self.notifier.name(id));
        self.changed.send_modify(|count| *count += 1);
    }
}

/// The row of a request as it is stored.
fn row(approval: &Approval, private: bool) -> ApprovalRow {
    let mut request = approval.request.clone();
    if private {
        let Subject::Invoke { arguments, .. } = &mut request.subject;
        *arguments = serde_json::json!({ "withheld": true });
    }
    ApprovalRow {
        id: approval.id.clone(),
        state: approval.status().state,
        request,
        created_at_ms: approval.created_at_ms,
        expires_at_ms: approval.expires_at_ms,
        decision: None,
        used_by: None,
    }
}
