//! The MCP servers of the mountspec that are services.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::programs;
use crate::host::{HostState, system_paths};
use crate::service::Serve;
use crate::services::external::{AT_ONCE, ProgramLaunch, launch};
use crate::services::mcp::{HttpServer, McpServerParts, McpService, ServerSource};
use crate::spec::{McpSpec, ServiceScope, ServiceSpec};
use acheron_base::Result;
use acheron_http::{Http, RetryPolicy, Secret};

/// How long a server may take to start, unless the mountspec says otherwise.
const START: Duration = Duration::from_secs(60);

/// The servers of this scope, by name, for the directory of `owner`.
pub fn served(host: &Arc<HostState>, scope: ServiceScope, owner: &str) -> Result<Vec<Arc<dyn Serve>>> {
    let current = host.current.spec();
    let named = current.services.iter().filter(|(_, service)| service.scope == scope);
    let named: Vec<_> = named.filter_map(|(name, service)| Some((name, service, service.mcp.as_ref()?))).collect();
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let programs = programs::parts(host, &current);
    let shown = system_paths::shown(host).unwrap_or_default();
    let serve = |(name, service, mcp): &(&String, &ServiceSpec, &McpSpec)| {
        let source = match &mcp.url {
            Some(url) => ServerSource::Url(Box::new(at_url(host, url, mcp))),
            None => {
                let launch = ProgramLaunch::new(service, programs.clone(), |path: &Path| shown.shows(path));
                ServerSource::Program(Box::new(launch))
            }
        };
        let (own, parts, at_url) = ((*service).clone(), programs.clone(), mcp.url.is_some());
        let parts = McpServerParts {
            name: (*name).clone(),
            agent: owner.to_owned(),
            about: service.about.clone(),
            settings: service.operations.clone(),
            source,
            start: mcp.start_ms.map_or(START, Duration::from_millis),
            concurrency: service.concurrency.unwrap_or(AT_ONCE) as usize,
            key: format!("{name} {}", serde_json::to_string(service).unwrap_or_default()),
            clock: host.context.clock.clone(),
            servers: host.shared.mcp_servers.clone(),
            runtime: host.context.runtime.clone(),
            flagged: Box::new(move |contract| {
                let contract = launch::flagged(contract, &own, &parts).flag("mcp");
                if at_url { contract.flag("network") } else { contract }
            }),
        };
        Ok(Arc::new(McpService::new(parts)?) as Arc<dyn Serve>)
    };
    named.iter().map(serve).collect()
}

fn at_url(host: &HostState, url: &str, mcp: &McpSpec) -> HttpServer {
    // A call is not repeated: it may have happened.
    let policy = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let token = mcp.token_env.as_ref().and_then(|name| std::env::var(name).ok()).map(Secret::new);
    let http = Http::new(policy, host.context.clock.clone());
    HttpServer { http, url: url.to_owned(), token, random: host.context.ids.random().clone() }
}
