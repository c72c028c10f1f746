//! A directory in which services stand: an agent's own, or the node's.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use super::HostState;
use super::nodes::NODE;
use super::wiring::{self, AgentEnv};
use crate::service::{Serve, ServiceInstance, ServicePlace, directory};
use crate::spec::ServiceScope;
use acheron_base::Result;
use acheron_vfs::{Listing, Node};

#[derive(Clone)]
pub struct ServiceRegistry {
    /// An agent, or the node.
    owner: String,
    listing: Arc<Listing>,
}

impl ServiceRegistry {
    pub fn new(owner: &str, listing: Arc<Listing>) -> Self {
        ServiceRegistry { owner: owner.to_owned(), listing }
    }

    fn is_node(&self) -> bool {
        self.owner == NODE
    }

    /// The services of the mountspec that belong here, as it reads now.
    pub fn build(&self, host: &Arc<HostState>) -> Result<Vec<Arc<dyn Serve>>> {
        match self.is_node() {
            true => wiring::of_mountspec(host, ServiceScope::Node, NODE),
            false => wiring::configured(&AgentEnv::new(host, &self.owner)?),
        }
    }

    /// Puts a service here.
    pub fn put(&self, host: &Arc<HostState>, serve: Arc<dyn Serve>) {
        let instance = self.instance(host, serve);
        {
            let _placing = host.dirs.placing();
            host.context.register(&self.owner, &instance);
            self.listing.put(instance.name(), Node::dir(directory(&instance)));
        }
        self.placed(host, &instance);
    }

    fn instance(&self, host: &Arc<HostState>, serve: Arc<dyn Serve>) -> Arc<ServiceInstance> {
        match self.is_node() {
            true => {
                let path = format!("/{NODE}/services/{}", serve.contract().name);
                ServiceInstance::shared(&host.context, host.current.mounted_with.default_agent(), path, serve)
            }
            false => ServiceInstance::of(&host.context, &self.owner, serve),
        }
    }

    /// Tells a service that stands here now where it stands.
    pub fn placed(&self, host: &Arc<HostState>, instance: &Arc<ServiceInstance>) {
        let (weak, owner) = (Arc::downgrade(host), self.owner.clone());
        // The listing holds the service, so the service does not hold the listing.
        let listing = Arc::downgrade(&self.listing);
        let now = Mutex::new(Arc::downgrade(instance));
        let renew = move |serve: Arc<dyn Serve>| {
            let (Some(host), Some(listing)) = (weak.upgrade(), listing.upgrade()) else { return false };
            let stand = ServiceRegistry { owner: owner.clone(), listing };
            let instance = stand.instance(&host, serve);
            let mut now = now.lock();
            {
                let _placing = host.dirs.placing();
                let known = host.context.instance(&owner, instance.name()).ok();
                if known.is_none_or(|known| Arc::as_ptr(&known) != now.as_ptr()) {
                    return false;
                }
                host.context.register(&owner, &instance);
                stand.listing.put(instance.name(), Node::dir(directory(&instance)));
                *now = Arc::downgrade(&instance);
            }
            stand.tell(&host, instance.name(), "changed");
            true
        };
        instance.serve().placed(ServicePlace::new(renew));
    }

    /// Of the services named in `changed`, puts those here that are among `services`, and takes the others away.
    pub fn serve(&self, host: &Arc<HostState>, changed: &BTreeSet<String>, services: Vec<Arc<dyn Serve>>) {
        let mut came = Vec::new();
        for serve in services.into_iter().filter(|serve| changed.contains(&serve.contract().name)) {
            came.push(serve.contract().name.clone());
            self.put(host, serve);
        }
        let gone =
            changed.iter().filter(|name| !came.contains(name) && host.context.instance(&self.owner, name).is_ok());
        let gone: Vec<&String> = gone.collect();
        for name in &gone {
            host.context.unregister(&self.owner, name);
            self.listing.take(name);
        }
        for (name, what) in
            came.iter().map(|name| (name, "changed")).chain(gone.into_iter().map(|name| (name, "removed")))
        {
            self.tell(host, name, what);
        }
    }

    /// Emits an event to every agent that can call these services.
    fn tell(&self, host: &HostState, name: &str, what: &str) {
        let ids = if self.is_node() { host.profiles.ids() } else { vec![self.owner.clone()] };
        for event_log in
            ids.iter().filter_map(|id| host.context.event_logs.of(id).ok().map(|event_log| (id, event_log)))
        {
            let (id, event_log) = event_log;
            event_log
                .changed(&format!("/agents/{id}/services/SERVICES.json"), json!({ "what": what, "service": name }));
        }
    }
}
