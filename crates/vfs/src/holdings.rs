//! What each caller keeps in open files: unfinished commands, drafts, answers half read.
//!
//! Each of them is bounded by itself; here they are bounded together, so that nobody fills the host's memory by opening
//! many. What a caller has too much of is refused to that caller alone.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;

use super::{Answer, Caller, Handle, Identity, Kind};
use acheron_base::{Error, Result};

/// What one caller may keep in all its open files.
pub const MOST: usize = 128 << 20;

/// An answer that is no longer than this is read whatever its reader keeps: somebody may be looking for the reason.
const SMALL: usize = 64 << 10;

/// What everybody keeps.
#[derive(Default)]
pub struct Holdings {
    by: Mutex<HashMap<Identity, usize>>,
    refused: AtomicU64,
}

impl Holdings {
    pub fn total(&self) -> usize {
        self.by.lock().values().sum()
    }

    /// How often somebody was refused for what it keeps already.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The same handle, with what it keeps counted. Pages and logs keep nothing of their own.
    pub fn counted(self: &Arc<Self>, caller: &Caller, kind: Kind, handle: Box<dyn Handle>) -> Box<dyn Handle> {
        if matches!(kind, Kind::Text | Kind::Log) {
            return handle;
        }
        let share = Share { all: self.clone(), who: caller.identity.clone(), counted: AtomicUsize::new(0) };
        Box::new(Counted { inner: Arc::from(handle), share: Arc::new(share) })
    }

    fn change(&self, who: &Identity, before: usize, after: usize) {
        let mut by = self.by.lock();
        let kept = by.entry(who.clone()).or_default();
        *kept = (*kept + after).saturating_sub(before);
        if *kept == 0 {
            by.remove(who);
        }
    }
}

/// What one handle keeps.
struct Share {
    all: Arc<Holdings>,
    who: Identity,
    counted: AtomicUsize,
}

impl Share {
    fn settle(&self, keeps: usize) {
        let before = self.counted.swap(keeps, Ordering::SeqCst);
        if before != keeps {
            self.all.change(&self.who, before, keeps);
        }
    }

    /// What was read of a handle that kept so much before, unless it keeps too much for that now.
    fn read(&self, handle: &dyn Handle, before: usize, bytes: Bytes) -> Result<Bytes> {
        let keeps = handle.keeps();
        self.settle(keeps);
        // Whoever reads on in what it has keeps no more than before.
        if keeps > before + SMALL
            && let Err(error) = self.room(0)
        {
            handle.let_go();
            self.settle(handle.keeps());
            return Err(error);
        }
        Ok(bytes)
    }

    /// Whether so much more may be kept.
    fn room(&self, more: usize) -> Result<()> {
        let kept = self.all.by.lock().get(&self.who).copied().unwrap_or(0);
        if kept + more <= MOST {
            return Ok(());
        }
        self.all.refused.fetch_add(1, Ordering::Relaxed);
        Err(Error::budget_exceeded(format!(
            "open files of {} keep {kept} bytes of unfinished commands and unread answers already, of {MOST}; finish or \
             close some",
            self.who
        )))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.settle(0);
    }
}

struct Counted {
    inner: Arc<dyn Handle>,
    share: Arc<Share>,
}

impl Counted {
    /// Counts anew when the answer is there.
    fn noted<T: Send + 'static>(&self, answer: Answer<T>) -> Answer<T> {
        if let Answer::Now(_) = answer {
            self.share.settle(self.inner.keeps());
            return answer;
        }
        let (inner, share) = (self.inner.clone(), self.share.clone());
        answer.then(move |outcome| {
            share.settle(inner.keeps());
            outcome
        })
    }

    /// What is written, if there is room for `more`. What is refused here leaves a hole, so nothing of it may be kept.
    fn taken(&self, more: usize, take: impl FnOnce() -> Answer<()>) -> Answer<()> {
        match self.share.room(more) {
            Ok(()) => self.noted(take()),
            Err(error) => {
                self.inner.refuse(&error);
                self.noted(Answer::refuse(error))
            }
        }
    }
}

