//! A file that takes commands, one JSON object each. Uses only the traits of the tree and [`replies`](super::replies).

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

use super::replies::Replies;
use super::{Answer, Caller, File, FixedReply, Handle, Kind, Open, Reply, line, slice};
use acheron_base::{Code, Error, Result};

/// The length limit of a command, in bytes.
pub const LIMIT: usize = 1 << 20;

/// The sentence for a write that does not begin a JSON object, where the sink has no other.
const EXPECTS: &str = "a command is a JSON object, such as {\"op\": \"...\"}";

/// The caller of a command, and how it opened the file.
pub struct CommandContext {
    /// The caller that opened the file.
    pub caller: Caller,
    /// How it opened the file.
    pub how: Open,
    /// The value of [`CommandSink::mark`] when the file was opened.
    pub mark: u64,
}

/// The receiver of the commands written to a [`Control`] file.
pub trait CommandSink: Send + Sync + 'static {
    /// The text shown to a reader that has written nothing: a payload to fill in.
    fn template(&self) -> Bytes;

    /// The sentence for a write that does not begin a JSON object: what this file takes instead.
    fn expects(&self) -> String {
        EXPECTS.to_owned()
    }

    /// Starts all of `commands`, or none. Each command has one reply, in order.
    fn submit(&self, context: &CommandContext, commands: Vec<Value>) -> Answer<Vec<Arc<dyn Reply>>>;

    /// A write was refused, or the file was closed in the middle of a command. The sink can record the error for callers
    /// that ignored the result of `write(2)`.
    fn refused(&self, context: &CommandContext, error: &Error);

    /// A position that is recorded when the file is opened, for [`CommandContext::mark`].
    fn mark(&self) -> u64 {
        0
    }
}

/// A file that takes commands.
///
/// A command starts with the `write(2)` that completes it, so that a malformed one fails that write and `echo` can report
/// it. A command that is incomplete fails the `close(2)` of its opener; a shell loses that error, because it closes by
/// `dup2`. Each handle reads the replies to its own commands.
pub struct Control(Arc<dyn CommandSink>);

impl Control {
    /// A file whose commands go to `sink`.
    pub fn new(sink: Arc<dyn CommandSink>) -> Self {
        Control(sink)
    }
}

impl File for Control {
    fn kind(&self) -> Kind {
        Kind::Control
    }

    fn unfinished(&self, caller: &Caller, error: &Error) {
        let context = CommandContext { caller: caller.clone(), how: Open::WRITE, mark: self.0.mark() };
        self.0.refused(&context, error);
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        let context = Arc::new(CommandContext { caller: caller.clone(), how, mark: self.0.mark() });
        let (sink, input) = (self.0.clone(), Mutex::default());
        Ok(Box::new(ControlHandle { sink, context, input, replies: Replies::default() }))
    }
}

struct ControlHandle {
    sink: Arc<dyn CommandSink>,
    context: Arc<CommandContext>,
    input: Mutex<CommandBuffer>,
    replies: Replies,
}

#[derive(Default)]
struct CommandBuffer {
    /// Written, but not yet a whole command.
    pending: Vec<u8>,
    scan: ObjectScanner,
    /// The length at which the parser last tried `pending`: trying after each byte of a slow writer would be quadratic.
    tried: usize,
    wrote: bool,
    /// Something other than white space was written, so that the handle has had a command or a refusal.
    used: bool,
    /// The sink was told that it is incomplete.
    reported: bool,
    /// The error for a command that was too long. What follows may be the rest of it, which must not run.
    refused: Option<Error>,
}

impl CommandBuffer {
    /// Takes `data`; returns the commands that it completes. `expects` is the sentence for data without an object.
    fn accept(&mut self, data: &[u8], expects: impl Fn() -> String) -> Result<Vec<Value>> {
        self.wrote = true;
        self.reported = false;
        self.used |= !data.trim_ascii().is_empty();
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        self.pending.extend_from_slice(data);
        let taken = self.complete(expects);
        if let Err(error) = &taken {
            self.clear();
            self.refused = Some(error.clone()).filter(|error| error.code == Code::TooLarge);
        }
        taken
    }

    fn complete(&mut self, expects: impl Fn() -> String) -> Result<Vec<Value>> {
        let mut commands = Vec::new();
        let mut begin = 0;
        while let Some(end) = self.scan.object(&self.pending).map_err(|NotAnObject| Error::invalid(expects()))? {
            if end - begin > LIMIT {
                return Err(too_long());
            }
            commands.push(parse(&self.pending[begin..end])?);
            begin = end;
        }
        if begin > 0 {
            self.pending.drain(..begin);
            self.scan.at -= begin;
            self.tried = 0;
        }
        if self.pending.len() > LIMIT {
            return Err(too_long());
        }
        if !self.pending.is_empty() && self.pending.len() >= self.tried * 2 {
            self.tried = self.pending.len();
            match parse(&self.pending) {
                Err(ParseFault::Malformed(error)) => return Err(error),
                Ok(_) | Err(ParseFault::Unfinished) => (),
            }
        }
        Ok(commands)
    }

