//! Verifies the audit of a state directory, whether or not a host uses it. Used by `acheron audit verify` and `doctor`.

use std::path::Path;

use acheron_audit::{Head, Verdict, Verification};
use acheron_base::{Error, Result};
use acheron_store::look_unlocked;

use super::{keeper, read};

/// What a verification found, and whether the key was there to check the end of the log with.
pub struct Checked {
    pub verdict: Verdict,
    pub has_key: bool,
}

/// Verifies all lines. `anchors` are heads that were written down elsewhere.
pub fn verify(state: &Path, anchors: Vec<Head>) -> Result<Checked> {
    let key = keeper::existing_key(state)?;
    let verdict = look_unlocked(state, |conn| {
        // One state of the database, although it grows meanwhile.
        conn.execute_batch("BEGIN")?;
        let (head, seam) = (read::head(conn)?, read::seam(conn)?);
        let public = key.as_ref().map(acheron_audit::AuditKey::public);
        let mut verification = Verification::new(seam, public, anchors);
        read::each(conn, 0, |line| {
            verification.take(line);
            !verification.is_decided()
        })?;
        let head = head.as_ref().map(|(head, code)| (*head, code.as_slice()));
        Ok(verification.end(head, key.as_ref()))
    })?;
    Ok(Checked { verdict, has_key: key.is_some() })
}

/// Reads heads as `acheron audit head` prints them: a number and a hash per line, and whatever follows.
pub fn anchors(text: &str) -> Result<Vec<Head>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(anchor).collect()
}

fn anchor(line: &str) -> Result<Head> {
    let mut words = line.split_whitespace();
    let (seq, hash) = (words.next().and_then(|seq| seq.parse().ok()), words.next().and_then(|hash| hash.parse().ok()));
    match (seq, hash) {
        (Some(seq), Some(hash)) => Ok(Head { seq, hash }),
        _ => Err(Error::invalid(format!("not a head of an audit: {}", acheron_base::quoted(line)))),
    }
}
