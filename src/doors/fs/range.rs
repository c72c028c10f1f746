//! The header `Range`: one range of bytes (RFC 9110). Pure.

/// The bytes that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedRange {
    Whole,
    /// From the first to after the last.
    Part(u64, u64),
    Unsatisfiable,
}

/// Reads the header for a file of this size. What is not understood, and several ranges, mean the whole file.
pub fn parse(header: Option<&str>, size: u64) -> AskedRange {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return AskedRange::Whole };
    let Some((first, last)) = spec.trim().split_once('-') else { return AskedRange::Whole };
    let number =
        |word: &str| word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse::<u64>().ok()).flatten();
    let (begin, end) = match (first, last) {
        ("", last) => match number(last) {
            Some(0) => return AskedRange::Unsatisfiable,
            Some(count) => (size.saturating_sub(count), size),
            None => return AskedRange::Whole,
        },
        (first, "") => match number(first) {
            Some(first) => (first, size),
            None => return AskedRange::Whole,
        },
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            _ => return AskedRange::Whole,
        },
    };
    match begin < end {
        true => AskedRange::Part(begin, end),
        false => AskedRange::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_as_the_standard_says() {
        use AskedRange::{Part, Unsatisfiable, Whole};
        for (header, expected) in [
            (None, Whole),
            (Some("bytes=0-0"), Part(0, 1)),
            (Some("bytes=2-"), Part(2, 10)),
            (Some("bytes=2-99"), Part(2, 10)),
            (Some("bytes=-3"), Part(7, 10)),
            (Some("bytes=-99"), Part(0, 10)),
            (Some("bytes=-0"), Unsatisfiable),
            (Some("bytes=10-"), Unsatisfiable),
            (Some("bytes=5-2"), Whole),
            (Some("bytes=0-1,3-4"), Whole),
            (Some("bytes=0-18446744073709551615"), Part(0, 10)),
            (Some("bytes=99999999999999999999-"), Whole),
            (Some("lines=1-2"), Whole),
        ] {
            assert_eq!(parse(header, 10), expected, "{header:?}");
        }
    }
}
