//! The tokens with which clients outside are known: their hashes, and whom each stands for. Used by `doors`.

use serde::{Deserialize, Serialize};

use acheron_base::Result;
use acheron_store::{Connection, OptionalExtension, Row, Tx, params};

/// A token as it is listed: without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRow {
    pub id: String,
    /// As the journal writes principals: `operator`, `agent <id>`.
    pub principal: String,
    pub label: String,
    pub created_at_ms: u64,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

const COLUMNS: &str = "id, principal, label, created_at_ms, expires_at_ms";

pub fn insert(tx: &Tx<'_>, row: &TokenRow, hash: &[u8]) -> Result<()> {
    tx.execute(
        "INSERT INTO door_tokens (id, principal, label, hash, created_at_ms, expires_at_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![row.id, row.principal, row.label, hash, row.created_at_ms, row.expires_at_ms],
    )?;
    Ok(())
}

/// All tokens, the oldest first.
pub fn all(conn: &Connection) -> Result<Vec<TokenRow>> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM door_tokens ORDER BY id"))?;
    Ok(select.query_map([], read)?.collect::<Result<_, _>>()?)
}

/// The token with this hash.
pub fn by_hash(conn: &Connection, hash: &[u8]) -> Result<Option<TokenRow>> {
    let mut select = conn.prepare_cached(&format!("SELECT {COLUMNS} FROM door_tokens WHERE hash = ?1"))?;
    Ok(select.query_row([hash], read).optional()?)
}

/// Deletes a token; whether there was one.
pub fn remove(tx: &Tx<'_>, id: &str) -> Result<bool> {
    Ok(tx.execute("DELETE FROM door_tokens WHERE id = ?1", [id])? > 0)
}

/// Deletes the tokens that have ended by themselves.
pub fn remove_expired(tx: &Tx<'_>, now_ms: u64) -> Result<()> {
    tx.execute("DELETE FROM door_tokens WHERE expires_at_ms <= ?1", [now_ms])?;
    Ok(())
}

/// Deletes the tokens of a principal.
pub fn remove_of(tx: &Tx<'_>, principal: &str) -> Result<()> {
    tx.execute("DELETE FROM door_tokens WHERE principal = ?1", [principal])?;
    Ok(())
}

fn read(row: &Row<'_>) -> acheron_store::Sql<TokenRow> {
    Ok(TokenRow {
        id: row.get(0)?,
        principal: row.get(1)?,
        label: row.get(2)?,
        created_at_ms: row.get(3)?,
        expires_at_ms: row.get(4)?,
    })
}
