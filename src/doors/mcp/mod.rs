//! The door for MCP clients: three tools on the tree, and its paths as resources that can be subscribed to.
//!
//! Both protocol worlds, with `initialize` and without, are served by `rmcp`; this folder says what the tools do. The
//! caller is fixed for a stream (`acheron mcp`) and comes with each request over HTTP (`http`). Used by the host, which opens it;
//! uses the tree of the caller only. Without the feature `door-mcp` it is left out.

mod calls;
mod changes;
mod handler;
#[cfg(feature = "door-http")]
mod http;
mod uri;

use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{DoorCaller, DoorContext};
use handler::TreeServer;

pub use calls::tool_schemas;
#[cfg(feature = "door-http")]
pub use http::DOOR;
#[cfg(feature = "door-http")]
use http::caller_of;

/// The longest line of a client.
const LONGEST_LINE: usize = 4 << 20;
/// How long a client may take for its first message.
const GREETING: Duration = Duration::from_secs(600);

/// Without the listener, requests come on streams only.
#[cfg(not(feature = "door-http"))]
fn caller_of(_extensions: &rmcp::model::Extensions) -> Option<DoorCaller> {
    None
}

/// Serves one client until it goes away, the host goes down, or its rights end.
pub async fn serve(
    context: DoorContext,
    caller: DoorCaller,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) {
    let (down, ended) = (context.down.clone(), caller.ended.clone());
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(LONGEST_LINE);
    let session = async {
        let greeted = tokio::time::timeout(GREETING, TreeServer::new(context, Some(caller)).serve(transport)).await;
        match greeted {
            Ok(Ok(running)) => _ = running.waiting().await, // however it ends, it is over
            Ok(Err(error)) => tracing::info!(%error, "an MCP client left before it had greeted"),
            Err(_) => tracing::info!("an MCP client said nothing"),
        }
    };
    tokio::select! {
        () = session => (),
        () = down.cancelled() => (),
        () = ended.cancelled() => (),
    }
}
