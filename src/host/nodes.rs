//! `nodes/local`: this host, and the services that all agents share.

use std::sync::Arc;

use serde_json::{Value, json};

use super::House;
use crate::error::Result;
use crate::service::{self, Desk};
use crate::services::hands;
use crate::spec::Scope;
use crate::vfs::{Listing, live, pretty, text};

/// Under whose name the shared services have their desks; no agent can be called so.
pub const NODE: &str = "nodes/local";

const README: &str = "\
# local

This host. `services/` has what all agents share; `STATUS.json` tells how it is, `CAPS.json` what it can.
";

pub fn directory(house: &Arc<House>) -> Result<Listing> {
    let (status, list) = (house.clone(), house.clone());
    let mut services = Listing::default().file("SERVICES.json", live(move |_| Ok(pretty(&services(&list)))));
    for serve in hands::programs(house, Scope::Node)? {
        let path = format!("/{NODE}/services/{}", serve.contract().name);
        let desk = Desk::shared(&house.office, house.spec.default_agent(), path, serve);
        house.office.seat(NODE, &desk);
        services = services.dir(desk.name(), service::directory(&desk));
    }
    Ok(Listing::default()
        .file("README.md", text(README))
        .file("CAPS.json", text(pretty(&caps())))
        .file("STATUS.json", live(move |_| Ok(pretty(&super::meta::health(&status)))))
        .dir("services", services))
}

fn caps() -> Value {
    json!({
        "node_id": "local",
        "layout": crate::spec::LAYOUT,
        "version": env!("CARGO_PKG_VERSION"),
        "system": std::env::consts::OS,
        "machine": std::env::consts::ARCH,
    })
}

fn services(house: &House) -> Value {
    let desks = house.office.desks_of(NODE);
    desks.iter().map(|desk| json!({ "service_id": desk.name(), "service_path": desk.path() })).collect()
}
