//! `acheron mcp`.

use clap::Args;

use super::CommandResult;
use super::host_connection::HostArgs;
use super::stdio_door::StdioDoor;
use crate::host::door_mcp::McpRequest;

/// Serve the tree to an MCP client on standard input and output: `claude mcp add acheron -- acheron mcp`.
///
/// The client has three tools, file_read, file_write and file_list, and the paths of the tree as resources that it can subscribe
/// to. It joins the host of the state directory; if there is none, the host runs within this command, without a mount, until the
/// last client has gone.
#[derive(Args)]
pub struct McpArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Have the rights of this agent [default: those of the operator]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

impl McpArgs {
    pub fn run(self) -> CommandResult {
        StdioDoor { host: self.host, word: "mcp", request: McpRequest { agent: self.agent } }.run()
    }
}
