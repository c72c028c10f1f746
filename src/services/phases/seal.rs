//! Sealed lines: XChaCha20-Poly1305, bound to their session, their place and the line before.
//!
//! A line that was changed, moved, copied from another session or put after another line does not open. That lines were
//! cut off at the end cannot be seen in the lines themselves; who keeps them also keeps their number and the last tag.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};

use acheron_base::{Error, Result};

pub const KEY: usize = 32;
const NONCE: usize = 24;
const TAG: usize = 16;
const FORM: &str = "v1";

/// The end of a sealed line, by which the next is tied to it.
pub type Tag = [u8; TAG];

/// The tag before the first line.
pub const FIRST: Tag = [0; TAG];

/// Random bytes from outside, so that a test can know them.
pub type Random<'a> = &'a (dyn Fn(&mut [u8]) + Send + Sync);

/// Keys, the newest last: that one seals, all of them open.
#[derive(Clone)]
pub struct SealKeys {
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: String,
    secret: [u8; KEY],
}

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.id)).finish()
    }
}

impl SealKeys {
    /// Reads keys in base64, one per line; `#` begins a comment.
    pub fn read(text: &str) -> Result<SealKeys> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split([' ', ',', '\t']).filter(|word| !word.is_empty()) {
                let bytes = URL_SAFE_NO_PAD.decode(word.trim_end_matches('=').replace('+', "-").replace('/', "_"));
                let secret = bytes.ok().and_then(|bytes| <[u8; KEY]>::try_from(bytes).ok());
                let Some(secret) = secret else {
                    let number = number + 1;
                    return Err(Error::invalid(format!(
                        "line {number} of the history key is not {KEY} bytes in base64"
                    )));
                };
                keys.push(Key { id: key_id(&secret), secret });
            }
        }
        if keys.is_empty() {
            return Err(Error::invalid("the history key is empty"));
        }
        Ok(SealKeys { keys })
    }

    /// A new key, as a line for [`SealKeys::read`].
    pub fn line(random: Random) -> String {
        let mut secret = [0; KEY];
        random(&mut secret);
        URL_SAFE_NO_PAD.encode(secret) + "\n"
    }

    /// The names of the keys, the newest last. A name says nothing about its key.
    pub fn ids(&self) -> Vec<&str> {
        self.keys.iter().map(|key| key.id.as_str()).collect()
    }

    /// Seals one text for its place.
    pub fn seal(&self, place: &LinePosition, plain: &[u8], random: Random) -> Result<(String, Tag)> {
        let key = self.keys.last().ok_or_else(|| Error::internal("there is no history key"))?;
        let mut sealed = vec![0; NONCE];
        random(&mut sealed);
        let nonce: [u8; NONCE] = std::array::from_fn(|at| sealed[at]);
        let bound = place.bound();
        let body = XChaCha20Poly1305::new(&key.secret.into())
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &bound })
            .map_err(|_| Error::too_large("a text is too large to be sealed"))?;
        sealed.extend(body);
        Ok((format!("{FORM}.{}.{}", key.id, URL_SAFE_NO_PAD.encode(&sealed)), tag(&sealed)))
    }

    /// Opens one line at its place.
    pub fn open(&self, place: &LinePosition, line: &str) -> Result<(Vec<u8>, Tag)> {
        let at = format!("line {} of {} {}", place.position + 1, place.what, place.name);
        let damaged = || Error::failed(format!("{at} is not a sealed line"));
        let mut parts = line.trim_end().splitn(3, '.');
        let (form, id, body) = (parts.next(), parts.next(), parts.next());
        let (Some(FORM), Some(id), Some(body)) = (form, id, body) else { return Err(damaged()) };
        let sealed = URL_SAFE_NO_PAD.decode(body).map_err(|_| damaged())?;
        if sealed.len() < NONCE + TAG {
            return Err(damaged());
        }
        let Some(key) = self.keys.iter().find(|key| key.id == id) else {
            let shown: String = id.chars().take(16).collect();
            return Err(Error::unavailable(format!(
                "{at} was sealed with the key {shown}, which is not among ours; add its line to history.key"
            )));
        };
        let (nonce, rest) = sealed.split_at(NONCE);
        let nonce: [u8; NONCE] = std::array::from_fn(|at| nonce[at]);
        let bound = place.bound();
        let plain = XChaCha20Poly1305::new(&key.secret.into())
            .decrypt(&XNonce::from(nonce), Payload { msg: rest, aad: &bound })
            .map_err(|_| Error::failed(format!("{at} was changed, moved or copied: its seal is broken")))?;
        Ok((plain, tag(&sealed)))
    }
}

/// Where a line stands.
#[derive(Clone, Debug)]
pub struct LinePosition<'a> {
    /// `session` or `run`.
    pub what: &'a str,
    pub name: &'a str,
    pub position: u64,
    pub previous: Tag,
}

impl LinePosition<'_> {
    fn bound(&self) -> Vec<u8> {
        let mut bound = b"acheron".to_vec();
        for text in [FORM, self.what, self.name] {
            bound.extend((text.len() as u64).to_be_bytes());
            bound.extend(text.as_bytes());
        }
        bound.extend(self.position.to_be_bytes());
        bound.extend(self.previous);
        bound
    }
}

fn tag(sealed: &[u8]) -> Tag {
    std::array::from_fn(|at| sealed[sealed.len() - TAG + at])
}

/// A name for a key that gives nothing of it away.
fn key_id(secret: &[u8; KEY]) -> String {
    let digest = Sha256::new().chain_update(b"acheron key id").chain_update(secret).finalize();
    digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
