use super::*;
use crate::{File, Item, Open, Stat, VersionStore, live};

fn open(all: &Arc<OpenFileBuffers>, who: &str, size: usize) -> Box<dyn Handle> {
    let file = live(move |_| Ok(vec![b'x'; size].into()));
    let caller = Caller::named(who);
    all.counted(&caller, file.kind(), file.open(&caller, Open::READ).unwrap())
}

#[tokio::test]
async fn a_caller_above_the_limit_is_refused_and_no_other() {
    let all = Arc::new(OpenFileBuffers::default());
    let half: Vec<_> = (0..2).map(|_| open(&all, "ada", MOST / 2)).collect();
    for handle in &half {
        handle.read(0, 1).wait().await.unwrap();
    }
    assert_eq!(all.total(), MOST);
    let third = open(&all, "ada", 2 * SMALL);
    assert_eq!(third.read(0, 1).wait().await.unwrap_err().errno(), libc::EDQUOT);
    assert_eq!(half[0].read(1, 1).wait().await.unwrap().len(), 1, "a buffered answer is read on");
    assert_eq!(open(&all, "ada", 10).read(0, 99).wait().await.unwrap().len(), 10, "a short answer is read");
    assert_eq!(open(&all, "bob", 2 * SMALL).read(0, 99).wait().await.unwrap().len(), 99);
    assert_eq!((all.refused(), all.total()), (1, MOST), "the buffer of bob is gone with his handle");
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

    fn save(&self, _caller: &Caller, bytes: Bytes) -> Answer<()> {
        Answer::refuse(Error::internal(format!("a part was kept: {bytes:?}")))
    }
}

#[tokio::test]
async fn nothing_is_kept_of_a_version_that_was_refused_in_part() {
    let all = Arc::new(OpenFileBuffers::default());
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
