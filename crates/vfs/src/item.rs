//! The file that is kept: each flush of a writer makes a version.

use parking_lot::Mutex;
use std::sync::Arc;

use bytes::Bytes;

use super::{Answer, Caller, ChangeNotifier, File, Handle, Kind, Open, Stat, slice};
use acheron_base::{Error, Result};

/// Keeps versions.
pub trait VersionStore: Send + Sync + 'static {
    fn stat(&self) -> Stat;

    fn notifier(&self) -> Option<&ChangeNotifier> {
        None
    }

    /// The bytes as they are at this moment, even if the answer is fetched later.
    fn latest(&self) -> Answer<Bytes>;

    /// Whether this caller may write at all; asked at the opening, where a refusal is heard.
    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    /// Makes `bytes` the newest version.
    fn keep(&self, caller: &Caller, bytes: Bytes) -> Answer<()>;

    fn limit(&self) -> usize {
        super::control::LIMIT
    }
}

/// A file of versions. Reading shows the latest; writing makes one more, which is safe when `close` or `fsync` returns.
pub struct Item(Arc<dyn VersionStore>);

impl Item {
    pub fn new(keep: Arc<dyn VersionStore>) -> Self {
        Item(keep)
    }
}

impl File for Item {
    fn kind(&self) -> Kind {
        Kind::Item
    }

    fn stat(&self) -> Stat {
        self.0.stat()
    }

    fn notifier(&self) -> Option<&ChangeNotifier> {
        self.0.notifier()
    }

    fn open(&self, caller: &Caller, how: Open) -> Result<Box<dyn Handle>> {
        if how.write {
            self.0.may(caller)?;
        }
        let draft = match (how.write, how.truncate) {
            (false, _) => Draft::None,
            (true, true) => Draft::Truncated { flushed: false },
            (true, false) => Draft::Opened(Mutex::new(Some(self.0.latest()))),
        };
        let (keep, caller) = (self.0.clone(), caller.clone());
        Ok(Box::new(Version {
            keep,
            caller,
            append: how.append,
            draft: Arc::new(Mutex::new(draft)),
            seen: Arc::default(),
        }))
    }
}

struct Version {
    keep: Arc<dyn VersionStore>,
    caller: Caller,
    append: bool,
    draft: Arc<Mutex<Draft>>,
    seen: Arc<Mutex<Option<Bytes>>>,
}

/// What the writer has made of the bytes.
enum Draft {
    /// Only reads.
    None,
    /// What stood there at the opening, not looked at yet.
    Opened(Mutex<Option<Answer<Bytes>>>),
    /// Emptied by the opening, and nothing written yet. A shell flushes once before it writes: that is no version.
    Truncated {
        flushed: bool,
    },
    /// The same as a version that is kept.
    Same(Vec<u8>),
    Changed(Vec<u8>),
    /// A write failed: what there is, is only a part, and is never kept.
    Spoilt(Error),
}

impl Draft {
    fn changed(mut bytes: Vec<u8>, change: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> (Draft, Result<()>) {
        match change(&mut bytes) {
            Ok(()) => (Draft::Changed(bytes), Ok(())),
            Err(error) => (Draft::Spoilt(error.clone()), Err(error)),
        }
    }
}

impl Version {
    /// Changes the draft, once the bytes that it begins with are there.
    fn change(&self, change: impl FnOnce(&mut Vec<u8>) -> Result<()> + Send + 'static) -> Answer<()> {
        let mut draft = self.draft.lock();
        let begun = match &mut *draft {
            Draft::None => return Answer::refuse(Error::forbidden("the file was not opened for writing")),
            Draft::Spoilt(error) => return Answer::refuse(error.clone()),
            Draft::Truncated { .. } => {
                let (next, outcome) = Draft::changed(Vec::new(), change);
                *draft = next;
                return Answer::Now(outcome);
            }
            Draft::Same(bytes) | Draft::Changed(bytes) => {
                let (next, outcome) = Draft::changed(std::mem::take(bytes), change);
                *draft = next;
                return Answer::Now(outcome);
            }
            Draft::Opened(latest) => latest.get_mut().take(),
        };
        // What is there already changes the draft before this returns.
        drop(draft);
        let Some(begun) = begun else { return Answer::refuse(Error::busy("the file is being opened")) };
        let (draft, keep) = (self.draft.clone(), self.keep.clone());
        begun.then(move |latest| {
            let (next, outcome) = match latest {
                Ok(latest) => Draft::changed(latest.to_vec(), change),
                // The writer, who is told, may try again: then it is fetched again.
                Err(error) => (Draft::Opened(Mutex::new(Some(keep.latest()))), Err(error)),
            };
            *draft.lock() = next;
            outcome
        })
    }

