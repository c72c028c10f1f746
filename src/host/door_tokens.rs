//! `acheron token` on the host's side.

use serde::{Deserialize, Serialize};

use super::commands::{CommandSession, HostCommand};
use crate::policy::Principal;
use crate::state::tokens::TokenRow;
use acheron_base::{Error, Result};

pub const COMMAND: HostCommand = HostCommand { word: "token", serve: |session| Box::pin(serve(session)) };

/// What `acheron token` asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TokenRequest {
    /// Make one for an agent, or for the operator.
    Create {
        agent: Option<String>,
        label: String,
    },
    List,
    Revoke {
        id: String,
    },
}

/// What the host answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TokenAnswer {
    Created { token: String, row: TokenRow },
    Listed(Vec<TokenRow>),
    Revoked,
}

async fn serve(mut session: CommandSession) {
    let outcome = answer(&mut session).await;
    session.answer(outcome).await;
}

async fn answer(session: &mut CommandSession) -> Result<TokenAnswer> {
    let tokens = session.host.tokens.clone();
    match session.request()? {
        TokenRequest::Create { agent, label } => {
            let principal = match agent {
                Some(agent) => {
                    session.host.profiles.get(&agent).map_err(|_| no_agent(&agent))?;
                    Principal::Agent(agent)
                }
                None => Principal::Operator,
            };
            let (token, row) = tokens.create(&principal, &label).await?;
            Ok(TokenAnswer::Created { token, row })
        }
        TokenRequest::List => Ok(TokenAnswer::Listed(tokens.list().await?)),
        TokenRequest::Revoke { id } => tokens.revoke(&id).await.map(|()| TokenAnswer::Revoked),
    }
}

fn no_agent(agent: &str) -> Error {
    Error::not_found(format!("there is no agent {}", acheron_base::quoted(agent)))
}
