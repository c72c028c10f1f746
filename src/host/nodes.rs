//! `nodes/local`: this host, and the services that all agents share; and `nodes` itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::service_registry::ServiceRegistry;
use super::{HostState, upgrade};
use crate::service::ServiceContext;
use acheron_base::{Error, Result};
use acheron_sandbox::{Confinement, Level};
use acheron_vfs::{Answer, Caller, ComputedFile, Link, Listing, Node, live, pretty, rows, text};

/// Under whose name the shared services have their instances; no agent can be called so.
pub const NODE: &str = "nodes/local";

const README: &str = "\
# local

This host. `services/` has what all agents share; `STATUS.json` tells how it is, `CAPS.json` what it can do.
";

/// `/nodes`: this host, and the others as they are known.
pub fn root(host: &Arc<HostState>) -> Result<Arc<Listing>> {
    let nodes = Arc::new(Listing::timed(&host.context.clock).dir("local", directory(host)?));
    if let Some(fabric) = &host.current.mounted_with.fabric {
        nodes.put(&fabric.node, Node::link(OwnNode));
    }
    host.dirs.set_nodes(nodes.clone());
    Ok(nodes)
}

/// The name of this host among the others leads to `local`.
struct OwnNode;

impl Link for OwnNode {
    fn target(&self, _caller: &Caller) -> Result<String> {
        Ok("local".to_owned())
    }
}

fn directory(host: &Arc<HostState>) -> Result<Listing> {
    let (status, context) = (Arc::downgrade(host), host.context.clone());
    let services = live(move |_| Ok(rows(&services(&context))));
    let services = Arc::new(Listing::timed(&host.context.clock).file("SERVICES.json", services));
    let stand = ServiceRegistry::new(NODE, services.clone());
    for serve in stand.build(host)? {
        stand.put(host, serve);
    }
    host.dirs.set_local(stand);
    Ok(Listing::default()
        .file("README.md", text(README))
        .file("CAPS.json", capable(host))
        .file("STATUS.json", live(move |caller| Ok(pretty(&super::meta::health(&upgrade(&status)?, caller)))))
        .with("services", Node::Dir(services)))
}

/// The capabilities of this machine. Its sandbox is probed at the first read.
fn capable(host: &Arc<HostState>) -> ComputedFile {
    let (runtime, host) = (host.context.runtime.clone(), Arc::downgrade(host));
    let tried: [Arc<tokio::sync::OnceCell<_>>; 2] = Default::default();
    ComputedFile::fetched(move |_| {
        let accepted = upgrade(&host).is_ok_and(|host| host.current.spec().sandbox.require == Some(Level::Landlock));
        let tried = tried[usize::from(accepted)].clone();
        // Processes are started by the runtime, not by the reader's thread.
        let trying = runtime.spawn(async move { pretty(&caps(tried.get_or_init(|| confinement(accepted)).await)) });
        Answer::soon(async move { trying.await.map_err(|err| Error::internal(err.to_string())) })
    })
}

/// The walls around programs; those of the second level only where the mountspec accepts it.
async fn confinement(accepted: bool) -> Result<(Level, Confinement)> {
    let program = acheron_sandbox::program();
    match accepted {
        true => acheron_sandbox::tried(&program).await,
        false => acheron_sandbox::probe(&program).await.map(|confinement| (Level::Namespaces, confinement)),
    }
}

fn caps(walls: &Result<(Level, Confinement)>) -> Value {
    let sandbox = match walls {
        Ok((level, confinement)) => json!({
            "complete": confinement.missing().next().is_none(),
            "level": level,
            "mechanisms": confinement,
            "not_held": level.not_held(),
        }),
        Err(error) => json!({ "complete": false, "mechanisms": [], "error": error }),
    };
    json!({
        "sandbox": sandbox,
        "binds": if super::binds::may_mount() { "kernel" } else { "mirrored" },
        "node_id": "local",
        "layout": crate::spec::LAYOUT,
        "version": env!("CARGO_PKG_VERSION"),
        "system": std::env::consts::OS,
        "machine": std::env::consts::ARCH,
    })
}

fn services(context: &ServiceContext) -> Vec<Value> {
    let instances = context.instances_of(NODE);
    instances.iter().map(|instance| json!({ "service_id": instance.name(), "service_path": instance.path() })).collect()
}
