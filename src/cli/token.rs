//! `acheron token`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::host_connection::HostArgs;
use super::{CommandResult, say};
use crate::host::door_tokens::{TokenAnswer, TokenRequest};
use acheron_base::Error;

/// Make, list and revoke the tokens by which clients of `acheron serve` are known.
///
/// Whoever shows a token has the rights of the agent, or of the operator, that it was made for. The host keeps only its hash, so
/// it is shown once. A token that is revoked ends at once, with whatever is under way for it.
#[derive(Args)]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Make a token; it alone is printed on standard output.
#[derive(Args)]
struct CreateArgs {
    /// For this agent
    #[arg(long, value_name = "ID", required_unless_present = "operator")]
    agent: Option<String>,
    /// For the operator, who may do everything
    #[arg(long, conflicts_with = "agent")]
    operator: bool,
    /// A word to recognise it by
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    #[command(flatten)]
    host: HostArgs,
}

/// List the tokens, without their secrets.
#[derive(Args)]
struct ListArgs {
    /// Print one JSON object per token
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// Take a token back.
#[derive(Args)]
struct RevokeArgs {
    /// The id of the token, as `acheron token list` shows it
    id: String,
    #[command(flatten)]
    host: HostArgs,
}

impl TokenArgs {
    pub fn run(self) -> CommandResult {
        let (host, request, json) = match self.command {
            TokenCommand::Create(it) => (it.host, TokenRequest::Create { agent: it.agent, label: it.label }, false),
            TokenCommand::List(it) => (it.host, TokenRequest::List, it.json),
            TokenCommand::Revoke(it) => (it.host, TokenRequest::Revoke { id: it.id }, false),
        };
        let (_connection, answer) = host.ask("token", &request)?;
        match answer {
            TokenAnswer::Created { token, row } => {
                say(&format!("{token}\n"));
                eprintln!("{} for {}; it is not shown again", row.id, row.principal);
            }
            TokenAnswer::Listed(rows) if json => {
                for row in rows {
                    let row = serde_json::to_string(&row).map_err(|err| Error::internal(err.to_string()))?;
                    say(&format!("{row}\n"));
                }
            }
            TokenAnswer::Listed(rows) => {
                for row in rows {
                    say(&format!("{}  {:<20}  {}\n", row.id, row.principal, row.label));
                }
            }
            TokenAnswer::Revoked => (),
        }
        Ok(ExitCode::SUCCESS)
    }
}
