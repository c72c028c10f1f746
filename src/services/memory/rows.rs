//! The rows of the memory tables, read and written one at a time. Decides nothing.

use super::content::Content;
use super::evict::ActiveMemory;
use super::words;
use acheron_base::words::VERSION as WORDS_VERSION;
use acheron_base::{Result, tokens};
use acheron_store::{Connection, OptionalExtension, Row, Tx, params};

/// The row ids of one agent are one range of this length; see the second step of the schema.
pub const RANGE: i64 = 1 << 40;

/// The facts about a memory that do not depend on its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryHead {
    pub id: i64,
    pub name: String,
    /// The latest.
    pub version: u64,
    pub tokens: u64,
    pub deleted: bool,
    pub write_protected: bool,
    pub unevictable: bool,
    pub pinned: bool,
    /// When it was last used, if it is active.
    pub used: Option<u64>,
    pub tombstone: Option<String>,
    pub left_at_ms: Option<u64>,
    /// The group of memories that say the same fact at different times, and its place there; see `facts`.
    pub fact: Option<(i64, u64)>,
    /// The name of the current memory of that group, if it is another one: this one `was`.
    pub superseded_by: Option<String>,
}

/// One version as it was written. A deletion is a version without content.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    pub version: u64,
    pub deleted: bool,
    pub kind: String,
    pub tags: Vec<String>,
    /// The memories that it sums up.
    pub sources: Vec<String>,
    pub content: Content,
    pub bytes: u64,
    pub tokens: u64,
    pub written_at_ms: u64,
}

const HEAD: &str = "id, name, version, tokens, deleted, write_protected, unevictable, pinned, used, tombstone, left_at_ms, \
    fact, fact_turn, CASE WHEN fact IS NULL THEN NULL ELSE (SELECT n.name FROM memories n WHERE n.fact = memories.fact \
    AND n.fact_turn > memories.fact_turn AND n.deleted = 0 ORDER BY n.fact_turn DESC LIMIT 1) END";
const VERSION: &str = "version, deleted, kind, tags, sources, form, content, tokens, created_at_ms";

