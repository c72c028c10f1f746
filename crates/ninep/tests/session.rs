//! Sessions of a client with a small tree, over a real socket.

#[allow(dead_code)] // shared with the other tests
mod client;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acheron_base::{Code, Error, Result};
use acheron_ninep::message::{NO_TAG, Reply, Request};
use acheron_ninep::{Address, Attach, AttachRequest, Attached, Listening, Server, listen};
use acheron_vfs::{
    Access, AccessControl, Answer, Caller, FixedReply, Link, Listing, MessageFile, MessageSink, Node, Tree, live, text,
    waiting,
};
use bytes::Bytes;
use client::{Client, refused};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Everybody may do everything, but `eve` does not see `secret` and nobody may write `closed`.
struct Rules;

impl AccessControl for Rules {
    fn check(&self, caller: &Caller, action: Access, path: &str) -> Result<()> {
        if !self.sees(caller, path) || action != Access::Read && path.starts_with("/closed") {
            return Err(Error::forbidden(format!("`{path}` is closed")));
        }
        Ok(())
    }

    fn sees(&self, caller: &Caller, path: &str) -> bool {
        !(caller.identity.name() == "eve" && path.starts_with("/secret"))
    }
}

/// The name of the user is believed, until its rights end.
#[derive(Default)]
struct Believe(CancellationToken);

#[async_trait::async_trait]
impl Attach for Believe {
    async fn attach(&self, request: AttachRequest) -> Result<Attached> {
        assert!(request.peer.is_some_and(|peer| peer.pid == std::process::id() && peer.is_alive()));
        match request.user.as_str() {
            "nobody" => Err(Error::forbidden("nobody may not")),
            "ada" => Ok(Attached { caller: Caller::named("ada"), ended: self.0.clone() }),
            user => Ok(Attached { caller: Caller::named(user), ended: CancellationToken::new() }),
        }
    }
}

struct Here(&'static str);

impl Link for Here {
    fn target(&self, caller: &Caller) -> Result<String> {
        Ok(format!("{}/{}", self.0, caller.identity.name()))
    }
}

/// Keeps messages.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl MessageSink for Heard {
    fn template(&self) -> Bytes {
        Bytes::from_static(b"say something\n")
    }

    fn may(&self, _caller: &Caller) -> Result<()> {
        Ok(())
    }

    fn receive(&self, caller: &Caller, message: String) -> Answer<Arc<dyn acheron_vfs::Reply>> {
        let said = format!("{}: {}", caller.identity.name(), message.trim_end());
        self.0.lock().push(said.clone());
        let reply: Arc<dyn acheron_vfs::Reply> = Arc::new(FixedReply(format!("heard {said}\n").into()));
        Answer::ok(reply)
    }
}

struct Served {
    _folder: tempfile::TempDir,
    listening: Listening,
    door: watch::Sender<bool>,
    heard: Arc<Heard>,
    waits: Arc<AtomicUsize>,
    rights: CancellationToken,
}

impl Served {
    async fn new() -> Served {
        let (open_door, door) = watch::channel(false);
        let (heard, waits) = (Arc::new(Heard::default()), Arc::new(AtomicUsize::new(0)));
        let counted = waits.clone();
        let many = (0..300).fold(Listing::default(), |all, n| all.file(&format!("name-{n:04}"), text("")));
        let root = Listing::default()
            .file("hello", live(|caller| Ok(format!("hello, {}\n", caller.identity).into())))
            .file("page", text("one\ntwo\n"))
            .file(
                "door",
                waiting(move |_| {
                    let (mut door, counted) = (door.clone(), CountedWait::new(&counted));
                    Answer::later(async move {
                        let _counted = counted;
                        door.wait_for(|open| *open).await.map_err(|_| Error::unavailable("no door"))?;
                        Ok("open\n".into())
                    })
                }),
            )
            .file("broken", live(|_| panic!("this file always panics")))
            .file("input", MessageFile::new(heard.clone()))
            .dir("secret", Listing::default().file("plan", text("attack at dawn\n")))
            .dir("closed", Listing::default().file("page", text("")))
            .dir("deep", Listing::default().dir("er", Listing::default().file("end", text("here\n"))))
            .dir("many", many)
            .with("me", Node::link(Here("agents")));
        let tree = Tree::new(Arc::new(root), Arc::new(Rules));
        let folder = tempfile::tempdir().unwrap();
        let believe = Arc::new(Believe::default());
        let rights = believe.0.clone();
        let server = Arc::new(Server::new(tree, believe));
        let listening = listen(server, &Address::Unix(folder.path().join("tree.sock"))).await.unwrap();
        Served { _folder: folder, listening, door: open_door, heard, waits, rights }
    }

