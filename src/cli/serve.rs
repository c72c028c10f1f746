//! `acheron serve`.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::host_connection::HostArgs;
use super::{CommandResult, say};
use crate::doors::listener::ListenOptions;
use crate::host::door_listener::Serving;
#[cfg(feature = "door-9p")]
use crate::host::ninep_listener::ServeNinep;
use acheron_base::Error;

/// Serve the tree over HTTP, as long as this command runs: /fs/<path>, an OpenAI-compatible API at /v1, Prometheus metrics,
/// MCP at /mcp, and a page for people at /.
///
/// Whoever asks shows a token of `acheron token create`, and has the rights of the agent or the operator that it was made for.
/// Without a flag, every door is served. Other machines may connect only over TLS, and if --public says so.
///
/// It joins the host of the state directory, or starts one, which ends with the last command.
#[derive(Args)]
pub struct ServeArgs {
    /// The address to listen at; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8377")]
    listen: String,
    /// Serve /fs/<path>: the tree itself
    #[arg(long)]
    fs: bool,
    /// Serve /approve: the pages behind links that were sent out with requests for approval
    #[arg(long)]
    approve: bool,
    /// Serve /v1: agents as models of an OpenAI-compatible API
    #[cfg(feature = "door-openai")]
    #[arg(long)]
    openai: bool,
    /// Serve /metrics for Prometheus
    #[cfg(feature = "door-metrics")]
    #[arg(long)]
    metrics: bool,
    /// Serve the tree over 9P2000.L instead: unix:PATH for processes of this user, or tcp:127.0.0.1:PORT for clients that name a
    /// token as the tree (aname)
    #[cfg(feature = "door-9p")]
    #[arg(long = "9p", value_name = "ADDRESS", conflicts_with_all = ["listen", "fs", "tls_cert", "tls_key", "name", "public"])]
    ninep: Option<String>,
    /// Serve /mcp for MCP clients (streamable HTTP)
    #[cfg(feature = "door-mcp")]
    #[arg(long)]
    mcp: bool,
    /// Serve the page, and /fs which it uses; `acheron open` logs a browser in
    #[cfg(feature = "door-web")]
    #[arg(long)]
    web: bool,
    /// The certificates for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A name of this machine that requests may name; may be given several times
    #[arg(long, value_name = "HOST")]
    name: Vec<String>,
    /// Let other machines connect
    #[arg(long)]
    public: bool,
    #[command(flatten)]
    host: HostArgs,
}

impl ServeArgs {
    /// The doors that were chosen.
    fn doors(&self) -> Vec<String> {
        let flags = [
            ("fs", self.fs),
            ("approve", self.approve),
            #[cfg(feature = "door-openai")]
            ("openai", self.openai),
            #[cfg(feature = "door-metrics")]
            ("metrics", self.metrics),
            #[cfg(feature = "door-mcp")]
            ("mcp", self.mcp),
            #[cfg(feature = "door-web")]
            ("web", self.web),
        ];
        #[cfg(feature = "door-web")]
        let flags = flags.map(|(flag, chosen)| (flag, chosen || flag == "fs" && self.web));
        flags.into_iter().filter(|(_, chosen)| *chosen).map(|(flag, _)| flag.to_owned()).collect()
    }

    #[cfg(feature = "door-9p")]
    fn serve_9p(&self, address: &str) -> CommandResult {
        // The host has another working directory.
        let listen = match address.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            Some(path) => format!("unix:{}", std::path::absolute(path)?.display()),
            None => address.to_owned(),
        };
        let (mut connection, Serving { url }) = self.host.ask("serve_9p", &ServeNinep { listen })?;
        say(&format!("{url}\n"));
        connection.next::<Value>()?;
        Err(Error::unavailable("the host has ended, and the listener with it").into())
    }

    pub fn run(self) -> CommandResult {
        let absolute = |file: &Option<PathBuf>| file.as_deref().map(std::path::absolute).transpose();
        let options = ListenOptions {
            listen: self.listen.clone(),
            tls: absolute(&self.tls_cert)?.zip(absolute(&self.tls_key)?),
            names: self.name.clone(),
            public: self.public,
            doors: self.doors(),
        };
        #[cfg(feature = "door-9p")]
        if let Some(address) = &self.ninep {
            return self.serve_9p(address);
        }
        let (mut connection, Serving { url }) = self.host.ask("serve", &options)?;
        say(&format!("{url}\n"));
        connection.next::<Value>()?;
        Err(Error::unavailable("the host has ended, and the listener with it").into())
    }
}
