//! Replies to the commands of one handle: each open file is its own conversation. Uses only [`Answer`].

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Answer, slice};

/// The reply to one command.
///
/// It is read again if its reader was interrupted, so it must be level-triggered: an answer that is there stays there.
pub trait Reply: Send + Sync {
    /// The whole answer.
    fn read(&self) -> Answer<Bytes>;

    /// Answered once [`read`](Reply::read) would not wait. It changes nothing, because a poll may be answered while another
    /// answer is being read.
    fn readable(&self) -> Answer<()> {
        self.read().map(|_| ())
    }

    /// The reader has reached the end of the answer. Returns true if another one follows, as from a stream of events.
    fn finished(&self) -> bool {
        false
    }

    /// Whether it always has another answer, so that the next command on its handle must end it.
    fn endless(&self) -> bool {
        false
    }

    /// Whether its command was refused, so that there is no answer but the error, which is read once.
    fn refused(&self) -> bool {
        false
    }
}

/// A reply that a closure computes.
pub struct ReplyFn<F>(pub F);

impl<F: Fn() -> Answer<Bytes> + Send + Sync> Reply for ReplyFn<F> {
    fn read(&self) -> Answer<Bytes> {
        (self.0)()
    }
}

/// A reply that is known already.
pub struct FixedReply(pub Bytes);

impl Reply for FixedReply {
    fn read(&self) -> Answer<Bytes> {
        Answer::ok(self.0.clone())
    }
}

/// The limit of unread replies per handle: a writer that never reads must not fill the memory.
const UNREAD: usize = 1024;

/// The replies of one handle, in the order of their commands. Each ends in one end of file. A clone is the same queue.
#[derive(Clone, Default)]
pub struct Replies(Arc<Mutex<ReplyQueue>>);

#[derive(Default)]
struct ReplyQueue {
    waiting: VecDeque<PendingReply>,
    /// The sum over all that are waiting.
    written: usize,
    /// The answer being read, and the offset at which its reader began: `cat <&3` after a write begins at offset 6.
    pass: Option<(u64, Bytes)>,
}

struct PendingReply {
    reply: Arc<dyn Reply>,
    /// The length of its command, which stays in memory as long as the reply.
    written: usize,
}

impl Replies {
    /// Adds the replies to a write of `written` bytes. This ends the reading of an earlier answer, because its reader wrote
    /// again.
    pub fn add(&self, written: usize, replies: impl IntoIterator<Item = Arc<dyn Reply>>) {
        let mut state = self.0.lock();
        if state.pass.take().is_some() {
            state.end();
        }
        state.waiting.retain(|due| !due.reply.endless());
        let mut written = std::iter::once(written).chain(std::iter::repeat(0));
        state
            .waiting
            .extend(replies.into_iter().map(|reply| PendingReply { reply, written: written.next().unwrap_or(0) }));
        let surplus = state.waiting.len().saturating_sub(UNREAD);
        state.waiting.drain(..surplus);
        state.written = state.waiting.iter().map(|due| due.written).sum();
    }

    /// The number of bytes held for unread answers.
    pub fn buffered_bytes(&self) -> usize {
        let state = self.0.lock();
        state.written + state.pass.as_ref().map_or(0, |(_, bytes)| bytes.len())
    }

    /// The next bytes of the first answer; an empty result if there is none.
    pub fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let mut state = self.0.lock();
        if let Some((begin, bytes)) = &mut state.pass {
            if offset < *begin {
                *begin = offset; // the reader went back to the start
            }
            let part = slice(bytes, offset - *begin, size);
            if part.is_empty() && size > 0 {
                state.pass = None;
                state.end();
            }
            return Answer::ok(part);
        }
        let Some(reply) = state.waiting.front().map(|due| due.reply.clone()) else { return Answer::ok(Bytes::new()) };
        drop(state);
        let replies = self.clone();
        reply.read().then(move |outcome| match outcome {
            Ok(bytes) => {
                let part = slice(&bytes, 0, size);
                replies.0.lock().pass = Some((offset, bytes));
                Ok(part)
            }
            Err(error) => {
                if reply.refused() {
                    replies.remove(&reply);
                }
                Err(error)
            }
        })
    }

    /// Removes a reply that has no answer.
    pub fn remove(&self, reply: &Arc<dyn Reply>) {
        let mut state = self.0.lock();
        state.waiting.retain(|due| !Arc::ptr_eq(&due.reply, reply));
        state.written = state.waiting.iter().map(|due| due.written).sum();
    }

    /// Drops the answer being read; the next read starts it again.
    pub fn discard_buffer(&self) {
        self.0.lock().pass = None;
    }

    /// Answered once [`read`](Replies::read) would not wait.
    pub fn readable(&self) -> Answer<()> {
        let state = self.0.lock();
        match state.waiting.front() {
            Some(due) if state.pass.is_none() => due.reply.readable(),
            _ => Answer::ok(()),
        }
    }
}

impl ReplyQueue {
    /// The first answer was read: its reply is removed unless another answer follows from it.
    fn end(&mut self) {
        if let Some(due) = self.waiting.front()
            && !due.reply.finished()
        {
            self.written -= due.written;
            self.waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
