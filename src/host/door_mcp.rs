//! `acheron mcp` on the host's side: after the request, the connection speaks MCP.

use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use super::commands::{CommandSession, HostCommand};
use crate::doors::{DoorCaller, mcp};
use crate::policy::Principal;
use acheron_base::{Error, Result, quoted};

pub const COMMAND: HostCommand = HostCommand { word: "mcp", serve: |session| Box::pin(serve(session)) };

/// What `acheron mcp` asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpRequest {
    /// The agent with whose rights the client calls; otherwise the operator's.
    pub agent: Option<String>,
}

/// From now on the connection speaks MCP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpBegun {
    pub principal: String,
}

async fn serve(mut session: CommandSession) {
    let principal = match principal(&mut session) {
        Ok(principal) => principal,
        Err(error) => return session.refuse(error).await,
    };
    let context = match session.host.door_context(session.down.clone()) {
        Ok(context) => context,
        Err(error) => return session.refuse(error).await,
    };
    if session.lines.send(&McpBegun { principal: principal.to_string() }).await.is_err() {
        return; // it has gone
    }
    let CommandSession { lines, host, .. } = session;
    // The connection must not keep the host.
    drop(host);
    let (stream, unread) = lines.into_stream();
    let (read, write) = stream.into_split();
    mcp::serve(context, DoorCaller::peer(principal), std::io::Cursor::new(unread).chain(read), write).await;
}

fn principal(session: &mut CommandSession) -> Result<Principal> {
    let McpRequest { agent } = session.request()?;
    match agent {
        None => Ok(Principal::Operator),
        Some(agent) => match session.host.profiles.get(&agent) {
            Ok(_) => Ok(Principal::Agent(agent)),
            Err(_) => Err(Error::not_found(format!("there is no agent {}", quoted(&agent)))),
        },
    }
}
