//! The service `search_code`, with the directories that an agent may search.

use std::sync::Arc;

use super::AgentEnv;
use crate::services::search_code::{SearchCode, scope};

pub fn service(env: &AgentEnv) -> SearchCode {
    let host = &env.host;
    let (profiles, current, projects) = (host.profiles.clone(), host.current.clone(), host.projects.clone());
    let roots = Arc::new(move |agent: &str| {
        let own = profiles.get(agent).map(|profile| profile.spec.projects).unwrap_or_default();
        scope::bound(&current.spec(), &own, &|id, at| projects.source(id, at))
    });
    SearchCode::new(roots, host.shared.searches.clone())
}
