//! Bytes of a program as text: readable, and whole even where they are no text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use acheron_base::{Error, Result};

/// The text, and the exact bytes in base64 where the text could not say them.
pub fn shown(bytes: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), Some(STANDARD.encode(bytes))),
    }
}

/// The bytes that a caller wrote as base64.
pub fn decoded(text: &str) -> Result<Vec<u8>> {
    STANDARD.decode(text.trim()).map_err(|err| Error::invalid(format!("data_b64 is not base64: {err}")))
}

/// How much of `bytes` to hand out so that no character is torn, when more is still to come. Bytes that are no text
/// at all are handed out as they are.
pub fn whole(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let Some(start) = (tail..bytes.len()).rev().find(|at| bytes[*at] & 0xC0 != 0x80) else { return bytes.len() };
    let needed = match bytes[start] {
        0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if start + needed > bytes.len() && start > 0 { start } else { bytes.len() }
}

/// A terminal writes line ends as two characters; a program that asked for lines wants one.
#[derive(Debug, Default)]
pub struct PlainLines {
    /// The last byte was the first half of what may be a line end.
    half: bool,
}

impl PlainLines {
    /// The next bytes with plain line ends. A line end may come in two pieces.
    pub fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes {
            if self.half && *byte != b'\n' {
                plain.push(b'\r');
            }
            self.half = *byte == b'\r';
            if !self.half {
                plain.push(*byte);
            }
        }
        plain
    }

    /// What was held back, when nothing more comes.
    pub fn finish(&mut self) -> &'static [u8] {
        if std::mem::take(&mut self.half) { b"\r" } else { b"" }
    }
}

/// Keeps the first bytes of a stream and counts the rest.
#[derive(Debug)]
pub struct Capture {
    pub kept: Vec<u8>,
    pub truncated: bool,
    limit: usize,
}

impl Capture {
    pub fn new(limit: usize) -> Self {
        Capture { kept: Vec::new(), truncated: false, limit }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        let room = self.limit - self.kept.len();
        self.truncated |= bytes.len() > room;
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Forgets what follows the last line end.
    pub fn drop_open_line(&mut self) {
        if !self.truncated {
            self.kept.truncate(self.kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_text_comes_intact_beside_what_can_be_read() {
        assert_eq!(shown("styx é".as_bytes()), ("styx é".into(), None));
        let (text, exact) = shown(b"a\xffb");
        assert_eq!(text, "a\u{fffd}b");
        assert_eq!(decoded(&exact.unwrap()).unwrap(), b"a\xffb");
        assert!(decoded("%").unwrap_err().message.starts_with("data_b64 is not base64"));
    }

    #[test]
    fn a_character_is_not_torn() {
        for (bytes, expected) in [
            ("abc".as_bytes(), 3),
            (&"ab€".as_bytes()[..3], 2),
            (&"ab€".as_bytes()[..4], 2),
            ("ab€".as_bytes(), 5),
            (&"a😀".as_bytes()[..4], 1),
            (b"\xff\xff\xff", 3),
            (b"ab\x80\x80\x80\x80", 6),
            (&"€".as_bytes()[..2], 2),
            (b"", 0),
        ] {
            assert_eq!(whole(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn a_capture_keeps_the_beginning() {
        let mut capture = Capture::new(5);
        capture.take(b"abc");
        assert!(!capture.truncated);
        capture.take(b"def");
        capture.take(b"ghi");
        assert_eq!((capture.kept.as_slice(), capture.truncated), (&b"abcde"[..], true));
    }

    #[test]
    fn an_open_line_is_dropped_and_no_other() {
        for (said, kept) in [("", ""), ("$ ", ""), ("a\n$ ", "a\n"), ("a\n", "a\n"), ("a\nmuch longer", "a\nmuch l")] {
            let mut capture = Capture::new(8);
            capture.take(said.as_bytes());
            capture.drop_open_line();
            assert_eq!(String::from_utf8_lossy(&capture.kept), kept);
        }
    }

    #[test]
    fn line_ends_become_plain_in_any_pieces() {
        let said = b"one\r\n\r\r\ntwo\rthree\n\r";
        for size in 1..=said.len() {
            let mut lines = PlainLines::default();
            let mut plain: Vec<u8> = said.chunks(size).flat_map(|piece| lines.pass(piece)).collect();
            plain.extend_from_slice(lines.finish());
            assert_eq!(plain.escape_ascii().to_string(), r"one\n\r\ntwo\rthree\n\r", "pieces of {size}");
        }
    }

    proptest! {
        #[test]
        fn pieces_add_up_to_the_whole(text in "\\PC{0,40}", size in 4usize..9) {
            let bytes = text.as_bytes();
            let mut at = 0;
            let mut said = String::new();
            while at < bytes.len() {
                let piece = &bytes[at..bytes.len().min(at + size)];
                let piece = &piece[..whole(piece)];
                said.push_str(std::str::from_utf8(piece).unwrap());
                at += piece.len();
            }
            prop_assert_eq!(said, text);
        }
    }
}