    async fn client(&self, user: &str) -> Client {
        let Address::Unix(path) = &self.listening.address else { unreachable!("it is a unix socket") };
        Client::attach(path, user).await
    }

    /// Waits until so many reads are parked.
    async fn parked(&self, wanted: usize) {
        for _ in 0..2000 {
            if self.waits.load(Ordering::SeqCst) == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{} reads wait, not {wanted}", self.waits.load(Ordering::SeqCst));
    }
}

/// Counts as long as it lives.
struct CountedWait(Arc<AtomicUsize>);

impl CountedWait {
    fn new(count: &Arc<AtomicUsize>) -> CountedWait {
        count.fetch_add(1, Ordering::SeqCst);
        CountedWait(count.clone())
    }
}

impl Drop for CountedWait {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn files_are_read_and_directories_listed_as_their_client() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    assert_eq!(ada.cat("hello").await.unwrap(), "hello, ada\n");
    assert_eq!(ada.cat("deep/er/end").await.unwrap(), "here\n");
    assert_eq!(ada.cat("deep/er/../../page").await.unwrap(), "one\ntwo\n");
    assert_eq!(ada.cat("absent").await, Err(libc::ENOENT));
    assert_eq!(ada.cat("page/below").await, Err(libc::EBADF), "a walk that ends half-way makes no fid");
    assert_eq!(
        ada.ls("").await,
        [".", "..", "broken", "closed", "deep", "door", "hello", "input", "many", "me", "page", "secret"]
    );
    assert_eq!(ada.ls("many").await.len(), 302);
    assert!(matches!(ada.walk(5, "me").await, Reply::Walk { .. }));
    assert_eq!(ada.ask(Request::Readlink { fid: 5 }).await, Reply::Readlink { target: "agents/ada".to_owned() });
}

#[tokio::test]
async fn what_a_client_may_not_see_is_not_there_and_what_it_may_not_do_is_refused() {
    let served = Served::new().await;
    let mut eve = served.client("eve").await;
    assert_eq!(eve.cat("secret/plan").await, Err(libc::ENOENT));
    assert!(!eve.ls("").await.contains(&"secret".to_owned()));
    assert_eq!(refused(eve.open(1, "page", libc::O_WRONLY).await), libc::EACCES);
    let made = Request::Lcreate { fid: 0, name: "new".to_owned(), flags: libc::O_WRONLY as u32, mode: 0o644, gid: 0 };
    assert_eq!(refused(eve.ask(made).await), libc::EACCES);
    for name in ["..", "", "a/b", "a\0b"] {
        let made = Request::Mkdir { directory: 0, name: name.to_owned(), mode: 0o755, gid: 0 };
        assert_eq!(refused(eve.ask(made).await), libc::EINVAL);
    }
    let unseen = Request::Unlinkat { directory: 0, name: "secret".to_owned(), flags: 0x200 };
    assert_eq!(refused(eve.ask(unseen).await), libc::EACCES);
    let nobody = Request::Attach { fid: 7, auth_fid: u32::MAX, user: "nobody".to_owned(), tree: String::new(), uid: 0 };
    assert_eq!(refused(eve.ask(nobody).await), libc::EACCES);
}

#[tokio::test]
async fn a_waiting_read_parks_and_others_go_on_until_it_is_answered() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    ada.open(1, "door", libc::O_RDONLY).await;
    ada.send(77, &Request::Read { fid: 1, offset: 0, count: 100 }).await;
    served.parked(1).await;
    assert_eq!(ada.cat("hello").await.unwrap(), "hello, ada\n");
    served.door.send_replace(true);
    assert_eq!(ada.next().await, (77, Reply::Read { data: Bytes::from_static(b"open\n") }));
}

