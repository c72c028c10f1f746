//! The hunks of a unified diff, over bytes: lines end with `\n` and nothing else.

use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// As git tells them apart: text has no NUL among its first bytes.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes[..bytes.len().min(8000)].contains(&0)
}

/// After this time a shorter diff is no longer looked for; what is found by then is correct.
const PATIENCE: Duration = Duration::from_secs(2);

pub fn hunks(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    let (old, new) = (lines(old), lines(new));
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + PATIENCE));
    for group in group_diff_ops(ops, 3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let before = first.old_range().start..last.old_range().end;
        let after = first.new_range().start..last.new_range().end;
        out.extend(format!("@@ -{} +{} @@\n", range(&before), range(&after)).into_bytes());
        for op in &group {
            hunk(op, &old, &new, out);
        }
    }
}

/// `start,count` as diff writes it: an empty range begins after the line before it.
fn range(lines: &std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn hunk(op: &DiffOp, old: &[&[u8]], new: &[&[u8]], out: &mut Vec<u8>) {
    for change in op.iter_changes(old, new) {
        let sign = match change.tag() {
            ChangeTag::Equal => b' ',
            ChangeTag::Delete => b'-',
            ChangeTag::Insert => b'+',
        };
        let line: &[u8] = change.value();
        out.push(sign);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend(b"\n\\ No newline at end of file\n");
        }
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}
