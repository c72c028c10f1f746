//! Finds where JSON stands in a model's reply: the objects and lists in its text, in fenced blocks and in code spans.
//!
//! The one scanner for everybody who reads replies. It returns places, not values: the reader parses them as strictly as
//! it wants. Three rules keep a reader from obeying what nobody said. A thought holds nothing. A value that is broken
//! reaches to the end of its stretch of text, so nothing inside it is found. Code is marked as code. Total and linear in
//! the length of the text, apart from a bounded number of second looks.

mod marks;

use std::ops::Range;

use marks::{Mark, next_fence, next_mark};

/// The largest value that is followed to its end.
#[derive(Clone, Copy, Debug)]
pub struct ScanLimits {
    pub bytes: usize,
    /// How deep brackets may be nested.
    pub depth: usize,
    /// How many values are listed.
    pub values: usize,
}

/// The part of a reply in which a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePlace {
    Text,
    /// A fenced block; its number in [`ReplyScan::fences`].
    Fence(usize),
    /// Between backticks within a line of text.
    CodeSpan,
}

/// An object or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundValue {
    /// From its first bracket to its last; to the end of its stretch of text if it is broken.
    pub span: Range<usize>,
    pub place: ValuePlace,
    pub broken: Option<Broken>,
    /// Where the stretch of text ends in which it stands.
    pub stretch_end: usize,
}

impl FoundValue {
    /// Whether something that cannot be read was meant as JSON. Then it is not known where it ends, and nothing after it
    /// in the same stretch of text can be trusted; words in braces are only words.
    pub fn was_meant(&self, text: &str) -> bool {
        self.broken.is_some() || text.get(self.span.clone()).is_some_and(|own| own.contains('"'))
    }
}

/// A block between lines of backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// From its opening line to the end of its closing one.
    pub span: Range<usize>,
    pub inner: Range<usize>,
    /// The word after the opening backticks, in small letters.
    pub label: String,
}

/// Why a value has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    Unclosed,
    Crossed,
    TooDeep(usize),
    TooLarge(usize),
}

impl Broken {
    pub fn sentence(self) -> String {
        match self {
            Broken::Unclosed => "the object is never closed".to_owned(),
            Broken::Crossed => "brackets close in the wrong order".to_owned(),
            Broken::TooDeep(most) => format!("the object is nested deeper than {most}"),
            Broken::TooLarge(most) => format!("the object is larger than {most} bytes"),
        }
    }
}

/// The parts of a reply, each in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyScan {
    /// Reasoning in tags; a block that never ends reaches to the end.
    pub thoughts: Vec<Range<usize>>,
    /// The last thought never ends.
    pub cut_thought: bool,
    pub fences: Vec<Fence>,
    pub values: Vec<FoundValue>,
    /// There were more values than the limit: the rest of the text was not looked at.
    pub full: bool,
}

impl ReplyScan {
    /// The parts of `text`.
    pub fn of(text: &str, limits: ScanLimits) -> ReplyScan {
        let mut scan = ReplyScan::default();
        let mut at = 0;
        if let Some(end) = marks::thought_without_beginning(text) {
            scan.thoughts.push(0..end);
            at = end;
        }
        let mut fence = 0;
        while let Some((start, mark)) = next_mark(text, at) {
            if scan.full {
                break;
            }
            at = match mark {
                Mark::Thought { end, cut } => {
                    scan.thoughts.push(start..end);
                    scan.cut_thought = cut;
                    end
                }
                Mark::Fence { label, inner, end } => {
                    let place = ValuePlace::Fence(scan.fences.len());
                    scan.fences.push(Fence { span: start..end, inner: inner.clone(), label });
                    scan.code(text, inner, place, limits);
                    end
                }
                Mark::CodeSpan { inner, end } => {
                    scan.code(text, inner, ValuePlace::CodeSpan, limits);
                    end
                }
                Mark::Bracket => {
                    if fence <= start {
                        fence = next_fence(text, start);
                    }
                    // A line of backticks cannot stand inside JSON, so a fence bounds what begins before it.
                    scan.value(text, start..fence, ValuePlace::Text, limits)
                }
            };
        }
        scan
    }

    /// The values in code, where only brackets mean something.
    fn code(&mut self, text: &str, inner: Range<usize>, place: ValuePlace, limits: ScanLimits) {
        let mut at = inner.start;
        while let Some(found) = text[at..inner.end].find(['{', '[']) {
            if self.full {
                return;
            }
            at = self.value(text, at + found..inner.end, place, limits);
        }
    }

    /// Takes the value at the start of `stretch`; returns where to go on.
    fn value(&mut self, text: &str, stretch: Range<usize>, place: ValuePlace, limits: ScanLimits) -> usize {
        if text.as_bytes()[stretch.start] == b'[' && !is_list(&text[stretch.clone()], limits) {
            return stretch.start + 1; // a remark in brackets
        }
        if self.values.len() >= limits.values {
            self.full = true;
            return stretch.end;
        }
        let end = value_end(&text[stretch.clone()], limits);
        let (span, broken) = match end {
            Ok(length) => (stretch.start..stretch.start + length, None),
            Err(broken) => (stretch.clone(), Some(broken)),
        };
        let next = span.end;
        self.values.push(FoundValue { span, place, broken, stretch_end: stretch.end });
        next
    }
}

/// The longest list of plain numbers and words that is told from a remark.
const PLAIN_LIST: usize = 4096;

/// Whether a bracket begins a list, rather than a remark: `[see` is none, and `[1` only if it is closed.
fn is_list(text: &str, limits: ScanLimits) -> bool {
    let inner = text[1..].trim_start();
    if inner.starts_with(['{', '[', '"', ']']) {
        return true;
    }
    let plain = inner.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        || ["true", "false", "null"].iter().any(|word| inner.starts_with(word));
    plain && value_end(&text[..text.floor_char_boundary(PLAIN_LIST)], limits).is_ok()
}

/// The length of the value with which a text begins. Brackets must close in the order in which they were opened.
pub fn value_end(text: &str, limits: ScanLimits) -> Result<usize, Broken> {
    let mut open: Vec<u8> = Vec::new();
    let (mut quoted, mut escaped) = (false, false);
    for (offset, byte) in text.bytes().enumerate() {
        if offset > limits.bytes {
            return Err(Broken::TooLarge(limits.bytes));
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
                open.push(byte);
                if open.len() > limits.depth {
                    return Err(Broken::TooDeep(limits.depth));
                }
            }
            b'}' | b']' => {
                let opener = if byte == b'}' { b'{' } else { b'[' };
                if open.pop() != Some(opener) {
                    return Err(Broken::Crossed);
                }
                if open.is_empty() {
                    return Ok(offset + 1);
                }
            }
            _ => (),
        }
    }
    Err(Broken::Unclosed)
}

#[cfg(test)]
mod tests;
