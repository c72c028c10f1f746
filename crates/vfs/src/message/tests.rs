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

/// Accepts a message, and replies to it, only when told to.
struct SlowSink {
    accepted: tokio::sync::watch::Sender<Option<Result<()>>>,
    replied: tokio::sync::watch::Sender<bool>,
    received: Mutex<Vec<String>>,
}

impl MessageSink for SlowSink {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"say something\n")
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn receive(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        self.received.lock().push(message.clone());
        let (mut accepted, replied) = (self.accepted.subscribe(), self.replied.clone());
        Answer::soon(async move {
            accepted.wait_for(Option::is_some).await.unwrap().clone().unwrap()?;
            let reply = move || {
                let (mut replied, message) = (replied.subscribe(), message.clone());
                Answer::later(async move {
                    replied.wait_for(|replied| *replied).await.unwrap();
                    Ok(message.to_uppercase().into())
                })
            };
            Ok(Arc::new(super::super::ReplyFn(reply)) as Arc<dyn Reply>)
        })
    }
}

fn open_slow() -> (Arc<SlowSink>, Box<dyn Handle>) {
    let (accepted, replied) = (tokio::sync::watch::Sender::new(None), tokio::sync::watch::Sender::new(false));
    let sink = Arc::new(SlowSink { accepted, replied, received: Mutex::default() });
    let handle = MessageFile::new(sink.clone()).open(&Caller::named("ada"), Open::BOTH).unwrap();
    (sink, handle)
}

fn waits<T: Send + 'static>(answer: Answer<T>) -> bool {
    matches!(answer.poll_once(), Answer::Later(_))
}

#[tokio::test]
async fn a_read_that_does_not_wait_loses_neither_the_message_nor_its_reply() {
    let (sink, handle) = open_slow();
    handle.write(0, b"hi").wait().await.unwrap();
    assert!(waits(handle.read(0, 99)));
    assert!(waits(handle.read(0, 99)));
    sink.accepted.send_replace(Some(Ok(())));
    assert!(waits(handle.read(0, 99)));
    sink.replied.send_replace(true);
    assert_eq!(handle.read(2, 99).wait().await.unwrap(), "HI");
    assert_eq!(handle.read(4, 99).wait().await.unwrap(), "");
    assert_eq!(*sink.received.lock(), ["hi"]);
}

#[tokio::test]
async fn a_poll_for_input_sends_the_message_and_is_ready_with_the_reply() {
    let (sink, handle) = open_slow();
    handle.write(0, b"h").wait().await.unwrap();
    // A question about readiness alone does not end the message.
    drop(handle.readable());
    handle.write(0, b"i").wait().await.unwrap();
    assert!(waits(handle.poll_input()));
    assert!(waits(handle.poll_input()));
    sink.accepted.send_replace(Some(Ok(())));
    assert!(waits(handle.poll_input()));
    sink.replied.send_replace(true);
    handle.poll_input().wait().await.unwrap();
    assert_eq!(handle.read(2, 99).wait().await.unwrap(), "HI");
    assert_eq!(*sink.received.lock(), ["hi"]);
}

#[tokio::test]
async fn a_message_that_is_refused_late_fails_the_next_read_once() {
    let (sink, handle) = open_slow();
    handle.write(0, b"hi").wait().await.unwrap();
    assert!(waits(handle.poll_input()));
    sink.accepted.send_replace(Some(Err(Error::no_space("the disk is full"))));
    handle.poll_input().wait().await.unwrap();
    assert_eq!(handle.read(2, 99).wait().await.unwrap_err().errno(), libc::ENOSPC);
    sink.accepted.send_replace(Some(Ok(())));
    sink.replied.send_replace(true);
    handle.write(0, b"again").wait().await.unwrap();
    handle.flush(true).wait().await.unwrap();
    assert_eq!(handle.read(2, 99).wait().await.unwrap(), "AGAIN");
}

#[tokio::test]
async fn a_refusal_that_the_close_reported_is_not_read_again() {
    let (sink, handle) = open_slow();
    sink.accepted.send_replace(Some(Err(Error::no_space("the disk is full"))));
    handle.write(0, b"hi").wait().await.unwrap();
    assert_eq!(handle.flush(true).wait().await.unwrap_err().errno(), libc::ENOSPC);
    assert_eq!(handle.read(2, 99).wait().await.unwrap(), "");
}

