use super::*;

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl NoticeSink for Recorder {
    fn send(&self, notice: &Notice) {
        self.0.lock().push(format!("{notice:?}"));
    }
}

fn entry(path: &str) -> Notice {
    Notice::Entry { parent: 1, name: path.rsplit('/').next().unwrap().to_owned(), path: path.to_owned() }
}

#[test]
fn queued_notices_are_sent_once_and_in_order() {
    let (notices, sent) = (Notices::default(), Recorder::default());
    for ino in [1, 2, 1, 3, 2] {
        notices.post(Notice::Inode(ino));
    }
    let then = sent.clone();
    notices.after(move || then.0.lock().push("then".to_owned()));
    notices.post(Notice::Poll(9));
    notices.stop();
    notices.run(&sent);
    assert_eq!(*sent.0.lock(), ["Inode(1)", "Inode(2)", "Inode(3)", "then", "Poll(9)"]);
}

#[test]
fn a_poller_is_notified_directly_but_not_before_earlier_notices() {
    let (notices, sent) = (Notices::default(), Recorder::default());
    notices.poll(1);
    *notices.kernel.lock() = Some(Arc::new(sent.clone()));
    notices.stop();
    notices.run(&sent);
    assert_eq!(*sent.0.lock(), ["Poll(1)"], "before the session it is queued");

    let (notices, sent) = (Notices::default(), Recorder::default());
    *notices.kernel.lock() = Some(Arc::new(sent.clone()));
    notices.poll(2);
    notices.post(Notice::Inode(3));
    notices.poll(4);
    assert_eq!(*sent.0.lock(), ["Poll(2)"]);
    notices.stop();
    notices.run(&sent);
    assert_eq!(*sent.0.lock(), ["Poll(2)", "Inode(3)", "Poll(4)"]);
    assert!(notices.kernel().is_none(), "nothing holds the device open when the session is over");
}

#[test]
fn an_empty_queue_calls_back_immediately() {
    let (notices, sent) = (Notices::default(), Recorder::default());
    let then = sent.clone();
    notices.after(move || then.0.lock().push("then".to_owned()));
    assert_eq!(*sent.0.lock(), ["then"]);
}

#[test]
fn an_entry_with_a_mount_below_it_is_never_invalidated() {
    let (notices, sent) = (Notices::default(), Recorder::default());
    notices.protect("/a/b");
    for path in ["/a", "/a/b", "/a/bc", "/a/b/c"] {
        notices.post(entry(path));
    }
    notices.stop();
    notices.run(&sent);
    let sent = sent.0.lock().join(" ");
    assert!(sent.contains("/a/bc") && sent.contains("/a/b/c"));
    assert_eq!(sent.matches("Entry").count(), 2);
    notices.unprotect("/a/b");
    assert!(!notices.is_protected("/a"));
}
