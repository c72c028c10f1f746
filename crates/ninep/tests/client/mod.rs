//! A client that sends what it is told, in the order in which it is told, and reads replies one by one.

use std::path::Path;

use acheron_ninep::message::{HEAD, NO_FID, NO_TAG, Reply, Request, dir_entries};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

pub struct Client {
    pub stream: UnixStream,
    tag: u16,
}

impl Client {
    /// Connects, agrees on the version, and attaches fid 0 as `user`.
    pub async fn attach(path: &Path, user: &str) -> Client {
        let mut client = Client { stream: UnixStream::connect(path).await.unwrap(), tag: 0 };
        let version = Request::Version { msize: 65536, version: "9P2000.L".to_owned() };
        client.send(NO_TAG, &version).await;
        let (tag, reply) = client.next().await;
        assert_eq!((tag, reply), (NO_TAG, Reply::Version { msize: 65536, version: "9P2000.L".to_owned() }));
        let attach = Request::Attach { fid: 0, auth_fid: NO_FID, user: user.to_owned(), tree: String::new(), uid: 0 };
        assert!(matches!(client.ask(attach).await, Reply::Attach { .. }));
        client
    }

    pub async fn send(&mut self, tag: u16, request: &Request) {
        self.stream.write_all(&request.write(tag)).await.unwrap();
    }

    pub async fn next(&mut self) -> (u16, Reply) {
        let mut head = [0; HEAD];
        self.stream.read_exact(&mut head).await.unwrap();
        let size = u32::from_le_bytes(head[..4].try_into().unwrap()) as usize;
        let mut body = vec![0; size - HEAD];
        self.stream.read_exact(&mut body).await.unwrap();
        let tag = u16::from_le_bytes([head[5], head[6]]);
        (tag, Reply::read(head[4], body.into()).expect("a known reply").expect("a whole reply"))
    }

    /// Sends a request and reads the next reply, which must be to it.
    pub async fn ask(&mut self, request: Request) -> Reply {
        self.tag = (self.tag + 1) % 1000;
        let tag = self.tag;
        self.send(tag, &request).await;
        let (answered, reply) = self.next().await;
        assert_eq!(answered, tag);
        reply
    }

    pub async fn walk(&mut self, new_fid: u32, path: &str) -> Reply {
        let names = path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        self.ask(Request::Walk { fid: 0, new_fid, names }).await
    }

    pub async fn open(&mut self, fid: u32, path: &str, flags: i32) -> Reply {
        match self.walk(fid, path).await {
            Reply::Walk { .. } => self.ask(Request::Lopen { fid, flags: flags as u32 }).await,
            refused => refused,
        }
    }

    pub async fn write(&mut self, fid: u32, text: &str) -> Reply {
        self.ask(Request::Write { fid, offset: 0, data: Bytes::copy_from_slice(text.as_bytes()) }).await
    }

    pub async fn clunk(&mut self, fid: u32) -> Reply {
        self.ask(Request::Clunk { fid }).await
    }

    /// All of a file, as `cat` reads it; or the number of the refusal.
    pub async fn cat(&mut self, path: &str) -> Result<String, i32> {
        const FID: u32 = 900;
        if let Reply::Lerror { errno } = self.open(FID, path, libc::O_RDONLY).await {
            self.clunk(FID).await;
            return Err(errno as i32);
        }
        let mut all = Vec::new();
        let read = loop {
            match self.ask(Request::Read { fid: FID, offset: all.len() as u64, count: 7 }).await {
                Reply::Read { data } if data.is_empty() => break Ok(()),
                Reply::Read { data } => all.extend_from_slice(&data),
                Reply::Lerror { errno } => break Err(errno as i32),
                other => panic!("{other:?}"),
            }
        };
        self.clunk(FID).await;
        read.map(|()| String::from_utf8(all).unwrap())
    }

    /// The names in a directory, a few at a time.
    pub async fn ls(&mut self, path: &str) -> Vec<String> {
        const FID: u32 = 901;
        assert!(matches!(self.open(FID, path, libc::O_RDONLY).await, Reply::Lopen { .. }));
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let reply = self.ask(Request::Readdir { fid: FID, offset, count: 100 }).await;
            let Reply::Readdir { entries } = reply else { panic!("{reply:?}") };
            let entries = dir_entries(entries).unwrap();
            let Some(last) = entries.last() else { break };
            offset = last.offset;
            names.extend(entries.into_iter().map(|entry| entry.name));
        }
        self.clunk(FID).await;
        names
    }
}

/// The number of a refusal.
pub fn refused(reply: Reply) -> i32 {
    match reply {
        Reply::Lerror { errno } => errno as i32,
        other => panic!("not refused: {other:?}"),
    }
}