#[tokio::test]
async fn a_reader_that_does_not_want_to_wait_is_told() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    ada.open(1, "door", libc::O_RDONLY | libc::O_NONBLOCK).await;
    assert_eq!(refused(ada.ask(Request::Read { fid: 1, offset: 0, count: 100 }).await), libc::EAGAIN);
}

#[tokio::test]
async fn a_flush_cancels_a_waiting_read_and_nothing_follows_it() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    ada.open(1, "door", libc::O_RDONLY).await;
    for _ in 0..100 {
        ada.send(77, &Request::Read { fid: 1, offset: 0, count: 100 }).await;
        ada.send(78, &Request::Flush { old_tag: 77 }).await;
        assert_eq!(ada.next().await, (78, Reply::Flush {}));
    }
    served.parked(0).await;
    // The tag is free again, and the fid reads on.
    served.door.send_replace(true);
    assert_eq!(
        ada.ask(Request::Read { fid: 1, offset: 0, count: 100 }).await,
        Reply::Read { data: Bytes::from_static(b"open\n") }
    );
    // Flushes of what is not there, of a flush, and several of the same are all answered.
    for tag in [200, 201, 202] {
        ada.send(tag, &Request::Flush { old_tag: 77 }).await;
    }
    for tag in [200, 201, 202] {
        assert_eq!(ada.next().await, (tag, Reply::Flush {}));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_races_with_the_answer_and_the_reply_never_comes_after_it() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    let mut answered = 0;
    for round in 0..300 {
        served.door.send_replace(false);
        assert!(matches!(ada.open(1, "door", libc::O_RDONLY).await, Reply::Lopen { .. }));
        ada.send(77, &Request::Read { fid: 1, offset: 0, count: 100 }).await;
        if round % 2 == 0 {
            served.parked(1).await;
        }
        let door = served.door.clone();
        let opens = tokio::task::spawn_blocking(move || {
            std::thread::yield_now();
            door.send_replace(true)
        });
        if round % 3 == 0 {
            tokio::task::yield_now().await;
        }
        ada.send(78, &Request::Flush { old_tag: 77 }).await;
        match ada.next().await {
            (78, Reply::Flush {}) => (),
            (77, Reply::Read { .. }) => {
                answered += 1;
                assert_eq!(ada.next().await, (78, Reply::Flush {}));
            }
            other => panic!("{other:?}"),
        }
        opens.await.unwrap();
        // Had a late reply to 77 been sent, it would be read here.
        ada.clunk(1).await;
    }
    // Which of the two is first depends on the machine; both have their tests above.
    eprintln!("{answered} of 300 reads were answered before their flush");
}

#[tokio::test]
async fn a_message_is_complete_when_its_fid_is_closed_and_not_when_its_connection_breaks() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    ada.open(1, "input", libc::O_WRONLY | libc::O_TRUNC).await;
    assert_eq!(ada.write(1, "half of it").await, Reply::Write { count: 10 });
    assert!(served.heard.0.lock().is_empty());
    assert_eq!(ada.clunk(1).await, Reply::Clunk {});
    assert_eq!(*served.heard.0.lock(), ["ada: half of it"]);

    ada.open(2, "input", libc::O_RDWR).await;
    ada.write(2, "a question").await;
    let answer = ada.ask(Request::Read { fid: 2, offset: 10, count: 100 }).await;
    assert_eq!(answer, Reply::Read { data: Bytes::from_static(b"heard ada: a question\n") });

    let mut bob = served.client("bob").await;
    bob.open(1, "input", libc::O_WRONLY).await;
    bob.write(1, "this is cut o").await;
    drop(bob);
    let mut ada = served.client("ada").await;
    assert_eq!(ada.cat("page").await.unwrap(), "one\ntwo\n");
    assert_eq!(*served.heard.0.lock(), ["ada: half of it", "ada: a question"]);
}