/// The number of an agent; 0, which no agent has, when it remembers nothing yet.
pub fn agent(conn: &Connection, agent: &str) -> Result<i64> {
    let mut select = conn.prepare_cached("SELECT number FROM memory_agents WHERE agent = ?1")?;
    Ok(select.query_row([agent], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The bytes of all versions of all memories of an agent.
pub fn bytes(conn: &Connection, agent: i64) -> Result<u64> {
    // `octet_length` does not read the content.
    let mut select = conn.prepare_cached(
        "SELECT coalesce(sum(octet_length(content)), 0) FROM memory_versions \
         WHERE memory IN (SELECT id FROM memories WHERE agent = ?1)",
    )?;
    Ok(select.query_row([agent], |row| row.get(0))?)
}

/// The number of an agent, given now if it has none.
pub fn agent_or_new(tx: &Tx<'_>, name: &str) -> Result<i64> {
    let mut insert = tx.prepare_cached("INSERT OR IGNORE INTO memory_agents (agent, words) VALUES (?1, ?2)")?;
    insert.execute(params![name, WORDS_VERSION])?;
    agent(tx, name)
}

pub fn head(conn: &Connection, agent: i64, name: &str) -> Result<Option<MemoryHead>> {
    let mut select = conn.prepare_cached(&format!("SELECT {HEAD} FROM memories WHERE agent = ?1 AND name = ?2"))?;
    Ok(select.query_row(params![agent, name], read_head).optional()?)
}

pub fn head_by_id(conn: &Connection, id: i64) -> Result<MemoryHead> {
    let mut select = conn.prepare_cached(&format!("SELECT {HEAD} FROM memories WHERE id = ?1"))?;
    Ok(select.query_row([id], read_head)?)
}

/// Those in the active set, least recently used first.
pub fn active(conn: &Connection, agent: i64) -> Result<Vec<MemoryHead>> {
    let sql = format!("SELECT {HEAD} FROM memories WHERE agent = ?1 AND used IS NOT NULL ORDER BY used, id");
    let mut select = conn.prepare_cached(&sql)?;
    Ok(select.query_map([agent], read_head)?.collect::<Result<_, _>>()?)
}

/// Those that left it, the last one first.
pub fn left(conn: &Connection, agent: i64, limit: usize) -> Result<Vec<MemoryHead>> {
    let sql = format!(
        "SELECT {HEAD} FROM memories WHERE agent = ?1 AND tombstone IS NOT NULL ORDER BY left_at_ms DESC, id DESC LIMIT ?2"
    );
    let mut select = conn.prepare_cached(&sql)?;
    Ok(select.query_map(params![agent, limit], read_head)?.collect::<Result<_, _>>()?)
}

/// The number of the newest memory of an agent: at least as many as it has.
pub fn highest(conn: &Connection, agent: i64) -> Result<i64> {
    let (first, last) = range(agent);
    let mut select = conn.prepare_cached("SELECT max(id) FROM memories WHERE id BETWEEN ?1 AND ?2")?;
    Ok(select.query_row([first, last], |row| row.get::<_, Option<i64>>(0))?.map_or(0, |id| id - first + 1))
}

/// The texts of memories, all or one of so many.
pub fn sample(conn: &Connection, agent: i64, one_of: usize) -> Result<Vec<String>> {
    let (first, _) = range(agent);
    let step = one_of.max(1) as i64;
    let ids = (0..highest(conn, agent)?).step_by(step as usize).map(|number| first + number);
    let mut select = conn.prepare_cached(
        "SELECT content FROM memories m JOIN memory_versions v ON v.memory = m.id AND v.version = m.version WHERE m.id = ?1",
    )?;
    let texts = ids.map(|id| Ok(select.query_row([id], |row| row.get(0)).optional()?));
    texts.filter_map(Result::transpose).collect()
}

/// How many memories an agent has or had.
pub fn count(conn: &Connection, agent: i64) -> Result<u64> {
    let mut select = conn.prepare_cached("SELECT count(*) FROM memories WHERE agent = ?1")?;
    Ok(select.query_row([agent], |row| row.get(0))?)
}

pub fn version(conn: &Connection, memory: i64, version: u64) -> Result<Option<Version>> {
    let sql = format!("SELECT {VERSION} FROM memory_versions WHERE memory = ?1 AND version = ?2");
    let mut select = conn.prepare_cached(&sql)?;
    select.query_row(params![memory, version], |row| Ok(read_version(row))).optional()?.transpose()
}

pub fn version_id(conn: &Connection, memory: i64, version: u64) -> Result<i64> {
    let mut select = conn.prepare_cached("SELECT id FROM memory_versions WHERE memory = ?1 AND version = ?2")?;
    Ok(select.query_row(params![memory, version], |row| row.get(0))?)
}

/// The newest versions, newest first.
pub fn versions(conn: &Connection, memory: i64, limit: usize) -> Result<Vec<Version>> {
    let sql = format!("SELECT {VERSION} FROM memory_versions WHERE memory = ?1 ORDER BY version DESC LIMIT ?2");
    let mut select = conn.prepare_cached(&sql)?;
    select.query_map(params![memory, limit], |row| Ok(read_version(row)))?.map(|row| row?).collect()
}

/// Makes room for a memory that has no version yet.
pub fn insert_head(tx: &Tx<'_>, agent: i64, name: &str) -> Result<MemoryHead> {
    let id = next_id(tx, "SELECT max(id) FROM memories WHERE id BETWEEN ?1 AND ?2", agent)?;
    let mut insert = tx.prepare_cached(
        "INSERT INTO memories (id, agent, name, version, deleted, write_protected, unevictable) \
         VALUES (?1, ?2, ?3, 0, 1, 0, 0)",
    )?;
    insert.execute(params![id, agent, name])?;
    head_by_id(tx, id)
}

/// Writes `head` as it is now, except for its version, which [`insert_version`] moves on.
pub fn update_head(tx: &Tx<'_>, head: &MemoryHead) -> Result<()> {
    let mut update = tx.prepare_cached(
        "UPDATE memories SET write_protected = ?2, unevictable = ?3, pinned = ?4, used = ?5, tombstone = ?6, \
         left_at_ms = ?7 WHERE id = ?1",
    )?;
    let MemoryHead { id, write_protected, unevictable, pinned, used, tombstone, left_at_ms, .. } = head;
    update.execute(params![id, write_protected, unevictable, pinned, used, tombstone, left_at_ms])?;
    Ok(())
}

/// A deleted memory whose name is taken again says another fact.
pub fn leave_fact(tx: &Tx<'_>, head: MemoryHead) -> Result<MemoryHead> {
    if head.fact.is_some() {
        tx.prepare_cached("UPDATE memories SET fact = NULL, fact_turn = NULL WHERE id = ?1")?.execute([head.id])?;
    }
    Ok(MemoryHead { fact: None, superseded_by: None, ..head })
}

/// The next number of use.
pub fn next_use(conn: &Connection, agent: i64) -> Result<u64> {
    let sql = "SELECT coalesce(max(used), 0) + 1 FROM memories WHERE agent = ?1 AND used IS NOT NULL";
    Ok(conn.prepare_cached(sql)?.query_row([agent], |row| row.get(0))?)
}

/// Adds a version, which becomes the latest, and its words. Counts its tokens, once and for all.
pub fn insert_version(tx: &Tx<'_>, agent: i64, head: &mut MemoryHead, version: Version) -> Result<Version> {
    let text = version.content.text();
    let tokens = match version.deleted {
        true => 0,
        false => [&head.name, &version.kind, &text].into_iter().map(|part| tokens::estimate(part)).sum(),
    };
    let version = Version { version: head.version + 1, bytes: text.len() as u64, tokens, ..version };
    let id = next_id(tx, "SELECT max(id) FROM memory_versions WHERE id BETWEEN ?1 AND ?2", agent)?;
    let mut insert = tx.prepare_cached(
        "INSERT INTO memory_versions (id, memory, version, deleted, kind, tags, sources, form, content, tokens, created_at_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    insert.execute(params![
        id,
        head.id,
        version.version,
        version.deleted,
        version.kind,
        list(&version.tags),
        list(&version.sources),
        version.content.form(),
        text,
        tokens,
        version.written_at_ms,
    ])?;
    let mut update = tx.prepare_cached("UPDATE memories SET version = ?2, tokens = ?3, deleted = ?4 WHERE id = ?1")?;
    update.execute(params![head.id, version.version, tokens, version.deleted])?;
    index(tx, head, &version, id, &text);
    (head.version, head.tokens, head.deleted) = (version.version, tokens, version.deleted);
    Ok(version)
}

/// Puts the words of a version into the index at the end of the commit: the versions of many callers become one segment.
fn index(tx: &Tx<'_>, head: &MemoryHead, version: &Version, id: i64, text: &str) {
    let (memory, was_deleted, name) = (head.id, head.deleted, words::indexed(&head.name));
    let (number, words) = (version.version, (!version.deleted).then(|| words::indexed(text)));
    tx.put_off(move |conn| {
        if !was_deleted {
            conn.prepare_cached("DELETE FROM memory_now WHERE rowid = ?1")?.execute([memory])?;
        }
        let Some(words) = words else { return Ok(()) };
        // Unless the same commit has a later version, or the agent was purged.
        let mut now = conn.prepare_cached(
            "INSERT OR REPLACE INTO memory_now (rowid, name, content) \
             SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM memories WHERE id = ?1 AND version = ?4)",
        )?;
        now.execute(params![memory, name, words, number])?;
        let mut ever = conn.prepare_cached(
            "INSERT OR REPLACE INTO memory_ever (rowid, name, content) \
             SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM memory_versions WHERE id = ?1)",
        )?;
        ever.execute(params![id, name, words])?;
        Ok(())
    });
}

/// Whether the words of an agent's memories are those of another version of the tokeniser.
pub fn has_old_words(conn: &Connection, name: &str) -> Result<bool> {
    let mut select = conn.prepare_cached("SELECT words FROM memory_agents WHERE agent = ?1")?;
    Ok(select.query_row([name], |row| row.get::<_, u32>(0)).optional()?.is_some_and(|words| words != WORDS_VERSION))
}

/// Indexes all memories of an agent again.
pub fn index_again(tx: &Tx<'_>, name: &str) -> Result<()> {
    let number = agent(tx, name)?;
    let (first, last) = range(number);
    tx.execute("DELETE FROM memory_now WHERE rowid BETWEEN ?1 AND ?2", [first, last])?;
    tx.execute("DELETE FROM memory_ever WHERE rowid BETWEEN ?1 AND ?2", [first, last])?;
    let mut select = tx.prepare_cached(
        "SELECT v.id, m.id, m.name, v.content, v.version = m.version AND m.deleted = 0 FROM memory_versions v \
         JOIN memories m ON m.id = v.memory WHERE v.id BETWEEN ?1 AND ?2 AND v.deleted = 0",
    )?;
    let mut rows = select.query([first, last])?;
    while let Some(row) = rows.next()? {
        let (name, text) = (words::indexed(&row.get::<_, String>(2)?), words::indexed(&row.get::<_, String>(3)?));
        let mut insert = tx.prepare_cached("INSERT INTO memory_ever (rowid, name, content) VALUES (?1, ?2, ?3)")?;
        insert.execute(params![row.get::<_, i64>(0)?, name, text])?;
        if row.get(4)? {
            let mut insert = tx.prepare_cached("INSERT INTO memory_now (rowid, name, content) VALUES (?1, ?2, ?3)")?;
            insert.execute(params![row.get::<_, i64>(1)?, name, text])?;
        }
    }
    tx.execute("UPDATE memory_agents SET words = ?2 WHERE number = ?1", params![number, WORDS_VERSION])?;
    Ok(())
}

fn next_id(tx: &Tx<'_>, newest: &str, agent: i64) -> Result<i64> {
    let (first, last) = range(agent);
    let newest: Option<i64> = tx.prepare_cached(newest)?.query_row([first, last], |row| row.get(0))?;
    Ok(newest.map_or(first, |newest| newest + 1))
}

/// Removes everything of an agent, its words too.
pub fn purge(tx: &Tx<'_>, name: &str) -> Result<()> {
    let number = agent(tx, name)?;
    let (first, last) = range(number);
    for sql in [
        "DELETE FROM memory_now WHERE rowid BETWEEN ?1 AND ?2",
        "DELETE FROM memory_ever WHERE rowid BETWEEN ?1 AND ?2",
        "DELETE FROM memory_versions WHERE id BETWEEN ?1 AND ?2",
        "DELETE FROM memories WHERE id BETWEEN ?1 AND ?2",
    ] {
        tx.execute(sql, [first, last])?;
    }
    tx.execute("DELETE FROM memory_agents WHERE number = ?1", [number])?;
    // The index keeps deleted words until its parts are put together.
    tx.execute_batch(
        "INSERT INTO memory_now (memory_now) VALUES ('optimize'); INSERT INTO memory_ever (memory_ever) VALUES ('optimize')",
    )?;
    Ok(())
}

/// The first and the last row id of an agent.
pub fn range(agent: i64) -> (i64, i64) {
    (agent * RANGE, (agent + 1) * RANGE - 1)
}

pub fn list(words: &[String]) -> String {
    serde_json::Value::from(words).to_string()
}

fn read_list(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

fn read_head(row: &Row<'_>) -> acheron_store::Sql<MemoryHead> {
    Ok(MemoryHead {
        id: row.get(0)?,
        name: row.get(1)?,
        version: row.get(2)?,
        tokens: row.get(3)?,
        deleted: row.get(4)?,
        write_protected: row.get(5)?,
        unevictable: row.get(6)?,
        pinned: row.get(7)?,
        used: row.get(8)?,
        tombstone: row.get(9)?,
        left_at_ms: row.get(10)?,
        fact: row.get::<_, Option<i64>>(11)?.zip(row.get(12)?),
        superseded_by: row.get(13)?,
    })
}

fn read_version(row: &Row<'_>) -> Result<Version> {
    let text: String = row.get(6)?;
    Ok(Version {
        version: row.get(0)?,
        deleted: row.get(1)?,
        kind: row.get(2)?,
        tags: read_list(&row.get::<_, String>(3)?),
        sources: read_list(&row.get::<_, String>(4)?),
        bytes: text.len() as u64,
        content: Content::kept(&row.get::<_, String>(5)?, text)?,
        tokens: row.get(7)?,
        written_at_ms: row.get(8)?,
    })
}

/// The active set as the rule of eviction sees it; answered from an index alone.
pub fn held(conn: &Connection, agent: i64) -> Result<Vec<ActiveMemory>> {
    let mut select = conn.prepare_cached(
        "SELECT id, tokens, used, pinned, unevictable FROM memories WHERE agent = ?1 AND used IS NOT NULL",
    )?;
    let held = select.query_map([agent], |row| {
        Ok(ActiveMemory {
            id: row.get(0)?,
            tokens: row.get(1)?,
            used: row.get(2)?,
            pinned: row.get(3)?,
            unevictable: row.get(4)?,
        })
    })?;
    Ok(held.collect::<Result<_, _>>()?)
}

/// A memory as a directory shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    pub name: String,
    pub version: u64,
    pub bytes: u64,
    pub written_at_ms: u64,
    pub deleted: bool,
    pub write_protected: bool,
}

impl MemoryEntry {
    pub fn of(head: &MemoryHead, version: &Version) -> MemoryEntry {
        MemoryEntry {
            name: head.name.clone(),
            version: head.version,
            bytes: version.bytes,
            written_at_ms: version.written_at_ms,
            deleted: head.deleted,
            write_protected: head.write_protected,
        }
    }
}

/// Every memory of an agent, for the start of a host.
pub fn entries(conn: &Connection, agent: i64) -> Result<Vec<MemoryEntry>> {
    let mut select = conn.prepare_cached(
        "SELECT name, m.version, octet_length(content), created_at_ms, m.deleted, write_protected FROM memories m \
         JOIN memory_versions v ON v.memory = m.id AND v.version = m.version WHERE agent = ?1",
    )?;
    let entries = select.query_map([agent], |row| {
        Ok(MemoryEntry {
            name: row.get(0)?,
            version: row.get(1)?,
            bytes: row.get(2)?,
            written_at_ms: row.get(3)?,
            deleted: row.get(4)?,
            write_protected: row.get(5)?,
        })
    })?;
    Ok(entries.collect::<Result<_, _>>()?)
}
