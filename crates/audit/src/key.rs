//! The key of a log: signs checkpoints and seams, and authenticates the head. Pure; the caller keeps the seed.

use ring::hmac;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::{Hash, hex, unhex};
use acheron_base::{Error, Result};

/// The end of a log: its last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the last line; 0 for an empty log.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

/// Where the retention has cut a log: the lines up to this one are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seam {
    /// The last line that is gone, a checkpoint.
    pub cut: Head,
    /// When it was cut.
    pub at_ms: u64,
    /// Signs the others.
    pub signature: Vec<u8>,
}

/// The key of a log.
pub struct AuditKey {
    pair: Ed25519KeyPair,
    mac: hmac::Key,
}

impl AuditKey {
    /// The key that follows from a seed of 32 bytes.
    pub fn from_seed(seed: &[u8]) -> Result<AuditKey> {
        let wrong = |_| Error::invalid("the seed of the audit key is not 32 bytes");
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(wrong)?;
        // Another key for another purpose, from the same seed.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, seed), b"acheron audit: head");
        Ok(AuditKey { pair, mac: hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()) })
    }

    /// What others check signatures with, as hexadecimal digits.
    pub fn public(&self) -> String {
        hex(self.pair.public_key().as_ref())
    }

    pub(super) fn sign_checkpoint(&self, seq: u64, prev: &Hash) -> Vec<u8> {
        self.pair.sign(checkpoint_text(seq, prev).as_bytes()).as_ref().to_vec()
    }

    /// Signs where a log was cut.
    pub fn seam(&self, cut: Head, at_ms: u64) -> Seam {
        let signature = self.pair.sign(seam_text(&cut, at_ms).as_bytes()).as_ref().to_vec();
        Seam { cut, at_ms, signature }
    }

    /// The code by which a head is recognised as ours.
    pub fn authenticate(&self, head: &Head) -> Vec<u8> {
        hmac::sign(&self.mac, head_text(head).as_bytes()).as_ref().to_vec()
    }

    /// Whether this code is that of the head.
    pub fn is_authentic(&self, head: &Head, code: &[u8]) -> bool {
        hmac::verify(&self.mac, head_text(head).as_bytes(), code).is_ok()
    }
}

/// Whether the owner of a public key has signed a checkpoint. Both come as hexadecimal digits.
pub(super) fn has_signed_checkpoint(public: &str, seq: u64, prev: &Hash, signature: &str) -> bool {
    let signature = unhex(signature).unwrap_or_default();
    verified(public, checkpoint_text(seq, prev).as_bytes(), &signature)
}

/// Whether the owner of a public key has signed a seam.
pub(super) fn has_signed_seam(public: &str, seam: &Seam) -> bool {
    verified(public, seam_text(&seam.cut, seam.at_ms).as_bytes(), &seam.signature)
}

fn verified(public: &str, text: &[u8], signature: &[u8]) -> bool {
    unhex(public).is_some_and(|public| UnparsedPublicKey::new(&ED25519, public).verify(text, signature).is_ok())
}

fn checkpoint_text(seq: u64, prev: &Hash) -> String {
    format!("acheron audit: checkpoint {seq} after {prev}")
}

fn seam_text(cut: &Head, at_ms: u64) -> String {
    format!("acheron audit: cut after {} {} at {at_ms}", cut.seq, cut.hash)
}

fn head_text(head: &Head) -> String {
    format!("{} {}", head.seq, head.hash)
}
