//! Builds the services of one agent. Each is handed a small struct of exactly what it uses.
//!
//! This is the only place that knows all services, and only the host uses it. A new service is a line in [`all`]; one that
//! needs something of the host gets a file here that makes its arguments from [`AgentEnv`].

mod agents;
pub mod chat;
mod dm;
mod env;
mod mail;
mod mcp;
mod memory;
mod mounts;
mod phases;
pub mod programs;
mod project_pages;
mod prompts;
mod recall;
mod sandbox_rules;
mod search_code;
mod shared;
mod surroundings;
mod web_search;

use std::sync::Arc;

use crate::host::HostState;
use crate::policy::Principal;
use crate::service::{Serve, typed};
use crate::services;
use crate::services::mail::{Address, Mailbox as _};
use crate::services::queues::Queue as _;
use crate::services::symbols::service::Symbols;
use crate::services::terminal::{Terminal, TerminalParts};
use crate::spec::ServiceScope;
use acheron_base::{Code, Result};
use acheron_store::Tx;
use acheron_vfs::Node;

pub use crate::services::symbols::open::Filling;
pub use env::AgentEnv;
pub use shared::{SharedParts, SharedServices};
pub use surroundings::{end_outdated_programs, serve_networks, surroundings};

/// Every service of one agent, one line each, and then those that the mountspec configures.
pub fn all(env: &AgentEnv) -> Result<Vec<Arc<dyn Serve>>> {
    let mut all = vec![
        typed(search_code::service(env))?,
        services::memory::served(memory::parts(env))?,
        typed(services::prompts::Prompts::new(prompts::parts(env)?)?)?,
        services::recall::served(recall::parts(env))?,
        typed(terminal(env))?,
        typed(mounts::service(env))?,
        typed(Symbols::new(env.host.shared.symbols.clone()))?,
        typed(services::phases::open::open(&env.home, &env.agent, phases::parts(env))?)?,
        typed(mail::service(env))?,
        typed(mail::queues(env))?,
        typed(services::agents::Agents::new(agents::parts(env)))?,
        typed(services::sub_brains::SubBrains::new(agents::helpers(env)?)?)?,
    ];
    match dm::parts(env).and_then(services::dm::service::served) {
        Ok(dm) => all.push(dm),
        // An agent may have put a link where its folder was: that must not keep the other agents out.
        Err(error) if error.code == Code::Forbidden => tracing::warn!(%error, "dm is not served"),
        Err(error) => return Err(error),
    }
    all.extend(configured(env)?);
    Ok(all)
}

fn terminal(env: &AgentEnv) -> Terminal {
    let shared = &env.host.shared;
    let (shells, programs) = (shared.shells.clone(), shared.programs.clone());
    let parts = TerminalParts { program: acheron_sandbox::program(), shells, programs };
    Terminal::new(&env.agent, parts, surroundings::of(env), &env.host.context.clock)
}

/// The services of one agent that follow from `services` in the mountspec.
pub fn configured(env: &AgentEnv) -> Result<Vec<Arc<dyn Serve>>> {
    let mut all = of_mountspec(&env.host, ServiceScope::Agent, &env.agent)?;
    all.push(web_search::served(&env.host)?);
    Ok(all)
}

/// The mailbox of the operator.
pub fn operator_mail(host: &HostState) -> Result<Arc<dyn Serve>> {
    typed(mail::of_operator(host))
}

/// What carries mail from and to other hosts.
#[cfg(feature = "fabric")]
pub fn mail_carrier(host: &HostState, link: &acheron_nats::Link) -> services::mail::carrier::MailCarrier {
    mail::carrier(host, link)
}

/// The queues that all hosts share are behind this connection from now on, or behind none.
#[cfg(feature = "fabric")]
pub fn share_queues(host: &HostState, link: Option<&acheron_nats::Link>) {
    mail::share_queues(host, link);
}

/// What has to be done before the rows of an agent are removed. Blocks.
pub fn before_purge(host: &HostState, agent: &str) -> Result<()> {
    host.shared.post.dead(&Address::Agent(agent.to_owned()))
}

/// Forgets what services remember of what is over.
pub async fn forget(host: &HostState, before_ms: u64) -> Result<()> {
    host.shared.post.mailbox.forget_ids(before_ms).await?;
    host.shared.queues.backend.forget(before_ms).await
}

/// The programs and servers of `services` in the mountspec that stand in the directory of `owner`.
pub fn of_mountspec(host: &Arc<HostState>, scope: ServiceScope, owner: &str) -> Result<Vec<Arc<dyn Serve>>> {
    let mut all = programs::served(host, scope)?;
    all.extend(mcp::served(host, scope, owner)?);
    Ok(all)
}

/// Removes for good what services keep of an agent outside its own directory, one line each.
pub fn purge(tx: &Tx<'_>, agent: &str) -> Result<()> {
    services::mail::purge(tx, agent)?;
    services::queues::purge(tx, &Principal::Agent(agent.to_owned()).to_string())?;
    services::memory::purge(tx, agent)?;
    services::phases::history::purge(tx, agent)
}

/// The directories of an agent that are no services, one line each.
pub fn agent_nodes(env: &AgentEnv) -> Result<Vec<(String, Node)>> {
    let chat = chat::open(env)?;
    let thoughts = chat.agent_runtime().thoughts.directory();
    Ok(vec![
        ("chat".to_owned(), Node::dir(chat.directory())), //
        ("model".to_owned(), Node::dir(env.host.shared.requests.directory(&env.agent)?)),
        ("thoughts".to_owned(), Node::dir(thoughts)),
    ])
}
