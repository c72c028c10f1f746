//! Links that are sent out with a request. A link shows one request and can answer it; it is signed over the request, the hash of
//! what is asked, and the time until which it waits, so that it opens nothing else. It ends with the request.

use std::fmt::Write as _;

use ring::hmac;

/// The key of a host that signs its links.
pub struct LinkKey(hmac::Key);

impl LinkKey {
    /// The bytes of a key.
    pub const LENGTH: usize = 32;

    /// A key of these bytes, which nobody else knows.
    pub fn new(bytes: &[u8]) -> LinkKey {
        LinkKey(hmac::Key::new(hmac::HMAC_SHA256, bytes))
    }

    /// The signature for a request, as hexadecimal digits.
    pub fn sign(&self, id: &str, subject_sha256: &str, expires_at_ms: u64) -> String {
        let tag = hmac::sign(&self.0, signed(id, subject_sha256, expires_at_ms).as_bytes());
        tag.as_ref().iter().fold(String::with_capacity(64), |mut text, byte| {
            _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Whether a signature is that of the request; takes as long for a wrong one.
    pub fn verify(&self, id: &str, subject_sha256: &str, expires_at_ms: u64, signature: &str) -> bool {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, rest) = signature.as_bytes().as_chunks::<2>();
        let tag: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
        let Some(tag) = tag.filter(|_| rest.is_empty()) else { return false };
        hmac::verify(&self.0, signed(id, subject_sha256, expires_at_ms).as_bytes(), &tag).is_ok()
    }
}

fn signed(id: &str, subject_sha256: &str, expires_at_ms: u64) -> String {
    format!("acheron approval\n{id}\n{subject_sha256}\n{expires_at_ms}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_its_own_request_and_no_other() {
        let key = LinkKey::new(&[7; 32]);
        let link = key.sign("apr-1", "ab", 5);
        assert!(key.verify("apr-1", "ab", 5, &link));
        for (id, hash, time, signature) in [
            ("apr-2", "ab", 5, link.as_str()),
            ("apr-1", "ac", 5, &link),
            ("apr-1", "ab", 6, &link),
            ("apr-1", "ab", 5, ""),
            ("apr-1", "ab", 5, &link[1..]),
            ("apr-1", "ab", 5, &link[2..]),
            ("apr-1", "ab", 5, &"0".repeat(64)),
            ("apr-1", "ab", 5, "ä"),
        ] {
            assert!(!key.verify(id, hash, time, signature), "{id} {hash} {time} {signature}");
        }
        assert!(!LinkKey::new(&[8; 32]).verify("apr-1", "ab", 5, &link));
    }
}
