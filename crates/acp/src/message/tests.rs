use super::*;

fn read(text: &str) -> Result<AcpMessage, (Value, AcpFault)> {
    AcpMessage::read(text.as_bytes())
}

#[test]
fn messages_are_told_apart() {
    assert!(matches!(read(r#"{"id": "x", "method": "a"}"#), Ok(AcpMessage::Request { .. })));
    assert!(matches!(read(r#"{"method": "a", "params": {}}"#), Ok(AcpMessage::Notification { .. })));
    assert!(matches!(read(r#"{"id": 7, "result": null}"#), Ok(AcpMessage::Answer { id: Some(7), outcome: Ok(_) })));
    let Ok(AcpMessage::Answer { outcome: Err(fault), .. }) =
        read(r#"{"id": 7, "error": {"code": -1, "message": "no\nway"}}"#)
    else {
        panic!("no refusal")
    };
    assert_eq!((fault.code, fault.message.as_str()), (-1, "no way"));
    for (line, code) in [
        ("Starting…", AcpFault::PARSE),
        ("[]", AcpFault::INVALID_REQUEST),
        (r#"{"id": null, "method": "a"}"#, AcpFault::INVALID_REQUEST),
        (r#"{"id": 1, "method": 1}"#, AcpFault::INVALID_REQUEST),
        (r#"{"id": 1}"#, AcpFault::INVALID_REQUEST),
        ("{}", AcpFault::INVALID_REQUEST),
    ] {
        assert_eq!(read(line).unwrap_err().1.code, code, "{line}");
    }
}

#[test]
fn lines_are_bounded_and_the_next_one_is_whole() {
    let mut lines = AcpLines::default();
    assert_eq!(lines.take(b"{\"a\""), []);
    assert_eq!(lines.take(b":1}\n\n{}"), [AcpLine::Whole(b"{\"a\":1}".to_vec())]);
    let long = vec![b'x'; crate::LONGEST_MESSAGE];
    assert_eq!(lines.take(&long), [AcpLine::TooLong]);
    assert_eq!(lines.take(&long), []);
    assert_eq!(lines.take(b"\nok\n"), [AcpLine::Whole(b"ok".to_vec())]);
}

#[test]
fn foreign_text_is_one_short_line() {
    assert_eq!(one_line("a\n\tb\u{1b}[31m c", 80), "a b [31m c");
    assert_eq!(one_line("one two three", 7), "one two…");
}
