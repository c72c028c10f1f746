//! `agents/`: one directory per agent, and `self`.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::service_registry::ServiceRegistry;
use super::wiring::{self, AgentEnv};
use super::{HostState, PolicyAccess, upgrade};
use crate::events::{self, EventLog};
use crate::jobs;
use crate::policy::{Action, Principal, PrincipalCaller};
use crate::service::{ServiceContext, ServiceInstance, directory};
use acheron_base::{ConfinedDir, Error, Result};
use acheron_vfs::{Access, AccessControl, Caller, Dir, Link, Listing, Node, live, rows, text};

const README: &str = "\
# services

`SERVICES.json` lists what this agent can call. Each service is a directory: read its `README.md`, write a command to
`control/<op>.json`, read `result.json`.
";

/// The agents of the host.
pub struct AgentDirs {
    listing: Arc<Listing>,
    homes: Mutex<BTreeMap<String, Arc<Listing>>>,
}

impl AgentDirs {
    pub fn new(host: &Arc<HostState>) -> Arc<Self> {
        let listing = Arc::new(Listing::timed(&host.context.clock).link("self", SelfLink(Arc::downgrade(host))));
        Arc::new(AgentDirs { listing, homes: Mutex::default() })
    }

    pub fn directory(self: &Arc<Self>) -> Arc<dyn Dir> {
        self.listing.clone()
    }

    /// Starts every agent of the spec.
    pub fn open(self: &Arc<Self>, host: &Arc<HostState>) -> Result<()> {
        for id in host.profiles.ids() {
            self.move_in(host, &id)?;
        }
        Ok(())
    }

    /// Takes the directory of an agent away, and ends what it was doing.
    pub fn move_out(&self, host: &HostState, id: &str) {
        // Held until they are closed: nothing but the directory keeps them.
        let instances = host.context.instances_of(id);
        self.listing.take(id);
        self.homes().remove(id);
        host.shared.runtimes.remove(id);
        host.shared.shells.leave(id);
        host.shared.programs.rights_changed();
        host.shared.programs.end_where(id, |_| Some(format!("the agent {id} was deleted")));
        for instance in &instances {
            host.context.unregister(id, instance.name());
        }
    }

