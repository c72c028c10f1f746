//! The arguments of `dm`.

use std::path::Path;
use std::time::Duration;

use super::AgentEnv;
use crate::services::dm::service::DmParts;
use crate::services::dm::store::GameLibrary;
use acheron_base::{ConfinedDir, Result};

pub fn parts(env: &AgentEnv) -> Result<DmParts> {
    let (host, spec) = (&env.host, &env.host.current.mounted_with.dm);
    let root = match &spec.root {
        Some(root) => host.folder(Path::new(root))?,
        None => ConfinedDir::create(env.home.join("dm"))?.with_room(env.room()),
    };
    Ok(DmParts {
        root,
        model: host.models().other(&env.agent, spec.narrator.clone().unwrap_or_default()),
        narrator_limit: Duration::from_secs(spec.narrator_seconds),
        prompts: host.shared.prompts.clone(),
        library: GameLibrary::new(host.paths.library.folder().map(Path::to_path_buf)),
        clock: host.context.clock.clone(),
    })
}
