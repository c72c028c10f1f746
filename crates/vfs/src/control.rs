//! The file that is written: commands, one JSON object each.

use parking_lot::Mutex;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::replies::Replies;
use super::{Answer, Caller, File, Handle, Kind, Open, Reply, Said, line, slice};
use acheron_base::{Code, Error, Result};

/// The longest command.
pub const LIMIT: usize = 1 << 20;

/// Who asks, and how the file was opened.
pub struct Asked {
    pub caller: Caller,
    pub how: Open,
    /// What [`CommandSink::mark`] said when the file was opened.
    pub mark: u64,
}

/// Takes commands.
pub trait CommandSink: Send + Sync + 'static {
    /// What a fresh reader sees: a payload to fill in.
    fn template(&self) -> Bytes;

    /// Begins all of `commands`, or none. The answer to each is found in its reply.
    fn obey(&self, asked: &Asked, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>>;

    /// Something was written that never became a command, or was refused: here its sentence can be kept for those who
    /// did not look at what `write(2)` said.
    fn refused(&self, asked: &Asked, error: &Error);

    /// A position worth remembering from the moment of the opening.
    fn mark(&self) -> u64 {
        0
    }
}

/// A file that takes commands.
///
/// A command is taken by the `write(2)` that completes it, so that a malformed one is the writer's own error, which
/// `echo` can report. An error at `close(2)` is lost: a shell closes by `dup2`.
pub struct Control(Arc<dyn CommandSink>);

impl Control {
    pub fn new(obey: Arc<dyn CommandSink>) -> Self {
        Control(obey)
    }
}

impl File for Control {
    fn kind(&self) -> Kind {
        Kind::Control
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        let asked = Arc::new(Asked { caller: caller.clone(), how, mark: self.0.mark() });
        let (obey, inbox) = (self.0.clone(), Mutex::default());
        Ok(Box::new(Conversation { obey, asked, inbox, replies: Replies::default() }))
    }
}

struct Conversation {
    obey: Arc<dyn CommandSink>,
    asked: Arc<Asked>,
    inbox: Mutex<Inbox>,
    replies: Replies,
}

#[derive(Default)]
struct Inbox {
    /// Written, but not yet a whole command.
    unread: Vec<u8>,
    scan: Scan,
    /// How much of it was last tried by the parser; trying each byte of a slow writer anew would be quadratic.
    tried: usize,
    wrote: bool,
    /// Why a part of a command was refused: it was too long. What follows may be the rest of it, and the rest of a refused
    /// command must not run.
    refused: Option<Error>,
}

impl Inbox {
    /// Takes `data`; returns the commands that it completes.
    fn take(&mut self, data: &[u8]) -> Result<Vec<Value>> {
        self.wrote = true;
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        self.unread.extend_from_slice(data);
        let taken = self.complete();
        if let Err(error) = &taken {
            self.clear();
            self.refused = Some(error.clone()).filter(|error| error.code == Code::TooLarge);
        }
        taken
    }

    fn complete(&mut self) -> Result<Vec<Value>> {
        let mut commands = Vec::new();
        let mut begin = 0;
        while let Some(end) = self.scan.object(&self.unread)? {
            if end - begin > LIMIT {
                return Err(overlong());
            }
            commands.push(parse(&self.unread[begin..end])?);
            begin = end;
        }
        if begin > 0 {
            self.unread.drain(..begin);
            self.scan.at -= begin;
            self.tried = 0;
        }
        if self.unread.len() > LIMIT {
            return Err(overlong());
        }
        if !self.unread.is_empty() && self.unread.len() >= self.tried * 2 {
            self.tried = self.unread.len();
            match parse(&self.unread) {
                Err(Fault::Malformed(error)) => return Err(error),
                Ok(_) | Err(Fault::Unfinished) => (),
            }
        }
        Ok(commands)
    }

    fn clear(&mut self) {
        *self = Inbox { wrote: true, ..Inbox::default() };
    }
}

enum Fault {
    Unfinished,
    Malformed(Error),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unfinished => cut_short(),
            Fault::Malformed(error) => error,
        }
    }
}

fn cut_short() -> Error {
    Error::invalid("the command is cut short: its JSON object was never finished")
}

fn overlong() -> Error {
    Error::too_large(format!("a command has at most {LIMIT} bytes"))
}

fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(bytes).map_err(|err| match err.is_eof() {
        true => Fault::Unfinished,
        false => Fault::Malformed(Error::invalid(format!("not a JSON object: {err}"))),
    })
}

/// Finds where objects end, looking at each byte once.
#[derive(Default)]
struct Scan {
    at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// The end of the next whole object.
    fn object(&mut self, bytes: &[u8]) -> Result<Option<usize>> {
        while let Some(&byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' if self.depth > 0 => self.in_string = !self.in_string,
                _ if self.in_string => (),
                b'{' | b'[' if self.depth > 0 || byte == b'{' => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(Some(self.at));
                    }
                }
                _ if self.depth > 0 || byte.is_ascii_whitespace() => (),
                _ => return Err(Error::invalid("a command is a JSON object, such as {\"op\": \"...\"}")),
            }
        }
        Ok(None)
    }
}

