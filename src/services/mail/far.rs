//! Mail of other hosts in the database: letters that wait for the fabric, and those that came by it. A letter is put out in
//! the transaction of the call that sends it, and taken in by a transaction that knows its key: whatever is sent again or handed
//! out again, each is taken once.

use super::address::Address;
use super::message::{NewMail, Receipt};
use acheron_base::{Error, Result};
use acheron_fabric::letters::Letter;
use acheron_fabric::names::FarAgent;
use acheron_store::{Connection, OptionalExtension, Sql, Tx, params};

/// The longest letter, in bytes: the server takes messages of a mebibyte.
const LETTER: usize = 900 << 10;

/// A letter that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingLetter {
    pub number: u64,
    pub to: FarAgent,
    pub letter: Letter,
}

/// Puts a message out, for an agent of a host.
pub fn put_message(tx: &Tx<'_>, mail: &NewMail, thread: &str, to: &FarAgent) -> Result<()> {
    let letter = Letter::Message {
        id: mail.id.clone(),
        from: mail.from.name().to_owned(),
        subject: mail.subject.clone(),
        body: mail.body.clone(),
        thread: thread.to_owned(),
        reply_to: mail.reply_to.clone(),
        at_ms: mail.at_ms,
    };
    put(tx, to, &letter, Some((&mail.id, mail.from.name(), mail.bytes())))
}

/// Puts out what became of a message that came from another host.
pub fn put_receipt(
    tx: &Tx<'_>,
    to: &FarAgent,
    id: &str,
    by: &Address,
    what: Receipt,
    reason: Option<String>,
    at_ms: u64,
) -> Result<()> {
    let what = serde_json::to_value(what).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    put(tx, to, &Letter::Receipt { id: id.to_owned(), from: by.name().to_owned(), what, reason, at_ms }, None)
}

fn put(tx: &Tx<'_>, to: &FarAgent, letter: &Letter, message: Option<(&str, &str, u64)>) -> Result<()> {
    let text = serde_json::to_string(letter).map_err(|err| Error::internal(err.to_string()))?;
    if text.len() > LETTER {
        return Err(Error::too_large(format!(
            "the message has {} bytes as JSON, and one to another host has at most {LETTER}",
            text.len()
        )));
    }
    let (id, sender, bytes) = match message {
        Some((id, sender, bytes)) => (Some(id), Some(sender), bytes),
        None => (None, None, 0),
    };
    let sql = "INSERT INTO mail_out (node, agent, letter, message, sender, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    tx.prepare_cached(sql)?.execute(params![to.node, to.agent, text, id, sender, bytes])?;
    Ok(())
}

/// The first letters that wait, in their order.
pub fn waiting(conn: &Connection, most: usize) -> Result<Vec<WaitingLetter>> {
    let mut select =
        conn.prepare_cached("SELECT number, node, agent, letter FROM mail_out ORDER BY number LIMIT ?1")?;
    let rows = select.query_map([most as i64], |row| {
        Ok((row.get::<_, u64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?))
    })?;
    let rows: Vec<_> = rows.collect::<Sql<_>>()?;
    let read = |(number, node, agent, text): (u64, String, String, String)| {
        let letter = serde_json::from_str(&text).map_err(|err| Error::internal(format!("a letter: {err}")))?;
        Ok(WaitingLetter { number, to: FarAgent { node, agent }, letter })
    };
    rows.into_iter().map(read).collect()
}

/// How many letters wait.
pub fn count(conn: &Connection) -> Result<u64> {
    Ok(conn.prepare_cached("SELECT count(*) FROM mail_out")?.query_row([], |row| row.get(0))?)
}

/// The fabric has these letters.
pub fn gone(tx: &Tx<'_>, numbers: &[u64], at_ms: u64) -> Result<()> {
    for number in numbers {
        let mut delete =
            tx.prepare_cached("DELETE FROM mail_out WHERE number = ?1 RETURNING node, agent, message, sender, bytes")?;
        let row = delete.query_row([number], |row| {
            let to = FarAgent { node: row.get(0)?, agent: row.get(1)? };
            Ok((to, row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(3)?, row.get::<_, u64>(4)?))
        });
        let Some((to, Some(id), Some(sender), bytes)) = row.optional()? else { continue };
        count_out(tx, &to, &sender, -1, bytes)?;
        // Remembered as long as one that was acknowledged.
        let sql = "UPDATE mail_sent SET acked_at_ms = ?2 WHERE id = ?1 AND recipient = ?3";
        tx.prepare_cached(sql)?.execute(params![id, at_ms, to.to_string()])?;
    }
    Ok(())
}

/// Counts what waits for an agent of another host, as for an inbox.
pub fn count_out(tx: &Tx<'_>, to: &FarAgent, sender: &str, messages: i64, bytes: u64) -> Result<()> {
    for part in ["", sender] {
        tx.prepare_cached(
            "INSERT INTO mail_boxes (recipient, sender, messages, bytes) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (recipient, sender) DO UPDATE SET messages = messages + ?3, bytes = bytes + ?4",
        )?
        .execute(params![to.to_string(), part, messages, messages * bytes as i64])?;
    }
    let empty = "DELETE FROM mail_boxes WHERE recipient = ?1 AND messages <= 0";
    tx.prepare_cached(empty)?.execute([to.to_string()])?;
    Ok(())
}

/// Whether a letter has come.
#[cfg(test)]
pub fn has_come(conn: &Connection, node: &str, key: &str) -> Result<bool> {
    Ok(conn.prepare_cached("SELECT 1 FROM mail_in WHERE node = ?1 AND key = ?2")?.exists([node, key])?)
}

/// Notes a letter of a host. Returns whether it is new.
pub fn is_new(tx: &Tx<'_>, node: &str, key: &str, at_ms: u64) -> Result<bool> {
    let sql = "INSERT OR IGNORE INTO mail_in (node, key, at_ms) VALUES (?1, ?2, ?3)";
    Ok(tx.prepare_cached(sql)?.execute(params![node, key, at_ms])? > 0)
}

/// Whether an agent of this host sent a message to an agent of another.
pub fn was_sent(conn: &Connection, id: &str, from: &Address, to: &FarAgent) -> Result<bool> {
    let sql = "SELECT 1 FROM mail_sent WHERE id = ?1 AND sender = ?2 AND recipient = ?3";
    Ok(conn.prepare_cached(sql)?.exists(params![id, from.name(), to.to_string()])?)
}

/// Forgets the keys of letters that came before this time.
pub fn forget(tx: &Tx<'_>, before_ms: u64, most: usize) -> Result<usize> {
    let sql = "DELETE FROM mail_in WHERE (node, key) IN (SELECT node, key FROM mail_in WHERE at_ms < ?1 LIMIT ?2)";
    Ok(tx.prepare_cached(sql)?.execute(params![before_ms, most as i64])?)
}
