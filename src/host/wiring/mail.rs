//! The arguments of `mail` and `queues`.

use std::sync::Arc;

use super::AgentEnv;
use crate::host::HostState;
use crate::services::mail::{Address, MailParts, MailService};
use crate::services::queues::QueuesService;

fn parts(host: &HostState) -> MailParts {
    let profiles = host.profiles.clone();
    MailParts {
        post: host.shared.post.clone(),
        access: host.access.clone(),
        has_agent: Arc::new(move |agent| profiles.has(agent)),
        ids: host.context.ids.clone(),
    }
}

pub fn service(env: &AgentEnv) -> MailService {
    MailService::new(parts(&env.host), Address::Agent(env.agent.clone()))
}

/// The mailbox of the operator.
pub fn of_operator(host: &HostState) -> MailService {
    MailService::new(parts(host), Address::Operator)
}

pub fn queues(env: &AgentEnv) -> QueuesService {
    let (queues, access) = (env.host.shared.queues.clone(), env.host.access.clone());
    QueuesService::new(queues, access, env.host.context.ids.clone(), &env.agent)
}
