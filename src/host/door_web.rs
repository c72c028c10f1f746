//! `acheron open` on the host's side: where the page is served, and a code with which one browser can log in.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::commands::{CommandSession, HostCommand};
use crate::policy::Principal;
use acheron_base::{Error, Result};

pub const COMMAND: HostCommand = HostCommand { word: "open", serve: |session| Box::pin(serve(session)) };

/// The listeners that serve the page.
#[derive(Clone, Default)]
pub struct OpenPages(Arc<Mutex<Vec<String>>>);

impl OpenPages {
    /// Notes a listener, until the returned value is dropped.
    pub fn note(&self, url: &str) -> OpenPage {
        self.0.lock().push(url.to_owned());
        OpenPage { pages: self.clone(), url: url.to_owned() }
    }

    fn first(&self) -> Option<String> {
        self.0.lock().first().cloned()
    }
}

/// One listener that serves the page.
pub struct OpenPage {
    pages: OpenPages,
    url: String,
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        self.pages.0.lock().retain(|url| *url != self.url);
    }
}

/// What `acheron open` asks for: a login of an agent, or of the operator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenPageRequest {
    pub agent: Option<String>,
}

/// The address that logs a browser in once; nothing if no listener serves the page.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenPageAnswer {
    pub url: Option<String>,
}

async fn serve(mut session: CommandSession) {
    let outcome = answer(&mut session);
    session.answer(outcome).await;
}

fn answer(session: &mut CommandSession) -> Result<OpenPageAnswer> {
    let OpenPageRequest { agent } = session.request()?;
    let principal = match agent {
        Some(agent) => {
            let unknown = || Error::not_found(format!("there is no agent {}", acheron_base::quoted(&agent)));
            session.host.profiles.get(&agent).map_err(|_| unknown())?;
            Principal::Agent(agent)
        }
        None => Principal::Operator,
    };
    let Some(page) = session.host.open_pages.first() else { return Ok(OpenPageAnswer { url: None }) };
    let code = session.host.tokens.invite(&principal)?;
    Ok(OpenPageAnswer { url: Some(format!("{page}/login?code={code}")) })
}
