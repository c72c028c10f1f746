//! `acheron serve --9p` on the host's side: the listener is open as long as the connection of the command.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::caller_identity::CallerIdentity;
use super::commands::{CommandSession, HostCommand};
use super::door_listener::Serving;
use crate::doors::ninep::DoorAttach;
use crate::policy::PrincipalCaller;
use acheron_base::{Error, Result};
use acheron_fuse::Identify;
use acheron_ninep::{Address, Listening, Server, listen};

pub const COMMAND: HostCommand = HostCommand { word: "serve_9p", serve: |session| Box::pin(serve(session)) };

/// The request: where to listen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeNinep {
    pub listen: String,
}

async fn serve(mut session: CommandSession) {
    let listening = match open(&mut session).await {
        Ok(listening) => listening,
        Err(error) => return session.refuse(error).await,
    };
    let CommandSession { mut lines, down, host, .. } = session;
    drop(host);
    tracing::info!(address = %listening.address, "a listener for 9P is open");
    if lines.send(&Serving { url: listening.address.to_string() }).await.is_ok() {
        tokio::select! {
            // The command says nothing more: this is its end.
            _ = lines.next::<Value>() => (),
            () = down.cancelled() => (),
        }
    }
}

async fn open(session: &mut CommandSession) -> Result<Listening> {
    let address: Address = session.request::<ServeNinep>()?.listen.parse()?;
    if matches!(address, Address::Tcp(address) if !address.ip().is_loopback()) {
        let said = "9P has no encryption, so that it is served on loopback only; tunnel it, or use /fs over TLS";
        return Err(Error::forbidden(said));
    }
    let context = session.host.door_context(session.down.clone())?;
    let tree = context.tree.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
    let identity = CallerIdentity::default();
    let recognise =
        Arc::new(move |peer: &acheron_ninep::Peer| identity.caller(peer.uid, peer.gid, peer.pid).principal().clone());
    listen(Arc::new(Server::new(tree, Arc::new(DoorAttach { context, recognise }))), &address).await
}
