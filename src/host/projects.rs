//! `projects/`: directories of this machine, by name.

use std::sync::Arc;

use serde_json::json;

use super::House;
use crate::spec::Project;
use crate::vfs::{Listing, Node, pretty, text};

pub fn directory(house: &Arc<House>) -> Listing {
    let listing = Listing::default();
    for (id, project) in &house.spec.projects {
        listing.put(id, Node::dir(one(id, project)));
    }
    listing
}

fn one(id: &str, project: &Project) -> Listing {
    let binds: Vec<_> = project
        .binds
        .iter()
        .map(|(at, bind)| json!({ "bind_path": at, "target_path": bind.path, "read_only": bind.read_only }))
        .collect();
    let readme = format!("# {id}\n\n{}\n\n`meta.json` tells which directories it binds.\n", project.about);
    Listing::default()
        .file("README.md", text(readme))
        .file("meta.json", text(pretty(&json!({ "project_id": id, "about": project.about, "binds": binds }))))
}
