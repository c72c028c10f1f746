//! A connection of `host.sock`: JSON objects, one per line, each perhaps with a descriptor.

use std::os::fd::{AsFd, OwnedFd};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;

use acheron_base::{Error, Result};

/// The longest line: a request has paths and names.
const LONGEST: usize = 1 << 20;

pub struct Lines {
    stream: UnixStream,
    unread: Vec<u8>,
    file: Option<OwnedFd>,
}

impl Lines {
    pub fn new(stream: UnixStream) -> Lines {
        Lines { stream, unread: Vec::new(), file: None }
    }

    /// The next message, with the descriptor that came with it; `None` at the end. May be dropped and called again.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<(T, Option<OwnedFd>)>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                let message = serde_json::from_slice(&line)
                    .map_err(|err| Error::invalid(format!("this message is not understood: {err}")))?;
                return Ok(Some((message, self.file.take())));
            }
            if self.unread.len() > LONGEST {
                return Err(Error::invalid("a message is longer than 1 MiB"));
            }
            self.stream.readable().await?;
            let mut room = vec![0; 1 << 16];
            let received = self
                .stream
                .try_io(Interest::READABLE, || acheron_sandbox::receive_with(self.stream.as_fd(), &mut room));
            match received {
                Ok((0, _)) => return Ok(None),
                Ok((count, file)) => {
                    self.unread.extend_from_slice(&room[..count]);
                    self.file = file.or(self.file.take());
                }
                Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => (),
                Err(err) if err.kind() == std::io::ErrorKind::ConnectionReset => return Ok(None),
                Err(err) => return Err(err.into()),
            }
        }
    }

    /// The connection itself, and what was read of it beyond the last message: for a command that goes on in another language.
    pub fn into_stream(self) -> (UnixStream, Vec<u8>) {
        (self.stream, self.unread)
    }

    pub async fn send(&mut self, message: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(message).map_err(|err| Error::internal(err.to_string()))?;
        line.push(b'\n');
        let mut rest = &line[..];
        while !rest.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(err) if err.kind() == std::io::ErrorKind::WouldBlock => (),
                Err(err) => return Err(err.into()),
            }
        }
        Ok(())
    }
}
