//! Writes the lines of the audit, those of one commit together, on the thread of the writer. Used when the state is opened.

use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use acheron_audit::{AuditKey, Chain, Head, Record};
use acheron_base::{Clock, Error, Random, Result, if_exists};
use acheron_store::{Connection, NoteKeeper, Store, Tx, params};

use super::read;

/// The file of the key in the state directory, for the operator alone.
pub const KEY: &str = "audit.key";

/// Where the log begins and ends on the disk, in bytes since its first line, and who is told when it grows. A clone is the same.
#[derive(Clone, Default)]
pub struct AuditSize(Arc<Mutex<(u64, u64)>>, Arc<OnceLock<GrowthListener>>);

/// Takes lines that are on the disk. It runs on the thread of the writer: it must be short.
type GrowthListener = Box<dyn Fn(&str) + Send + Sync>;

impl AuditSize {
    /// The offsets of the first line that is there, and after the last.
    pub fn range(&self) -> (u64, u64) {
        *self.0.lock()
    }

    /// Hands all later lines to `listener`, those of one commit together, before the changes that they tell of are answered.
    pub fn follow(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        _ = self.1.set(Box::new(listener)); // there is only one
    }

    pub(super) fn begins_at(&self, begin: u64) {
        self.0.lock().0 = begin;
    }
}

/// Has the store keep what its changes note. Returns the size of the log, which grows with it.
pub fn keep(dir: &Path, store: &Store, clock: &Clock, random: &Random) -> Result<AuditSize> {
    let (key, is_new) = open_key(dir, random)?;
    let (kept, last) = store.look(|conn| Ok((read::head(conn)?, read::last_block(conn)?)))?;
    let (begin, start) = store.look(|conn| Ok((read::begin(conn)?, read::end(conn)?)))?;
    let chain = kept.as_ref().map_or_else(Chain::default, |(head, _)| Chain::after(head));
    let authentic = kept.as_ref().is_none_or(|(head, code)| is_new || key.is_authentic(head, code));
    let found = last.unwrap_or(Head { seq: 0, hash: acheron_audit::Hash::default() });
    let (expected, public) = (chain.head(), key.public());
    let size = AuditSize(Arc::new(Mutex::new((begin, start))), Arc::default());
    let keeper = AuditKeeper { key, clock: clock.clone(), chain, start, next: None, size: size.clone() };
    store.keep_notes(Box::new(keeper));
    let at_ms = clock.now_ms();
    store.write_blocking(move |tx| {
        // The first line names the key; so does one after a key was lost.
        if is_new || expected.seq == 0 {
            super::note(tx, &Record::new(at_ms, "key").with("public", public).with("lost", expected.seq > 0));
        }
        if !authentic || found != expected {
            tracing::error!(expected = expected.seq, found = found.seq, "the audit was changed while no host ran");
            let fault = Record::new(at_ms, "fault").with("expected", expected.seq).with("found", found.seq);
            super::note(tx, &fault.with("reason", "the log did not end as this host left it"));
        }
        take_over(tx)
    })?;
    Ok(size)
}

/// The entries of earlier versions, which had no chain, become its next lines.
fn take_over(tx: &Tx<'_>) -> Result<()> {
    let mut select =
        tx.prepare("SELECT at_ms, principal, pid, action, path, allowed, reason FROM audit ORDER BY id")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let entry = super::AuditEntry {
            at_ms: row.get(0)?,
            principal: row.get(1)?,
            pid: row.get(2)?,
            action: row.get(3)?,
            path: row.get(4)?,
            allowed: row.get(5)?,
            reason: row.get(6)?,
        };
        super::insert(tx, &entry)?;
    }
    tx.execute("DELETE FROM audit", [])?;
    Ok(())
}

/// The key of a state directory, and whether it was made just now.
fn open_key(dir: &Path, random: &Random) -> Result<(AuditKey, bool)> {
    if let Some(key) = existing_key(dir)? {
        return Ok((key, false));
    }
    let path = dir.join(KEY);
    let mut seed = [0; 32];
    random.fill(&mut seed);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(&seed)?;
    file.sync_all()?;
    std::fs::File::open(dir)?.sync_all()?;
    Ok((AuditKey::from_seed(&seed)?, true))
}

/// The key of a state directory, if there is one.
pub(super) fn existing_key(dir: &Path) -> Result<Option<AuditKey>> {
    let path = dir.join(KEY);
    let Some(file) = if_exists(std::fs::File::open(&path).map_err(Error::from))? else { return Ok(None) };
    let mut seed = Vec::new();
    file.take(33).read_to_end(&mut seed)?;
    let key = AuditKey::from_seed(&seed).map_err(|error| error.about(path.display()))?;
    Ok(Some(key))
}

struct AuditKeeper {
    key: AuditKey,
    clock: Clock,
    chain: Chain,
    /// The bytes of all lines so far, those that were cut included.
    start: u64,
    /// Both after the commit that is being made, and its lines.
    next: Option<(Chain, u64, String)>,
    size: AuditSize,
}

/// Whether a line tells that a host starts or stops: it is sealed at once.
fn begins_or_ends(note: &str) -> bool {
    let kind = note.split_once(r#","kind":""#).map_or("", |(_, rest)| rest);
    kind.starts_with("start\"") || kind.starts_with("stop\"")
}

impl NoteKeeper for AuditKeeper {
    fn keep(&mut self, conn: &Connection, notes: Vec<String>) -> Result<()> {
        let (mut chain, at_ms) = (self.chain.clone(), self.clock.now_ms());
        let (first, mut lines) = (chain.next(), String::new());
        for note in notes {
            lines.push_str(&chain.append_rendered(&note));
            lines.push('\n');
            if chain.wants_checkpoint() || begins_or_ends(&note) {
                lines.push_str(&chain.seal(&self.key, at_ms));
                lines.push('\n');
            }
        }
        let head = chain.head();
        let mut block = conn.prepare_cached(
            "INSERT INTO audit_blocks (first, last, at_ms, start, lines) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        block.execute(params![first, head.seq, at_ms, self.start, lines])?;
        let mut kept = conn.prepare_cached(
            "INSERT INTO audit_head (one, seq, hash, code) VALUES (1, ?1, ?2, ?3) \
             ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, code = excluded.code",
        )?;
        kept.execute(params![head.seq, head.hash.0, self.key.authenticate(&head)])?;
        self.next = Some((chain, self.start + lines.len() as u64, lines));
        Ok(())
    }

    fn kept(&mut self) {
        if let Some((chain, start, lines)) = self.next.take() {
            (self.chain, self.start) = (chain, start);
            self.size.0.lock().1 = start;
            if let Some(listener) = self.size.1.get() {
                listener(&lines);
            }
        }
    }
}