    fn homes(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Listing>>> {
        self.homes.lock()
    }

    /// Where services of agents stand.
    pub fn stands(&self) -> Vec<ServiceRegistry> {
        self.homes().iter().map(|(id, home)| ServiceRegistry::new(id, home.clone())).collect()
    }

    /// Makes the directory of an agent.
    pub fn move_in(self: &Arc<Self>, host: &Arc<HostState>, id: &str) -> Result<()> {
        let env = AgentEnv::new(host, id)?;
        let mut home = Listing::timed(&host.context.clock)
            .file(".ignore", text(super::pages::IGNORE_IN_AGENT))
            .file("timeline.ndjson", host.timelines.of(id))
            .file("timeline.ndjson.1", host.timelines.of(id).older())
            .dir("jobs", jobs::files::directory(&host.context.jobs, id))
            .dir("events", events(host, &env.event_log))
            .dir("permissions", crate::approvals::always::directory(&host.context.approvals, id))
            .dir("services", services_directory(host, id));
        let mut instances = Vec::new();
        for serve in wiring::all(&env)? {
            let instance = ServiceInstance::of(&host.context, id, serve);
            host.context.register(id, &instance);
            home = home.dir(instance.name(), directory(&instance));
            instances.push(instance);
        }
        for (name, node) in wiring::agent_nodes(&env)? {
            home = home.with(&name, node);
        }
        let home = Arc::new(home);
        host.shared.bindings.settle(&format!("/agents/{id}"), &home, ConfinedDir::create(&env.home)?)?;
        self.homes().insert(id.to_owned(), home.clone());
        self.listing.put(id, Node::Dir(home.clone()));
        let stand = ServiceRegistry::new(id, home);
        instances.iter().for_each(|instance| stand.placed(host, instance));
        // A wake rule that cannot apply any more, such as one for a lost job, must not prevent the start.
        if let Err(error) = host.shared.runtimes.set_wake_rules(id, &host.profiles.get(id)?.spec.wake) {
            tracing::warn!(agent = id, %error, "the wake rules of an agent are not in force");
        }
        Ok(())
    }
}

fn events(host: &Arc<HostState>, event_log: &Arc<EventLog>) -> Listing {
    let (profiles, access, context) = (host.profiles.clone(), host.access.clone(), host.context.clone());
    let may = access.clone();
    let reach = move |caller: &Caller, agent: &str| {
        // First, so that an agent that is not there is refused as one that may not be told anything.
        access.check(caller, Access::Invoke, &format!("/agents/{agent}/events/control/signal.json"))?;
        match profiles.has(agent) {
            true => context.event_logs.of(agent),
            false => Err(Error::not_found(format!("there is no agent `{agent}`"))),
        }
    };
    let may = move |caller: &Caller, path: &str| may.check(caller, Access::Read, path);
    events::files::directory(event_log, &host.context.jobs, Arc::new(reach), Arc::new(may))
}

/// `services/`: what there is to call.
fn services_directory(host: &Arc<HostState>, agent: &str) -> Listing {
    let (context, access) = (host.context.clone(), host.access.clone());
    let listed = Arc::new(Callable { context, access, agent: agent.to_owned() });
    let told = listed.clone();
    Listing::default()
        .file("README.md", live(move |caller| Ok(readme(&told.to(caller)).into())))
        .file("SERVICES.json", live(move |caller| Ok(rows(&listed.to(caller)))))
}

/// The services for people: a line each.
fn readme(services: &[Value]) -> String {
    let lines = services.iter().map(|service| {
        let word = |key: &str| service[key].as_str().unwrap_or_default();
        format!("- `{}`: {}\n", word("service_id"), word("about"))
    });
    format!("{README}\n{}", lines.collect::<String>())
}

/// The services that one agent can call.
struct Callable {
    context: Arc<ServiceContext>,
    access: Arc<PolicyAccess>,
    agent: String,
}

impl Callable {
    /// All of them, as `reader` would write their paths.
    fn to(&self, reader: &Caller) -> Vec<Value> {
        let agent = self.agent.as_str();
        let own = matches!(reader.principal(), Principal::Agent(id) if id == agent);
        let shown = |path: &str| match path.strip_prefix(&format!("/agents/{agent}/")) {
            Some(rest) if own => format!("/agents/self/{rest}"),
            _ => path.to_owned(),
        };
        let entry = |instance: &ServiceInstance, scope: &str| {
            let (contract, path) = (instance.contract(), shown(instance.path()));
            let has_invoke = !contract.operations.is_empty();
            json!({
                "node_id": "local",
                "service_id": contract.name,
                "service_path": path,
                "invoke_path": has_invoke.then(|| format!("{path}/control/invoke.json")),
                "has_invoke": has_invoke,
                "scope": scope,
                "about": contract.about.lines().next().unwrap_or_default(),
                "version": contract.version,
            })
        };
        let mut all: Vec<Value> =
            self.context.instances_of(agent).iter().map(|instance| entry(instance, "agent_namespace")).collect();
        let shared = self.context.instances_of(super::nodes::NODE);
        let may = |instance: &ServiceInstance| {
            let agent = Principal::Agent(agent.to_owned());
            crate::policy::authorize(&self.access.policy(), &agent, Action::Read, instance.path()).allowed
        };
        all.extend(shared.iter().filter(|instance| may(instance)).map(|instance| entry(instance, "node")));
        all.push(json!({
            "node_id": "local",
            "service_id": "library",
            "service_path": "/global/library",
            "invoke_path": null,
            "has_invoke": false,
            "scope": "global_namespace",
            "about": super::library::ABOUT,
            "version": env!("CARGO_PKG_VERSION"),
        }));
        all
    }
}

/// `self`: each caller's own directory, and the default agent's for the operator.
struct SelfLink(Weak<HostState>);

impl Link for SelfLink {
    fn target(&self, caller: &Caller) -> Result<String> {
        match caller.principal() {
            Principal::Agent(id) => Ok(id.clone()),
            Principal::Operator => Ok(upgrade(&self.0)?.current.spec().default_agent().to_owned()),
            Principal::Far(_) => Err(Error::forbidden("an agent of another host has no directory here")),
            Principal::Nobody => Err(Error::forbidden("the process that asks is gone or unknown")),
        }
    }
}
