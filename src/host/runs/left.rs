//! What an agent was before a program began to run as it: the next host takes the changes back if this one is killed.
//! Otherwise the agent would keep the model and the budget of the run, and whichever project has the name of its project next.
//! Used by the host.

use std::path::Path;

use crate::agent::profiles::Profile;
use acheron_base::{ConfinedDir, Error, Result, if_exists};

/// The directory of these notes in the state.
const FOLDER: &str = "runs";

fn folder(state: &Path) -> Result<ConfinedDir> {
    ConfinedDir::create(state.join(FOLDER))
}

/// Notes the profile that an agent will have again; safe on return.
pub fn note(state: &Path, agent: &str, after: &Profile) -> Result<()> {
    let json = serde_json::to_vec_pretty(after).map_err(|error| Error::internal(error.to_string()))?;
    folder(state)?.write(&format!("{agent}.json"), &json)
}

/// The agent has its profile again.
pub fn done(state: &Path, agent: &str) -> Result<()> {
    if_exists(folder(state)?.remove(&format!("{agent}.json"))).map(|_| ())
}

/// Gives agents their profiles again. Before any profile is read.
pub fn take_back(state: &Path) -> Result<()> {
    let notes = folder(state)?;
    for note in notes.list("")? {
        let Some(agent) = note.name.strip_suffix(".json") else { continue };
        let profile = notes.read(&note.name)?;
        ConfinedDir::create(state.join("agents"))?.write(&format!("{agent}/profile.json"), &profile)?;
        notes.remove(&note.name)?;
    }
    Ok(())
}
