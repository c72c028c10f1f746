//! The services that the mountspec offers, as it reads now: an edit adds, changes and removes them while the host is mounted.
//!
//! A faulty edit changes nothing, and health.json tells what is wrong with it. Whatever else is edited counts at the next
//! mount, and health.json names it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use serde::Serialize;
use serde_json::Value;

use super::House;
use crate::error::Result;
use crate::follow::{self, Following};
use crate::spec::{Service, Spec};

pub type Services = BTreeMap<String, Service>;

/// What is offered, and what became of the last edit.
pub struct Menu {
    services: RwLock<Arc<Services>>,
    edited: RwLock<Option<Edited>>,
}

/// How the last edit of the mountspec went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edited {
    pub at_ms: u64,
    /// Services that came, changed or went with it.
    pub services: BTreeSet<String>,
    /// Parts of the mountspec that count only at the next mount.
    pub at_next_mount: Vec<String>,
    /// Why nothing came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Menu {
    pub fn new(services: Services) -> Self {
        Menu { services: RwLock::new(Arc::new(services)), edited: RwLock::default() }
    }

    pub fn services(&self) -> Arc<Services> {
        self.services.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn edited(&self) -> Option<Edited> {
        self.edited.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn offer(&self, services: Arc<Services>) {
        *self.services.write().unwrap_or_else(PoisonError::into_inner) = services;
    }
}

/// Follows the file that the host was mounted from, as long as what it returns is held.
pub fn follow(house: &Arc<House>, file: &Path) -> Result<Following> {
    let mounted = Spec::load(file)?;
    let (weak, path) = (Arc::downgrade(house), file.to_owned());
    follow::file(file, move || {
        let Some(house) = weak.upgrade() else { return ControlFlow::Break(()) };
        let edited = edit(&house, &mounted, Spec::load(&path));
        match &edited.error {
            Some(error) => tracing::warn!(error, "the edited mountspec is not used"),
            None => {
                tracing::info!(services = ?edited.services, later = ?edited.at_next_mount, "the mountspec was edited");
            }
        }
        *house.menu.edited.write().unwrap_or_else(PoisonError::into_inner) = Some(edited);
        ControlFlow::Continue(())
    })
}

fn edit(house: &Arc<House>, mounted: &Spec, new: Result<Spec>) -> Edited {
    let at_ms = house.clock.now_ms();
    let made = new.and_then(|new| {
        let changed = changed(&house.menu.services(), &new.services);
        serve(house, &changed, new.services.clone())?;
        Ok(Edited { at_ms, services: changed, at_next_mount: other_parts(mounted, &new), error: None })
    });
    made.unwrap_or_else(|error| Edited {
        at_ms,
        services: BTreeSet::new(),
        at_next_mount: Vec::new(),
        error: Some(error.message),
    })
}

/// Serves what is new on the menu, everywhere, and takes away what is gone.
fn serve(house: &Arc<House>, changed: &BTreeSet<String>, services: Services) -> Result<()> {
    let before = house.menu.services();
    house.menu.offer(Arc::new(services));
    let places = house.residents.get().into_iter().flat_map(|it| it.stands()).chain(house.local.get().cloned());
    // All are built before any is seen: what cannot be built changes nothing.
    let built: Result<Vec<_>> = places.map(|stand| Ok((stand.build(house)?, stand))).collect();
    match built {
        Ok(built) => {
            for (services, stand) in built {
                stand.serve(house, changed, services);
            }
            Ok(())
        }
        Err(error) => {
            house.menu.offer(before);
            Err(error)
        }
    }
}

/// The services that are not what they were.
fn changed(old: &Services, new: &Services) -> BTreeSet<String> {
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    names.into_iter().filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

/// The parts of a spec, other than its services, that are not what they were.
fn other_parts(old: &Spec, new: &Spec) -> Vec<String> {
    let parts = |spec: &Spec| serde_json::to_value(spec).unwrap_or(Value::Null);
    let (old, new) = (parts(old), parts(new));
    let names: BTreeSet<&String> =
        [&old, &new].into_iter().filter_map(Value::as_object).flat_map(|parts| parts.keys()).collect();
    let counts = |name: &&String| !matches!(name.as_str(), "services" | "$schema");
    names.into_iter().filter(counts).filter(|name| old.get(*name) != new.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(services: Value, days: u64) -> Spec {
        let text = json!({ "agents": { "a": {} }, "services": services, "retention": { "days": days } }).to_string();
        Spec::check(&text).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn program(about: &str) -> Value {
        json!({ "command": ["true"], "about": about, "operations": { "go": {} } })
    }

    #[test]
    fn what_came_changed_and_went_is_found() {
        let old = spec(json!({ "same": program("1"), "other": program("1"), "gone": program("1") }), 1);
        let new = spec(json!({ "same": program("1"), "other": program("2"), "new": program("1") }), 1);
        let found: Vec<String> = changed(&old.services, &new.services).into_iter().collect();
        assert_eq!(found, ["gone", "new", "other"]);
        assert_eq!(other_parts(&old, &new), [""; 0]);
    }

    #[test]
    fn what_counts_only_at_the_next_mount_is_named() {
        assert_eq!(other_parts(&spec(json!({}), 1), &spec(json!({ "new": program("1") }), 2)), ["retention"]);
    }
}
