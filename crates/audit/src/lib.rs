//! Core of the audit: a log whose lines are chained by hashes and sealed by signatures. Records in, lines out; lines in, a
//! verdict out. No clock, no disk, no database.
//!
//! A line is one JSON object: `{"seq": …, "prev": …, "at_ms": …, "kind": …, …}`. `prev` is the SHA-256 of the line before, so
//! that a line that was changed, removed or moved breaks the chain at the next one. A line of kind `checkpoint` carries a
//! signature, so that nobody without the key can make the chain anew. What the chain cannot tell is where it ends: the
//! [`Head`], which is kept apart and carries a code of its own, tells whether lines were cut off at the end.
//!
//! Used by `src/state` and `src/cli`; uses `acheron-base`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod chain;
mod key;
mod timeline;
mod verify;

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

pub use chain::{Chain, Record, digest};
pub use key::{AuditKey, Head, Seam};
pub use timeline::{TimelineLine, timeline_line};
pub use verify::{Verdict, Verification};

use acheron_base::{Error, Result};

/// The SHA-256 of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Hash(hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for Hash {
    type Err = Error;

    fn from_str(text: &str) -> Result<Hash> {
        let hash = unhex(text).and_then(|bytes| bytes.try_into().ok());
        hash.map(Hash).ok_or_else(|| Error::invalid("a hash has 64 hexadecimal digits"))
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        _ = write!(text, "{byte:02x}");
    }
    text
}

/// The bytes that these hexadecimal digits stand for; lower case only, so that a value has one form.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
