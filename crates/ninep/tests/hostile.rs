//! Clients that do not keep the protocol: random and damaged messages, many connections, half-open ones, one that never
//! reads. The server lives, and serves the others.

#[allow(dead_code)] // shared with the other tests
mod client;

use std::sync::Arc;
use std::time::Duration;

use acheron_base::Result;
use acheron_ninep::message::{NO_FID, NO_TAG, Request};
use acheron_ninep::{Address, Attach, AttachRequest, Attached, Listening, Server, listen};
use acheron_vfs::{Access, AccessControl, Answer, Caller, Listing, Tree, live, text, waiting};
use bytes::Bytes;
use client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

struct Everybody;

impl AccessControl for Everybody {
    fn check(&self, _caller: &Caller, _action: Access, _path: &str) -> Result<()> {
        Ok(())
    }

    fn sees(&self, _caller: &Caller, _path: &str) -> bool {
        true
    }
}

#[async_trait::async_trait]
impl Attach for Everybody {
    async fn attach(&self, _request: AttachRequest) -> Result<Attached> {
        Ok(Attached { caller: Caller::named("somebody"), ended: CancellationToken::new() })
    }
}

async fn served() -> (tempfile::TempDir, std::path::PathBuf, Listening) {
    let root = Listing::default()
        .file("page", text("one\n"))
        .file("large", live(|_| Ok(vec![b'x'; 1 << 20].into())))
        .file("never", waiting(|_| Answer::later(std::future::pending())))
        .dir("sub", Listing::default().file("page", text("two\n")));
    let tree = Tree::new(Arc::new(root), Arc::new(Everybody));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tree.sock");
    let server = Arc::new(Server::new(tree, Arc::new(Everybody)));
    let listening = listen(server, &Address::Unix(path.clone())).await.unwrap();
    (folder, path, listening)
}

/// A generator of numbers: the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// A message that is nearly right.
fn message(random: &mut Numbers) -> Vec<u8> {
    let (fid, new_fid) = (random.next(6) as u32, random.next(6) as u32);
    let name = ["page", "sub", "..", ".", "", "never", "large", "a/b", "x\0"][random.next(9) as usize].to_owned();
    let request = match random.next(14) {
        0 => Request::Attach { fid, auth_fid: NO_FID, user: name, tree: String::new(), uid: 0 },
        1 | 2 => Request::Walk { fid, new_fid, names: vec![name; random.next(4) as usize] },
        3 => Request::Lopen { fid, flags: random.next(4) as u32 },
        4 => Request::Read { fid, offset: random.next(1 << 40), count: random.next(u64::from(u32::MAX)) as u32 },
        5 => Request::Write { fid, offset: random.next(100), data: Bytes::from(vec![0; random.next(1000) as usize]) },
        6 => Request::Readdir { fid, offset: random.next(5), count: random.next(500) as u32 },
        7 => Request::Clunk { fid },
        8 => Request::Flush { old_tag: random.next(300) as u16 },
        9 => Request::Getattr { fid, mask: u64::MAX },
        10 => Request::Remove { fid },
        11 => Request::Renameat { directory: fid, name: name.clone(), new_directory: new_fid, new_name: name },
        12 => Request::Lcreate { fid, name, flags: random.next(4) as u32, mode: 0, gid: 0 },
        _ => Request::Setattr {
            fid,
            valid: random.next(0x200) as u32,
            mode: 0,
            uid: 0,
            gid: 0,
            size: u64::MAX,
            atime: 0,
            atime_ns: 0,
            mtime: 0,
            mtime_ns: 0,
        },
    };
    let mut message = request.write(random.next(300) as u16);
    // Bits of the body are turned over now and then; the size stays, so that the connection does.
    if random.next(4) == 0 && message.len() > 7 {
        for _ in 0..=random.next(3) {
            let at = 4 + random.next(message.len() as u64 - 4) as usize;
            message[at] ^= 1 << random.next(8);
        }
    }
    message
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_damaged_messages_break_nothing() {
    let (_folder, path, _listening) = served().await;
    let mut random = Numbers(20_261_118);
    for _ in 0..50 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let version = Request::Version { msize: 8192, version: "9P2000.L".to_owned() };
        stream.write_all(&version.write(NO_TAG)).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let reading = tokio::spawn(async move { while matches!(reader.read(&mut [0; 65536]).await, Ok(1..)) {} });
        for _ in 0..2000 {
            // A version that came about by damage ends the session; what follows is refused or served alike.
            if writer.write_all(&message(&mut random)).await.is_err() {
                break;
            }
        }
        drop(writer);
        reading.await.unwrap();
    }
    let mut ada = Client::attach(&path, "ada").await;
    assert_eq!(ada.cat("page").await.unwrap(), "one\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_say_nothing_or_never_read_keep_nobody_out() {
    let (_folder, path, _listening) = served().await;
    let mut ada = Client::attach(&path, "ada").await;
    // Half a message, and nothing more.
    let mut silent = Vec::new();
    for n in 0..100_u8 {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(&[0x13, 0, 0, 0, 100][..usize::from(n % 6)]).await.unwrap();
        silent.push(stream);
    }
    // Asks for a hundred megabytes and reads none of them.
    let mut deaf = Client::attach(&path, "eve").await;
    deaf.open(1, "large", libc::O_RDONLY).await;
    for tag in 0..2000 {
        let read = Request::Read { fid: 1, offset: 0, count: 60_000 };
        let sent = tokio::time::timeout(Duration::from_millis(200), deaf.send(tag, &read)).await;
        if sent.is_err() {
            break; // it is not read from any more, either
        }
    }
    for _ in 0..20 {
        assert_eq!(ada.cat("page").await.unwrap(), "one\n");
        assert_eq!(ada.ls("").await, [".", "..", "large", "never", "page", "sub"]);
    }
    let mut bob = Client::attach(&path, "bob").await;
    assert_eq!(bob.cat("sub/page").await.unwrap(), "two\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_connections_those_that_are_served_leave_room_when_they_end() {
    let (_folder, path, _listening) = served().await;
    let mut open = Vec::new();
    for _ in 0..1000 {
        match tokio::time::timeout(Duration::from_millis(50), UnixStream::connect(&path)).await {
            Ok(Ok(stream)) => open.push(stream),
            _ => break, // the rest wait in the queue of the system
        }
    }
    assert!(open.len() >= 256, "{}", open.len());
    drop(open);
    let mut ada = tokio::time::timeout(Duration::from_secs(60), Client::attach(&path, "ada")).await.expect("a place");
    assert_eq!(ada.cat("page").await.unwrap(), "one\n");
}
