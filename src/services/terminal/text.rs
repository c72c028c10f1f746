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
mod tests;
