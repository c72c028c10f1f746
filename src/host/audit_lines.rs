//! The lines of the audit that the host writes about itself: that it starts and stops, and that its rules have changed.

use serde_json::to_vec;

use super::HostState;
use super::edit::ChangedParts;
use crate::spec::Spec;
use crate::state::audit::{self, Record, digest};
use acheron_store::Store;

/// The host answers from now on. The line is sealed, so that it anchors all lines before it.
pub fn started(host: &HostState) {
    let record = Record::new(host.context.clock.now_ms(), "start").with("version", env!("CARGO_PKG_VERSION"));
    write(&host.store, record.with("pid", std::process::id()).with("mountspec", spec_digest(&host.current.spec())));
}

/// The host goes down in good order.
pub fn stopped(host: &HostState) {
    write(&host.store, Record::new(host.context.clock.now_ms(), "stop"));
}

/// An edit of the mountspec is in force.
pub fn policy_changed(host: &HostState, changed: &ChangedParts) {
    let names = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
    let record = Record::new(host.context.clock.now_ms(), "policy")
        .with("services", names(&changed.services))
        .with("agents", names(&changed.agents))
        .with("projects", names(&changed.projects));
    write(&host.store, record.with("mountspec", spec_digest(&host.current.spec())));
}

fn spec_digest(spec: &Spec) -> serde_json::Value {
    digest(&to_vec(spec).unwrap_or_default())
}

/// Nobody waits for it: the writer completes what is queued even when the host goes down.
fn write(store: &Store, record: Record) {
    drop(store.write(move |tx| {
        audit::note(tx, &record);
        Ok(())
    }));
}
