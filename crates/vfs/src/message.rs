//! A file that takes text, one message per flush. Uses only the traits of the tree and [`replies`](super::replies).

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Shared;
use parking_lot::Mutex;

use super::replies::Replies;
use super::{Answer, Caller, File, Handle, Kind, Later, Open, Reply, slice};
use acheron_base::{Error, Result};

/// The right of a message to be the next one, from its first byte until its receiver has it. Dropping it gives it up.
pub type MessageClaim = Box<dyn std::any::Any + Send>;

/// The receiver of the messages written to a [`MessageFile`].
pub trait MessageSink: Send + Sync + 'static {
    /// The text shown to a reader that has written nothing: a line that says what to write.
    fn template(&self) -> Bytes;

    /// Refuses a caller whose message would not be taken now. Asked when the file is opened for writing, because a shell
    /// loses an error at `close(2)`.
    fn may(&self, caller: &Caller) -> Result<()>;

    /// Looks at the first bytes of a message, as they are written: refuses one that cannot be taken, because a shell hears of
    /// an error at `write(2)` but not at `close(2)`. `false` while they do not show it: it is asked again with more.
    fn begins(&self, _caller: &Caller, _text: &str) -> Answer<bool> {
        Answer::ok(true)
    }

    /// Claims the receiver for a message at its first byte, where only one may be under way: the second of two writers that
    /// opened the file at one instant then hears of it at `write(2)`.
    fn claim(&self, _caller: &Caller) -> Result<Option<MessageClaim>> {
        Ok(None)
    }

    /// Takes one message together with its claim.
    fn receive_claimed(
        &self,
        caller: &Caller,
        message: String,
        _claim: Option<MessageClaim>,
    ) -> Answer<Arc<dyn Reply>> {
        self.receive(caller, message)
    }

    /// Takes one message.
    fn receive(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>>;

    /// A message was refused. The sink can record the error for callers that ignored the result of `write(2)` or
    /// `close(2)`.
    fn refused(&self, _caller: &Caller, _error: &Error) {}

    /// The length limit of a message, in bytes.
    fn limit(&self) -> usize {
        super::control::LIMIT
    }
}

/// A file that takes text.
///
/// A message ends when the process that opened the file closes a descriptor, or at the last close:
/// `{ cat a; cat b; } > input` is one message although each `cat` flushes. It also ends when a caller reads the handle or
/// polls it for input, because that caller waits for the reply.
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

    fn unfinished(&self, caller: &Caller, error: &Error) {
        self.0.refused(caller, error);
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
    /// The sink has seen the beginning of this message and takes it.
    begun: bool,
    claim: Option<MessageClaim>,
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

    /// The text so far, while the sink has not taken its beginning.
    fn beginning(&self) -> Option<String> {
        let whole = std::str::from_utf8(&self.pending).ok().filter(|_| !self.begun);
        whole.map(str::to_owned)
    }

    /// Ends the message, and its refusal and its claim with it.
    fn end(&mut self) -> Result<(String, Option<MessageClaim>)> {
        self.begun = false;
        let (pending, claim) = (std::mem::take(&mut self.pending), self.claim.take());
        match self.refused.take() {
            Some(error) => Err(error),
            None => String::from_utf8(pending).map(|message| (message, claim)).map_err(|_| not_text()),
        }
    }
}

/// The reply to a message that its receiver has not accepted yet. It is queued at once, because a reader that does not
/// wait drops its request, and the reply must not end with that request.
struct SentReply(Shared<Later<Arc<dyn Reply>>>);

impl Reply for SentReply {
    fn read(&self) -> Answer<Bytes> {
        match self.0.peek() {
            Some(Ok(reply)) => reply.read(),
            Some(Err(error)) => Answer::refuse(error.clone()),
            None => {
                let sent = self.0.clone();
                Answer::later(async move { sent.await?.read().wait().await })
            }
        }
    }

    fn readable(&self) -> Answer<()> {
        match self.0.peek() {
            Some(Ok(reply)) => reply.readable(),
            Some(Err(_)) => Answer::ok(()),
            None => {
                let sent = self.0.clone();
                Answer::later(async move {
                    match sent.await {
                        Ok(reply) => reply.readable().wait().await,
                        Err(_) => Ok(()), // the read does not wait either
                    }
                })
            }
        }
    }

    fn finished(&self) -> bool {
        matches!(self.0.peek(), Some(Ok(reply)) if reply.finished())
    }

