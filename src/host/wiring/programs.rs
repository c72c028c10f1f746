//! The programs of the mountspec that are services.

use std::path::Path;
use std::sync::Arc;

use super::surroundings::surroundings;
use crate::host::{HostState, programs, system_paths, upgrade};
use crate::service::Serve;
use crate::services::external::{Program, ProgramParts};
use crate::spec::{ServiceScope, ServiceSpec, Spec};
use acheron_base::Result;

/// The programs of this scope, by name.
pub fn served(host: &Arc<HostState>, scope: ServiceScope) -> Result<Vec<Arc<dyn Serve>>> {
    let current = host.current.spec();
    let named = current.services.iter().filter(|(_, service)| !service.command.is_empty() && service.scope == scope);
    let parts = parts(host, &current);
    let shown = system_paths::shown(host).unwrap_or_default();
    let program = |(name, service): (&String, &ServiceSpec)| {
        let program = Program::new(name, service, parts.clone(), |path: &Path| shown.shows(path))?;
        Ok(Arc::new(program) as Arc<dyn Serve>)
    };
    named.map(program).collect()
}

/// What programs are built from.
pub fn parts(host: &Arc<HostState>, current: &Spec) -> ProgramParts {
    let (around, trusting) = (Arc::downgrade(host), Arc::downgrade(host));
    ProgramParts {
        here: host.paths.here.clone(),
        around: Arc::new(move |agent, look| surroundings(&*upgrade(&around)?, agent, look)),
        programs: host.shared.programs.clone(),
        trusting: Arc::new(move |service| programs::trust(&*upgrade(&trusting)?, service)),
        withheld: programs::withheld(current, &host.paths.here).into_iter().map(|(name, _)| name).collect(),
        init: acheron_sandbox::program(),
    }
}
