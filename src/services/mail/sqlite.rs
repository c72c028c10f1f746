//! Mail in the database of the host: the default backend. What it does in a transaction (`…_in`) a call of effect `write`
//! does in its own.

use std::sync::Arc;

use async_trait::async_trait;

use super::address::Address;
use super::backend::Mailbox;
use super::far;
use super::message::{Mail, NewMail, SentMail};
use crate::state::quota::{QuotaKind, Quotas};
use acheron_base::{Error, Result, quoted};
use acheron_fabric::names::FarAgent;
use acheron_store::{Connection, OptionalExtension, Row, Sql, Store, Tx, params};

const COLUMNS: &str = "number, id, sender, recipient, subject, body, thread, reply_to, at_ms, seen_at_ms";
/// In place of a sender: all of them.
const ALL: &str = "";
/// Rows that are forgotten in one transaction.
const BATCH: usize = 1000;

pub struct SqliteMailbox {
    store: Store,
    quotas: Arc<Quotas>,
}

impl SqliteMailbox {
    pub fn new(store: Store, quotas: Arc<Quotas>) -> SqliteMailbox {
        SqliteMailbox { store, quotas }
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// [`Mailbox::send`] as part of a transaction.
    pub fn send_in(&self, tx: &Tx<'_>, mail: &NewMail) -> Result<SentMail> {
        let by = mail.to.far().map_or(SendRoute::Inbox, SendRoute::Fabric);
        self.send_by(tx, mail, &by)
    }

    /// As [`send_in`](Self::send_in), by a way of the caller's choice.
    pub fn send_by(&self, tx: &Tx<'_>, mail: &NewMail, by: &SendRoute) -> Result<SentMail> {
        send(tx, &self.quotas, mail, by)
    }

    /// Puts a message that came from another host into its inbox. Returns the message of the inbox's owner that it answers.
    pub fn deliver_in(&self, tx: &Tx<'_>, mail: &NewMail) -> Result<Option<String>> {
        let NewMail { id, from, to, at_ms, .. } = mail;
        let thread = mail.thread.as_ref().unwrap_or(id);
        insert(tx, &self.quotas, mail, thread)?;
        // One that this host sent to itself is known already.
        tx.prepare_cached(
            "INSERT OR IGNORE INTO mail_sent (sender, key, id, recipient, thread, at_ms) VALUES (?1, ?2, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![from.name(), id, to.name(), thread, at_ms])?;
        let answers = match &mail.reply_to {
            Some(id) => may_answer(tx, from, to, id)?,
            None => false,
        };
        Ok(mail.reply_to.clone().filter(|_| answers))
    }
}

/// How a message leaves.
#[derive(Clone, Debug)]
pub enum SendRoute {
    /// At once into an inbox of this host.
    Inbox,
    /// To an agent of a host, by the fabric.
    Fabric(FarAgent),
}

fn send(tx: &Tx<'_>, quotas: &Quotas, mail: &NewMail, by: &SendRoute) -> Result<SentMail> {
    let NewMail { id, key, from, to, reply_to, thread, at_ms, .. } = mail;
    if let Some(key) = key
        && let Some(sent) = sent_before(tx, from, key)?
    {
        let (before, sent) = sent;
        return match before == *to {
            true => Ok(sent),
            false => Err(Error::conflict(format!("your message with the id {} went to {before}", quoted(key)))),
        };
    }
    let answered = reply_to.as_deref().map(|id| answered(tx, from, id)).transpose()?;
    let thread = thread.clone().or_else(|| answered.as_ref().map(|it| it.thread.clone())).unwrap_or_else(|| id.clone());
    match by {
        SendRoute::Inbox => insert(tx, quotas, mail, &thread)?,
        SendRoute::Fabric(far) => {
            room(tx, quotas, mail, &far.to_string())?;
            far::put_message(tx, mail, &thread, far)?;
            far::count_out(tx, far, from.name(), 1, mail.bytes())?;
        }
    }
    tx.prepare_cached(
        "INSERT INTO mail_sent (sender, key, id, recipient, thread, at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![from.name(), key.as_ref().unwrap_or(id), id, to.name(), thread, at_ms])?;
    let answers = answered.filter(|answered| answered.sender == *to && answered.recipient == *from);
    Ok(SentMail { id: id.clone(), thread, at_ms: *at_ms, is_new: true, answers: answers.and(reply_to.clone()) })
}

/// Puts a message into its inbox.
fn insert(tx: &Tx<'_>, quotas: &Quotas, mail: &NewMail, thread: &str) -> Result<()> {
    let NewMail { id, from, to, subject, body, reply_to, at_ms, .. } = mail;
    room(tx, quotas, mail, to.name())?;
    tx.prepare_cached(
        "INSERT INTO mail (id, sender, recipient, subject, body, thread, reply_to, at_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![id, from.name(), to.name(), subject, body, thread, reply_to, at_ms])?;
    for part in [ALL, from.name()] {
        tx.prepare_cached(
            "INSERT INTO mail_boxes (recipient, sender, messages, bytes) VALUES (?1, ?2, 1, ?3) \
             ON CONFLICT (recipient, sender) DO UPDATE SET messages = messages + 1, bytes = bytes + ?3",
        )?
        .execute(params![to.name(), part, mail.bytes()])?;
    }
    Ok(())
}

/// A message with this id of its sender, and its recipient.
fn sent_before(tx: &Tx<'_>, from: &Address, key: &str) -> Result<Option<(Address, SentMail)>> {
    let mut select =
        tx.prepare_cached("SELECT recipient, id, thread, at_ms FROM mail_sent WHERE sender = ?1 AND key = ?2")?;
    let found = select.query_row(params![from.name(), key], |row| {
        let sent = SentMail { id: row.get(1)?, thread: row.get(2)?, at_ms: row.get(3)?, is_new: false, answers: None };
        Ok((Address::stored(&row.get::<_, String>(0)?), sent))
    });
    Ok(found.optional()?)
}

struct AnsweredMail {
    sender: Address,
    recipient: Address,
    thread: String,
}

/// The message that one of `from` answers. It has to know it.
fn answered(conn: &Connection, from: &Address, id: &str) -> Result<AnsweredMail> {
    let mut select = conn.prepare_cached("SELECT sender, recipient, thread FROM mail_sent WHERE id = ?1")?;
    let found = select.query_row([id], |row| {
        let address = |name: String| Address::stored(&name);
        Ok(AnsweredMail { sender: address(row.get(0)?), recipient: address(row.get(1)?), thread: row.get(2)? })
    });
    let own = found.optional()?.filter(|found| found.sender == *from || found.recipient == *from);
    own.ok_or_else(|| Error::not_found(format!("you neither got nor sent a message {} to answer", quoted(id))))
}

/// Whether `from` got the message `id` from `to`, and so may answer it.
pub fn may_answer(conn: &Connection, from: &Address, to: &Address, id: &str) -> Result<bool> {
    Ok(acheron_base::if_exists(answered(conn, from, id))?.is_some_and(|it| it.sender == *to && it.recipient == *from))
}

/// Refuses a message for which its inbox has no room. One agent fills at most half of it.
fn room(tx: &Tx<'_>, quotas: &Quotas, mail: &NewMail, recipient: &str) -> Result<()> {
    let held = |sender: &str| -> Result<(u64, u64)> {
        let sql = "SELECT messages, bytes FROM mail_boxes WHERE recipient = ?1 AND sender = ?2";
        let found = tx.prepare_cached(sql)?.query_row([recipient, sender], |row| Ok((row.get(0)?, row.get(1)?)));
        Ok(found.optional()?.unwrap_or_default())
    };
    let (messages, bytes) = held(ALL)?;
    if mail.from != Address::Operator && mail.from != mail.to {
        let (own, own_bytes) = held(mail.from.name())?;
        quotas.check(QuotaKind::MailMessagesOfOne, own, 1)?;
        quotas.check(QuotaKind::MailOfOne, own_bytes, mail.bytes())?;
    }
    quotas.check(QuotaKind::MailMessages, messages, 1)?;
    quotas.check(QuotaKind::Mail, bytes, mail.bytes())
}

/// [`Mailbox::ack`] as part of a transaction. Returns whether the message was there.
pub fn ack_in(tx: &Tx<'_>, inbox: &Address, id: &str, at_ms: u64) -> Result<bool> {
    let mut delete = tx.prepare_cached(
        "DELETE FROM mail WHERE id = ?1 AND recipient = ?2 RETURNING sender, length(CAST(subject AS BLOB)) + length(CAST(body AS BLOB))",
    )?;
    let gone = delete.query_row(params![id, inbox.name()], |row| Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?)));
    if let Some((sender, bytes)) = gone.optional()? {
        tx.prepare_cached(
            "UPDATE mail_boxes SET messages = messages - 1, bytes = bytes - ?3 WHERE recipient = ?1 AND sender IN ('', ?2)",
        )?
        .execute(params![inbox.name(), sender, bytes])?;
        tx.prepare_cached("UPDATE mail_sent SET acked_at_ms = ?2 WHERE id = ?1")?.execute(params![id, at_ms])?;
        return Ok(true);
    }
    let mut select =
        tx.prepare_cached("SELECT 1 FROM mail_sent WHERE id = ?1 AND recipient = ?2 AND acked_at_ms IS NOT NULL")?;
    match select.exists(params![id, inbox.name()])? {
        true => Ok(false),
        false => Err(Error::not_found(format!("there is no message {} in this inbox", quoted(id)))),
    }
}

/// [`Mailbox::seen`] as part of a transaction.
pub fn seen_in(tx: &Tx<'_>, inbox: &Address, ids: &[String], at_ms: u64) -> Result<Vec<(String, Address)>> {
    let mut update = tx.prepare_cached(
        "UPDATE mail SET seen_at_ms = ?3 WHERE id = ?1 AND recipient = ?2 AND seen_at_ms IS NULL RETURNING sender",
    )?;
    let mut seen = Vec::new();
    for id in ids {
        let sender = update.query_row(params![id, inbox.name(), at_ms], |row| row.get::<_, String>(0)).optional()?;
        seen.extend(sender.map(|sender| (id.clone(), Address::stored(&sender))));
    }
    Ok(seen)
}

/// The names of all messages of an inbox in their order, with their times; at most `most`.
pub fn names(conn: &Connection, inbox: &Address, most: usize) -> Result<Vec<(String, u64)>> {
    let mut select =
        conn.prepare_cached("SELECT id, at_ms FROM mail WHERE recipient = ?1 ORDER BY recipient, id LIMIT ?2")?;
    let most = most.min(i64::MAX as usize) as i64;
    let rows = select.query_map(params![inbox.name(), most], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Sql<_>>()?)
}

/// The time of one message, if it is there.
pub fn time_of(conn: &Connection, inbox: &Address, id: &str) -> Result<Option<u64>> {
    let mut select = conn.prepare_cached("SELECT at_ms FROM mail WHERE recipient = ?1 AND id = ?2")?;
    Ok(select.query_row([inbox.name(), id], |row| row.get(0)).optional()?)
}

/// Some of the messages of an inbox that is about to be removed: each with its sender.
pub fn left(conn: &Connection, inbox: &Address, after: u64, most: usize) -> Result<Vec<(u64, String, Address)>> {
    let sql = "SELECT number, id, sender FROM mail WHERE recipient = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
    let mut select = conn.prepare_cached(sql)?;
    let rows = select.query_map(params![inbox.name(), after, most as i64], |row| {
        Ok((row.get(0)?, row.get(1)?, Address::stored(&row.get::<_, String>(2)?)))
    })?;
    Ok(rows.collect::<Sql<_>>()?)
}

/// Removes the inbox of an agent, and what is remembered of the messages that it sent. Those are in the inboxes of others,
/// who keep them.
pub fn purge(tx: &Tx<'_>, agent: &str) -> Result<()> {
    for sql in [
        "DELETE FROM mail WHERE recipient = ?1",
        "DELETE FROM mail_boxes WHERE recipient = ?1",
        "DELETE FROM mail_sent WHERE recipient = ?1 OR sender = ?1",
        "DELETE FROM mail_out WHERE sender = ?1",
    ] {
        tx.execute(sql, [agent])?;
    }
    Ok(())
}

fn read(row: &Row<'_>) -> Sql<Mail> {
    let address = |name: String| Address::stored(&name);
    Ok(Mail {
        number: row.get(0)?,
        id: row.get(1)?,
        from: address(row.get(2)?),
        to: address(row.get(3)?),
        subject: row.get(4)?,
        body: row.get(5)?,
        thread: row.get(6)?,
        reply_to: row.get(7)?,
        at_ms: row.get(8)?,
        seen_at_ms: row.get(9)?,
    })
}

fn page(conn: &Connection, inbox: &Address, after: u64, most: usize, condition: &str) -> Result<Vec<Mail>> {
    let sql =
        format!("SELECT {COLUMNS} FROM mail WHERE recipient = ?1 AND number > ?2 {condition} ORDER BY number LIMIT ?3");
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map(params![inbox.name(), after, most.min(i64::MAX as usize) as i64], read)?;
    Ok(rows.collect::<Sql<_>>()?)
}

#[async_trait]
impl Mailbox for SqliteMailbox {
    fn describe(&self) -> String {
        "sqlite".to_owned()
    }

    async fn send(&self, mail: NewMail) -> Result<SentMail> {
        let (quotas, by) = (self.quotas.clone(), mail.to.far().map_or(SendRoute::Inbox, SendRoute::Fabric));
        self.store.write(move |tx| send(tx, &quotas, &mail, &by)).await
    }

    async fn ack(&self, inbox: &Address, id: &str, at_ms: u64) -> Result<()> {
        let (inbox, id) = (inbox.clone(), id.to_owned());
        self.store.write(move |tx| ack_in(tx, &inbox, &id, at_ms).map(drop)).await
    }

    async fn get(&self, inbox: &Address, id: &str) -> Result<Option<Mail>> {
        let (inbox, id) = (inbox.clone(), id.to_owned());
        let get = move |conn: &Connection| {
            let sql = format!("SELECT {COLUMNS} FROM mail WHERE recipient = ?1 AND id = ?2");
            Ok(conn.prepare_cached(&sql)?.query_row([inbox.name(), &id], read).optional()?)
        };
        self.store.read(get).await
    }

    async fn list(&self, inbox: &Address, after: u64, most: usize) -> Result<Vec<Mail>> {
        let inbox = inbox.clone();
        self.store.read(move |conn| page(conn, &inbox, after, most, "")).await
    }

    async fn unseen(&self, inbox: &Address, after: u64, most: usize) -> Result<Vec<Mail>> {
        let inbox = inbox.clone();
        self.store.read(move |conn| page(conn, &inbox, after, most, "AND seen_at_ms IS NULL")).await
    }

    async fn seen(&self, inbox: &Address, ids: &[String], at_ms: u64) -> Result<Vec<(String, Address)>> {
        let (inbox, ids) = (inbox.clone(), ids.to_vec());
        self.store.write(move |tx| seen_in(tx, &inbox, &ids, at_ms)).await
    }

    async fn counts(&self) -> Result<Vec<(Address, u64)>> {
        self.store.read(counts).await
    }

    async fn forget_ids(&self, before_ms: u64) -> Result<()> {
        loop {
            let forgotten = self.store.write(move |tx| {
                let sql = "DELETE FROM mail_sent WHERE (sender, key) IN (SELECT sender, key FROM mail_sent \
                     WHERE acked_at_ms < ?1 LIMIT ?2)";
                Ok(tx.prepare_cached(sql)?.execute(params![before_ms, BATCH as i64])?)
            });
            if forgotten.await? < BATCH {
                break;
            }
        }
        while self.store.write(move |tx| far::forget(tx, before_ms, BATCH)).await? == BATCH {}
        Ok(())
    }
}

/// The number of messages of every inbox.
pub fn counts(conn: &Connection) -> Result<Vec<(Address, u64)>> {
    let mut select = conn
        .prepare_cached("SELECT recipient, messages FROM mail_boxes WHERE sender = '' AND recipient NOT LIKE '%/%'")?;
    let rows = select.query_map([], |row| Ok((Address::stored(&row.get::<_, String>(0)?), row.get(1)?)))?;
    Ok(rows.collect::<Sql<_>>()?)
}