#[tokio::test]
async fn a_poll_whose_message_is_refused_at_once_is_ready_and_the_read_fails() {
    let (_, handle) = open();
    handle.write(0, "ä".as_bytes().split_at(1).0).wait().await.unwrap();
    handle.poll_input().wait().await.unwrap();
    assert_eq!(handle.read(1, 99).wait().await.unwrap_err().errno(), libc::EINVAL);
}

/// Takes only what begins with `[`, and counts how often it was asked.
#[derive(Default)]
struct Choosy(Mutex<Vec<String>>);

impl MessageSink for Choosy {
    fn template(&self) -> Bytes {
        Bytes::new()
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn begins(&self, _caller: &Caller, text: &str) -> Answer<bool> {
        self.0.lock().push(text.to_owned());
        match text.trim_start().chars().next() {
            None => Answer::ok(false),
            Some('[') => Answer::ok(true),
            // Some answers take their time.
            Some(_) => Answer::soon(async { Err(Error::invalid("a message begins with [")) }),
        }
    }

    fn receive(&self, _caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        Answer::ok(Arc::new(FixedReply(message.into())))
    }
}

#[tokio::test]
async fn the_first_bytes_of_a_message_can_fail_the_write() {
    let sink = Arc::new(Choosy::default());
    let open = || MessageFile::new(sink.clone()).open(&Caller::named("ada"), Open::BOTH).unwrap();
    let handle = open();
    for part in [" ", "[a", "b", "c"] {
        handle.write(0, part.as_bytes()).wait().await.unwrap();
    }
    assert_eq!(*sink.0.lock(), [" ", " [a"], "it is asked until it has seen enough");
    handle.flush(true).wait().await.unwrap();
    handle.write(0, b"x").wait().await.unwrap_err();
    assert_eq!(handle.write(0, b"[y").wait().await.unwrap_err().message, "a message begins with [", "the rest of it");
    handle.flush(true).wait().await.unwrap_err();
    handle.write(0, b"[z").wait().await.unwrap();
    handle.flush(true).wait().await.unwrap();
}

/// Takes one message at a time.
#[derive(Default)]
struct OneAtATime {
    held: Arc<Mutex<bool>>,
    received: Mutex<Vec<(String, bool)>>,
}

/// Frees the sink when it is dropped.
struct HeldClaim(Arc<Mutex<bool>>);

impl Drop for HeldClaim {
    fn drop(&mut self) {
        *self.0.lock() = false;
    }
}

impl MessageSink for OneAtATime {
    fn template(&self) -> Bytes {
        Bytes::new()
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn claim(&self, _caller: &Caller) -> Result<Option<MessageClaim>> {
        match std::mem::replace(&mut *self.held.lock(), true) {
            true => Err(Error::busy("another message is under way")),
            false => Ok(Some(Box::new(HeldClaim(self.held.clone())))),
        }
    }

    fn receive_claimed(&self, _: &Caller, message: String, claim: Option<MessageClaim>) -> Answer<Arc<dyn Reply>> {
        let own = claim.is_some_and(|claim| claim.downcast::<HeldClaim>().is_ok());
        self.received.lock().push((message, own));
        Answer::ok(Arc::new(FixedReply(Bytes::new())))
    }

    fn receive(&self, caller: &Caller, message: String) -> Answer<Arc<dyn Reply>> {
        self.receive_claimed(caller, message, None)
    }
}

#[tokio::test]
async fn the_second_of_two_writers_at_one_instant_is_refused_at_its_write() {
    let sink = Arc::new(OneAtATime::default());
    let open = || MessageFile::new(sink.clone()).open(&Caller::named("ada"), Open::BOTH).unwrap();
    let (first, second) = (open(), open());
    first.write(0, b"a").wait().await.unwrap();
    let refused = second.write(0, b"b").wait().await.unwrap_err();
    assert_eq!(refused.code, acheron_base::Code::Busy);
    first.write(1, b"c").wait().await.unwrap();
    first.flush(true).wait().await.unwrap();
    assert!(second.flush(true).wait().await.is_err(), "the rest of a refused message is no message");
    second.write(0, b"d").wait().await.unwrap();
    second.closed();
    drop(first);
    assert_eq!(*sink.received.lock(), [("ac".to_owned(), true), ("d".to_owned(), true)]);
    assert!(!*sink.held.lock(), "a claim ends with its message");
}
