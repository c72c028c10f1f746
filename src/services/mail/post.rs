//! The mail of all agents and of the operator: a mailbox, the events about messages, and who waits for them.
//!
//! A change, the event of the recipient and the receipt of the sender are one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use dashmap::DashMap;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::address::{Address, OPERATOR};
use super::backend::Mailbox;
use super::far;
use super::message::{Mail, NewMail, Receipt, SentMail};
use super::sqlite::{self, SqliteMailbox};
use crate::events::{Commit, EventLogs, commit};
use crate::state::events;
use crate::state::quota::Quotas;
use acheron_base::{Clock, Result};
use acheron_store::Store;
use acheron_vfs::{Log, line};

/// Receipts and arrivals are events of this kind.
pub const EVENT: &str = "mail";
/// The payload of an event about a message that has come.
pub const ARRIVED: &str = "arrived";
/// The bytes of the operator's `receipts.ndjson`.
const RECEIPTS: usize = 1 << 20;
/// Receipts of the operator that are shown again after a restart.
const RESTORED: events::PageLimits = events::PageLimits { events: 1000, bytes: RECEIPTS };
/// Messages that go with their inbox in one commit.
const BATCH: usize = 1000;

pub struct Post {
    pub mailbox: SqliteMailbox,
    pub event_logs: Arc<EventLogs>,
    pub clock: Clock,
    /// The receipts of messages that the operator sent.
    pub receipts: Log,
    /// Notifies when letters for other hosts wait.
    pub outgoing: Arc<Notify>,
    signals: DashMap<Address, Arc<InboxSignal>>,
}

/// What is known of an inbox without the database.
pub struct InboxSignal {
    messages: AtomicI64,
    arrivals: AtomicU64,
    /// The number of arrivals at which no message was unseen.
    clear_at: AtomicU64,
    changed: watch::Sender<u64>,
}

impl InboxSignal {
    fn new(messages: u64) -> Arc<InboxSignal> {
        let messages = AtomicI64::new(messages.min(i64::MAX as u64) as i64);
        let (arrivals, clear_at) = (AtomicU64::new(1), AtomicU64::new(0));
        Arc::new(InboxSignal { messages, arrivals, clear_at, changed: watch::Sender::new(0) })
    }

    /// Whether there are messages.
    pub fn has_messages(&self) -> bool {
        self.messages.load(Ordering::SeqCst) > 0
    }

    pub fn listen(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub fn arrivals(&self) -> u64 {
        self.arrivals.load(Ordering::SeqCst)
    }

    /// Whether a message may be unseen.
    pub fn may_be_unseen(&self) -> bool {
        self.clear_at.load(Ordering::SeqCst) != self.arrivals()
    }

    /// No message was unseen when there had been so many arrivals.
    pub fn is_clear_at(&self, arrivals: u64) {
        self.clear_at.store(arrivals, Ordering::SeqCst);
    }

    fn changed(&self, messages: i64) {
        self.messages.fetch_add(messages, Ordering::SeqCst);
        if messages > 0 {
            self.arrivals.fetch_add(1, Ordering::SeqCst);
        }
        self.changed.send_modify(|count| *count += 1);
    }
}

impl Post {
    pub fn open(store: Store, event_logs: Arc<EventLogs>, quotas: Arc<Quotas>, clock: Clock) -> Result<Arc<Post>> {
        let (counts, told) = store.look(|conn| Ok((sqlite::counts(conn)?, events::tail(conn, OPERATOR, RESTORED)?)))?;
        let signals = counts.into_iter().map(|(address, messages)| (address, InboxSignal::new(messages))).collect();
        let receipts = Log::new(RECEIPTS, clock.clone());
        for event in told.iter().filter(|event| event.kind == EVENT) {
            receipts.append(&line(&event.payload));
        }
        let mailbox = SqliteMailbox::new(store, quotas);
        Ok(Arc::new(Post { mailbox, event_logs, clock, receipts, outgoing: Arc::default(), signals }))
    }

    pub fn signal(&self, inbox: &Address) -> Arc<InboxSignal> {
        self.signals.entry(inbox.clone()).or_insert_with(|| InboxSignal::new(0)).clone()
    }

    /// Sends a message as part of a commit.
    pub fn send_in(&self, commit: &Commit<'_>, mail: &NewMail) -> Result<SentMail> {
        let sent = self.mailbox.send_in(commit.tx(), mail)?;
        if !sent.is_new {
            return Ok(sent);
        }
        match mail.to {
            Address::Far(_) => self.go_out_after(commit), // what became of it, its host will tell
            Address::Agent(_) | Address::Operator => self.arrived_in(commit, mail, &sent.thread)?,
        }
        if let Some(answered) = &sent.answers {
            let told = json!({"id": answered, "to": mail.from, "at_ms": mail.at_ms, "answer": sent.id});
            self.receipt_in(commit, &mail.to, Receipt::Answered, told)?;
        }
        Ok(sent)
    }