    /// Makes a version of what was changed. What could not be kept is still to be kept: the writer, who was told, may
    /// try again.
    fn save(&self) -> Answer<()> {
        let mut draft = self.draft.lock();
        let bytes = match &mut *draft {
            Draft::Changed(bytes) => std::mem::take(bytes),
            Draft::Truncated { .. } => Vec::new(),
            Draft::Spoilt(error) => return Answer::refuse(error.clone()),
            Draft::None | Draft::Opened(_) | Draft::Same(_) => return Answer::ok(()),
        };
        let version = Bytes::from(bytes.clone());
        *draft = Draft::Same(bytes);
        drop(draft);
        let draft = self.draft.clone();
        self.keep.keep(&self.caller, version).then(move |kept| {
            let mut draft = draft.lock();
            if let (Err(_), Draft::Same(bytes)) = (&kept, &mut *draft) {
                *draft = Draft::Changed(std::mem::take(bytes));
            }
            kept
        })
    }
}

impl Handle for Version {
    fn read(&self, offset: u64, size: usize) -> Answer<Bytes> {
        match &*self.draft.lock() {
            Draft::Same(bytes) | Draft::Changed(bytes) => {
                return Answer::ok(slice(&Bytes::copy_from_slice(bytes), offset, size));
            }
            Draft::Truncated { .. } => return Answer::ok(Bytes::new()),
            Draft::Spoilt(error) => return Answer::refuse(error.clone()),
            Draft::None | Draft::Opened(_) => (),
        }
        if offset > 0
            && let Some(seen) = &*self.seen.lock()
        {
            return Answer::ok(slice(seen, offset, size));
        }
        let seen = self.seen.clone();
        self.keep.latest().map(move |bytes| {
            *seen.lock() = Some(bytes.clone());
            slice(&bytes, offset, size)
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> Answer<()> {
        let (data, append, limit) = (data.to_vec(), self.append, self.keep.limit());
        self.change(move |bytes| {
            let start = match append {
                true => bytes.len(),
                false => usize::try_from(offset).unwrap_or(usize::MAX),
            };
            let end = start.saturating_add(data.len());
            if end > limit {
                return Err(Error::too_large(format!("at most {limit} bytes are kept in one item")));
            }
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[start..end].copy_from_slice(&data);
            Ok(())
        })
    }

    fn truncate(&self, size: u64) -> Answer<()> {
        let limit = self.keep.limit();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > limit {
            return Answer::refuse(Error::too_large(format!("at most {limit} bytes are kept in one item")));
        }
        self.change(move |bytes| {
            bytes.resize(size, 0);
            Ok(())
        })
    }

    fn flush(&self, by_opener: bool) -> Answer<()> {
        if !by_opener {
            return Answer::ok(());
        }
        if let Draft::Truncated { flushed: flushed @ false } = &mut *self.draft.lock() {
            *flushed = true;
            return Answer::ok(());
        }
        self.save()
    }

    fn sync(&self) -> Answer<()> {
        self.save()
    }

    fn keeps(&self) -> usize {
        let draft = match &*self.draft.lock() {
            Draft::Same(bytes) | Draft::Changed(bytes) => bytes.len(),
            Draft::None | Draft::Opened(_) | Draft::Truncated { .. } | Draft::Spoilt(_) => 0,
        };
        draft + self.seen.lock().as_ref().map_or(0, Bytes::len)
    }

    fn let_go(&self) {
        *self.seen.lock() = None;
    }

    fn refuse(&self, error: &Error) {
        *self.draft.lock() = Draft::Spoilt(error.clone());
    }

    fn closed(&self) {
        if let Answer::Soon(saved) | Answer::Later(saved) = self.save().looked_at()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(saved);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Keeps every version, each at most eight bytes; `full` only at the second attempt. What begins with `lost` can be
    /// fetched only at the second attempt too.
    #[derive(Default)]
    struct Kept(Mutex<Vec<Bytes>>, AtomicBool);

    impl VersionStore for Kept {
        fn stat(&self) -> Stat {
            Stat { size: 0, modified: super::super::STARTED }
        }

        fn latest(&self) -> Answer<Bytes> {
            let latest = self.0.lock().last().cloned().unwrap_or_default();
            if latest.starts_with(b"lost") && !self.1.swap(true, Ordering::SeqCst) {
                return Answer::soon(async { Err(Error::unavailable("the disk does not answer")) });
            }
            Answer::soon(async move { Ok(latest) })
        }

        fn keep(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
            if bytes == "full" && !self.1.swap(true, Ordering::SeqCst) {
                return Answer::soon(async { Err(Error::unavailable("the disk is full")) });
            }
            self.0.lock().push(bytes);
            Answer::ok(())
        }

        fn limit(&self) -> usize {
            8
        }
    }

    /// Plays `script` on one handle (`F`lush, `S`ync, `2` cuts to two bytes, or a text to write), closes it, and shows the
    /// versions.
    async fn versions(how: Open, script: &[&str]) -> String {
        versions_of("old", how, script).await
    }

    async fn versions_of(first: &'static str, how: Open, script: &[&str]) -> String {
        let kept = Arc::new(Kept(Mutex::new(vec![first.into()]), AtomicBool::default()));
        let handle = Item::new(kept.clone()).open(&Caller::named("operator"), how).unwrap();
        let (mut at, mut said) = (0, String::new());
        for step in script {
            let outcome = match *step {
                "F" => handle.flush(true).wait().await,
                "S" => handle.sync().wait().await,
                "2" => handle.truncate(2).wait().await,
                text => {
                    at += text.len();
                    handle.write((at - text.len()) as u64, text.as_bytes()).wait().await
                }
            };
            said += if outcome.is_err() { "!" } else { "" };
        }
        handle.closed();
        let kept = kept.0.lock();
        said + &kept.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect::<Vec<_>>().join("|")
    }

    #[tokio::test]
    async fn a_version_is_made_when_its_writer_flushes() {
        let table: &[(Open, &[&str], &str)] = &[
            (Open::WRITE, &["new", "F"], "old|new"),
            (Open::WRITE, &["F", "new", "F"], "old|new"), // as a shell does
            (Open::WRITE, &["a", "F", "b", "F"], "old|a|ab"),
            (Open::WRITE, &["a", "S", "F"], "old|a"),
            (Open::WRITE, &["F", "F"], "old|"), // `: > file`
            (Open::WRITE, &["F"], "old|"),
            (Open::WRITE, &["a"], "old|a"), // closed by somebody else
            (Open::APPEND, &["er", "F"], "old|older"),
            (Open::APPEND, &["F"], "old"),
            (Open::BOTH, &["n", "F"], "old|nld"),
            (Open::BOTH, &["2", "F"], "old|ol"), // of bytes that must be fetched first
            (Open::BOTH, &["n", "2", "F"], "old|nl"),
            (Open::WRITE, &["full", "F", "F"], "!old|full"), // the disk was full at first
        ];
        for (how, script, expected) in table {
            assert_eq!(versions(*how, script).await, *expected, "{script:?}");
        }
    }

    #[tokio::test]
    async fn what_could_not_be_fetched_once_is_fetched_again() {
        assert_eq!(versions_of("lost", Open::APPEND, &["er", "er", "F"]).await, "!lost|loster");
        assert_eq!(versions_of("lost", Open::BOTH, &["2", "2", "F"]).await, "!lost|lo");
        assert_eq!(versions_of("lost", Open::APPEND, &["er", "F"]).await, "!lost", "nothing was changed");
    }

    #[tokio::test]
    async fn what_was_only_written_in_part_is_never_kept() {
        assert_eq!(versions(Open::WRITE, &["far too long", "F"]).await, "!!old");
        assert_eq!(versions(Open::WRITE, &["short", "far too long", "F"]).await, "!!old");
        assert_eq!(versions(Open::APPEND, &["far too long"]).await, "!old");
    }
}
