use super::super::FixedReply;
use super::*;

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl MessageSink for Recorder {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"say something\n")
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn receive(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        self.0.lock().push(message.clone());
        Answer::ok(Arc::new(FixedReply(message.to_uppercase().into())))
    }

    fn limit(&self) -> usize {
        8
    }
}

fn open() -> (Arc<Recorder>, Box<dyn Handle>) {
    let recorder = Arc::new(Recorder::default());
    let handle = MessageFile::new(recorder.clone()).open(&Caller::named("ada"), Open::BOTH).unwrap();
    (recorder, handle)
}

#[tokio::test]
async fn a_message_is_what_its_opener_flushes() {
    let (recorder, handle) = open();
    handle.flush(true).wait().await.unwrap();
    handle.write(0, b"a").wait().await.unwrap();
    handle.flush(false).wait().await.unwrap();
    handle.write(0, b"b").wait().await.unwrap();
    handle.flush(true).wait().await.unwrap();
    handle.closed();
    assert_eq!(*recorder.0.lock(), ["ab"]);
}

#[tokio::test]
async fn reading_back_sends_the_message() {
    let (_, handle) = open();
    assert_eq!(handle.read(0, 99).wait().await.unwrap(), "say something\n");
    handle.write(0, b"hi").wait().await.unwrap();
    assert_eq!(handle.read(2, 99).wait().await.unwrap(), "HI");
    assert_eq!(handle.read(4, 99).wait().await.unwrap(), "");
}

#[tokio::test]
async fn bad_text_and_too_much_are_refused_at_the_write() {
    let (recorder, handle) = open();
    for (parts, errno) in [([b"\xff".as_slice(), b"rest"], libc::EINVAL), ([b"12345".as_slice(), b"6789"], libc::EFBIG)]
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
    assert_eq!(*recorder.0.lock(), ["ä"]);
}
