//! Finding JSON objects in what a model said: left to right, aware of strings, bounded.
//!
//! Total: any text gives an answer. One pass over the text; a brace that never closes costs no second look.

use std::ops::Range;

use serde_json::Value;

/// The longest reply that is looked into.
pub const LONGEST: usize = 1 << 20;
/// The deepest nesting of an object.
pub const DEEPEST: usize = 64;
/// The largest object.
pub const LARGEST: usize = 256 * 1024;

/// The object that begins at `start` (which holds a `{`): where it ends, one byte after its last brace.
///
/// Brackets must close in the order in which they were opened, so that `{[}]` is no object.
pub fn object_end(text: &str, start: usize) -> Result<usize, Broken> {
    let mut open: Vec<u8> = Vec::new();
    let mut quoted = false;
    let mut escaped = false;
    for (offset, byte) in text.as_bytes()[start..].iter().enumerate() {
        if offset > LARGEST {
            return Err(Broken::TooLarge);
        }
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => (),
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => {
                open.push(*byte);
                if open.len() > DEEPEST {
                    return Err(Broken::TooDeep);
                }
            }
            b'}' | b']' => {
                let opener = if *byte == b'}' { b'{' } else { b'[' };
                if open.pop() != Some(opener) {
                    return Err(Broken::Crossed);
                }
                if open.is_empty() {
                    return Ok(start + offset + 1);
                }
            }
            _ => (),
        }
    }
    Err(Broken::Unclosed)
}

/// Why there is no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Unclosed,
    Crossed,
    TooDeep,
    TooLarge,
}

impl Broken {
    pub fn sentence(self) -> String {
        match self {
            Broken::Unclosed => "the object is never closed".to_owned(),
            Broken::Crossed => "brackets close in the wrong order".to_owned(),
            Broken::TooDeep => format!("the object is nested deeper than {DEEPEST}"),
            Broken::TooLarge => format!("the object is larger than {LARGEST} bytes"),
        }
    }
}

/// The bytes that a parser may read without success, all attempts together: hostile text must not cost more than its
/// length squared.
pub struct ScanBudget {
    left: usize,
}

impl Default for ScanBudget {
    fn default() -> ScanBudget {
        ScanBudget { left: 8 * LONGEST }
    }
}

impl ScanBudget {
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The object that begins at `start`, parsed, and where it ends.
    pub fn object(&mut self, text: &str, start: usize) -> Result<(Value, usize), String> {
        let end = object_end(text, start).map_err(|broken| {
            let read = if broken == Broken::TooDeep { DEEPEST } else { LARGEST.min(text.len() - start) };
            self.left = self.left.saturating_sub(read);
            broken.sentence()
        })?;
        match serde_json::from_str::<Value>(&text[start..end]) {
            Ok(value) => Ok((value, end)),
            Err(fault) => {
                self.left = self.left.saturating_sub(end - start);
                Err(fault.to_string())
            }
        }
    }
}

/// The parts of a reply that are thought, not said: `<think>…</think>`, and a think block that never ends.
pub fn thoughts(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut open) = (Vec::new(), None);
    for (at, _) in text.match_indices('<') {
        let rest = &text[at..];
        match open {
            None if ["<think>", "<thinking>"].iter().any(|tag| rest.starts_with(tag)) => open = Some(at),
            None => {}
            Some(begin) => {
                if let Some(tag) = ["</think>", "</thinking>"].iter().find(|tag| rest.starts_with(**tag)) {
                    found.push(begin..at + tag.len());
                    open = None;
                }
            }
        }
    }
    found.extend(open.map(|begin| begin..text.len()));
    found
}

/// The same stretches of text in order, those that overlap made one.
pub fn joined(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.sort_by_key(|span| span.start);
    let mut all: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match all.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => all.push(span),
        }
    }
    all
}

/// The range that holds `at`, if any; the ranges are in order and apart.
pub fn within(spans: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    spans.get(spans.partition_point(|span| span.end <= at)).filter(|span| span.start <= at)
}

/// The beginning of a text, as much as is looked into, cut between characters.
pub fn bounded(text: &str) -> &str {
    match text.len() {
        0..=LONGEST => text,
        _ => &text[..text.floor_char_boundary(LONGEST)],
    }
}

#[cfg(test)]
mod tests;