    /// Puts a message that came from another host into its inbox, as part of a commit.
    pub fn deliver_in(&self, commit: &Commit<'_>, mail: &NewMail) -> Result<()> {
        let answered = self.mailbox.deliver_in(commit.tx(), mail)?;
        self.arrived_in(commit, mail, mail.thread.as_ref().unwrap_or(&mail.id))?;
        if let Some(answered) = answered.filter(|_| mail.from.far().is_none()) {
            let told = json!({"id": answered, "to": mail.from, "at_ms": mail.at_ms, "answer": mail.id});
            self.receipt_in(commit, &mail.to, Receipt::Answered, told)?;
        }
        Ok(())
    }

    /// Tells the recipient, the sender and those who wait.
    fn arrived_in(&self, commit: &Commit<'_>, mail: &NewMail, thread: &str) -> Result<()> {
        let NewMail { id, from, to, at_ms, .. } = mail;
        if let Address::Agent(agent) = to {
            let told = json!({"mail": ARRIVED, "id": id, "from": from, "subject": mail.subject,
                "thread": thread, "reply_to": mail.reply_to});
            commit.emit(&self.event_logs.of(agent)?, EVENT, &format!("{}/{id}.json", to.inbox()), told)?;
        }
        self.receipt_in(commit, from, Receipt::Stored, json!({"id": id, "to": to, "at_ms": at_ms}))?;
        let signal = self.signal(to);
        commit.after(move || signal.changed(1));
        Ok(())
    }

    /// Has letters for other hosts go out when this commit is durable.
    pub fn go_out_after(&self, commit: &Commit<'_>) {
        let outgoing = self.outgoing.clone();
        commit.after(move || outgoing.notify_one());
    }

    /// Acknowledges a message as part of a commit.
    pub fn ack_in(&self, commit: &Commit<'_>, inbox: &Address, id: &str) -> Result<()> {
        if sqlite::ack_in(commit.tx(), inbox, id, self.clock.now_ms())? {
            let signal = self.signal(inbox);
            commit.after(move || signal.changed(-1));
        }
        Ok(())
    }

    /// Marks messages as seen by the model of their recipient, and tells their senders.
    pub async fn seen(self: &Arc<Self>, inbox: &Address, ids: Vec<String>) -> Result<()> {
        let (post, inbox) = (self.clone(), inbox.clone());
        let done = commit(self.mailbox.store(), move |commit| {
            let at_ms = post.clock.now_ms();
            for (id, sender) in sqlite::seen_in(commit.tx(), &inbox, &ids, at_ms)? {
                let told = json!({"id": id, "to": inbox, "at_ms": at_ms});
                post.receipt_in(commit, &sender, Receipt::Seen, told)?;
            }
            Ok(())
        });
        done.await
    }

    /// Tells the senders of what is left in an inbox that it goes with it. Blocks.
    pub fn dead(self: &Arc<Self>, inbox: &Address) -> Result<()> {
        let mut after = 0;
        loop {
            let (post, inbox) = (self.clone(), inbox.clone());
            let told = commit(self.mailbox.store(), move |commit| {
                let left = sqlite::left(commit.tx(), &inbox, after, BATCH)?;
                for (_, id, sender) in left.iter().filter(|(_, _, sender)| *sender != inbox) {
                    let told = json!({"id": id, "to": inbox, "at_ms": post.clock.now_ms()});
                    post.receipt_in(commit, sender, Receipt::Dead, told)?;
                }
                Ok(left.last().map(|(number, ..)| *number))
            });
            match told.wait()? {
                Some(last) => after = last,
                None => break,
            }
        }
        self.signals.remove(inbox);
        Ok(())
    }

    /// Tells a sender what became of its message.
    pub fn receipt_in(&self, commit: &Commit<'_>, sender: &Address, what: Receipt, about: Value) -> Result<()> {
        if let Some(far) = sender.far() {
            let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
            let (by, at_ms) = (Address::stored(&text("to")), about["at_ms"].as_u64().unwrap_or_default());
            far::put_receipt(commit.tx(), &far, &text("id"), &by, what, None, at_ms)?;
            self.go_out_after(commit);
            return Ok(());
        }
        let mut told = json!({ "mail": what });
        if let (Some(told), Value::Object(about)) = (told.as_object_mut(), about) {
            told.extend(about);
        }
        let path = format!("{}/control/send.json", sender.dir());
        commit.emit(&self.event_logs.of(sender.name())?, EVENT, &path, told.clone())?;
        if *sender == Address::Operator {
            let receipts = self.receipts.clone();
            commit.after(move || receipts.append(&line(&told)));
        }
        Ok(())
    }

    /// The oldest message of an inbox.
    pub async fn oldest(&self, inbox: &Address) -> Result<Option<Mail>> {
        Ok(self.mailbox.list(inbox, 0, 1).await?.pop())
    }
}
