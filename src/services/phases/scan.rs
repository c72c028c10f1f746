//! Where commands and payloads may stand in a reply: the host's scanner, with the limits of phases.

use std::ops::Range;

use serde_json::Value;

use acheron_base::reply_scan::{FoundValue, ReplyScan, ScanLimits};

/// The longest reply that is looked into.
pub const LONGEST: usize = 1 << 20;
/// How deep an object may be nested, how large it may be, and how many are looked at.
const LIMITS: ScanLimits = ScanLimits { bytes: 256 * 1024, depth: 64, values: 2048 };

/// The beginning of a reply, as much as is looked into, and its parts.
pub fn scanned(reply: &str) -> (&str, ReplyScan) {
    let text = bounded(reply);
    (text, ReplyScan::of(text, LIMITS))
}

fn bounded(text: &str) -> &str {
    match text.len() {
        0..=LONGEST => text,
        _ => &text[..text.floor_char_boundary(LONGEST)],
    }
}

/// A found value as JSON, or the fault that keeps it from being read.
pub fn parsed(text: &str, found: &FoundValue) -> Result<Value, String> {
    match found.broken {
        Some(broken) => Err(broken.sentence()),
        None => serde_json::from_str(&text[found.span.clone()]).map_err(|fault| fault.to_string()),
    }
}

/// The range that holds `at`, if any; the ranges are in order and apart.
pub fn within(spans: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    spans.get(spans.partition_point(|span| span.end <= at)).filter(|span| span.start <= at)
}
