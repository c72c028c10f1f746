//! What goes through: tunnels, and single requests of plain HTTP.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::TcpStream;

use super::ProxyConnection;
use acheron_proxy::{Destination, FirstBytes, HostRefusal};

/// How long the beginning of TLS may take to be whole.
const HELLO_TIME: Duration = Duration::from_secs(60);
/// A fatal alert: unrecognized name.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

impl ProxyConnection {
    pub(super) async fn tunnel(
        mut self,
        mut client: TcpStream,
        mut server: TcpStream,
        to: Destination,
        rest: Vec<u8>,
    ) -> io::Result<()> {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
        let mut first = rest;
        if let Some(refusal) = begin(&mut client, &mut server, &to, &mut first).await? {
            self.refused(&to, refusal);
            client.write_all(&ALERT).await?;
            return client.shutdown().await;
        }
        server.write_all(&first).await?;
        let address = server.peer_addr()?.ip();
        let mut relay = std::pin::pin!(copy_bidirectional(&mut client, &mut server));
        loop {
            tokio::select! {
                ended = &mut relay => return ended.map(|_| ()),
                changed = self.changes.changed() => {
                    let rules = self.policy.rules();
                    let lost = rules.check_host(&to).and_then(|()| rules.check_address(&to, address)).err();
                    if let Some(refusal) = lost {
                        self.refused(&to, refusal);
                        return Ok(());
                    }
                    if changed.is_err() {
                        return Ok(()); // nobody serves it any more
                    }
                }
            }
        }
    }
}

/// Reads from the client until its first bytes are decided on, into `first`. Where the server speaks first, as in SSH, it is
/// heard meanwhile.
async fn begin(
    client: &mut TcpStream,
    server: &mut TcpStream,
    to: &Destination,
    first: &mut Vec<u8>,
) -> io::Result<Option<HostRefusal>> {
    let until = tokio::time::Instant::now() + HELLO_TIME;
    let mut heard = vec![0; 16 << 10];
    let mut server_open = true;
    loop {
        match FirstBytes::check(to, first) {
            FirstBytes::Pass => return Ok(None),
            FirstBytes::Refused(refusal) => return Ok(Some(refusal)),
            FirstBytes::Pending => (),
        }
        tokio::select! {
            read = client.read_buf(first) => {
                if read? == 0 {
                    let why = format!("{to}: TLS is broken");
                    return Ok((!first.is_empty()).then_some(HostRefusal { why, allow: None }));
                }
            }
            read = server.read(&mut heard), if server_open => {
                let count = read?;
                server_open = count > 0;
                client.write_all(&heard[..count]).await?;
            }
            () = tokio::time::sleep_until(until), if !first.is_empty() => {
                let why = format!("{to}: TLS was not begun in time");
                return Ok(Some(HostRefusal { why, allow: None }));
            }
        }
    }
}

/// One request and its answer. The connection ends with the answer, so that each request is checked by itself.
pub(super) async fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    head: &[u8],
    body: u64,
    mut rest: Vec<u8>,
) -> io::Result<()> {
    server.write_all(head).await?;
    let here = usize::try_from(body).unwrap_or(usize::MAX).min(rest.len());
    rest.truncate(here);
    server.write_all(&rest).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let mut left = (&mut from_client).take(body - here as u64);
        copy(&mut left, &mut to_server).await?;
        // What comes after is another request, which is not read.
        std::future::pending::<io::Result<()>>().await
    };
    let down = async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::select! {
        ended = down => ended,
        failed = up => failed,
    }
}