impl Handle for Conversation {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if !self.inbox.lock().wrote {
            return Answer::ok(slice(&self.obey.template(), offset, size));
        }
        self.replies.read(offset, size)
    }

    fn write(&self, _offset: u64, data: &[u8]) -> Answer<()> {
        let taken = self.inbox.lock().take(data);
        let written = data.len();
        let heard = match taken {
            Ok(commands) if commands.is_empty() => return Answer::ok(()),
            Ok(commands) => self.obey.obey(&self.asked, commands),
            Err(error) => Answer::refuse(error),
        };
        let (obey, asked, replies) = (self.obey.clone(), self.asked.clone(), self.replies.clone());
        let note = move |outcome: Result<Vec<Arc<dyn Reply>>>| match outcome {
            Ok(begun) => {
                replies.add(written, begun);
                Ok(())
            }
            Err(error) => {
                replies.add(0, [refusal(&error)]);
                obey.refused(&asked, &error);
                Err(error)
            }
        };
        heard.then(note)
    }

    fn readable(&self) -> Answer<()> {
        self.replies.readable()
    }

    fn keeps(&self) -> usize {
        self.inbox.lock().unread.len() + self.replies.keeps()
    }

    fn let_go(&self) {
        self.replies.let_go();
    }

    fn refuse(&self, error: &Error) {
        let mut inbox = self.inbox.lock();
        inbox.clear();
        inbox.refused = Some(error.clone());
        drop(inbox);
        self.replies.add(0, [refusal(error)]);
        self.obey.refused(&self.asked, error);
    }

    fn closed(&self) {
        let inbox = self.inbox.lock();
        if !inbox.unread.trim_ascii().is_empty() {
            self.obey.refused(&self.asked, &cut_short());
        }
    }
}

/// What a refused command is answered with on its own handle.
fn refusal(error: &Error) -> Arc<dyn Reply> {
    Arc::new(Said(line(&serde_json::json!({ "ok": false, "error": error }))))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(writes: &[&str], expect: Expect) {
        let mut inbox = Inbox::default();
        let mut said = String::new();
        for write in writes {
            match inbox.take(write.as_bytes()) {
                Ok(commands) => said += &format!("{}\n", Value::from(commands)),
                Err(error) => said += &format!("{}: {error}\n", error.code.name()),
            }
        }
        if !inbox.unread.trim_ascii().is_empty() {
            said += &format!("left: {}\n", String::from_utf8_lossy(&inbox.unread));
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
    fn one_malformed_command_spoils_the_write() {
        check(
            &["{\"a\":1} {\"b\" 2}", "{\"d\":4}"],
            expect![[r#"
            invalid_payload: not a JSON object: expected `:` at line 1 column 7
            [{"d":4}]
        "#]],
        );
    }

    #[test]
    fn what_cannot_become_an_object_is_refused_at_once() {
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
        let mut inbox = Inbox::default();
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LIMIT - 8));
        assert_eq!(long.len(), LIMIT);
        assert_eq!(inbox.take(long.as_bytes()).unwrap().len(), 1);
        assert!(inbox.take(b"{").is_ok());
        assert_eq!(inbox.take(long.as_bytes()).unwrap_err().code, acheron_base::Code::TooLarge);
        // The kernel cuts long writes: this is the rest of the same command, and must not be taken for one.
        assert_eq!(inbox.take(b"{\"op\":\"delete\"}").unwrap_err().code, acheron_base::Code::TooLarge);
    }

    #[test]
    fn many_commands_in_one_write_may_be_longer_than_one_may_be() {
        let one = format!("{{\"a\":\"{}\"}}\n", "x".repeat(3000));
        let mut inbox = Inbox::default();
        assert_eq!(inbox.take(one.repeat(800).as_bytes()).unwrap().len(), 800);
        assert_eq!(inbox.take(b"{}").unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn cutting_a_stream_anywhere_changes_nothing(text in "(\\{\"a\":[1-9][0-9]{0,2}(,\"b\":\"[{}\\[ a]*\")?\\}\n?){1,4}", cut in 0usize..60) {
            let whole = Inbox::default().take(text.as_bytes()).unwrap();
            let cut = cut.min(text.len());
            let mut inbox = Inbox::default();
            let mut parts = inbox.take(&text.as_bytes()[..cut]).unwrap();
            parts.extend(inbox.take(&text.as_bytes()[cut..]).unwrap());
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn any_bytes_are_taken_or_refused(writes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let mut inbox = Inbox::default();
            for write in writes {
                let _ = inbox.take(&write);
            }
        }
    }
}