#[tokio::test]
async fn a_new_version_ends_the_session_before() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    ada.open(1, "door", libc::O_RDONLY).await;
    ada.send(77, &Request::Read { fid: 1, offset: 0, count: 100 }).await;
    served.parked(1).await;
    ada.send(NO_TAG, &Request::Version { msize: 65536, version: "9P2000.L".to_owned() }).await;
    assert!(matches!(ada.next().await, (NO_TAG, Reply::Version { .. })));
    served.parked(0).await;
    assert_eq!(refused(ada.ask(Request::Getattr { fid: 1, mask: 0x7ff }).await), libc::EBADF);
    ada.send(NO_TAG, &Request::Version { msize: 65536, version: "9P1900".to_owned() }).await;
    assert!(matches!(ada.next().await, (NO_TAG, Reply::Version { version, .. }) if version == "unknown"));
    assert_eq!(refused(ada.walk(1, "page").await), libc::EINVAL, "nothing was agreed on");
}

#[tokio::test]
async fn a_client_whose_rights_end_is_cut_off_even_while_it_waits() {
    let served = Served::new().await;
    let (mut ada, mut bob) = (served.client("ada").await, served.client("bob").await);
    ada.open(1, "door", libc::O_RDONLY).await;
    ada.send(77, &Request::Read { fid: 1, offset: 0, count: 100 }).await;
    served.parked(1).await;
    served.rights.cancel();
    assert_eq!(ada.stream.read(&mut [0]).await.unwrap_or(0), 0);
    served.parked(0).await;
    assert_eq!(bob.cat("page").await.unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn a_panic_is_the_error_of_one_request() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    assert_eq!(ada.cat("broken").await, Err(libc::EIO));
    assert_eq!(ada.cat("page").await.unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn what_is_no_message_ends_the_connection_and_what_is_malformed_only_itself() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    for (number, body, errno) in [(110_u8, &b"\x01"[..], libc::EINVAL), (250, b"", libc::EOPNOTSUPP)] {
        let mut message = (7 + body.len() as u32).to_le_bytes().to_vec();
        message.extend_from_slice(&[number, 5, 0]);
        message.extend_from_slice(body);
        ada.stream.write_all(&message).await.unwrap();
        assert_eq!(ada.next().await, (5, Reply::Lerror { errno: errno as u32 }));
    }
    for size in [0_u32, 6, 10 << 20, u32::MAX] {
        let mut eve = served.client("eve").await;
        eve.stream.write_all(&[&size.to_le_bytes()[..], b"\x64\xff\xff"].concat()).await.unwrap();
        assert_eq!(eve.stream.read(&mut [0]).await.unwrap_or(0), 0, "{size}");
    }
    assert_eq!(ada.cat("page").await.unwrap(), "one\ntwo\n");
}

#[tokio::test]
async fn waiting_requests_are_bounded_and_going_down_ends_them() {
    let served = Served::new().await;
    let mut ada = served.client("ada").await;
    ada.open(1, "door", libc::O_RDONLY).await;
    for tag in 1000..=1000 + 4096 {
        ada.send(tag, &Request::Read { fid: 1, offset: 0, count: 100 }).await;
    }
    let (tag, reply) = ada.next().await;
    assert_eq!((tag, refused(reply)), (1000 + 4096, libc::EAGAIN));
    served.parked(4096).await;
    let Served { listening, waits, .. } = served;
    drop(listening);
    for _ in 0..2000 {
        if waits.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("readers still wait");
}

#[test]
fn addresses_are_read_as_they_are_shown() {
    for text in ["unix:/run/acheron.sock", "tcp:127.0.0.1:564", "tcp:[::1]:564"] {
        assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
    }
    for text in ["", "unix:", "tcp:localhost", "127.0.0.1:564", "udp:127.0.0.1:1"] {
        assert_eq!(text.parse::<Address>().unwrap_err().code, Code::InvalidPayload, "{text}");
    }
}
