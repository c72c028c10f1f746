//! Decodes server-sent events from chunks of any size. A line is decoded only when it is complete, so a chunk may end
//! in the middle of a character. Each byte is examined once. Any crate may use it.

use crate::{Error, Result};

/// The size limit of an event.
const LONGEST: usize = 16 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event:` field, empty if there was none.
    pub name: String,
    /// The `data:` lines, joined by newlines.
    pub data: String,
}

/// The decoder: it takes chunks and returns events.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a newline that follows belongs to it.
    returned: bool,
    begun: bool,
    event: Event,
    has_data: bool,
}

impl Decoder {
    /// The events that this chunk completes.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let mut rest = chunk;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, end) = (&rest[..at], rest[at]);
            if at == 0 && end == b'\n' && self.returned {
                self.returned = false;
            } else {
                self.keep(line)?;
                self.returned = end == b'\r';
                events.extend(self.end_of_line());
            }
            rest = &rest[at + 1..];
        }
        if !rest.is_empty() {
            self.returned = false;
            self.keep(rest)?;
        }
        Ok(events)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        if self.line.len() + self.event.data.len() + bytes.len() > LONGEST {
            return Err(Error::too_large(format!("an event of the stream is longer than {LONGEST} bytes")));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &*line } else { line.trim_start_matches('\u{feff}') };
        self.begun = true;
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = value.to_owned(),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            _ => (), // comments, `id` and `retry` are nothing to us
        }
        None
    }
}

#[cfg(test)]
mod tests;
