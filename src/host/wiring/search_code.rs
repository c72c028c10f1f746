//! The service `search_code`, with the directories that an agent may search.

use std::sync::Arc;

use super::AgentEnv;
use crate::host::{upgrade, views};
use crate::services::search_code::{SearchCode, scope};

pub fn service(env: &AgentEnv) -> SearchCode {
    let host = &env.host;
    let searches = host.shared.searches.clone();
    let host = Arc::downgrade(host);
    let roots = Arc::new(move |agent: &str| {
        let Ok(host) = upgrade(&host) else { return Vec::new() };
        let own = host.profiles.get(agent).map(|profile| profile.spec.projects).unwrap_or_default();
        let find = |id: &str, at: &str| match views::source(&host, agent, id) {
            Ok(Some(view)) if at.trim_matches('/').is_empty() => Some(view),
            Ok(_) => host.projects.source(id, at),
            // A view that is not there is no reason to search the project itself.
            Err(_) => None,
        };
        scope::bound(&host.current.spec(), &own, &find)
    });
    SearchCode::new(roots, searches)
}