    fn endless(&self) -> bool {
        matches!(self.0.peek(), Some(Ok(reply)) if reply.endless())
    }

    fn refused(&self) -> bool {
        matches!(self.0.peek(), Some(Err(_)))
    }
}

/// The refusal of a message, for the next reader of the handle.
struct RefusedReply(Error);

impl Reply for RefusedReply {
    fn read(&self) -> Answer<Bytes> {
        Answer::refuse(self.0.clone())
    }

    fn readable(&self) -> Answer<()> {
        Answer::ok(())
    }

    fn refused(&self) -> bool {
        true
    }
}

impl MessageHandle {
    /// Claims the receiver for this message, if it is not claimed yet.
    fn claimed(&self, input: &mut MessageBuffer) -> Result<()> {
        if input.claim.is_none() && input.refused.is_none() {
            input.claim = self.sink.claim(&self.caller).inspect_err(|error| input.refuse(error))?;
        }
        Ok(())
    }

    /// Sends what was written so far, if anything was. The answer says whether the message was accepted; the message is
    /// sent even if the answer is dropped.
    fn send(&self) -> Answer<()> {
        let ended = self.input.lock().end();
        let (message, claim) = match ended {
            Ok((message, _)) if message.is_empty() => return Answer::ok(()),
            Ok(whole) => whole,
            Err(error) => {
                self.sink.refused(&self.caller, &error);
                return Answer::refuse(error);
            }
        };
        let (written, sink, caller) = (message.len(), self.sink.clone(), self.caller.clone());
        let received = self
            .sink
            .receive_claimed(&self.caller, message, claim)
            .then(move |received| received.inspect_err(|error| sink.refused(&caller, error)));
        let (received, soon) = match received.poll_once() {
            Answer::Now(received) => return Answer::Now(received.map(|reply| self.replies.add(written, [reply]))),
            Answer::Soon(received) => (received, true),
            Answer::Later(received) => (received, false),
        };
        let sent = received.shared();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(sent.clone());
        }
        let reply: Arc<dyn Reply> = Arc::new(SentReply(sent.clone()));
        self.replies.add(written, [reply.clone()]);
        let replies = self.replies.clone();
        let accepted = async move {
            // The caller hears of the refusal here, so it is no answer for a later read.
            sent.await.map(drop).inspect_err(|_| replies.remove(&reply))
        };
        match soon {
            true => Answer::soon(accepted),
            false => Answer::later(accepted),
        }
    }
}

impl Handle for MessageHandle {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if !self.input.lock().wrote {
            return Answer::ok(slice(&self.sink.template(), offset, size));
        }
        // A caller that reads on the handle it wrote to has finished its message.
        match self.send().poll_once() {
            Answer::Now(Err(error)) => Answer::refuse(error),
            Answer::Now(Ok(())) | Answer::Soon(_) | Answer::Later(_) => self.replies.read(offset, size),
        }
    }

    /// That of the template: only a reader is asked.
    fn length(&self) -> Answer<Option<u64>> {
        Answer::ok(Some(self.sink.template().len() as u64))
    }

    fn write(&self, _offset: u64, data: &[u8]) -> Answer<()> {
        let (taken, beginning) = {
            let mut input = self.input.lock();
            let taken = self.claimed(&mut input).and_then(|()| input.take(data, self.sink.limit()));
            (taken, input.beginning())
        };
        let (sink, caller, input) = (self.sink.clone(), self.caller.clone(), self.input.clone());
        let taken = match (taken, beginning) {
            (Ok(()), Some(text)) => self.sink.begins(&self.caller, &text),
            (Ok(()), None) => Answer::ok(false),
            (Err(error), _) => Answer::refuse(error),
        };
        taken.then(move |taken| {
            let mut input = input.lock();
            match taken {
                Ok(begun) => input.begun |= begun,
                Err(ref error) => input.refuse(error),
            }
            drop(input);
            taken.map(drop).inspect_err(|error| sink.refused(&caller, error))
        })
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

    /// A caller that waits for an answer has finished its message.
    fn poll_input(&self) -> Answer<()> {
        if let Answer::Now(Err(error)) = self.send().poll_once() {
            self.replies.add(0, [Arc::new(RefusedReply(error)) as Arc<dyn Reply>]);
        }
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
        self.sink.refused(&self.caller, error);
    }

    fn closed(&self) {
        drop(self.send());
    }
}

fn not_text() -> Error {
    Error::invalid("the message is not UTF-8 text")
}

#[cfg(test)]
mod tests;
