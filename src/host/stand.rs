//! A directory in which services stand: an agent's own, or the node's.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::House;
use super::nodes::NODE;
use crate::service::{Desk, Serve, directory};
use crate::services::{self, World};
use crate::spec::Scope;
use acheron_base::Result;
use acheron_vfs::{Listing, Node};

#[derive(Clone)]
pub struct Stand {
    /// An agent, or the node.
    owner: String,
    listing: Arc<Listing>,
}

impl Stand {
    pub fn new(owner: &str, listing: Arc<Listing>) -> Self {
        Stand { owner: owner.to_owned(), listing }
    }

    /// Lets go of everything that stands here.
    pub fn clear(&self) {
        self.listing.clear();
    }

    fn is_node(&self) -> bool {
        self.owner == NODE
    }

    /// The services of the mountspec that belong here, as it reads now.
    pub fn build(&self, house: &Arc<House>) -> Result<Vec<Arc<dyn Serve>>> {
        match self.is_node() {
            true => services::hands::programs(house, Scope::Node),
            false => services::configured(&World::new(house, &self.owner, house.office.diaries.of(&self.owner)?)?),
        }
    }

    /// Puts a service here.
    pub fn put(&self, house: &Arc<House>, serve: Arc<dyn Serve>) {
        let desk = match self.is_node() {
            true => {
                let path = format!("/{NODE}/services/{}", serve.contract().name);
                Desk::shared(&house.office, house.mounted_with.default_agent(), path, serve)
            }
            false => Desk::of(&house.office, &self.owner, serve),
        };
        house.office.seat(&self.owner, &desk);
        self.listing.put(desk.name(), Node::dir(directory(&desk)));
    }

    /// Of the services named in `changed`, puts those here that are among `services`, and takes the others away.
    pub fn serve(&self, house: &Arc<House>, changed: &BTreeSet<String>, services: Vec<Arc<dyn Serve>>) {
        let mut came = Vec::new();
        for serve in services.into_iter().filter(|serve| changed.contains(&serve.contract().name)) {
            came.push(serve.contract().name.clone());
            self.put(house, serve);
        }
        let gone = changed.iter().filter(|name| !came.contains(name) && house.office.desk(&self.owner, name).is_ok());
        let gone: Vec<&String> = gone.collect();
        for name in &gone {
            self.listing.take(name);
            house.office.unseat(&self.owner, name);
        }
        for (name, what) in
            came.iter().map(|name| (name, "changed")).chain(gone.into_iter().map(|name| (name, "removed")))
        {
            self.tell(house, name, what);
        }
    }

    /// An event for everybody who can call what is here.
    fn tell(&self, house: &House, name: &str, what: &str) {
        let ids = if self.is_node() { house.roster.ids() } else { vec![self.owner.clone()] };
        for diary in ids.iter().filter_map(|id| house.office.diaries.of(id).ok().map(|diary| (id, diary))) {
            let (id, diary) = diary;
            diary.changed(&format!("/agents/{id}/services/SERVICES.json"), json!({ "what": what, "service": name }));
        }
    }
}
