//! The model gateway: a program that runs for an agent asks models through it, in whichever of four languages it speaks.
//!
//! [`Gateway::serve`] serves one listener for one agent and one program: whoever can connect to the listener is that program.
//! The host adds the key, names the model, keeps the agent's budget (reserved before, settled after), and writes down each
//! request. Languages are read and translated in `acheron-gateway`; here is what needs a clock, a network or a disk.
//! Used by `host` and `cli`. Uses `state`, `model`, `spec` and `agent`.

mod account;
mod client;
mod forward;
mod headers;
mod local;
mod recording;
mod request_line;
pub mod request_logs;
mod streams;
mod upstream;

use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::own_model::AgentModels;
use crate::spec::ModelKind;
use acheron_base::{Ids, Result};
use acheron_http::server::{ServedListener, serve};
use client::ClientGateway;
pub use client::GatewayTotals;
use recording::{RecordedRun, Recorder};
pub use request_logs::RequestLogs;

/// The size limit of a request: images and long histories are in it.
pub const MAX_BODY: usize = 32 << 20;

/// What the gateways of all programs share.
#[derive(Clone)]
pub struct Gateway {
    pub models: AgentModels,
    pub logs: Arc<RequestLogs>,
    /// New names, the clock and randomness.
    pub ids: Ids,
}

/// Who asks through a listener.
#[derive(Clone, Debug)]
pub struct GatewayClient {
    /// An agent of the host: its model answers, and its budget pays.
    pub agent: String,
    /// The name of the program, for the lines of `requests.ndjson`.
    pub program: String,
    /// A new file for each request with its answer. A model of kind `replay` gives these answers again.
    pub record: Option<PathBuf>,
}

impl Gateway {
    /// The name by which a program should know the model of its agent. A recording answers only who asks for the same model.
    /// Blocks.
    pub fn model_name(&self, agent: &str) -> Result<String> {
        let model = self.models.described(agent)?;
        let name = model.name.clone().filter(|_| model.kind != ModelKind::Replay);
        let recorded = || -> Result<Option<String>> {
            let Some(file) = model.name.as_deref().filter(|_| model.kind == ModelKind::Replay) else { return Ok(None) };
            let run = RecordedRun::read(file, &self.models.runtimes.file_text(file)?)?;
            Ok(run.model().map(str::to_owned))
        };
        Ok(match name {
            Some(name) => name,
            None => recorded()?.unwrap_or_else(|| "acheron".to_owned()),
        })
    }

    /// Serves a listener until the guard is dropped. Must be called within a runtime.
    pub fn serve(&self, listener: std::net::TcpListener, client: GatewayClient) -> Result<GatewayGuard> {
        self.models.described(&client.agent)?;
        let recorder = client.record.as_deref().map(Recorder::create).transpose()?;
        let served = Arc::new(ClientGateway::new(self.clone(), client, recorder)?);
        let listener = serve(listener, served.clone())?;
        Ok(GatewayGuard { served, _listener: listener })
    }
}

/// A gateway that is served. Dropping it closes the listener and its connections; what was used of models is settled.
pub struct GatewayGuard {
    served: Arc<ClientGateway>,
    _listener: ServedListener,
}

impl GatewayGuard {
    /// What was asked since the listener is served.
    pub fn totals(&self) -> GatewayTotals {
        self.served.totals()
    }
}
