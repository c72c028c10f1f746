//! The network of a sandbox that `acheron exec` has started: the host serves its proxy as long as the connection is open.

use std::net::TcpListener;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::commands::{CommandSession, HostCommand};
use super::network;
use acheron_base::Error;

pub const COMMAND: HostCommand = HostCommand { word: "network", serve: |session| Box::pin(serve(session)) };

/// Comes with the listener in a sandbox of this agent at which its proxy to the network answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkRequest {
    pub agent: String,
}

async fn serve(mut session: CommandSession) {
    let request = session.request::<NetworkRequest>();
    let listener = session.file.take().ok_or_else(|| Error::invalid("the request comes without its listener"));
    let served =
        request.and_then(|request| network::serve(&session.host, &request.agent, TcpListener::from(listener?)));
    let _proxy = match served {
        Ok(proxy) => proxy,
        Err(error) => return session.refuse(error).await,
    };
    tokio::select! {
        _ = session.lines.next::<Value>() => (),
        () = session.down.cancelled() => (),
    }
}