    fn clear(&mut self) {
        *self = CommandBuffer { wrote: true, used: true, ..CommandBuffer::default() };
    }

    /// The error for what was written, if it is not a whole command.
    fn incomplete(&self, expects: impl Fn() -> String) -> Option<Error> {
        match self.pending.trim_ascii().is_empty() {
            false => Some(unfinished()),
            true if self.wrote && !self.used => Some(Error::invalid(expects())),
            true => None,
        }
    }
}

enum ParseFault {
    Unfinished,
    Malformed(Error),
}

impl From<ParseFault> for Error {
    fn from(fault: ParseFault) -> Self {
        match fault {
            ParseFault::Unfinished => unfinished(),
            ParseFault::Malformed(error) => error,
        }
    }
}

fn unfinished() -> Error {
    Error::invalid("the command is incomplete: its JSON object has no end")
}

fn too_long() -> Error {
    Error::too_large(format!("a command has at most {LIMIT} bytes"))
}

fn parse(bytes: &[u8]) -> Result<Value, ParseFault> {
    serde_json::from_slice(bytes).map_err(|err| match err.is_eof() {
        true => ParseFault::Unfinished,
        false => ParseFault::Malformed(Error::invalid(format!("not a JSON object: {err}"))),
    })
}

/// The bytes between two commands begin no object.
struct NotAnObject;

/// Finds the end of each JSON object in one pass over the bytes.
#[derive(Default)]
struct ObjectScanner {
    at: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl ObjectScanner {
    /// The end of the next complete object.
    fn object(&mut self, bytes: &[u8]) -> Result<Option<usize>, NotAnObject> {
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
                _ => return Err(NotAnObject),
            }
        }
        Ok(None)
    }
}

impl ControlHandle {
    /// Tells the sink once that the command is incomplete; returns the error.
    fn report_incomplete(&self) -> Option<Error> {
        let mut input = self.input.lock();
        let error = input.incomplete(|| self.sink.expects())?;
        let reported = std::mem::replace(&mut input.reported, true);
        drop(input);
        if !reported {
            self.sink.refused(&self.context, &error);
        }
        Some(error)
    }
}

impl Handle for ControlHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if !self.input.lock().wrote {
            return Answer::ok(slice(&self.sink.template(), offset, size));
        }
        self.replies.read(offset, size)
    }

    /// That of the template: only a reader is asked.
    fn length(&self) -> Answer<Option<u64>> {
        Answer::ok(Some(self.sink.template().len() as u64))
    }

    fn write(&self, _offset: u64, data: &[u8]) -> Answer<()> {
        let taken = self.input.lock().accept(data, || self.sink.expects());
        let written = data.len();
        let submitted = match taken {
            Ok(commands) if commands.is_empty() => return Answer::ok(()),
            Ok(commands) => self.sink.submit(&self.context, commands),
            Err(error) => Answer::refuse(error),
        };
        let (sink, context, replies) = (self.sink.clone(), self.context.clone(), self.replies.clone());
        submitted.then(move |outcome| match outcome {
            Ok(started) => {
                replies.add(written, started);
                Ok(())
            }
            Err(error) => {
                replies.add(0, [refusal(&error)]);
                sink.refused(&context, &error);
                Err(error)
            }
        })
    }

    /// Reports an incomplete command, but keeps it: `printf '{"a":' >&3` closes a duplicate before the rest is written.
    fn flush(&self, by_opener: bool) -> Answer<()> {
        match by_opener.then(|| self.report_incomplete()).flatten() {
            Some(error) => Answer::refuse(error),
            None => Answer::ok(()),
        }
    }

    /// The writer says that it has written everything: `close(2)` would tell it the same too late.
    fn sync(&self) -> Answer<()> {
        self.flush(true)
    }

    fn readable(&self) -> Answer<()> {
        self.replies.readable()
    }

    fn buffered_bytes(&self) -> usize {
        self.input.lock().pending.len() + self.replies.buffered_bytes()
    }

    fn discard_buffer(&self) {
        self.replies.discard_buffer();
    }

    fn refuse(&self, error: &Error) {
        let mut input = self.input.lock();
        input.clear();
        input.refused = Some(error.clone());
        drop(input);
        self.replies.add(0, [refusal(error)]);
        self.sink.refused(&self.context, error);
    }

    fn closed(&self) {
        self.report_incomplete();
    }
}

/// The reply to a refused command, on its own handle.
fn refusal(error: &Error) -> Arc<dyn Reply> {
    Arc::new(FixedReply(line(&serde_json::json!({ "ok": false, "error": error }))))
}

#[cfg(test)]
mod tests;
