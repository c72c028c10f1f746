//! The commands that a connection of `host.sock` can begin with. A command is one line here and one file of its own.

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "door-http")]
use super::door_listener;
#[cfg(feature = "door-9p")]
use super::ninep_listener;
use super::socket::Lines;
use super::{HostState, door_tokens, exec_network, growth, overview, runs, view_commands};
use acheron_base::{Error, Result, quoted};

/// Every command.
const COMMANDS: &[HostCommand] = &[
    runs::COMMAND,
    exec_network::COMMAND,
    door_tokens::COMMAND,
    growth::COMMAND,
    overview::COMMAND,
    view_commands::COMMAND,
    #[cfg(feature = "door-mcp")]
    super::door_mcp::COMMAND,
    #[cfg(feature = "door-acp")]
    super::door_acp::COMMAND,
    #[cfg(feature = "door-http")]
    door_listener::COMMAND,
    #[cfg(feature = "door-9p")]
    ninep_listener::COMMAND,
    #[cfg(feature = "door-web")]
    super::door_web::COMMAND,
];

/// One command: its word, and what serves a connection that begins with it.
pub struct HostCommand {
    pub word: &'static str,
    pub serve: fn(CommandSession) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// A connection that has begun with `{"<word>": request}`. The peer is the operator.
pub struct CommandSession {
    pub host: Arc<HostState>,
    pub request: Value,
    /// A descriptor that came with it.
    pub file: Option<OwnedFd>,
    pub lines: Lines,
    /// Cancelled when the host goes down.
    pub down: CancellationToken,
}

impl CommandSession {
    /// The request in the form that the command wants.
    pub fn request<T: DeserializeOwned>(&mut self) -> Result<T> {
        serde_json::from_value(self.request.take())
            .map_err(|err| Error::invalid(format!("the host is of another version: {err}")))
    }

    /// Says why the command is not carried out.
    pub async fn refuse(&mut self, error: Error) {
        refuse(&mut self.lines, error).await;
    }

    /// Sends the outcome of a command that ends with it.
    pub async fn answer(&mut self, outcome: Result<impl Serialize>) {
        match outcome {
            Ok(answer) => _ = self.lines.send(&answer).await, // whoever has gone need not be told
            Err(error) => self.refuse(error).await,
        }
    }
}

/// Serves one connection until its end, or until the host goes down.
pub async fn serve(host: Arc<HostState>, mut lines: Lines, down: CancellationToken) {
    let (first, file) = match lines.next::<Value>().await {
        Ok(Some(first)) => first,
        Ok(None) => return,
        Err(error) => return refuse(&mut lines, error).await,
    };
    let found = match first {
        Value::Object(first) if first.len() == 1 => first.into_iter().next(),
        _ => None,
    };
    let Some((word, request)) = found else {
        return refuse(&mut lines, Error::invalid("the first message is a command: {\"<word>\": {…}}")).await;
    };
    match COMMANDS.iter().find(|command| command.word == word) {
        Some(command) => (command.serve)(CommandSession { host, request, file, lines, down }).await,
        None => {
            let said = format!("the host knows no command {}; it is of another version", quoted(&word));
            refuse(&mut lines, Error::unknown_operation(said)).await;
        }
    }
}

pub async fn refuse(lines: &mut Lines, error: Error) {
    // Whoever has gone need not be told.
    _ = lines.send(&serde_json::json!({ "refused": error })).await;
}
