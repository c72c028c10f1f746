use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

impl CommandBuffer {
    fn take(&mut self, data: &[u8]) -> Result<Vec<Value>> {
        self.accept(data, || EXPECTS.to_owned())
    }
}

fn check(writes: &[&str], expect: Expect) {
    let mut input = CommandBuffer::default();
    let mut said = String::new();
    for write in writes {
        match input.take(write.as_bytes()) {
            Ok(commands) => said += &format!("{}\n", Value::from(commands)),
            Err(error) => said += &format!("{}: {error}\n", error.code.name()),
        }
    }
    if !input.pending.trim_ascii().is_empty() {
        said += &format!("left: {}\n", String::from_utf8_lossy(&input.pending));
    }
    expect.assert_eq(&said);
}

#[test]
fn a_command_is_taken_by_the_write_that_completes_it() {
    check(
        &["{\"op\":", "\"a\"}", "\n"],
        expect![[r#"
            []
            [{"op":"a"}]
            []
        "#]],
    );
}

#[test]
fn several_commands_in_one_write() {
    check(
        &["{\"a\":1} {\"b\":\"}\"}\n{\"c\":", "[{}]}"],
        expect![[r#"
            [{"a":1},{"b":"}"}]
            [{"c":[{}]}]
        "#]],
    );
}

#[test]
fn one_malformed_command_fails_the_write() {
    check(
        &["{\"a\":1} {\"b\" 2}", "{\"d\":4}"],
        expect![[r#"
            invalid_payload: not a JSON object: expected `:` at line 1 column 7
            [{"d":4}]
        "#]],
    );
}

#[test]
fn text_that_cannot_become_an_object_is_refused_immediately() {
    check(
        &["fly", "[1]", "\"a\"", "{\"op\":fly", "{\"op\":"],
        expect![[r#"
            invalid_payload: a command is a JSON object, such as {"op": "..."}
            invalid_payload: a command is a JSON object, such as {"op": "..."}
            invalid_payload: a command is a JSON object, such as {"op": "..."}
            invalid_payload: not a JSON object: expected ident at line 1 column 8
            []
            left: {"op":
        "#]],
    );
}

#[test]
fn the_longest_command_has_a_mebibyte() {
    let mut input = CommandBuffer::default();
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LIMIT - 8));
    assert_eq!(long.len(), LIMIT);
    assert_eq!(input.take(long.as_bytes()).unwrap().len(), 1);
    assert!(input.take(b"{").is_ok());
    assert_eq!(input.take(long.as_bytes()).unwrap_err().code, acheron_base::Code::TooLarge);
    // The kernel cuts long writes: this is the rest of the same command, and must not be taken for one.
    assert_eq!(input.take(b"{\"op\":\"delete\"}").unwrap_err().code, acheron_base::Code::TooLarge);
}

#[test]
fn many_commands_in_one_write_may_be_longer_than_one_may_be() {
    let one = format!("{{\"a\":\"{}\"}}\n", "x".repeat(3000));
    let mut input = CommandBuffer::default();
    assert_eq!(input.take(one.repeat(800).as_bytes()).unwrap().len(), 800);
    assert_eq!(input.take(b"{}").unwrap().len(), 1);
}

proptest! {
    #[test]
    fn cutting_a_stream_anywhere_changes_nothing(text in "(\\{\"a\":[1-9][0-9]{0,2}(,\"b\":\"[{}\\[ a]*\")?\\}\n?){1,4}", cut in 0usize..60) {
        let whole = CommandBuffer::default().take(text.as_bytes()).unwrap();
        let cut = cut.min(text.len());
        let mut input = CommandBuffer::default();
        let mut parts = input.take(&text.as_bytes()[..cut]).unwrap();
        parts.extend(input.take(&text.as_bytes()[cut..]).unwrap());
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn any_bytes_are_taken_or_refused(writes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
        let mut input = CommandBuffer::default();
        for write in writes {
            let _ = input.take(&write);
        }
    }
}

struct Taker(Mutex<Vec<String>>);

impl CommandSink for Taker {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"{}\n")
    }

    fn submit(&self, _context: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>> {
        Answer::ok(commands.iter().map(|it| Arc::new(FixedReply(line(it))) as Arc<dyn Reply>).collect())
    }

    fn refused(&self, _context: &CommandContext, error: &Error) {
        self.0.lock().push(error.message.clone());
    }
}

#[tokio::test]
async fn the_close_of_an_incomplete_command_fails_and_loses_nothing() {
    let sink = Arc::new(Taker(Mutex::default()));
    let open = || Control::new(sink.clone()).open(&Caller::named("ada"), Open::WRITE).unwrap();
    let errno = |flushed: Answer<()>| match flushed {
        Answer::Now(flushed) => flushed.err().map(|error| error.errno()),
        _ => panic!("a flush does not wait"),
    };
    let handle = open();
    assert_eq!(errno(handle.flush(true)), None, "bash flushes before it writes");
    handle.write(0, b"{\"op\":").wait().await.unwrap();
    assert_eq!(errno(handle.flush(false)), None, "another holder of the descriptor may write the rest");
    assert_eq!(errno(handle.flush(true)), Some(libc::EINVAL));
    assert_eq!(sink.0.lock().len(), 1);
    handle.write(0, b"1}").wait().await.unwrap();
    handle.write(0, b"\n").wait().await.unwrap();
    assert_eq!(errno(handle.flush(true)), None);

    let blank = open();
    blank.write(0, b"\n").wait().await.unwrap();
    assert_eq!(errno(blank.flush(true)), Some(libc::EINVAL), "it is no command");
    blank.closed();
    assert_eq!(sink.0.lock().len(), 2, "each is reported once");
    let left = open();
    left.write(0, b"{").wait().await.unwrap();
    left.closed();
    assert_eq!(sink.0.lock().len(), 3);

    // A command that a write refused is not refused again.
    let bad = open();
    assert!(bad.write(0, b"fly").wait().await.is_err());
    assert_eq!(errno(bad.flush(true)), None);
}
