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
pub struct Keys {
    keys: Vec<Key>,
}

#[derive(Clone)]
struct Key {
    id: String,
    secret: [u8; KEY],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.id)).finish()
    }
}

impl Keys {
    /// Reads keys in base64, one a line; `#` begins a remark.
    pub fn read(text: &str) -> Result<Keys> {
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
        Ok(Keys { keys })
    }

    /// A new key, as a line for [`Keys::read`].
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
    pub fn seal(&self, place: &Place, plain: &[u8], random: Random) -> Result<(String, Tag)> {
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
    pub fn open(&self, place: &Place, line: &str) -> Result<(Vec<u8>, Tag)> {
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
            return Err(Error::unavailable(format!("{at} was sealed with the key {shown}, which is not among ours")));
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
pub struct Place<'a> {
    /// `session` or `run`.
    pub what: &'a str,
    pub name: &'a str,
    pub position: u64,
    pub previous: Tag,
}

impl Place<'_> {
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
mod tests {
    use super::*;

    fn keys(fill: u8) -> Keys {
        Keys::read(&URL_SAFE_NO_PAD.encode([fill; KEY])).unwrap()
    }

    fn at(name: &str, position: u64, previous: Tag) -> Place<'_> {
        Place { what: "session", name, position, previous }
    }

    fn seal(place: &Place, text: &str) -> (String, Tag) {
        keys(1).seal(place, text.as_bytes(), &|bytes| bytes.fill(7)).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_at_its_place() {
        let (line, tag) = seal(&at("s", 0, FIRST), "secret history");
        assert!(!line.contains("secret") && !line.starts_with('{'));
        assert_eq!(keys(1).open(&at("s", 0, FIRST), &line).unwrap(), (b"secret history".to_vec(), tag));
    }

    #[test]
    fn a_line_opens_nowhere_else() {
        let (line, tag) = seal(&at("s", 0, FIRST), "x");
        for place in [at("t", 0, FIRST), at("s", 1, FIRST), at("s", 0, tag), Place { what: "run", ..at("s", 0, FIRST) }]
        {
            let fault = keys(1).open(&place, &line).unwrap_err();
            assert!(fault.message.contains("its seal is broken"), "{fault}");
        }
    }

    #[test]
    fn a_changed_line_does_not_open() {
        let (line, _) = seal(&at("s", 0, FIRST), "x");
        for place in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(keys(1).open(&at("s", 0, FIRST), &changed).is_err(), "byte {place}");
        }
    }

    #[test]
    fn the_wrong_key_is_named_and_not_the_data_blamed() {
        let (line, _) = seal(&at("s", 0, FIRST), "x");
        let fault = keys(2).open(&at("s", 0, FIRST), &line).unwrap_err();
        let id = keys(1).ids()[0].to_owned();
        assert_eq!(fault.message, format!("line 1 of session s was sealed with the key {id}, which is not among ours"));
    }

    #[test]
    fn a_key_that_is_none_is_refused() {
        for (text, expected) in [
            ("", "the history key is empty"),
            ("# only words\n", "the history key is empty"),
            ("MTIzNDU2Nzg5MA==", "line 1 of the history key is not 32 bytes in base64"),
            ("\n!!!", "line 2 of the history key is not 32 bytes in base64"),
        ] {
            assert_eq!(Keys::read(text).unwrap_err().message, expected);
        }
    }

    #[test]
    fn after_a_rotation_old_lines_still_open() {
        let (line, tag) = seal(&at("s", 0, FIRST), "old");
        let both = Keys::read(&format!("{}\n{}", URL_SAFE_NO_PAD.encode([1; KEY]), Keys::line(&|bytes| bytes.fill(3))))
            .unwrap();
        assert_eq!(both.open(&at("s", 0, FIRST), &line).unwrap().0, b"old");
        let (newer, _) = both.seal(&at("s", 1, tag), b"new", &|bytes| bytes.fill(9)).unwrap();
        assert!(newer.starts_with(&format!("v1.{}.", both.ids()[1])));
        assert!(keys(1).open(&at("s", 1, tag), &newer).is_err());
    }

    #[test]
    fn keys_do_not_show_themselves() {
        assert_eq!(format!("{:?}", keys(1)), format!("[{:?}]", keys(1).ids()[0]));
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_refused_without_a_panic(line in "\\PC{0,80}|v1\\.[a-f0-9]{8}\\.[A-Za-z0-9_-]{0,90}") {
            proptest::prop_assert!(keys(1).open(&at("s", 0, FIRST), &line).is_err());
        }
    }
}
