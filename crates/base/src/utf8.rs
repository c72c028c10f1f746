//! Parts of text, as writers bring them: a character may be cut at either end. Any crate may use it.

/// Whether these bytes may be a part of UTF-8 text: its beginning, or one from the middle, whose first character may be cut.
pub fn may_be_part(bytes: &[u8], is_first: bool) -> bool {
    fault(bytes, is_first).is_none()
}

/// The place of the first byte that keeps these from being a part of UTF-8 text.
pub fn fault(bytes: &[u8], is_first: bool) -> Option<usize> {
    let cut = if is_first { 0 } else { bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count() };
    let error = std::str::from_utf8(&bytes[cut..]).err()?;
    error.error_len().map(|_| cut + error.valid_up_to())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_cannot_be_text_is_known() {
        for (bytes, is_first, wanted) in [
            (&b"plain"[..], true, true),
            (b"\xff", false, false),
            (b"a\xffb", true, false),
            (b"\x80a", true, false),
            (b"\x80a", false, true),
            (b"\x80\x80\x80\x80a", false, false),
            (b"a\xe2\x82", true, true),
        ] {
            assert_eq!(may_be_part(bytes, is_first), wanted, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn every_part_of_a_text_is_one(text in ".{0,40}", from in 0usize..80, to in 0usize..80) {
            let (from, to) = (from.min(text.len()), to.min(text.len()));
            let part = &text.as_bytes()[from.min(to)..from.max(to)];
            prop_assert!(may_be_part(part, from.min(to) == 0));
        }
    }
}
