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
