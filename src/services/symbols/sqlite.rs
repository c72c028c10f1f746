//! Documents in the database of the host: the default backend.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value;

use super::backend::{Backend, Filter, conflict};
use super::change::{DocumentKind, DocumentRecord, Edit, LedgerAction, LedgerEntry, places, version_of};
use acheron_base::{Error, Result};
use acheron_store::{Connection, OptionalExtension, Store, Tx, params};

pub struct Sqlite {
    store: Store,
}

impl Sqlite {
    pub fn new(store: Store) -> Sqlite {
        Sqlite { store }
    }
}

fn body(conn: &Connection, kind: DocumentKind, id: &str) -> Result<Option<Value>> {
    let mut query = conn.prepare_cached("SELECT body FROM documents WHERE kind = ?1 AND id = ?2")?;
    let text: Option<String> = query.query_row(params![kind.name(), id], |row| row.get(0)).optional()?;
    text.map(|text| parse(&text)).transpose()
}

pub(super) fn document(conn: &Connection, kind: DocumentKind, id: &str) -> Result<Option<DocumentRecord>> {
    Ok(body(conn, kind, id)?.map(|body| DocumentRecord::of(id, body)))
}

pub(super) fn ledger(conn: &Connection, kind: DocumentKind, id: &str) -> Result<Vec<LedgerEntry>> {
    let mut query =
        conn.prepare_cached("SELECT change FROM document_changes WHERE kind = ?1 AND id = ?2 ORDER BY seq")?;
    let mut rows = query.query(params![kind.name(), id])?;
    let mut ledger = Vec::new();
    while let Some(row) = rows.next()? {
        ledger.push(parse(&row.get::<_, String>(0)?)?);
    }
    Ok(ledger)
}

fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|fault| Error::internal(format!("a stored document is damaged: {fault}")))
}

pub(super) fn apply(tx: &Tx, edit: &Edit) -> Result<()> {
    let change = &edit.change;
    let LedgerEntry { kind, id, .. } = change;
    if change.act != LedgerAction::Feedback {
        let found = body(tx, *kind, id)?.as_ref().map_or(0, version_of);
        if found != edit.expected {
            return Err(conflict(edit, found));
        }
        match &change.body {
            Some(body) => {
                let (domain, tag) = places(body);
                tx.prepare_cached("REPLACE INTO documents (kind, id, domain, tag, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![kind.name(), id, domain, tag, body.to_string()])?;
            }
            None => {
                tx.prepare_cached("DELETE FROM documents WHERE kind = ?1 AND id = ?2")?
                    .execute(params![kind.name(), id])?;
            }
        }
    }
    let line = serde_json::to_string(change).map_err(|fault| Error::internal(fault.to_string()))?;
    tx.prepare_cached("INSERT INTO document_changes (kind, id, change) VALUES (?1, ?2, ?3)")?.execute(params![
        kind.name(),
        id,
        line
    ])?;
    Ok(())
}

#[async_trait]
impl Backend for Sqlite {
    fn describe(&self) -> String {
        "sqlite".to_owned()
    }

    fn is_local(&self) -> bool {
        true
    }

    async fn get(&self, kind: DocumentKind, ids: &[String]) -> Result<Vec<Option<DocumentRecord>>> {
        let ids = ids.to_vec();
        self.store.read(move |conn| ids.iter().map(|id| document(conn, kind, id)).collect()).await
    }

    async fn page(
        &self,
        kind: DocumentKind,
        filter: &Filter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DocumentRecord>> {
        let (filter, after) = (filter.clone(), after.unwrap_or_default().to_owned());
        // The condition stands in the text only when it is asked for, so that the right index is taken.
        let domain = filter.domain.as_ref().map_or("", |_| "AND domain = ?3");
        let tag = filter.tag.as_ref().map_or("", |_| "AND tag = ?4");
        let text = format!(
            "SELECT id, body FROM documents WHERE kind = ?1 AND id > ?2 {domain} {tag} AND ?3 IS NOT NULL AND ?4 IS NOT NULL
             ORDER BY id LIMIT ?5"
        );
        self.store
            .read(move |conn| {
                let mut query = conn.prepare_cached(&text)?;
                let (domain, tag) = (filter.domain.unwrap_or_default(), filter.tag.unwrap_or_default());
                let limit = limit.min(i64::MAX as usize) as i64;
                let mut rows = query.query(params![kind.name(), after, domain, tag, limit])?;
                let mut page = Vec::new();
                while let Some(row) = rows.next()? {
                    let (id, body): (String, String) = (row.get(0)?, row.get(1)?);
                    page.push(DocumentRecord::of(&id, parse(&body)?));
                }
                Ok(page)
            })
            .await
    }

    async fn commit(&self, edits: &[Edit]) -> Result<()> {
        let edits = edits.to_vec();
        self.store.write(move |tx| edits.iter().try_for_each(|edit| apply(tx, edit))).await
    }

    async fn ledger(&self, kind: DocumentKind, id: &str) -> Result<Vec<LedgerEntry>> {
        let id = id.to_owned();
        self.store.read(move |conn| ledger(conn, kind, &id)).await
    }

    async fn written(&self) -> Result<Vec<(String, u64)>> {
        self.store
            .read(|conn| {
                let mut query = conn.prepare_cached(
                    "SELECT coalesce(json_extract(change, '$.by.who'), ''), sum(length(change)) FROM document_changes GROUP BY 1",
                )?;
                let mut rows = query.query([])?;
                let mut written = Vec::new();
                while let Some(row) = rows.next()? {
                    written.push((row.get(0)?, row.get::<_, i64>(1)? as u64));
                }
                Ok(written)
            })
            .await
    }

    async fn domains(&self) -> Result<Vec<String>> {
        self.store
            .read(|conn| {
                let mut query = conn.prepare_cached(
                    "SELECT DISTINCT domain FROM documents WHERE kind = 'symbol' AND domain <> '' ORDER BY domain",
                )?;
                let mut rows = query.query([])?;
                let mut domains = Vec::new();
                while let Some(row) = rows.next()? {
                    domains.push(row.get(0)?);
                }
                Ok(domains)
            })
            .await
    }

    async fn count(&self, kind: DocumentKind) -> Result<usize> {
        self.store
            .read(move |conn| {
                let mut query = conn.prepare_cached("SELECT count(*) FROM documents WHERE kind = ?1")?;
                Ok(query.query_row([kind.name()], |row| row.get::<_, i64>(0))? as usize)
            })
            .await
    }

    async fn since(&self, seen: u64) -> Result<(u64, Option<Vec<(DocumentKind, String)>>)> {
        self.store
            .read(move |conn| {
                let last: i64 = conn
                    .prepare_cached("SELECT coalesce(max(seq), 0) FROM document_changes")?
                    .query_row([], |row| row.get(0))?;
                let mut query =
                    conn.prepare_cached("SELECT seq, kind, id FROM document_changes WHERE seq > ?1 AND seq <= ?2")?;
                let mut rows = query.query(params![seen as i64, last])?;
                let mut changed = BTreeMap::new();
                while let Some(row) = rows.next()? {
                    let (seq, kind, id): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                    changed.extend(DocumentKind::named(&kind).map(|kind| (seq, (kind, id))));
                }
                Ok((last as u64, Some(changed.into_values().collect())))
            })
            .await
    }
}
