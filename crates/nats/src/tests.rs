//! The client against real servers.

mod conditions;
mod disks;
mod leases;
mod partition;
mod requests;
mod rights;
mod servers;

use crate::test_server::NatsServer;
use crate::{Link, LinkOptions};

/// A connection of a host to a server without users, with everything set up.
async fn joined(server: &NatsServer, node: &str) -> Link {
    let link = connected(&server.url(), node, None).await;
    link.ready().await.unwrap();
    link
}

async fn connected(url: &str, node: &str, seed: Option<&str>) -> Link {
    let (url, node, seed) = (url.to_owned(), node.to_owned(), seed.map(str::to_owned));
    Link::connect(&LinkOptions { url, node, seed, roots: None }).await.unwrap()
}
