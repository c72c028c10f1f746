//! The arguments of `mail` and `queues`.

use std::sync::Arc;

use super::AgentEnv;
use crate::host::HostState;
#[cfg(feature = "fabric")]
use crate::services::mail::carrier::MailCarrier;
#[cfg(feature = "fabric")]
use crate::services::mail::receive::Reception;
use crate::services::mail::{Address, MailParts, MailService};
use crate::services::queues::QueuesService;
#[cfg(feature = "fabric")]
use crate::services::queues::far::{FabricQueue, FarQueue};

fn parts(host: &HostState) -> MailParts {
    let profiles = host.profiles.clone();
    MailParts {
        post: host.shared.post.clone(),
        access: host.access.clone(),
        has_agent: Arc::new(move |agent| profiles.has(agent)),
        ids: host.context.ids.clone(),
        node: host.current.mounted_with.fabric.as_ref().map(|fabric| fabric.node.clone()),
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
    QueuesService::new(env.host.shared.queues.clone(), env.host.context.ids.clone(), &env.agent)
}

/// What carries mail from and to other hosts.
#[cfg(feature = "fabric")]
pub fn carrier(host: &HostState, link: &acheron_nats::Link) -> MailCarrier {
    let MailParts { post, access, has_agent, ids, .. } = parts(host);
    let reception = Reception { post, access, has_agent, node: link.node().to_owned() };
    MailCarrier { link: link.clone(), reception, ids }
}

#[cfg(feature = "fabric")]
pub fn share_queues(host: &HostState, link: Option<&acheron_nats::Link>) {
    let queue = link.filter(|_| !host.shared.queues.far.is_empty()).map(|link| {
        let (quotas, ids) = (host.context.event_logs.quotas.clone(), host.context.ids.clone());
        let queue: Arc<dyn FarQueue> = Arc::new(FabricQueue::new(link.clone(), quotas, ids));
        (queue, host.context.runtime.clone())
    });
    host.shared.queues.far.set(queue);
}
