//! `agents/`: those who live here, and `self`.

use crate::policy::PrincipalCaller;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use serde_json::{Value, json};

use super::House;
use super::stand::Stand;
use crate::events::{self, Diary};
use crate::jobs;
use crate::policy::{Action, Principal};
use crate::service::{Desk, directory};
use crate::services::{self, World};
use acheron_base::ConfinedDir;
use acheron_base::{Error, Result};
use acheron_vfs::{Access, AccessControl, Caller, Dir, Link, Listing, Node, live, rows};

const README: &str = "\
# services

`SERVICES.json` lists what this agent can call. Each service is a directory: read its `README.md`, write a command to
`control/<op>.json`, read `result.json`.
";

/// The agents of the host.
pub struct Residents {
    listing: Arc<Listing>,
    homes: Mutex<BTreeMap<String, Arc<Listing>>>,
}

impl Residents {
    pub fn new(house: &Arc<House>) -> Arc<Self> {
        let listing = Arc::new(Listing::default().link("self", Own(Arc::downgrade(house))));
        Arc::new(Residents { listing, homes: Mutex::default() })
    }

    pub fn directory(self: &Arc<Self>) -> Arc<dyn Dir> {
        self.listing.clone()
    }

    /// Lets everybody of the spec move in.
    pub fn open(self: &Arc<Self>, house: &Arc<House>) -> Result<()> {
        for id in house.roster.ids() {
            self.move_in(house, &id)?;
        }
        Ok(())
    }

    /// Takes the directory of an agent away, and ends what it was doing.
    pub fn move_out(&self, house: &House, id: &str) {
        self.listing.take(id);
        self.homes().remove(id);
        house.shared.crew.leave(id);
        house.shared.shells.leave(id);
        for desk in house.office.desks_of(id) {
            house.office.unseat(id, desk.name());
        }
    }

    /// Lets everybody go, with all that they hold.
    pub fn clear(&self) {
        self.listing.clear();
        self.homes().clear();
    }

    fn homes(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Listing>>> {
        self.homes.lock()
    }

    /// Where services of agents stand.
    pub fn stands(&self) -> Vec<Stand> {
        self.homes().iter().map(|(id, home)| Stand::new(id, home.clone())).collect()
    }

    /// Makes the directory of an agent.
    pub fn move_in(self: &Arc<Self>, house: &Arc<House>, id: &str) -> Result<()> {
        let diary = house.office.diaries.of(id)?;
        let world = World::new(house, id, diary.clone())?;
        let mut home = Listing::default()
            .dir("jobs", jobs::files::directory(&house.office.book, id))
            .dir("events", events(house, &diary))
            .dir("services", services_directory(house, id));
        for serve in services::all(&world)? {
            let desk = Desk::of(&house.office, id, serve);
            house.office.seat(id, &desk);
            home = home.dir(desk.name(), directory(&desk));
        }
        for (name, node) in services::rooms(&world)? {
            home = home.with(&name, node);
        }
        let home = Arc::new(home);
        house.shared.bindings.settle(&format!("/agents/{id}"), &home, ConfinedDir::create(&world.home)?)?;
        self.homes().insert(id.to_owned(), home.clone());
        self.listing.put(id, Node::Dir(home));
        // What cannot wake it any more, as a job that is gone, must not keep it out.
        if let Err(error) = house.shared.crew.set_alarms(id, &world.spec.wake) {
            tracing::warn!(agent = id, %error, "an agent's rules of waking are not at work");
        }
        Ok(())
    }
}

fn events(house: &Arc<House>, diary: &Arc<Diary>) -> Listing {
    let (reach, may) = (house.clone(), house.gate.clone());
    let reach = move |caller: &Caller, agent: &str| {
        if !reach.roster.has(agent) {
            return Err(Error::not_found(format!("there is no agent `{agent}`")));
        }
        reach.gate.check(caller, Access::Invoke, &format!("/agents/{agent}/events/control/signal.json"))?;
        reach.office.diaries.of(agent)
    };
    let may = move |caller: &Caller, path: &str| may.check(caller, Access::Read, path);
    events::files::directory(diary, &house.office.book, Arc::new(reach), Arc::new(may))
}

/// `services/`: what there is to call.
fn services_directory(house: &Arc<House>, agent: &str) -> Listing {
    let (listed, told, agent) = (house.clone(), house.clone(), agent.to_owned());
    let page = agent.clone();
    Listing::default()
        .file("README.md", live(move |caller| Ok(readme(&services_of(&told, &page, caller)).into())))
        .file("SERVICES.json", live(move |caller| Ok(rows(&services_of(&listed, &agent, caller)))))
}

/// The services for people: a line each.
fn readme(services: &[Value]) -> String {
    let lines = services.iter().map(|service| {
        let word = |key: &str| service[key].as_str().unwrap_or_default();
        format!("- `{}`: {}\n", word("service_id"), word("about"))
    });
    format!("{README}\n{}", lines.collect::<String>())
}

/// Everything that `agent` can call, as `reader` would write its paths.
pub fn services_of(house: &House, agent: &str, reader: &Caller) -> Vec<Value> {
    let own = matches!(reader.principal(), Principal::Agent(id) if id == agent);
    let shown = |path: &str| match path.strip_prefix(&format!("/agents/{agent}/")) {
        Some(rest) if own => format!("/agents/self/{rest}"),
        _ => path.to_owned(),
    };
    let entry = |desk: &Desk, scope: &str| {
        let (contract, path) = (desk.contract(), shown(desk.path()));
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
    let mut all: Vec<Value> = house.office.desks_of(agent).iter().map(|desk| entry(desk, "agent_namespace")).collect();
    let shared = house.office.desks_of(super::nodes::NODE);
    let may = |desk: &Desk| {
        let agent = Principal::Agent(agent.to_owned());
        crate::policy::authorize(&house.gate.policy(), &agent, Action::Read, desk.path()).allowed
    };
    all.extend(shared.iter().filter(|desk| may(desk)).map(|desk| entry(desk, "node")));
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

/// `self`: each caller's own directory, and the default agent's for the operator.
struct Own(Weak<House>);

impl Link for Own {
    fn target(&self, caller: &Caller) -> Result<String> {
        match caller.principal() {
            Principal::Agent(id) => Ok(id.clone()),
            Principal::Operator => {
                let house = self.0.upgrade().ok_or_else(|| Error::unavailable("the host is going down"))?;
                Ok(house.current.spec().default_agent().to_owned())
            }
            Principal::Nobody => Err(Error::forbidden("the process that asks is gone or unknown")),
        }
    }
}
