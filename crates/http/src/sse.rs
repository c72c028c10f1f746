//! Decodes server-sent events from chunks of any size. A line is decoded only when it is complete, so a chunk may end
//! in the middle of a character. Each byte is examined once. Any crate may use it.

use acheron_base::{Error, Result};

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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(chunks: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let events: Vec<_> = chunks.iter().flat_map(|chunk| decoder.feed(chunk).unwrap()).collect();
        events.iter().map(|event| format!("{}|{}", event.name, event.data)).collect::<Vec<_>>().join(" ; ")
    }

    #[test]
    fn events_are_read_by_the_rules() {
        for (stream, wanted) in [
            ("data: a\n\ndata: b\n\n", "|a ; |b"),
            ("event: x\ndata: a\ndata:b\n\n", "x|a\nb"),
            ("data: a\r\n\r\ndata: b\r\r", "|a ; |b"),
            (": a comment\n\ndata: a\n\n", "|a"),
            ("event: lonely\n\ndata: a\n\n", "|a"),
            ("data: never ended", ""),
            ("data\n\n", "|"),
            ("\u{feff}data: a\n\n", "|a"),
        ] {
            assert_eq!(shown(&[stream.as_bytes()]), wanted, "{stream:?}");
        }
    }

    #[test]
    fn a_character_may_be_cut_in_two() {
        let stream = "data: Σχῆμα 🜁\n\n".as_bytes();
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(shown(&bytes), "|Σχῆμα 🜁");
    }

    proptest! {
        #[test]
        fn where_the_chunks_are_cut_changes_nothing(stream in "(data: [a-zé]{0,5}|event: x|:|\r|\n|\r\n){0,30}", cuts in prop::collection::vec(1usize..7, 1..40)) {
            let mut pieces = Vec::new();
            let mut rest = stream.as_bytes();
            let mut cuts = cuts.iter().cycle();
            while !rest.is_empty() {
                let (piece, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                pieces.push(piece);
                rest = tail;
            }
            prop_assert_eq!(shown(&pieces), shown(&[stream.as_bytes()]));
        }
    }
}
