//! The arguments of `recall`: the agent's own wiki, or the one that the mountspec names.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::AgentEnv;
use super::env::CACHE;
use crate::host::upgrade;
use crate::services::recall::{RecallParts, by_model};
use acheron_base::ConfinedDir;
use acheron_recall::turn::Limits;

pub fn parts(env: &AgentEnv) -> RecallParts {
    let host = &env.host;
    let home = env.home.join("recall");
    let (speak, window) = by_model(Arc::new(env.model()));
    let room = env.room();
    let limits = host.current.mounted_with.recall.limits;
    let mut parts = RecallParts {
        agent: env.agent.clone(),
        context: Arc::downgrade(&host.context),
        clock: host.context.clock.clone(),
        wikis: host.shared.wikis.clone(),
        folder: home.join("store"),
        index: env.home.join(CACHE).join("recall.db"),
        open: Box::new({
            let room = room.clone();
            move |folder| Ok(ConfinedDir::create(folder)?.with_room(room.clone()))
        }),
        room,
        quotas: host.context.event_logs.quotas.clone(),
        home,
        prompts: host.shared.prompts.clone(),
        speak,
        limits: Limits {
            reads: limits.recalls,
            searches: limits.searches,
            generations: limits.generations,
            seconds: limits.seconds,
            ..Limits::default()
        },
        window,
    };
    if let Some(store) = &host.current.mounted_with.recall.store {
        let weak = Arc::downgrade(host);
        parts.folder = host.paths.here.join(store);
        parts.index = host.paths.state.join("recall").join(index_name(&parts.folder));
        parts.open = Box::new(move |folder| upgrade(&weak)?.folder(folder));
    }
    parts
}

/// The name of the index of a folder: a folder of its own for each, whatever it is called.
fn index_name(folder: &Path) -> String {
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}.db")
}
