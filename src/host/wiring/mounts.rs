//! The service `mounts`, with the rule for paths of projects.

use std::sync::Arc;

use super::AgentEnv;
use crate::host::writable::writable_by;
use crate::policy::Principal;
use crate::services::mounts::Mounts;

pub fn service(env: &AgentEnv) -> Mounts {
    let (access, current) = (env.host.access.clone(), env.host.current.clone());
    let principal = Principal::Agent(env.agent.clone());
    let writable = move |path: &str| writable_by(&current.spec(), &access.policy(), &principal, path);
    Mounts::new(&env.agent, env.host.shared.bindings.clone(), Arc::new(writable))
}
