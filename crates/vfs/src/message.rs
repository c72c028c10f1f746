//! The file that is spoken to: text, one message a flush.

use parking_lot::Mutex;
use std::sync::Arc;

use bytes::Bytes;

use super::replies::Replies;
use super::{Answer, Caller, File, Handle, Kind, Open, Reply, slice};
use acheron_base::{Error, Result};

/// Takes messages.
pub trait MessageSink: Send + Sync + 'static {
    /// What a fresh reader sees: a line that says what to write.
    fn template(&self) -> Bytes;

    /// Whether anything from this caller would be taken now. Asked when the file is opened for writing, because an error
    /// at `close(2)` is lost on a shell.
    fn may(&self, caller: &Caller) -> Result<()>;

    fn hear(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>>;

    fn limit(&self) -> usize {
        super::control::LIMIT
    }
}

/// A file that takes text.
///
/// A message is what was written when the opener's process closes a descriptor, or at the last close:
/// `{ cat a; cat b; } > input` is one message although each `cat` flushes.
pub struct MessageFile(Arc<dyn MessageSink>);

impl MessageFile {
    pub fn new(hear: Arc<dyn MessageSink>) -> Self {
        MessageFile(hear)
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
        let words = Arc::new(Mutex::new(Words::default()));
        Ok(Box::new(Speaker { hear: self.0.clone(), caller: caller.clone(), words, replies: Replies::default() }))
    }
}

struct Speaker {
    hear: Arc<dyn MessageSink>,
    caller: Caller,
    words: Arc<Mutex<Words>>,
    replies: Replies,
}

#[derive(Default)]
struct Words {
    unsaid: Vec<u8>,
    wrote: bool,
    /// Why a part of this message was refused. What follows is the rest of it, and no message of its own.
    refused: Option<Error>,
}

impl Words {
    /// Nothing of this message is taken, whatever follows.
    fn refuse(&mut self, fault: &Error) {
        (self.wrote, self.unsaid, self.refused) = (true, Vec::new(), Some(fault.clone()));
    }

    /// Takes a part of a message.
    fn take(&mut self, data: &[u8], limit: usize) -> Result<()> {
        self.wrote = true;
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        self.unsaid.extend_from_slice(data);
        // A character cut in two by the writer's buffer is no fault yet.
        let fault = match std::str::from_utf8(&self.unsaid) {
            _ if self.unsaid.len() > limit => Error::too_large(format!("a message has at most {limit} bytes")),
            Err(err) if err.error_len().is_some() => not_text(),
            _ => return Ok(()),
        };
        self.refuse(&fault);
        Err(fault)
    }

    /// The message is over; what was refused is forgotten with it.
    fn end(&mut self) -> Result<String> {
        let unsaid = std::mem::take(&mut self.unsaid);
        match self.refused.take() {
            Some(error) => Err(error),
            None => String::from_utf8(unsaid).map_err(|_| not_text()),
        }
    }
}

impl Speaker {
    /// Says what was written so far, if anything was.
    fn say(&self) -> Answer<()> {
        let message = match self.words.lock().end() {
            Ok(message) if message.is_empty() => return Answer::ok(()),
            Ok(message) => message,
            Err(error) => return Answer::refuse(error),
        };
        let (replies, written) = (self.replies.clone(), message.len());
        self.hear.hear(&self.caller, message).map(move |reply| replies.add(written, [reply]))
    }
}

impl Handle for Speaker {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        if !self.words.lock().wrote {
            return Answer::ok(slice(&self.hear.template(), offset, size));
        }
        // Who reads back on the handle that it wrote to has finished its sentence.
        match self.say().looked_at() {
            Answer::Now(Ok(())) => self.replies.read(offset, size),
            Answer::Now(Err(error)) => Answer::refuse(error),
            Answer::Soon(said) | Answer::Later(said) => {
                let replies = self.replies.clone();
                Answer::later(async move {
                    said.await?;
                    replies.read(offset, size).wait().await
                })
            }
        }
    }

    fn write(&self, _offset: u64, data: &[u8]) -> Answer<()> {
        Answer::Now(self.words.lock().take(data, self.hear.limit()))
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        match by_opener {
            true => self.say(),
            false => Answer::ok(()),
        }
    }

    fn sync(&self) -> Answer<()> {
        self.say()
    }

    fn readable(&self) -> Answer<()> {
        self.replies.readable()
    }

    fn keeps(&self) -> usize {
        self.words.lock().unsaid.len() + self.replies.keeps()
    }

    fn let_go(&self) {
        self.replies.let_go();
    }

    fn refuse(&self, error: &Error) {
        self.words.lock().refuse(error);
    }

    fn closed(&self) {
        if let Answer::Soon(said) | Answer::Later(said) = self.say().looked_at()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(said);
        }
    }
}

fn not_text() -> Error {
    Error::invalid("the message is not UTF-8 text")
}

#[cfg(test)]
mod tests {
    use super::super::Said;
    use super::*;

    #[derive(Default)]
    struct Ear(Mutex<Vec<String>>);

    impl MessageSink for Ear {
        fn template(&self) -> Bytes {
            Bytes::from_static(b"say something\n")
        }

        fn may(&self, _caller: &Caller) -> Result<()> {
            Ok(())
        }

        fn hear(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
            self.0.lock().push(message.clone());
            Answer::ok(Arc::new(Said(message.to_uppercase().into())))
        }

        fn limit(&self) -> usize {
            8
        }
    }

    fn open() -> (Arc<Ear>, Box<dyn Handle>) {
        let ear = Arc::new(Ear::default());
        let handle = MessageFile::new(ear.clone()).open(&Caller::named("operator"), Open::BOTH).unwrap();
        (ear, handle)
    }

    #[tokio::test]
    async fn a_message_is_what_its_opener_flushes() {
        let (ear, handle) = open();
        handle.flush(true).wait().await.unwrap();
        handle.write(0, b"a").wait().await.unwrap();
        handle.flush(false).wait().await.unwrap();
        handle.write(0, b"b").wait().await.unwrap();
        handle.flush(true).wait().await.unwrap();
        handle.closed();
        assert_eq!(*ear.0.lock(), ["ab"]);
    }

    #[tokio::test]
    async fn reading_back_says_what_was_written() {
        let (_, handle) = open();
        assert_eq!(handle.read(0, 99).wait().await.unwrap(), "say something\n");
        handle.write(0, b"hi").wait().await.unwrap();
        assert_eq!(handle.read(2, 99).wait().await.unwrap(), "HI");
        assert_eq!(handle.read(4, 99).wait().await.unwrap(), "");
    }

    #[tokio::test]
    async fn bad_text_and_too_much_are_refused_at_the_write() {
        let (ear, handle) = open();
        for (parts, errno) in
            [([b"\xff".as_slice(), b"rest"], libc::EINVAL), ([b"12345".as_slice(), b"6789"], libc::EFBIG)]
        {
            let told = parts.map(|part| handle.write(0, part));
            assert!(matches!(&told[1], Answer::Now(Err(error)) if error.errno() == errno));
            // A program that was told of a short write tries the rest once more.
            assert_eq!(handle.write(0, b"rest").wait().await.unwrap_err().errno(), errno);
            assert_eq!(handle.flush(true).wait().await.unwrap_err().errno(), errno);
        }
        handle.write(0, "ä".as_bytes().split_at(1).0).wait().await.unwrap();
        handle.write(0, "ä".as_bytes().split_at(1).1).wait().await.unwrap();
        handle.closed();
        assert_eq!(*ear.0.lock(), ["ä"]);
    }
}
