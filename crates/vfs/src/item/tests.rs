use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Stores every version, each at most eight bytes; `full` only at the second attempt. A version that begins with `lost`
/// can be fetched only at the second attempt too.
#[derive(Default)]
struct Stored(Mutex<Vec<Bytes>>, AtomicBool);

impl VersionStore for Stored {
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

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        if bytes == "full" && !self.1.swap(true, Ordering::SeqCst) {
            return Answer::soon(async { Err(Error::unavailable("the disk is full")) });
        }
        self.0.lock().push(bytes);
        Answer::ok(())
    }

    fn check(&self, _caller: &Caller, draft: &[u8], _new: std::ops::Range<usize>) -> Result<()> {
        if draft.starts_with(b"no") { Err(Error::invalid("not that")) } else { Ok(()) }
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
    let stored = Arc::new(Stored(Mutex::new(vec![first.into()]), AtomicBool::default()));
    let handle = Item::new(stored.clone()).open(&Caller::named("ada"), how).unwrap();
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
    let stored = stored.0.lock();
    said + &stored.iter().map(|bytes| String::from_utf8_lossy(bytes)).collect::<Vec<_>>().join("|")
}

#[tokio::test]
async fn a_version_is_made_when_its_writer_flushes() {
    let table: &[(Open, &[&str], &str)] = &[
        (Open::WRITE, &["new", "F"], "old|new"),
        (Open::WRITE, &["F", "no", "F"], "!!old"), // refused at the write, and at the close
        (Open::WRITE, &["F", "new", "F"], "old|new"), // as a shell does
        (Open::WRITE, &["a", "F", "b", "F"], "old|a|ab"),
        (Open::WRITE, &["a", "S", "F"], "old|a"),
        (Open::WRITE, &["F", "F"], "old|"), // `: > file`
        (Open::WRITE, &["F"], "old|"),
        (Open::WRITE, &["a"], "old|a"), // closed by another process
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
async fn a_failed_fetch_is_repeated() {
    assert_eq!(versions_of("lost", Open::APPEND, &["er", "er", "F"]).await, "!lost|loster");
    assert_eq!(versions_of("lost", Open::BOTH, &["2", "2", "F"]).await, "!lost|lo");
    assert_eq!(versions_of("lost", Open::APPEND, &["er", "F"]).await, "!lost", "nothing was changed");
}

#[tokio::test]
async fn an_incomplete_version_is_never_stored() {
    assert_eq!(versions(Open::WRITE, &["far too long", "F"]).await, "!!old");
    assert_eq!(versions(Open::WRITE, &["short", "far too long", "F"]).await, "!!old");
    assert_eq!(versions(Open::APPEND, &["far too long"]).await, "!old");
}
