//! `acheron serve` on the host's side: the listener is open as long as the connection of the command.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::commands::{CommandSession, HostCommand};
use crate::doors::listener::{self, HttpDoor, ListenOptions, OpenListener};
use acheron_base::Result;

pub const COMMAND: HostCommand = HostCommand { word: "serve", serve: |session| Box::pin(serve(session)) };

/// Every door over HTTP that this program was built with.
fn doors() -> Vec<HttpDoor> {
    vec![
        crate::doors::fs::DOOR,
        crate::doors::approve::DOOR,
        #[cfg(feature = "door-openai")]
        crate::doors::openai::DOOR,
        #[cfg(feature = "door-metrics")]
        crate::doors::metrics::DOOR,
        #[cfg(feature = "door-mcp")]
        crate::doors::mcp::DOOR,
        #[cfg(feature = "door-web")]
        crate::doors::web::DOOR,
    ]
}

/// The listener is open.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serving {
    pub url: String,
}

async fn serve(mut session: CommandSession) {
    let opened = match open(&mut session) {
        Ok(opened) => opened,
        Err(error) => return session.refuse(error).await,
    };
    let CommandSession { mut lines, down, host, .. } = session;
    #[cfg(feature = "door-web")]
    let _open = opened.doors.contains(&"web").then(|| host.open_pages.note(&opened.url));
    let approvals = host.context.approvals.clone();
    if opened.doors.contains(&crate::doors::approve::DOOR.flag) {
        approvals.set_listener(Some(opened.url.clone()));
    }
    drop(host);
    tracing::info!(url = opened.url, "a listener is open");
    if lines.send(&Serving { url: opened.url.clone() }).await.is_ok() {
        tokio::select! {
            // The command says nothing more: this is its end.
            _ = lines.next::<Value>() => (),
            () = down.cancelled() => (),
        }
    }
    approvals.clear_listener(&opened.url);
    opened.close().await;
}

fn open(session: &mut CommandSession) -> Result<OpenListener> {
    let options = session.request::<ListenOptions>()?;
    listener::open(session.host.door_context(session.down.clone())?, &doors(), &options)
}
