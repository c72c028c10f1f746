//! The arguments of `phases`.

use std::path::Path;
use std::sync::Arc;

use super::AgentEnv;
use crate::services::phases::open::{PhasesParts, speaker_of, token_budget_of};
use crate::services::symbols::catalogue::defaults_of_library;

pub fn parts(env: &AgentEnv) -> PhasesParts {
    let own = Arc::new(env.model());
    let library = env.host.paths.library.folder().map(Path::to_path_buf);
    PhasesParts {
        library: env.host.shared.prompts.clone(),
        symbol_store: env.host.shared.symbols.clone(),
        speaker: speaker_of(own.clone()),
        store: env.host.store.clone(),
        room: env.room(),
        clock: env.host.context.clock.clone(),
        random: env.host.context.ids.random().clone(),
        token_budget: token_budget_of(own),
        defaults: Arc::new(move || defaults_of_library(library.as_deref())),
    }
}