impl Handle for Counted {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        let before = self.inner.keeps();
        match self.inner.read(offset, size) {
            Answer::Now(read) => Answer::Now(read.and_then(|bytes| self.share.read(&*self.inner, before, bytes))),
            later => {
                let (inner, share) = (self.inner.clone(), self.share.clone());
                later.and(move |bytes| share.read(&*inner, before, bytes))
            }
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        self.taken(data.len(), || self.inner.write(offset, data))
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        self.noted(self.inner.flush(by_opener))
    }

    fn sync(&self) -> Answer<()> {
        self.noted(self.inner.sync())
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        let more = usize::try_from(size).unwrap_or(usize::MAX).saturating_sub(self.inner.keeps());
        self.taken(more, || self.inner.truncate(size))
    }

    fn readable(&self) -> Answer<()> {
        self.inner.readable()
    }

    fn keeps(&self) -> usize {
        self.inner.keeps()
    }

    fn let_go(&self) {
        self.inner.let_go();
    }

    fn refuse(&self, error: &Error) {
        self.inner.refuse(error);
    }

    fn closed(&self) {
        self.inner.closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{File, Item, Open, Stat, VersionStore, live};

    fn open(all: &Arc<Holdings>, who: &str, size: usize) -> Box<dyn Handle> {
        let file = live(move |_| Ok(vec![b'x'; size].into()));
        let caller = Caller::named(who);
        all.counted(&caller, file.kind(), file.open(&caller, Open::READ).unwrap())
    }

    #[tokio::test]
    async fn who_keeps_too_much_is_refused_and_nobody_else() {
        let all = Arc::new(Holdings::default());
        let half: Vec<_> = (0..2).map(|_| open(&all, "ada", MOST / 2)).collect();
        for handle in &half {
            handle.read(0, 1).wait().await.unwrap();
        }
        assert_eq!(all.total(), MOST);
        let third = open(&all, "ada", 2 * SMALL);
        assert_eq!(third.read(0, 1).wait().await.unwrap_err().errno(), libc::EDQUOT);
        assert_eq!(half[0].read(1, 1).wait().await.unwrap().len(), 1, "what is there is read on");
        assert_eq!(open(&all, "ada", 10).read(0, 99).wait().await.unwrap().len(), 10, "what is small is read");
        assert_eq!(open(&all, "bob", 2 * SMALL).read(0, 99).wait().await.unwrap().len(), 99);
        assert_eq!((all.refused(), all.total()), (1, MOST), "bob's is gone with his handle");
        drop(half);
        assert_eq!(third.read(0, 1).wait().await.unwrap().len(), 1);
        drop(third);
        assert_eq!(all.total(), 0);
    }

    struct Never;

    impl VersionStore for Never {
        fn stat(&self) -> Stat {
            Stat { size: 0, modified: super::super::STARTED }
        }

        fn latest(&self) -> Answer<Bytes> {
            Answer::ok(Bytes::new())
        }

        fn keep(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
            Answer::refuse(Error::internal(format!("a part was kept: {bytes:?}")))
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_of_what_was_refused_in_part() {
        let all = Arc::new(Holdings::default());
        let caller = Caller::named("ada");
        let item = all.counted(&caller, Kind::Item, Item::new(Arc::new(Never)).open(&caller, Open::WRITE).unwrap());
        item.write(0, b"the first part").wait().await.unwrap();
        let full = open(&all, "ada", MOST - 20);
        full.read(0, 1).wait().await.unwrap();
        assert_eq!(item.write(14, b"the second").wait().await.unwrap_err().errno(), libc::EDQUOT);
        drop(full);
        assert_eq!(item.write(24, b"the third").wait().await.unwrap_err().errno(), libc::EDQUOT, "a hole stays a hole");
        assert_eq!(item.flush(true).wait().await.unwrap_err().errno(), libc::EDQUOT);
        item.closed();
    }
}
