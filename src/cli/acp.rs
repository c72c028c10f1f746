//! `acheron acp`.

use clap::Args;

use super::CommandResult;
use super::host_connection::HostArgs;
use super::stdio_door::StdioDoor;
use crate::host::door_acp::AcpRequest;

/// Serve an agent to an editor on standard input and output, in the Agent Client Protocol: for Zed, JetBrains and Neovim.
///
/// A session of the editor is a conversation of the agent, a prompt is a turn; thoughts, calls and the reply are shown as they
/// come. Several editors may talk to one agent; its turns run one after another. It joins the host of the state directory; if
/// there is none, the host runs within this command, without a mount, until the last client has gone.
#[derive(Args)]
pub struct AcpArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Talk to this agent [default: the default agent of the host]
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

impl AcpArgs {
    pub fn run(self) -> CommandResult {
        StdioDoor { host: self.host, word: "acp", request: AcpRequest { agent: self.agent } }.run()
    }
}
