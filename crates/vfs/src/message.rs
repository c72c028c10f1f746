//! A file that takes text, one message per flush. Uses only the traits of the tree and [`replies`](super::replies).

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::replies::Replies;
use super::{Answer, Caller, File, Handle, Kind, Open, Reply, slice};
use acheron_base::{Error, Result};

/// The receiver of the messages written to a [`MessageFile`].
pub trait MessageSink: Send + Sync + 'static {
    /// The text shown to a reader that has written nothing: a line that says what to write.
    fn template(&self) -> Bytes;

    /// Refuses a caller whose message would not be taken now. Asked when the file is opened for writing, because a shell
    /// loses an error at `close(2)`.
    fn may(&self, caller: &Caller) -> Result<()>;

    /// Takes one message.
    fn receive(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>>;

    /// The length limit of a message, in bytes.
    fn limit(&self) -> usize {
        super::control::LIMIT
    }
}

/// A file that takes text.
///
/// A message ends when the process that opened the file closes a descriptor, or at the last close:
/// `{ cat a; cat b; } > input` is one message although each `cat` flushes.
pub struct MessageFile(Arc<dyn MessageSink>);

impl MessageFile {
    /// A file whose messages go to `sink`.
    pub fn new(sink: Arc<dyn MessageSink>) -> Self {
        MessageFile(sink)
    }
}

impl File for MessageFile {
    fn kind(&self) -> Kind {
        Kind::Message
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        if how.write {
            self.0.may(caller)?;
        }
        let input = Arc::new(Mutex::new(MessageBuffer::default()));
        Ok(Box::new(MessageHandle { sink: self.0.clone(), caller: caller.clone(), input, replies: Replies::default() }))
    }
}

struct MessageHandle {
    sink: Arc<dyn MessageSink>,
    caller: Caller,
    input: Arc<Mutex<MessageBuffer>>,
    replies: Replies,
}

#[derive(Default)]
struct MessageBuffer {
    pending: Vec<u8>,
    wrote: bool,
    /// The error for a part of this message. What follows is the rest of it and not a message of its own.
    refused: Option<Error>,
}

impl MessageBuffer {
    /// Refuses the whole message, including the parts that follow.
    fn refuse(&mut self, fault: &Error) {
        (self.wrote, self.pending, self.refused) = (true, Vec::new(), Some(fault.clone()));
    }

    /// Takes a part of a message.
    fn take(&mut self, data: &[u8], limit: usize) -> Result<()> {
        self.wrote = true;
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        self.pending.extend_from_slice(data);
        // The writer's buffer may end in the middle of a character.
        let fault = match std::str::from_utf8(&self.pending) {
            _ if self.pending.len() > limit => Error::too_large(format!("a message has at most {limit} bytes")),
            Err(err) if err.error_len().is_some() => not_text(),
            _ => return Ok(()),
        };
        self.refuse(&fault);
        Err(fault)
    }

    /// Ends the message, and its refusal with it.
    fn end(&mut self) -> Result<String> {
        let pending = std::mem::take(&mut self.pending);
        match self.refused.take() {
            Some(error) => Err(error),
            None => String::from_utf8(pending).map_err(|_| not_text()),
        }
    }
}

impl MessageHandle {
    /// Sends what was written so far, if anything was.
    fn send(&self) -> Answer<()> {
        let message = match self.input.lock().end() {
            Ok(message) if message.is_empty() => return Answer::ok(()),
            Ok(message) => message,
            Err(error) => return Answer::refuse(error),
        };
        let (replies, written) = (self.replies.clone(), message.len());
        self.sink.receive(&self.caller, message).map(move |reply| replies.add(written, [reply]))
    }
}

impl Handle for MessageHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if !self.input.lock().wrote {
            return Answer::ok(slice(&self.sink.template(), offset, size));
        }
        // A caller that reads on the handle it wrote to has finished its message.
        match self.send().poll_once() {
            Answer::Now(Ok(())) => self.replies.read(offset, size),
            Answer::Now(Err(error)) => Answer::refuse(error),
            Answer::Soon(sent) | Answer::Later(sent) => {
                let replies = self.replies.clone();
                Answer::later(async move {
                    sent.await?;
                    replies.read(offset, size).wait().await
                })
            }
        }
    }

    fn write(&self, _offset: u64, data: &[u8]) -> Answer<()> {
        Answer::Now(self.input.lock().take(data, self.sink.limit()))
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        match by_opener {
            true => self.send(),
            false => Answer::ok(()),
        }
    }

    fn sync(&self) -> Answer<()> {
        self.send()
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
        self.input.lock().refuse(error);
    }

    fn closed(&self) {
        if let Answer::Soon(sent) | Answer::Later(sent) = self.send().poll_once()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(sent);
        }
    }
}

fn not_text() -> Error {
    Error::invalid("the message is not UTF-8 text")
}

#[cfg(test)]
mod tests;
